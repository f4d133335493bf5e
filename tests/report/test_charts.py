"""The scripts and the style of the pages parse: syntax errors are found without a browser.

tree-sitter brings whole grammars and depends on nothing outside Python, so that these tests are
never skipped; node, where there is one, also applies the rules beyond the grammar.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
import tree_sitter_css
import tree_sitter_javascript
from tree_sitter import Language, Node, Parser

from resvm_cli.errors import CommandLineError
from resvm_cli.report.charts import kind_of, page
from tests.conftest import ROOT
from tests.programs import run

LANGUAGES = {
    ".js": Language(tree_sitter_javascript.language()),
    ".css": Language(tree_sitter_css.language()),
}
ASSETS = sorted(path for path in (ROOT / "resvm_cli").rglob("*.*") if path.suffix in LANGUAGES)
SHARED = ROOT / "resvm_cli" / "report" / "charts.js"  # precedes the script of every page
PAGES = [path for path in ASSETS if path.suffix == ".js" and path != SHARED]


def faults(text: bytes, suffix: str) -> list[int]:
    """The lines where a file does not follow its grammar."""
    found = []

    def visit(node: Node) -> None:
        if node.is_error or node.is_missing:
            found.append(node.start_point[0] + 1)
        elif node.has_error:
            for child in node.children:
                visit(child)

    visit(Parser(LANGUAGES[suffix]).parse(text).root_node)
    if suffix == ".css":  # its grammar lets a string continue past the end of the line
        lines = enumerate(text.splitlines(), 1)
        found += [number for number, line in lines if line.count(b'"') % 2]
    return found


def declared(path: Path) -> list[str]:
    """The names that a script declares for the whole page."""
    found = []
    tree = Parser(LANGUAGES[".js"]).parse(path.read_bytes())
    for statement in tree.root_node.children:
        if statement.type == "function_declaration":
            found.append(statement.child_by_field_name("name").text.decode())
        elif statement.type == "lexical_declaration":
            for target in statement.named_children:
                pattern = target.child_by_field_name("name")
                found += re.findall(r"[\w$]+", pattern.text.decode())
    return found


def script(path: Path) -> bytes:
    """What a page runs, apart from its data."""
    parts = [
        b'"use strict";\nconst DATA = {};',
        *(one.read_bytes() for one in (SHARED, path)),
    ]
    return b"\n".join(parts)


def test_there_are_scripts_and_a_style():
    assert {path.name for path in ASSETS} >= {
        SHARED.name,
        "benchmark.js",
        "score.js",
        "ranking.js",
        "page.css",
    }


@pytest.mark.parametrize("path", ASSETS, ids=lambda path: path.name)
def test_every_asset_follows_its_grammar(path):
    assert faults(path.read_bytes(), path.suffix) == []


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".js", "function f(x { return x; }"),
        (".js", "const f = (x) => [x};"),
        (".js", "for (const x of y) { f(x);"),
        (".js", "const text = `${name`;"),
        (".js", 'const text = "one;\nf();'),
        (".js", "const const x = 1;"),
        (".css", "p { margin: 0;\nh1 { margin: 0; }"),
        (".css", "p { margin: 0; } }"),
        (".css", 'p { font: 1rem "Segoe UI, serif; }'),
    ],
)
def test_what_is_broken_is_noticed(suffix, text):
    assert faults(text.encode(), suffix)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_name_is_declared_twice_on_a_page(path):
    # a second const of the same name is a syntax error, although each file is valid
    names = Counter(["DATA", *declared(SHARED), *declared(path)])
    assert len(names) > 5
    assert [one for one, count in names.items() if count > 1] == []


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on the PATH")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_node_accepts_the_script_of_every_page(path, tmp_path):
    (tmp_path / "page.js").write_bytes(script(path))
    ran = run(["node", "--check", "page.js"], cwd=tmp_path)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("name", ["x", "x.gif", "png"])
def test_other_endings_are_refused(name):
    if name == "png":
        assert kind_of("A.PNG") == "png"
        return
    with pytest.raises(CommandLineError, match=r"\.png, \.svg or \.pdf"):
        kind_of(name)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_allows_its_own_script_and_style_alone(path):
    name = str(path.relative_to(ROOT / "resvm_cli"))
    data = {"id": "</script><script>alert(1)</script>"}
    text = page("<style>", name, data).decode()
    (policy,) = re.findall('Content-Security-Policy" content="(.*?)"', text)
    assert "unsafe" not in policy
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy
    assert page("<style>", name, data).decode() == text
