"""Self-contained HTML pages and matplotlib plots for reports.

A page holds its style, the chart functions, the data and one command's script. Its content security
policy forbids all network connections, so the page can be emailed and opened anywhere, and allows
only our own script and style, identified by their digests. Plots use the Okabe-Ito palette, whose
colors color-blind readers can distinguish. Each curve also has its own dash pattern, so that a
figure printed in gray remains readable. matplotlib is imported only when needed.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from html import escape
from typing import Any, Literal, TypeAlias

from resvm_cli import __version__
from resvm_cli.errors import CommandLineError
from resvm_cli.files.streams import as_unicode, package_text
from resvm_cli.report.terminal import as_json

POLICY = (
    "default-src 'none'; style-src {style}; script-src {script}; img-src data:;"
    " base-uri 'none'; form-action 'none'"
)
Kind: TypeAlias = Literal["png", "svg", "pdf"]
KINDS: tuple[Kind, ...] = ("png", "svg", "pdf")
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)))
GRAY = "#767676"
REFERENCE_LINE: dict[str, Any] = {"color": GRAY, "lw": 0.9, "ls": (0, (2, 2)), "zorder": 1}
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "svg.hashsalt": "resvm",  # identical figures give identical bytes
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


def page(title: str, script: str, data: dict[str, Any]) -> bytes:
    """Return a page that runs ``script`` with ``data`` as the constant ``DATA``.

    The script is a file in the package, such as commands/score/score.js.
    """
    content = json.dumps(as_json(data), allow_nan=False, separators=(",", ":"))
    # only these characters could end a script element or open a comment in it
    content = content.replace("<", "\\u003c").replace("\u2028", "\\u2028")
    style = f"\n{package_text('report/page.css')}"
    code = (
        '\n"use strict";\n'
        'const DATA = JSON.parse(document.getElementById("data").textContent);\n'
        f"{package_text('report/charts.js')}\n{package_text(script)}"
    )
    policy = POLICY.format(style=_digest(style), script=_digest(code))
    text = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="resvm {__version__}">
<link rel="icon" href="data:,">
<title>{escape(as_unicode(title))}</title>
<style>{style}</style>
</head>
<body>
<main id="page"></main>
<noscript>This page draws its charts with JavaScript; please enable it.</noscript>
<script type="application/json" id="data">{content}</script>
<script>{code}</script>
</body>
</html>
"""
    return text.encode("utf-8")


def _digest(content: str) -> str:
    """Return the digest that makes a content security policy allow an element's content."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def kind_of(path: str, option: str = "--plot") -> Kind:
    """Return the format given by a file's extension; fail early if matplotlib is not installed."""
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


def finish_pr_and_roc(pr: Any, roc: Any, chance: float) -> None:
    """Add chance lines, labels, grids and legends to plots of PR and ROC curves."""
    pr.plot([0, 1], [chance, chance], label=f"chance {chance:.3g}", **REFERENCE_LINE)
    roc.plot([0, 1], [0, 1], label="chance 0.5", **REFERENCE_LINE)
    pr.set(xlabel="recall", ylabel="precision", title="Precision and recall")
    roc.set(xlabel="false-positive rate", ylabel="true-positive rate (recall)", title="ROC")
    for axes in (pr, roc):
        axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.02), aspect="equal")
        axes.grid()
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False, handlelength=3.2,
            fontsize=8.5,
        )  # fmt: skip


def saved(figure: Any, kind: Kind, margin: float | None = None) -> bytes:
    """Return the figure as the bytes of a file, without dates.

    If a margin is given, in inches, the page is fitted to the drawing so that no title is cut off.
    """
    target = io.BytesIO()
    metadata: dict[str, Any] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    fitted = {} if margin is None else {"bbox_inches": "tight", "pad_inches": margin}
    figure.savefig(target, format=kind, dpi=200, metadata=metadata[kind], **fitted)
    return target.getvalue()
