"""Outputs of commands are valid under docs/schemas/, which are closed and complete."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from resvm_cli import __version__, parameters
from tests.conftest import ROOT, few_members, write_svm

FOLDER = ROOT / "docs" / "schemas"
SUFFIX = ".schema.json"
COMMON, MANIFEST = "common", "manifest"
SCHEMAS: dict[str, dict[str, Any]] = {
    path.name.removesuffix(SUFFIX): json.loads(path.read_text())
    for path in sorted(FOLDER.glob(f"*{SUFFIX}"))
}
REGISTRY = Registry().with_resources(
    (name + SUFFIX, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)


class Work:
    """Runs commands in a folder and collects their outputs by schema."""

    def __init__(self, folder: Path, problem: Path, model: Path, resvm: Callable[..., Any]) -> None:
        self.folder, self.problem, self.model = folder, problem, model
        self.data = ("-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q")
        self.outputs: dict[str, list[Any]] = {}
        self._resvm = resvm

    def run(self, *arguments: object, code: int = 0) -> bytes:
        ran = self._resvm(*arguments, cwd=self.folder)
        assert ran.code == code, (arguments, ran.err)
        return ran.out

    def json(self, *arguments: object, code: int = 0) -> dict[str, Any]:
        """Run a command with --json; its output names the schema."""
        output = json.loads(self.run(*arguments, "--json", code=code))
        assert (output["version"], output["command"]) == (__version__, arguments[0])
        name = "part" if "part" in output else output["command"].replace("merge", "train")
        self.add(name, output)
        return output

    def add(self, name: str, *outputs: Any) -> None:
        self.outputs.setdefault(name, []).extend(outputs)

    def add_lines(self, name: str, lines: bytes) -> None:
        self.add(name, *map(json.loads, lines.splitlines()))


def use_models(work: Work) -> None:
    """Run train, merge and inspect, and collect manifests."""
    train = ("train", "--no-auto", *work.data, "--n-models", 2)
    (work.folder / "groups").write_text("".join(f"{number % 60}\n" for number in range(130)))
    (work.folder / "weights").write_text("0.5\n" * 30)
    poly = ("--weights", "weights", "-t", "poly", "--scale", "minmax")
    linear = ("-t", "linear", "--solver", "liblinear", "-B", 1)
    work.json(*train, *poly, "-o", "weighted")
    work.json(*train, *linear, "-o", "linear")
    work.json("train", "--no-auto", *work.data, "--method", "cwsvm", "-o", "cwsvm")
    work.json(*train, "--groups", "groups", "-o", "grouped")
    work.json(*train, "--scale", "quantile", "--feature-weights", "relevance:2", "-o", "scaled")
    write_svm(work.folder / "known.svm", np.arange(20.0).reshape(4, 5) / 7 - 1)
    work.json(*train, "-N", "known.svm", "-o", "negatives")
    for part in (1, 2):
        work.json(*train, "--task", f"{part}/2", "-o", f"part{part}")
    work.json("merge", "part1", "part2", "-q", "-o", "merged")
    work.json("inspect", "linear", "--weights")
    work.json("inspect", "linear", "--importance", *work.data)
    table = [f"{n},{n % 7},{'ab'[n % 2]},{'yes' if n < 20 else ''}" for n in range(60)]
    (work.folder / "table.csv").write_text("\n".join(["id,x,kind,known", *table]))
    columns = ("--id-column", "id", "--label-column", "known", "--positive-label", "yes")
    work.json(
        "train", "--no-auto", "--data", "table.csv", *columns, "--n-models", 2, "-q", "-o", "table"
    )
    for path in ("weighted", "grouped", "scaled", "negatives", "table"):
        work.add("manifest", work.json("inspect", path)["manifest"])


def use_tuning(work: Work) -> None:
    """Run tune, and collect its trials and best.json."""
    tune = ("tune", *work.data)
    narrow = ("--search", "random", "--trials", 2, "-c", "0.1..1", "-g", "0.1..0.2")
    poly = ("-t", "poly", "-d", "2", "-r", "1", "--n-models", 3, "--no-extend")
    work.json(*tune, *narrow, *poly, "--method", "bagging", "-o", "1")
    work.json(*tune, *narrow, "--n-models", 4, "--committee", 2, "-o", "2")
    informed = (*tune, "--search", "informed", "--n-models", 12)
    work.json(*informed, "-o", "3")
    one = (*informed, "--committee", 1)
    work.json(*one, "--feature-weights", "relevance", "-o", "weighted")
    work.json(*one, "-t", "tanimoto", "-o", "mean")
    # with two rows of P and one member, no candidate can be scored; the trials record why
    write_svm(work.folder / "few.svm", np.arange(10.0).reshape(2, 5) - 5)
    few = ("-P", "few.svm", "-U", work.problem / "unl.svm", "-q", "--n-models", 1)
    work.run("tune", *few, "--search", "random", "--trials", 2, "-o", "few", code=3)
    for path in ("1", "2", "3", "weighted", "mean"):
        work.add("best", json.loads((work.folder / path / "best.json").read_text()))
    for path in ("1", "3", "weighted", "few"):
        work.add_lines("trial", (work.folder / path / "trials.jsonl").read_bytes())


def use_predictions(work: Work) -> None:
    test = work.problem / "test.svm"
    work.json("predict", work.model, test, "-q", "-o", "test.pred")
    work.json("predict", work.model, test, "-q", "-T", "recall=0.5", "-o", "recall.pred")
    columns = ("--format", "jsonl", "--ids", "--votes", "--member-values")
    work.add_lines("prediction", work.run("predict", work.model, test, *columns, "--probability"))


def use_rankings(work: Work) -> None:
    rank = ("rank", *work.data, "--model", work.model)
    near = np.random.default_rng(3).standard_normal((20, 5)) - 1
    write_svm(work.folder / "negatives.svm", near)
    work.json(*rank, "--why", 2)
    work.json(*rank, "--audit")
    known = ("-N", "negatives.svm", "--no-auto", "--next", 5)
    work.json("rank", *work.data, *known)
    work.json("rank", *work.data, "-N", "negatives.svm", "--params", few_members(20), "--fdr", 0.9)
    overlapping = np.random.default_rng(3).standard_normal((160, 3))
    write_svm(work.folder / "pos.svm", overlapping[:40])
    write_svm(work.folder / "unl.svm", overlapping[40:])
    work.json("rank", "-P", "pos.svm", "-U", "unl.svm", "-q", "--params", few_members(30))
    linear = ("-t", "linear", "--no-auto", "--why", 2)
    work.add_lines("ranked-row", work.run("rank", *work.data, *linear, "--format", "jsonl"))
    work.json("rank", *work.data, *linear)
    for output in work.outputs["rank"]:
        work.add("ranked-row", *output["rows"])
        work.add("reasons", *(output["why"] or []))


def use_scores(work: Work) -> None:
    for name, more in (("a.pred", ()), ("b.pred", ("--decision", "mean"))):
        work.run("predict", work.model, work.problem / "test.svm", *more, "-o", name)
    score = ("score", "a.pred", "b.pred", "--labels", work.problem / "test.svm", "-q")
    work.json(*score, "--bootstrap", 20)
    work.json(*score, "--bootstrap", 0)
    work.json(*score, "--pu")
    work.json(*score, "--pu", "--contamination-pos", 0.1, "--contamination-unl", 0.2)


def use_data(work: Work) -> None:
    work.json("simulate", "--synthetic", "-q", "-o", "rings")
    (work.folder / "bad.svm").write_text("1 1:2 2:2 3:0\nx\n1 1:2 2:2 4:1000\n")
    work.json("check", work.problem / "pos.svm", "bad.svm", code=3)
    (work.folder / "table.csv").write_text("a,b\n1,2\n3,x\n")
    work.json("convert", "table.csv", "--categorical", "b", "--map", "map.json", "-o", "table.svm")
    work.add("feature-map", json.loads((work.folder / "map.json").read_text()))
    labeled = ("--data", "table.csv", "--label-column", "b", "--positive-label", "x", "-q")
    work.run("train", "--no-auto", *labeled, "--n-models", 1, "-o", "model")
    manifest = json.loads((work.folder / "model" / "manifest.json").read_text())
    work.add("feature-map", manifest["encoding"])
    (work.folder / "molecules.csv").write_text("smiles\nCCO\nCCN\n")
    molecules = ("convert", "molecules.csv", "--smiles-column", "smiles", "--bits", 16)
    work.run(*molecules, "--map", "bits.json", "-o", "molecules.svm")
    work.add("feature-map", json.loads((work.folder / "bits.json").read_text()))


# the schemas whose keys all occur in the outputs of each function
MAKERS: dict[Callable[[Work], None], tuple[str, ...]] = {
    use_models: ("train", "part", "inspect", "manifest"),
    use_tuning: ("tune", "trial", "best"),
    use_predictions: ("predict", "prediction"),
    use_rankings: ("rank", "ranked-row", "reasons"),
    use_scores: ("score",),
    use_data: ("simulate", "check", "convert", "feature-map"),
}


@pytest.fixture(scope="module", params=MAKERS, ids=lambda maker: maker.__name__[4:])
def outputs(request, problem, model, resvm, tmp_path_factory) -> dict[str, list[Any]]:
    work = Work(tmp_path_factory.mktemp("outputs"), problem, model, resvm)
    request.param(work)
    assert set(work.outputs) == set(MAKERS[request.param])
    return work.outputs


@cache
def referred(reference: str, name: str) -> tuple[dict[str, Any], str]:
    """Return what a reference in schema ``name`` refers to, and the schema that contains it."""
    file, _, pointer = reference.partition("#")
    name = file.removesuffix(SUFFIX) or name
    part = SCHEMAS[name]
    for key in pointer.split("/")[1:]:
        part = part[key]
    return part, name


def flat(schema: dict[str, Any], name: str) -> tuple[dict[str, Any], str]:
    """Follow references; what stands beside a reference replaces what it refers to."""
    if "$ref" not in schema:
        return schema, name
    own = {key: value for key, value in schema.items() if key != "$ref"}
    part, name = flat(*referred(schema["$ref"], name))
    return {**part, **own}, name


def validator(reference: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": reference}, registry=REGISTRY)


def faults(name: str, output: Any) -> list[str]:
    found = validator(name + SUFFIX).iter_errors(output)
    return [f"{error.json_path}: {error.message[:200]} {error.context}" for error in found]


def objects(
    schema: dict[str, Any], name: str, value: Any, path: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any], str]]:
    """Yield the path of each JSON object in a value, its schema and the name of the schema file."""
    schema, name = flat(schema, name)
    for choice in schema.get("oneOf", []):
        if "$ref" in choice:
            file, hash_sign, pointer = choice["$ref"].partition("#")
            whole = (file or name + SUFFIX) + hash_sign + pointer
            if validator(whole).is_valid(value):
                yield from objects(choice, name, value, path)
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from objects(schema["items"], name, item, (*path, number))
    if isinstance(value, dict) and schema.get("type"):
        yield path, schema, name
        for key, item in value.items():
            own = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if isinstance(own, dict):
                yield from objects(own, name, item, (*path, key))


def described(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield all object schemas inside a schema, without following references."""
    if isinstance(schema, dict):
        if "properties" in schema and "type" in schema:
            yield schema
        for key, part in schema.items():
            if key != "not":
                yield from described(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from described(part)


def at(output: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        output = output[step]
    return output


def test_every_schema_is_tried():
    tried = [name for names in MAKERS.values() for name in names]
    assert sorted(tried) == sorted(set(SCHEMAS) - {COMMON})


def test_real_outputs_fit_their_schemas(outputs):
    assert {
        name: bad for name in outputs for one in outputs[name] if (bad := faults(name, one))
    } == {}


def definition(schema: dict[str, Any], name: str) -> int:
    """Return the identity of the schema at the end of a chain of references."""
    while "$ref" in schema:
        schema, name = referred(schema["$ref"], name)
    return id(schema)


def test_every_key_of_a_schema_is_in_a_real_output(outputs):
    seen = set()
    for name, real in outputs.items():
        for one in real:
            for path, schema, of in objects(SCHEMAS[name], name, one):
                own = schema.get("properties", {})
                seen |= {(key, definition(own[key], of)) for key in at(one, path) if key in own}
    unseen = {
        f"{name}: {key}"
        for name in outputs
        for schema in described(SCHEMAS[name])
        for key, own in schema["properties"].items()
        if (key, definition(own, name)) not in seen
    }
    assert unseen == set()


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_sound_and_closed(name):
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    for part in described(schema):
        assert part["additionalProperties"] is False, part
        assert set(part["required"]) <= set(part["properties"]), part
        for key, own in part["properties"].items():
            assert flat(own, name)[0]["description"], key


def test_no_key_is_described_twice():
    texts = re.findall(r'"description": "(.*?[^\\])"', "".join(map(json.dumps, SCHEMAS.values())))
    assert len(texts) > 300
    assert [text for text, count in Counter(texts).items() if count > 1] == []


def test_names_are_those_of_the_parameters():
    shared = SCHEMAS[COMMON]["$defs"]
    for name, names in (
        ("method", parameters.METHOD_NAMES),
        ("rule", parameters.RULE_NAMES),
        ("solver", parameters.SOLVER_NAMES),
        ("kernel_name", parameters.KERNEL_NAMES),
        ("scaling_name", parameters.SCALING_NAMES),
    ):
        assert shared[name]["enum"] == list(names), name
    assert set(shared["setting"]["properties"]) == set(parameters.TUNED_NAMES)


def test_the_page_of_the_model_directory_names_every_key_of_the_manifest():
    page = (ROOT / "docs" / "model-format.md").read_text()
    keys = SCHEMAS[MANIFEST]["properties"]
    assert {key for key in keys if f"`{key}`" not in page} == set()


def key_in(path: str, kind: str) -> bool:
    """Whether the schema of a kind has a key such as ``a[].b``."""
    schema, name = SCHEMAS[kind], kind
    for key in path.replace("[]", ".[]").split("."):
        properties = schema.get("properties", {})
        if key != "[]" and key not in properties:
            return False
        schema, name = flat(schema["items"] if key == "[]" else properties[key], name)
        for choice in schema.get("oneOf", ()):  # null, or an object
            schema = {**schema, **flat(choice, name)[0]}
    return True


def test_every_key_that_the_page_names_is_in_the_schema_of_its_kind():
    page = (ROOT / "docs" / "json.md").read_text()
    rows = re.findall(r"^\| `(\w+)[^|]*` \| (.+) \|$", page.replace("train --task", "part"), re.M)
    commands = {
        name for name, schema in SCHEMAS.items() if "schema" in schema.get("properties", ())
    }
    assert {kind for kind, _ in rows} == commands
    for kind, text in rows:
        keys = [key for key in re.findall("`(.+?)`", text) if not key.startswith("_")]
        assert len(keys) > 1
        assert [key for key in keys if not key_in(key, kind)] == []
