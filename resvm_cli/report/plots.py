"""Figures for papers and screens, by matplotlib, which is imported only here and only when asked.

Colours are Okabe and Ito's, told apart by the colour-blind; each curve also has its own dashes, so
that a figure printed in grey still reads.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from resvm_cli.errors import CommandLineError

if TYPE_CHECKING:
    pass

Kind: TypeAlias = Literal["png", "svg", "pdf"]
KINDS: tuple[Kind, ...] = ("png", "svg", "pdf")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)))
GREY = "#767676"
WINNER_COLOUR = COLOURS[1]
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "svg.hashsalt": "resvm",  # the same figure, the same bytes
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


def kind_of(path: str, option: str = "--plot") -> Kind:
    """The format that a file's ending asks for; also whether it can be made, before any work."""
    ending = path.lower().rpartition(".")[2]
    if ending not in KINDS:
        raise CommandLineError(f"{option} is '{path}'; a name in .png, .svg or .pdf was expected")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise CommandLineError(
            f"{option} needs matplotlib, which is not installed",
            "pip install 'resvm-cli[plot]', or pip install matplotlib",
        ) from None
    return ending


def saved(figure: Any, kind: Kind) -> bytes:
    target = io.BytesIO()
    metadata: dict[str, Any] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(target, format=kind, dpi=200, metadata=metadata[kind])
    return target.getvalue()
