"""What is said in several places for several tools is the same."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from typing import Any

import pytest
import yaml

from resvm_cli import __version__
from tests.conftest import ROOT
from tests.programs import run

tomllib = pytest.importorskip("tomllib")  # from 3.11 on

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


def test_every_file_has_the_version_of_the_package():
    assert CITATION["version"] == RECIPE["context"]["version"] == __version__


def test_the_oldest_python_is_the_one_required():
    assert PROJECT["requires-python"] == f">={supported_pythons()[0]}"


def test_every_supported_python_is_tried_and_has_a_wheel():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert WORKFLOW["jobs"]["quick"]["strategy"]["matrix"]["python"] == supported_pythons()
    tags = [f"cp{version.replace('.', '')}-*" for version in supported_pythons()]
    assert settings["build"] == tags
    build = next(step["env"]["CIBW_BUILD"] for step in STEPS if "CIBW_BUILD" in step.get("env", {}))
    assert all(fnmatch(tag.split("-")[0], build.split("-$")[0]) for tag in tags)


def test_steps_either_use_an_action_of_a_version_or_run_something():
    for step in STEPS:
        assert ("uses" in step) != ("run" in step), step
        assert "uses" not in step or re.fullmatch(r"[\w/-]+@v\d+", step["uses"]), step


def test_jobs_wait_for_jobs_that_there_are():
    for name, job in WORKFLOW["jobs"].items():
        assert "timeout-minutes" in job, name
        needs = job.get("needs", [])
        assert {needs} if isinstance(needs, str) else set(needs) <= set(WORKFLOW["jobs"])


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_step_is_sound_shell(script):
    plain = re.sub(r"\$\{\{.*?\}\}", "value", script)
    assert run(["bash", "-n", "-c", plain]).code == 0


def test_the_workflow_makes_targets_that_there_are():
    makefile = (ROOT / "Makefile").read_text()
    made = [target for script in SCRIPTS for target in re.findall(r"^make (.+)$", script, re.M)]
    for target in " ".join(made).split():
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_conda_recipe_needs_what_the_package_needs():
    solvers = {"libsvm-official", "liblinear-official"}  # packed along
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
