"""File formats, colors and style shared by all plots; matplotlib is imported only when needed.

The colors are Okabe and Ito's, which color-blind readers can distinguish; each curve also has its
own dashes, so that a figure printed in gray remains readable.
"""

from __future__ import annotations

import io
from typing import Any, Literal, TypeAlias

from resvm_cli.errors import CommandLineError

Kind: TypeAlias = Literal["png", "svg", "pdf"]
KINDS: tuple[Kind, ...] = ("png", "svg", "pdf")
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)))
GRAY = "#767676"
WINNER_COLOR = COLORS[1]
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "svg.hashsalt": "resvm",  # identical figures give identical bytes
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


def kind_of(path: str, option: str = "--plot") -> Kind:
    """Return the file format by its extension; fail early if matplotlib is not installed."""
    ending = path.lower().rpartition(".")[2]
    if ending not in KINDS:
        raise CommandLineError(f"{option} must end in .png, .svg or .pdf, got '{path}'")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise CommandLineError(
            f"{option} needs matplotlib, which is not installed",
            "pip install 'resvm-cli[plot]', or pip install matplotlib",
        ) from None
    return ending


def saved(figure: Any, kind: Kind) -> bytes:
    """Return the figure as the bytes of a file, without dates."""
    target = io.BytesIO()
    metadata: dict[str, Any] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(target, format=kind, dpi=200, metadata=metadata[kind])
    return target.getvalue()
