"""Mutated files before every reader, in process.

The oracle: a file is read or refused with an error of ours, never anything else; what is read is
what an independent reader reads.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from resvm_cli.running.run import Run
from tests.hostile import by_hand, mutations
from tests.hostile.harm import harms, keep

KEPT_LINES = 8  # of a sound file
ROW = {1: 0.25, 2: -1.5, 4: 3.0}


@dataclass(frozen=True)
class Reader:
    """A kind of file, how it is changed, and who reads it."""

    sound: Any  # bytes, or the files of a directory
    mutate: Callable[[Any, Random], Any]
    read: Callable[[Any, Path], None]
    weight: int = 1


def without_threads() -> None:
    """Read in this thread: handing every small file to others takes longer than reading it."""
    from resvm_cli.running import parallel

    parallel.stream = lambda function, tasks, *_: map(function, tasks)  # type: ignore[assignment]


class Attack:
    """Readers, and one mutated file after the other."""

    def __init__(self, problem: Path, folder: Path, rng: Random) -> None:
        self._readers = readers(problem, folder)
        self._names = [name for name, each in self._readers.items() for _ in range(each.weight)]
        self._folder, self._rng = folder, rng

    def strike(self) -> str:
        """One file, changed and read; what it was."""
        name = self._rng.choice(self._names)
        reader = self._readers[name]
        changed = reader.mutate(reader.sound, self._rng)
        try:
            reader.read(changed, self._folder)
        except Exception as error:  # noqa: BLE001 - whatever is not ours is what is looked for
            text = changed if isinstance(changed, bytes) else json.dumps(_written(changed)).encode()
            keep(name, text)
            harms.append(f"{name}: {error!r}")
        return f"in process: {name}"


def _written(changed: dict[str, bytes]) -> dict[str, str]:
    return {name: text.decode("latin-1") for name, text in changed.items()}


def svmlight(text: bytes, folder: Path) -> None:
    from resvm_cli.errors import DataError
    from resvm_cli.files.svmlight import Block, parse_pieces

    try:
        block = Block.concatenate(list(parse_pieces([text], "x")))
    except DataError:
        return
    expected = by_hand.rows(text)
    assert expected is not None, "read, and an independent reader refuses it"
    assert by_hand.agree(block.labels.tolist(), [label for label, _ in expected])
    pairs = [pair for _, features in expected for pair in features]
    assert block.rows.indices.tolist() == [index for index, _ in pairs]
    assert block.rows.values.tolist() == [value for _, value in pairs]


def predictions(text: bytes, folder: Path) -> None:
    from resvm_cli.errors import DataError
    from resvm_cli.files import predictions

    path = _file(folder, text)
    answers = []
    for with_ids in (False, True):
        try:
            answers.append(predictions.read_predictions(path, with_ids=with_ids))
        except DataError:
            continue
    if len(answers) == 2:
        same = by_hand.agree(answers[0].values.tolist(), answers[1].values.tolist())
        assert same, "ids change values"
    for answer in answers:
        expected = by_hand.predictions(text)
        if expected is not None:
            same = by_hand.agree(answer.values.tolist(), expected)
            assert same, "an independent reader disagrees"


def labels(text: bytes, folder: Path) -> None:
    from resvm_cli.errors import DataError
    from resvm_cli.files import row_lists

    try:
        found = row_lists.read_labels(_file(folder, text)).tolist()
    except DataError:
        return
    expected = by_hand.labels(text)
    assert expected is not None, "read, and an independent reader refuses it"
    assert by_hand.agree(found, expected), "an independent reader disagrees"


def table(text: bytes, folder: Path) -> None:
    """A table of numbers, as convert reads it."""
    from resvm_cli.errors import ResvmError
    from resvm_cli.files.delimited import TextTable
    from resvm_cli.tables.encoding import ColumnRoles
    from resvm_cli.tables.features import TableFeatures

    try:
        blocks = list(TableFeatures(TextTable("x", lambda: [text]), ColumnRoles()).blocks())
    except ResvmError:
        return
    expected = by_hand.table(text)
    if expected is None:
        return
    found = [value for block in blocks for value in block.rows.values.tolist()]
    assert found == [value for line in expected for value in line if value], "other numbers"


def _file(folder: Path, text: bytes) -> str:
    path = f"{folder}/x"
    with open(path, "wb") as file:
        file.write(text)
    return path


def read_with(read: Callable[[str], object]) -> Callable[[bytes, Path], None]:
    """A reader without an oracle but its own errors."""

    def reading(text: bytes, folder: Path) -> None:
        from resvm_cli.errors import ResvmError

        path = _file(folder, text)
        with contextlib.suppress(ResvmError, MemoryError):
            read(path)

    return reading


class Standing:
    """A copy of a directory whose files are changed for as long as it takes to read them."""

    def __init__(self, source: Path, place: Path) -> None:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(source, place)
        self.path = place
        self.files = {
            str(path.relative_to(place)): path.read_bytes()
            for path in place.rglob("*")
            if path.is_file()
        }

    @contextlib.contextmanager
    def changed(self, files: dict[str, bytes]) -> Iterator[str]:
        for name, text in files.items():
            (self.path / name).write_bytes(text)
        try:
            yield str(self.path)
        finally:
            for name in files:
                (self.path / name).write_bytes(self.files[name])


def model(standing: Standing, files: dict[str, bytes], folder: Path) -> None:
    """A model that is read and judges a row; an rbf member says what its text says."""
    from resvm_cli.errors import ResvmError
    from resvm_cli.model.ensemble import Predictor
    from resvm_cli.model_files import directory
    from resvm_cli.rows import Rows

    with standing.changed(files) as path, np.errstate(all="ignore"):
        try:
            stored = directory.load_model(path)
        except (ResvmError, MemoryError):
            return
        with contextlib.suppress(ResvmError, MemoryError):
            directory.load_out_of_bag(path, stored.manifest)
        with contextlib.suppress(ResvmError):
            directory.stored_plan(stored, path)
        indices, values = np.array([*ROW], np.int32), np.array([*ROW.values()])
        row = Rows(np.array([0, len(ROW)]), indices, values)
        found = Predictor(stored.ensemble).member_values(row)
        changed = [name for name in files if name.endswith(".model")]
        scaled = directory.described_scalings(stored.manifest)
        if not changed or scaled or len(stored.ensemble.groups) > 1:
            return
        kernel = stored.ensemble.groups[0].kernel
        if kernel.name != "rbf":
            return
        expected = by_hand.member_value(files[changed[0]], kernel.gamma, ROW)
        assert expected is not None, "read, and an independent reader refuses it"
        said = float(found[0, int(Path(changed[0]).stem)])
        assert said == expected or abs(said - expected) <= 1e-9 * max(1.0, abs(expected)), (
            f"its value is {said}, and by hand {expected}"
        )


def parts(standing: Standing, other: str, files: dict[str, bytes], folder: Path) -> None:
    """A part joined to the rest of its model; members that are read must be members."""

    from resvm_cli.errors import ResvmError
    from resvm_cli.model_files import directory
    from resvm_cli.training.train import merge

    target = folder / "merged"
    shutil.rmtree(target, ignore_errors=True)
    with standing.changed(files) as path, np.errstate(all="ignore"):
        try:
            merge([path, other], str(target), Run())
        except (ResvmError, MemoryError):
            assert not target.exists(), "refused, and something was written"
            return
        directory.load_model(str(target))  # an error, also of ours, is harm: it was joined


def task_file(standing: Standing, files: dict[str, bytes], folder: Path) -> None:
    from resvm_cli.errors import ResvmError
    from resvm_cli.files.json_files import TaskFiles
    from resvm_cli.tuning.trials import KnownTrials, _recorded_scores, is_known_trial

    sound = json.loads(next(iter(standing.files.values())).partition(b"\n")[0])
    settings, metric = sound["settings"], "roc_areas"
    with standing.changed(files), contextlib.suppress(ResvmError):
        reading = TaskFiles(
            str(standing.path.parent), settings, lambda record: is_known_trial(record, metric)
        )
        records = reading.read()
        KnownTrials(records)
        for record in records:
            if "error" not in record["trial"]:
                _recorded_scores(record["trial"], metric)


def marker(standing: Standing, files: dict[str, bytes], folder: Path) -> None:
    """What vouches for an output: it counts only where it says what it said."""
    from resvm_cli.files.json_files import OutputDirectory

    (record,) = (name for name in standing.files if name.startswith("."))
    made_from = json.loads(standing.files[record].partition(b"\n")[0])["made_from"]
    output = record.removeprefix(".").removesuffix(".json")
    with standing.changed(files) as path:
        finished = OutputDirectory(path).is_finished(output, made_from)
    if finished:
        same = [json.loads(files[record].partition(b"\n")[0])[name] for name in ("sha256",)]
        assert same == [json.loads(standing.files[record].partition(b"\n")[0])["sha256"]]
        assert json.loads(files[record].partition(b"\n")[0])["made_from"] == made_from


def run_directory(standing: Standing, files: dict[str, bytes], folder: Path) -> None:
    from resvm_cli.errors import ResvmError
    from resvm_cli.files.json_files import RunDirectory
    from resvm_cli.tuning.trials import _recorded_scores

    settings = json.loads(standing.files["settings.json"])
    with (
        standing.changed(files) as path,
        contextlib.suppress(ResvmError),
        RunDirectory(path, "trials.jsonl", settings, resume=True).opened() as records,
    ):
        for record in records:
            _recorded_scores(record, "roc_areas")


def benchmark(standing: Standing, files: dict[str, bytes], folder: Path) -> None:
    """A report, from areas that an independent reader finds on the same lines."""
    from resvm_cli.benchmark.report import run_report
    from resvm_cli.benchmark.results import AREAS, read_benchmark
    from resvm_cli.errors import ResvmError

    with standing.changed(files) as path, np.errstate(all="ignore"):
        try:
            found = read_benchmark(path)
        except ResvmError:
            return
        lines = files.get("results.jsonl", standing.files["results.jsonl"]).split(b"\n")
        for result in found.results:
            record = json.loads(lines[result.line - 1])
            areas = [record[name] for name in AREAS]
            assert [getattr(result, name) for name in AREAS] == areas, "other areas"
        if found.results:
            run_report(found, "x")


def _one_of(name: str, mutate: Callable[[bytes, Random], bytes]) -> Callable[[Any, Random], Any]:
    return lambda files, rng: {name: mutate(files[name], rng)}


def _params(path: str) -> None:
    from resvm_cli.parameters import MethodParameters
    from resvm_cli.training.choice import merged, tuned_content

    content = tuned_content(path, None)
    for setting in merged(MethodParameters(), content, ()):
        setting.params.check()


def _feature_map(rows: bytes, path: str) -> None:
    from resvm_cli.commands.convert import ConvertRequest, convert_file
    from resvm_cli.tables.encoding import ColumnRoles, TableReading, read_feature_map

    known = read_feature_map(path)
    roles = ColumnRoles(row_id="id", missing="zero")
    table = f"{path}.csv"
    with open(table, "wb") as file:
        file.write(rows)
    target = f"{path}.svm"
    request = ConvertRequest(table, TableReading(roles), target, like=path)
    n_rows = convert_file(request, Run()).n_rows
    with open(target, "rb") as file:
        read = list(_parsed(file.read()))  # what is written can be read
    assert sum(map(len, read)) == n_rows, "written, and other rows are read"
    assert max(block.rows.max_index for block in read) <= len(known.names), "no such feature"


def _parsed(text: bytes) -> Iterator[Any]:
    from resvm_cli.files.svmlight import parse_pieces

    try:
        yield from parse_pieces([text], "x")
    except Exception as error:
        raise AssertionError(f"written, and cannot be read: {error}") from error


def _convert(path: str) -> None:
    from resvm_cli.commands.convert import ConvertRequest, convert_file
    from resvm_cli.tables.encoding import TableReading

    target = f"{path}.svm"
    convert_file(ConvertRequest(path, TableReading(), target), Run())
    with open(target, "rb") as file:
        list(_parsed(file.read()))


def _scheduler(path: str) -> None:
    from resvm_cli.cluster.engine import _address

    _address(path, 0.0)


def _grids(path: str) -> None:
    from resvm_cli.benchmark.cells import read_grids

    read_grids(path)


def _head(path: Path) -> bytes:
    return b"".join(path.read_bytes().splitlines(keepends=True)[:KEPT_LINES])


def texts(problem: Path) -> dict[str, Reader]:
    """Files that are one text."""
    from resvm_cli.files import row_lists
    from resvm_cli.tables.inputs import read_file

    def pack(text: bytes, rng: Random) -> bytes:
        return mutations.packed(mutations.mutated_text(text, rng), rng)

    text, document = mutations.mutated_text, mutations.mutated_document
    arrays = mutations.mutated_arrays

    def seed(name: str) -> bytes:
        return _head(problem / name)

    def whole(name: str) -> bytes:
        return (problem / name).read_bytes()

    return {
        "svmlight": Reader(seed("test.svm"), text, svmlight, 72),
        "predictions, text": Reader(seed("pred.text"), text, predictions, 24),
        "predictions, tsv": Reader(seed("pred.tsv"), text, predictions, 24),
        "predictions, csv": Reader(seed("pred.csv"), text, predictions, 24),
        "predictions, jsonl": Reader(seed("pred.jsonl"), text, predictions, 24),
        "compressed rows": Reader(seed("test.svm"), pack, read_with(read_file), 12),
        "known ids": Reader(seed("ids"), text, read_with(row_lists.read_known_ids), 24),
        "names": Reader(seed("names"), text, read_with(row_lists.read_row_ids), 24),
        "labels": Reader(seed("labels"), text, labels, 24),
        "parameters": Reader(whole("t/best.json"), document, read_with(_params), 24),
        "feature map": Reader(
            whole("map.json"), document, read_with(partial(_feature_map, seed("table.csv"))), 18
        ),
        "scheduler file": Reader(whole("scheduler.json"), document, read_with(_scheduler), 12),
        "grids": Reader(whole("grids.json"), document, read_with(_grids), 12),
        "table of numbers": Reader(whole("numbers.csv"), text, table, 24),
        "table": Reader(seed("table.csv"), text, read_with(_convert)),
        "array": Reader(whole("matrix.npy"), mutations.damaged, read_with(_convert)),
        "arrays": Reader(whole("arrays.npz"), arrays, read_with(_convert)),
        "sparse arrays": Reader(whole("sparse.npz"), arrays, read_with(_convert)),
    }


def readers(problem: Path, folder: Path) -> dict[str, Reader]:
    """All kinds, those that are directories too."""
    found = texts(problem)
    for name in ("m", "linear", "cwsvm", "committee", "format-1"):
        standing = Standing(problem / name, folder / f"standing-{name}")
        read = partial(model, standing)
        found[f"model, {name}"] = Reader(standing.files, mutations.mutated_model, read)
    for name, other in (("part-1", "part-2"), ("part-2", "part-1")):
        standing = Standing(problem / name, folder / f"standing-{name}")
        read = partial(parts, standing, str(problem / other))
        found[f"part, {name[-1]}"] = Reader(standing.files, mutations.mutated_part, read)
    tasks = Standing(problem / "shared/tasks", folder / "standing/tasks")
    for name in sorted(tasks.files):
        change = _one_of(name, mutations.mutated_seal)
        found[f"task file, {name[-11:-5]}"] = Reader(tasks.files, change, partial(task_file, tasks))
    outputs = Standing(problem / "outputs", folder / "standing-outputs")
    (record,) = (name for name in outputs.files if name.startswith("."))
    change = _one_of(record, mutations.mutated_seal)
    found["finished output"] = Reader(outputs.files, change, partial(marker, outputs), 12)
    tuning = Standing(problem / "t", folder / "standing-t")
    for name, mutate in (
        ("trials.jsonl", mutations.mutated_log),
        ("settings.json", mutations.mutated_document),
    ):
        change = _one_of(name, mutate)
        found[name] = Reader(tuning.files, change, partial(run_directory, tuning))
    for name in ("bench", "published"):
        standing = Standing(problem / name, folder / f"standing-{name}")
        read = partial(benchmark, standing)
        found[f"{name}, report"] = Reader(standing.files, mutations.mutated_benchmark, read)
    return found
