"""Sphinx configuration: HTML pages with the Furo theme, and manual pages from docs/commands/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes

FOLDER = Path(__file__).parent
PACKAGE = FOLDER.parent / "resvm_cli"

project = "resvm"
version = release = re.findall(r'__version__ = "(.*)"', (PACKAGE / "__init__.py").read_text())[0]
author = copyright = ""

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
autodoc_typehints = "none"  # docstrings have the types
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes are also members
copybutton_prompt_text = r">>> |\.\.\. |\$ |> "
copybutton_prompt_is_regexp = True
exclude_patterns = ["_build"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
smartquotes = False  # keep the two hyphens of --option
highlight_language = "none"

html_theme = "furo"
html_title = f"resvm {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_copyright = False
html_show_sphinx = False

man_show_urls = False


def summary(page: Path) -> str:
    """Return the first sentence of --help or, on the page of common options, of the page."""
    text = page.read_text().partition("\n\n")[2]
    return text.rpartition("## Description\n\n")[2].split("\n")[0].rstrip(".")


man_pages = [
    (
        f"commands/{page.stem}",
        "resvm" if page.stem == "resvm" else f"resvm-{page.stem}",
        summary(page),
        [],
        1,
    )
    for page in sorted((FOLDER / "commands").glob("*.md"))
    if page.stem != "index"
]


def without_links(app: Any, doctree: nodes.document, docname: str) -> None:
    """Replace links with their text in manual pages, where they cannot be followed."""
    del docname
    if app.builder.name == "man":
        for link in list(doctree.findall(nodes.reference)):
            link.replace_self(link.children)


def setup(app: Any) -> None:
    app.connect("doctree-resolved", without_links)
