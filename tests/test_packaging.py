"""Metadata repeated in the files of several tools is consistent."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from typing import Any

import pytest
import yaml

from resvm_cli import __version__
from tests.conftest import ROOT

tomllib = pytest.importorskip("tomllib")  # in Python 3.11 and later

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
RECIPE: dict[str, Any] = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text())
CITATION: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text())
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
SCRIPTS = [step["run"] for step in STEPS if "run" in step]


def supported_pythons() -> list[str]:
    prefix = "Programming Language :: Python :: "
    named = [line.removeprefix(prefix) for line in PROJECT["classifiers"]]
    return [version for version in named if re.fullmatch(r"3\.\d+", version)]


def rendered(platform: str) -> dict[str, Any]:
    """Render the bioconda recipe like conda-build: drop lines by selector, then apply Jinja."""
    environment = pytest.importorskip("jinja2").Environment()
    known = {"win": platform == "win", "osx": platform == "osx", "py": 310}
    lines = []
    for line in (ROOT / "packaging/bioconda/meta.yaml").read_text().splitlines():
        selector = re.search(r"# \[(.+)\]$", line)
        if selector is None or eval(selector[1], known):
            lines.append(line)
    text = environment.from_string("\n".join(lines)).render(
        PYTHON="python",
        compiler=lambda language: f"{language}_{platform}",
        stdlib=lambda language: f"stdlib_{language}_{platform}",
        pin_subpackage=lambda name, max_pin: f"{name} {max_pin}",
    )
    return yaml.safe_load(text)


def test_every_file_has_the_version_of_the_package():
    assert CITATION["version"] == RECIPE["context"]["version"] == __version__
    assert rendered("linux")["package"] == {"name": PROJECT["name"], "version": __version__}


def test_the_bioconda_recipe_is_the_conda_recipe_in_the_older_format():
    context = RECIPE["context"]

    def address_of(source: dict[str, str]) -> str:
        return re.sub(r"\$\{\{ (\w+) \}\}", lambda found: context[found[1]], source["url"])

    _, *solvers = RECIPE["source"]
    sources = {one["target_directory"]: (address_of(one), one["sha256"]) for one in solvers}
    for platform in ("linux", "osx"):
        recipe = rendered(platform)
        assert "skip" not in recipe["build"]
        found = {one["folder"]: (one["url"], one["sha256"]) for one in recipe["source"]}
        address, digest = found.pop("resvm")
        assert address.endswith(f"/resvm_cli-{__version__}.tar.gz")
        assert re.fullmatch("[0-9a-f]{64}", str(digest))
        assert found == sources
        assert recipe["requirements"]["run"] == RECIPE["requirements"]["run"]
        for part in ("build", "host"):
            openmp = "llvm-openmp" in recipe["requirements"][part]
            assert openmp == (platform == "osx")
        for name in ("summary", "license", "license_file"):
            assert recipe["about"][name] == RECIPE["about"][name]
    assert rendered("win")["build"]["skip"] is True


def test_every_file_of_the_package_is_shipped_except_c_sources():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    package = ROOT / "resvm_cli"
    shipped = {
        path for pattern in settings["package-data"]["resvm_cli"] for path in package.glob(pattern)
    }
    assert package / "commands" / "page.css" in shipped
    left = {path.suffix for path in package.rglob("*") if path.is_file() and path not in shipped}
    assert left <= {".py", ".pyc", ".c", ".h", ".so"}


def test_the_wheel_has_neither_experiments_nor_schemas():
    setuptools = pytest.importorskip("setuptools")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = setuptools.find_namespace_packages(str(ROOT), **settings["packages"]["find"])
    assert {name.partition(".")[0] for name in found} == {"resvm_cli"}
    assert list(settings["package-data"]) == ["resvm_cli"]
    assert not list((ROOT / "resvm_cli").rglob("*.schema.json"))


def test_the_oldest_python_is_the_one_required():
    assert PROJECT["requires-python"] == f">={supported_pythons()[0]}"


def test_every_supported_python_is_tried_and_has_a_wheel():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert WORKFLOW["jobs"]["quick"]["strategy"]["matrix"]["python"] == supported_pythons()
    tags = [f"cp{version.replace('.', '')}-*" for version in supported_pythons()]
    assert settings["build"] == tags
    build = next(step["env"]["CIBW_BUILD"] for step in STEPS if "CIBW_BUILD" in step.get("env", {}))
    assert all(fnmatch(tag.split("-")[0], build.split("-$")[0]) for tag in tags)


def test_the_workflow_makes_targets_that_there_are():
    makefile = (ROOT / "Makefile").read_text()
    made = [target for script in SCRIPTS for target in re.findall(r"^make (.+)$", script, re.M)]
    for target in " ".join(made).split():
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_conda_recipe_needs_what_the_package_needs():
    solvers = {"libsvm-official", "liblinear-official"}  # bundled with the conda package
    lines = [line.partition(";")[0] for line in PROJECT["dependencies"]]
    required = {re.sub(r"[<>=].*", "", line): line for line in lines}
    needed = {line.split()[0]: line for line in RECIPE["requirements"]["run"]}
    assert needed.pop("python") == f"python {PROJECT['requires-python']}"
    assert needed == {
        name: line.replace(">", " >", 1) for name, line in required.items() if name not in solvers
    }
    packed = " ".join(source.get("url", "") for source in RECIPE["source"])
    assert all(name.replace("-", "_") in packed for name in solvers)


@pytest.mark.parametrize("name", ["Dockerfile", "packaging/resvm.def"])
def test_containers_copy_files_that_there_are(name):
    text = (ROOT / name).read_text()
    if name == "Dockerfile":
        lines = re.findall(r"^COPY (?!--)(.+) \S+$", text, re.M)
        copied = " ".join(lines).split()
    else:
        copied = re.findall(r"^    (\S+) /source/", text, re.M)
    assert {"pyproject.toml", "setup.py", "README.md", "LICENSE", "resvm_cli"} == set(copied)
    assert all((ROOT / path).exists() for path in copied)


def test_extras_of_containers_are_extras():
    for name in ("Dockerfile", "packaging/resvm.def"):
        extras = re.findall(r'"\.\[(.+?)\]"', (ROOT / name).read_text())
        assert extras
        assert set(extras[0].split(",")) <= set(PROJECT["optional-dependencies"])


def test_the_citation_is_the_paper():
    paper = CITATION["preferred-citation"]
    assert [person["family-names"] for person in paper["authors"]] == [
        "Claesen",
        "De Smet",
        "Suykens",
        "De Moor",
    ]
    assert (paper["journal"], paper["year"]) == ("Neurocomputing", 2015)
    assert PROJECT["urls"]["Paper"].endswith(paper["doi"])
