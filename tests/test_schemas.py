"""Outputs of commands are valid under resvm_cli/schemas/, and damaged outputs are not."""

from __future__ import annotations

import copy
import importlib.util
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

from resvm_cli import parameters
from tests import fake_benchmark
from tests.conftest import ROOT, stop_checking, write_svm

SPEC = importlib.util.spec_from_file_location("json_reference", ROOT / "docs/json_reference.py")
REFERENCE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(REFERENCE)
SCHEMAS, SUFFIX = REFERENCE.SCHEMAS, REFERENCE.SUFFIX
REGISTRY = Registry().with_resources(
    (name + SUFFIX, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)
GOLDEN = ROOT / "tests" / "golden"


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
        """Run a command with --json; the ``kind`` in its output is the name of the schema."""
        output = json.loads(self.run(*arguments, "--json", code=code))
        self.add(output["kind"], output)
        return output

    def add(self, name: str, *outputs: Any) -> None:
        self.outputs.setdefault(name, []).extend(outputs)

    def add_lines(self, name: str, lines: bytes) -> None:
        self.add(name, *map(json.loads, lines.splitlines()))


def use_models(work: Work) -> None:
    """Run train, merge and inspect, and collect manifests in every format."""
    train = ("train", *work.data, "--n-models", 2)
    (work.folder / "groups").write_text("".join(f"{number % 60}\n" for number in range(130)))
    (work.folder / "weights").write_text("0.5\n" * 30)
    poly = ("--weights", "weights", "-t", "poly", "--scale", "minmax")
    linear = ("-t", "linear", "--solver", "liblinear", "-B", 1)
    work.json(*train, *poly, "-o", "2")
    work.json(*train, *linear, "-o", "linear")
    work.json("train", *work.data, "--method", "cwsvm", "-o", "cwsvm")
    work.json(*train, "--groups", "groups", "-o", "3")
    work.json(*train, "--scale", "quantile", "--feature-weights", "relevance:2", "-o", "3-scaled")
    write_svm(work.folder / "known.svm", np.arange(20.0).reshape(4, 5) / 7 - 1)
    work.json(*train, "-N", "known.svm", "-o", "3-negatives")
    work.json(*train, "-o", "3-unchecked")
    stop_checking(work.folder / "3-unchecked")
    for part in (1, 2):
        work.json(*train, "--task", f"{part}/2", "-o", f"part{part}")
    work.json("merge", "part1", "part2", "-q", "-o", "merged")
    work.json("inspect", "linear", "--weights")
    work.json("inspect", "linear", "--importance", *work.data)
    table = [f"{n},{n % 7},{'ab'[n % 2]},{'yes' if n < 20 else ''}" for n in range(60)]
    (work.folder / "table.csv").write_text("\n".join(["id,x,kind,known", *table]))
    columns = ("--id-column", "id", "--label-column", "known", "--positive-label", "yes")
    work.json("train", "--data", "table.csv", *columns, "--n-models", 2, "-q", "-o", "3-table")
    released = (GOLDEN / f"format-{number}" for number in (1, 2, 3))
    for path in (*released, "2", "3", "3-scaled", "3-negatives", "3-unchecked", "3-table"):
        manifest = work.json("inspect", path)["manifest"]
        work.add(f"manifest-{manifest['format']}", manifest)


def use_tuning(work: Work) -> None:
    """Run tune, and collect its trials and best.json in every format."""
    tune = ("tune", *work.data)
    narrow = ("--search", "random", "--trials", 2, "-c", "0.1..1", "-g", "0.1..0.2")
    poly = ("-t", "poly", "-d", "2", "-r", "1", "--n-models", 3, "--no-extend")
    work.json(*tune, *narrow, *poly, "--method", "all", "-o", "1")
    work.json(*tune, *narrow, "--n-models", 4, "--committee", 2, "-o", "2")
    informed = (*tune, "--search", "informed", "--n-models", 12)
    work.json(*informed, "-o", "3")
    one = (*informed, "--committee", 1)
    work.json(*one, "--feature-weights", "relevance", "-o", "weighted")
    work.json(*one, "-t", "tanimoto", "-o", "mean")
    work.json(*tune, "--n-models", 3, "--trials", 2, "--task", "1/2", "-o", "shared")
    # with two rows of P and one member, no candidate can be scored; the trials record why
    write_svm(work.folder / "few.svm", np.arange(10.0).reshape(2, 5) - 5)
    few = ("-P", "few.svm", "-U", work.problem / "unl.svm", "-q", "--n-models", 1)
    work.run("tune", *few, "--search", "random", "--trials", 2, "-o", "few", code=3)
    for path in ("1", "2", "3", "weighted", "mean"):
        best = json.loads((work.folder / path / "best.json").read_text())
        work.add(f"best-{best['format']}", best)
    for path in ("1", "3", "weighted", "few"):
        work.add_lines("trial", (work.folder / path / "trials.jsonl").read_bytes())


def use_predictions(work: Work) -> None:
    test = work.problem / "test.svm"
    work.json("predict", work.model, test, "-q", "-o", "test.pred")
    work.json("predict", work.model, test, "-q", "-T", "recall=0.5", "-o", "recall.pred")
    work.json("predict", work.model, test, "-q", "--out-dir", "many")
    columns = ("--format", "jsonl", "--ids", "--votes", "--member-values")
    work.add_lines("prediction", work.run("predict", work.model, test, *columns, "--probability"))


def use_rankings(work: Work) -> None:
    rank = ("rank", *work.data, "--model", work.model)
    near = np.random.default_rng(3).standard_normal((20, 5)) - 1
    write_svm(work.folder / "negatives.svm", near)
    work.json(*rank, "--why", 2)
    work.json(*rank, "--negatives", "negatives.svm", "--fdr", 0.5)
    work.json(*rank, "--audit")
    known = ("-N", "negatives.svm", "--n-models", 20, "--next", 5, "--explore", 0.4)
    work.json("rank", *work.data, *known)
    overlapping = np.random.default_rng(3).standard_normal((160, 3))
    write_svm(work.folder / "pos.svm", overlapping[:40])
    write_svm(work.folder / "unl.svm", overlapping[40:])
    work.json("rank", "-P", "pos.svm", "-U", "unl.svm", "-q", "--n-models", 30)
    linear = ("-t", "linear", "--n-models", 20, "--why", 2, "--why-out", "why.jsonl")
    work.add_lines("ranked-row", work.run("rank", *work.data, *linear, "--format", "jsonl"))
    work.add_lines("reasons", (work.folder / "why.jsonl").read_bytes())
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
    corrected = ("--pu", "--contamination-pos", "0..0.1", "--contamination-unl")
    work.json(*score, *corrected, "0.1..0.3", "--bootstrap", 20)
    work.json(*score, *corrected, "estimate", "--bootstrap", 20)


def use_data(work: Work) -> None:
    work.json("simulate", "--synthetic", "-q", "-o", "rings")
    (work.folder / "bad.svm").write_text("1 1:2 2:2 3:0\nx\n1 1:2 2:2 4:1000\n")
    work.json("check", work.problem / "pos.svm", "bad.svm", code=3)
    (work.folder / "table.csv").write_text("a,b\n1,2\n3,x\n")
    work.json("convert", "table.csv", "--categorical", "b", "--map", "map.json", "-o", "table.svm")
    work.add("feature-map", json.loads((work.folder / "map.json").read_text()))
    labeled = ("--data", "table.csv", "--label-column", "b", "--positive-label", "x", "-q")
    work.run("train", *labeled, "--n-models", 1, "-o", "model")
    manifest = json.loads((work.folder / "model" / "manifest.json").read_text())
    work.add("feature-map", manifest["encoding"])
    (work.folder / "molecules.csv").write_text("smiles\nCCO\nCCN\n")
    molecules = ("convert", "molecules.csv", "--smiles-column", "smiles", "--bits", 16)
    work.run(*molecules, "--map", "bits.json", "-o", "molecules.svm")
    work.add("feature-map", json.loads((work.folder / "bits.json").read_text()))


def use_benchmarks(work: Work) -> None:
    tasks = ("synthetic", "cancer", "mnist-0", "mnist-1")
    lines = fake_benchmark.results(repetitions=2, tasks=tasks)
    own = fake_benchmark.own_results([0.0, 0.2, 0.4, 0.6], 2)
    plan = fake_benchmark.plan(repetitions=fake_benchmark.repetitions(3))
    times = fake_benchmark.times_of(lines, 1.5)
    fake_benchmark.write(work.folder / "paper", [*lines, *own], plan, times)
    others = [{**one, "protocol": "fast"} for one in lines]
    fake_benchmark.write(work.folder / "fast", others, None, times)
    work.json("benchmark", "report", "paper", "fast", "-q")
    run = ("benchmark", "run", "--protocol", "fast", "--repetitions", 1, "-q", "-j", 1)
    mine = ("--data", work.problem / "test.svm", "--positive-label", 1, "--n-pos", 20)
    work.json(*run, *mine, "--n-unl", 40, "--methods", "resvm,cwsvm", "-o", "run")
    work.json(
        *run, "--tasks", "synthetic,cancer", "--settings", "pu", "--methods", "cwsvm", "-o", "two"
    )
    work.json("benchmark", "join", "run", "-q", "-o", "joined")
    for name, file in (("benchmark-result", "results"), ("benchmark-time", "times")):
        work.add_lines(name, (work.folder / "run" / f"{file}.jsonl").read_bytes())
    for path in (ROOT / "docs" / "reproduction").glob("*.jsonl"):
        work.add_lines("benchmark-result", b"\n".join(path.read_bytes().splitlines()[::50]))
    fake_benchmark.write(work.folder / "varied", own)
    for figure in (
        ("resampling",),
        ("densities",),
        ("curves", "--protocol", "fast", "-q"),
        ("contamination", "varied"),
    ):
        work.json("benchmark", "figure", *figure, "-o", "figure.svg")


# the schemas whose keys all occur in the outputs of each function
MAKERS: dict[Callable[[Work], None], tuple[str, ...]] = {
    use_models: ("train", "part", "inspect", "manifest-1", "manifest-2", "manifest-3"),
    use_tuning: ("tune", "tune-task", "trial", "best-1", "best-2", "best-3"),
    use_predictions: ("predict", "predict-files", "prediction"),
    use_rankings: ("rank", "ranked-row", "reasons"),
    use_scores: ("score",),
    use_data: ("simulate", "check", "convert", "feature-map"),
    use_benchmarks: (
        *("benchmark", "benchmark-report", "benchmark-join", "benchmark-result"),
        *("benchmark-time", "figure"),
    ),
}


@pytest.fixture(scope="module", params=MAKERS, ids=lambda maker: maker.__name__[4:])
def outputs(request, problem, model, resvm, tmp_path_factory) -> dict[str, list[Any]]:
    work = Work(tmp_path_factory.mktemp("outputs"), problem, model, resvm)
    request.param(work)
    assert set(work.outputs) == set(MAKERS[request.param])
    return work.outputs


@cache
def validator(reference: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": reference}, registry=REGISTRY)


def faults(name: str, output: Any) -> list[str]:
    found = validator(name + SUFFIX).iter_errors(output)
    return [f"{error.json_path}: {error.message[:200]} {error.context}" for error in found]


def objects(
    schema: dict[str, Any], name: str, value: Any, path: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any], str]]:
    """Yield the path of each JSON object in a value, its schema and the name of the schema file."""
    schema, name = REFERENCE.flat(schema, name)
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


def trimmed(value: Any) -> Any:
    """Shorten lists of objects to one item, because their items are alike."""
    if isinstance(value, dict):
        return {key: trimmed(item) for key, item in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        return [trimmed(item) for item in value[:1]]
    return value


def changed(output: Any, path: tuple[Any, ...], change: Callable[[dict[str, Any]], None]) -> Any:
    output = copy.deepcopy(output)
    part = output
    for step in path:
        part = part[step]
    change(part)
    return output


def required(schema: dict[str, Any], value: dict[str, Any]) -> set[str]:
    """Return the keys that this object must have, given the alternative that it matches."""
    names = set(schema.get("required", ()))
    for choice in schema.get("oneOf", ()):
        if set(choice.get("required", ())) <= set(value):
            names |= set(choice.get("required", ()))
    return names


def at(output: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        output = output[step]
    return output


def test_every_schema_is_tried_and_on_the_page():
    tried = [name for names in MAKERS.values() for name in names]
    assert sorted(tried) == sorted(REFERENCE.NAMES) == sorted(set(SCHEMAS) - {REFERENCE.COMMON})


def test_real_outputs_fit_their_schemas(outputs):
    assert {
        name: bad for name in outputs for one in outputs[name] if (bad := faults(name, one))
    } == {}


def definition(schema: dict[str, Any], name: str) -> int:
    """Return the identity of the schema at the end of a chain of references."""
    while "$ref" in schema:
        schema, name = REFERENCE.referred(schema["$ref"], name)
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


def test_an_output_without_a_required_key_is_refused(outputs):
    accepted, n_refused = [], 0
    for name, real in outputs.items():
        before = n_refused
        output = trimmed(real[0])
        assert faults(name, output) == []
        for path, schema, _ in objects(SCHEMAS[name], name, output):
            for key in required(schema, at(output, path)):
                damaged = changed(output, path, lambda part, key=key: part.pop(key))
                if validator(name + SUFFIX).is_valid(damaged):
                    accepted.append((name, path, key))
                n_refused += 1
        assert n_refused > before, name
    assert accepted == []


def test_an_output_with_another_key_is_refused(outputs):
    accepted = []
    for name, real in outputs.items():
        output = trimmed(real[0])
        for path, *_ in objects(SCHEMAS[name], name, output):
            damaged = changed(output, path, lambda part: part.update(undocumented=None))
            if validator(name + SUFFIX).is_valid(damaged):
                accepted.append((name, path))
    assert accepted == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_sound_and_closed(name):
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    for part in described(schema):
        assert part["additionalProperties"] is False, part
        assert set(part["required"]) <= set(part["properties"]), part
        for key, own in part["properties"].items():
            assert REFERENCE.flat(own, name)[0]["description"], key


def test_no_key_is_described_twice():
    texts = re.findall(r'"description": "(.*?[^\\])"', "".join(map(json.dumps, SCHEMAS.values())))
    assert len(texts) > 300
    assert [text for text, count in Counter(texts).items() if count > 1] == []


def test_names_are_those_of_the_parameters():
    shared = SCHEMAS[REFERENCE.COMMON]["$defs"]
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
    for name in REFERENCE.MANIFESTS:
        assert {key for key in SCHEMAS[name]["properties"] if f"`{key}`" not in page} == set()
