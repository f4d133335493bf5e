"""Self-contained HTML pages: style, chart functions, data and one command's script.

The content security policy forbids all network connections, so a page can be emailed and opened
anywhere. It allows only the script and the style that we wrote, by their digests.
"""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import Any

from resvm_cli import __version__
from resvm_cli.files.streams import as_unicode, package_text
from resvm_cli.report.terminal import with_unicode_names

POLICY = (
    "default-src 'none'; style-src {style}; script-src {script}; img-src data:;"
    " base-uri 'none'; form-action 'none'"
)


def page(title: str, script: str, data: dict[str, Any]) -> bytes:
    """Return a page that runs ``script`` with ``data`` as the constant ``DATA``.

    The script is a file of the package, such as commands/score/score.js.
    """
    content = json.dumps(with_unicode_names(data), allow_nan=False, separators=(",", ":"))
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
<noscript>This page draws its charts with a script; please allow it.</noscript>
<script type="application/json" id="data">{content}</script>
<script>{code}</script>
</body>
</html>
"""
    return text.encode("utf-8")


def _digest(content: str) -> str:
    """Return an element's content as a source that a content security policy allows."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
