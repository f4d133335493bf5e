"""Every value of a manifest may be anything: commands read the model or refuse it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from resvm_cli.cli.app import COMMANDS, command_line
from resvm_cli.commands.predict import PredictOptions, predict_rows
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.errors import ModelError, ResvmError
from resvm_cli.parameters import Params, RankingParameters
from resvm_cli.ranking.pipeline import rank
from resvm_cli.run import Run
from resvm_cli.storage.model import load_with_out_of_bag, read_manifest
from resvm_cli.tuning.learn import train
from tests.conftest import assert_exit
from tests.tuning.test_training import ROWS, reading, write


def write_manifest(model: Path, manifest: dict) -> None:
    """Replace the manifest of a model, with its digest."""
    content = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = json.dumps(content | {"manifest_sha256": digest}, indent=1) + "\n"
    (model / "manifest.json").write_text(text)


def paths(value, path=()):
    """The path to every value inside a manifest, of lists to the first two."""
    yield path
    entries = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        entries = list(enumerate(value))[:2]
    for key, entry in entries:
        yield from paths(entry, (*path, key))


def put(manifest, path, value) -> None:
    for key in path[:-1]:
        manifest = manifest[key]
    manifest[path[-1]] = value


STRANGE = (10**400, -1, 10**12, 0.5, "[/bold]", None, [], {}, True)


@pytest.mark.parametrize("value", [*STRANGE, "1e400", "missing", "extra"], ids=str)
def test_inspect_reads_or_refuses_any_manifest(value, model, tmp_path):
    whole = (model / "manifest.json").read_bytes()
    target = shutil.copytree(model, tmp_path / "m")
    wrong, program = [], command_line(COMMANDS)
    for path in paths(json.loads(whole)):
        if not path or path == ("manifest_sha256",):
            continue
        manifest = json.loads(whole)
        if value == "1e400":
            put(manifest, path, "REPLACED")
        elif value == "missing":
            parent = manifest
            for key in path[:-1]:
                parent = parent[key]
            del parent[path[-1]]
        elif value == "extra":
            put(manifest, path, {"also": 1, "rows": "x"})
        else:
            put(manifest, path, value)
        write_manifest(target, manifest)
        if value == "1e400":
            file = target / "manifest.json"
            file.write_text(file.read_text().replace('"REPLACED"', "1e400"))
        try:
            program(["inspect", str(target)], prog_name="resvm", standalone_mode=False)
        except ResvmError:
            pass
        except Exception as error:  # noqa: BLE001 - any other error is a bug
            wrong.append((path, repr(error)))
    assert wrong == []


@pytest.mark.parametrize("value", STRANGE[::2], ids=str)
def test_rank_reads_or_refuses_any_manifest(value, model, problem, tmp_path):
    whole = (model / "manifest.json").read_bytes()
    target = shutil.copytree(model, tmp_path / "m")
    source = TrainingInput(str(problem / "pos.svm"), str(problem / "unl.svm"), keep_ids=True)
    wrong = []
    for path in paths(json.loads(whole)):
        if not path or path[0] in ("manifest_sha256", "members", "versions", "labels"):
            continue
        manifest = json.loads(whole)
        put(manifest, path, value)
        write_manifest(target, manifest)
        try:
            rank(source, Params(), RankingParameters(), Run(), model=str(target))
        except (ResvmError, MemoryError):
            pass
        except Exception as error:  # noqa: BLE001 - any other error is a bug
            wrong.append((path, repr(error)))
    assert wrong == []


def test_a_model_without_a_rule_for_drawing_bags_cannot_rank(problem, model, resvm, tmp_path):
    manifest = json.loads((model / "manifest.json").read_bytes())
    target = shutil.copytree(model, tmp_path / "m")
    without = {key: value for key, value in manifest.items() if key != "bags"}
    for changed in (manifest | {"bags": None}, manifest | {"bags": "dice-7"}, without):
        write_manifest(target, changed)
        sets = ("-P", problem / "pos.svm", "-U", problem / "unl.svm", "-q")
        assert_exit(resvm("rank", *sets, "--model", target), 4)


@pytest.fixture(scope="module")
def table_model(tmp_path_factory) -> Path:
    """A model trained on a table, and rows.csv for it."""
    folder = tmp_path_factory.mktemp("table")
    source = TrainingInput(data=write(folder / "rows.csv", ROWS), table=reading())
    choice = Params(n_models=2, auto=False)
    train(source, choice, str(folder / "m"), Run())
    return folder


@pytest.mark.parametrize("value", [*STRANGE, "missing", "twice", "many"], ids=str)
def test_any_encoding_is_read_or_refused(value, table_model, tmp_path):
    whole = (table_model / "m" / "manifest.json").read_bytes()
    target = shutil.copytree(table_model / "m", tmp_path / "m")
    rows, options = str(table_model / "rows.csv"), PredictOptions(output=str(tmp_path / "out"))
    n_refused = 0
    for path in paths(json.loads(whole)["encoding"]):
        manifest = json.loads(whole)
        if value == "missing" and path:
            parent = manifest["encoding"]
            for key in path[:-1]:
                parent = parent[key]
            del parent[path[-1]]
        elif value == "twice":
            manifest["encoding"]["columns"] *= 2
        elif value == "many":
            bits = {"name": "x", "kind": "morgan", "first": 1, "bits": 16, "radius": 2}
            columns = [{**bits, "counts": False, "name": str(number)} for number in range(10**4)]
            manifest["encoding"] |= {"columns": columns, "features": ["f"] * 16}
        else:
            put(manifest, ("encoding", *path), value)
        write_manifest(target, manifest)
        try:
            load_with_out_of_bag(str(target), required=False)
            predict_rows(str(target), rows, options, Run())
        except ResvmError:
            n_refused += 1
        if value in ("twice", "many"):
            break
    assert n_refused


@pytest.mark.parametrize("labels", ["[/bold]", None, {}, {"trained_on": "1"}, {"trained_on": []}])
def test_labels_that_are_none_are_refused(labels, model, tmp_path):
    target = shutil.copytree(model, tmp_path / "m")
    manifest = json.loads((target / "manifest.json").read_bytes())
    for value in (1.0, 1, None):
        write_manifest(target, {**manifest, "labels": {"trained_on": value}})
        read_manifest(str(target))
    write_manifest(target, {**manifest, "labels": labels})
    with pytest.raises(ModelError):
        read_manifest(str(target))
