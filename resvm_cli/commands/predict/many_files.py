"""Many files judged by one model, each into an output of its own; finished ones are skipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from resvm_cli.commands.predict.predict import PredictRequest, load_model, predict
from resvm_cli.errors import ParameterError
from resvm_cli.files.run_directory import OutputDirectory, output_names
from resvm_cli.files.streams import STDIN, file_digest
from resvm_cli.model_files.directory import StoredModel
from resvm_cli.running.array_tasks import Share
from resvm_cli.running.run import Run

SUFFIXES = {"text": ".pred", "tsv": ".tsv", "csv": ".csv", "jsonl": ".jsonl"}
# What a line of output does not depend on.
ELSEWHERE = ("model", "source", "target")


@dataclass(frozen=True)
class FilesResult:
    """What became of the files, for the report."""

    path: str
    n_predicted: int
    n_skipped: int  # finished before
    n_elsewhere: int  # of other tasks


def predict_files(
    request: PredictRequest,
    sources: Sequence[str],
    target: str,
    share: Share | None,
    run: Run,
) -> FilesResult:
    """Judge every file, or a share of them, into a directory."""
    if STDIN in sources:
        raise ParameterError("{out_dir} takes files: stdin has no name for its output")
    names = output_names(list(sources), SUFFIXES[request.form])
    model = load_model(request, run)
    directory = OutputDirectory(target)
    own = share.of(len(sources)) if share is not None else range(len(sources))
    n_skipped = 0
    for number in own:
        made_from = _made_from(request, model[0], sources[number])
        if directory.is_finished(names[number], made_from):
            n_skipped += 1
            continue
        one = replace(request, source=sources[number], target=directory.output_path(names[number]))
        predict(one, run.with_own_notes(), model)
        directory.finish(names[number], made_from)
    return FilesResult(target, len(own) - n_skipped, n_skipped, len(sources) - len(own))


def _made_from(request: PredictRequest, stored: StoredModel, source: str) -> dict[str, Any]:
    """All that decides an output: the model, the input and the options."""
    options = {name: value for name, value in asdict(request).items() if name not in ELSEWHERE}
    return {
        "model": stored.manifest["manifest_sha256"],
        "input": file_digest(source),
        "options": options,
    }
