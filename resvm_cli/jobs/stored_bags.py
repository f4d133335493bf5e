"""The bags that a stored model was trained on, drawn again, and whether this is that data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from resvm_cli.ensemble import bags
from resvm_cli.ensemble.methods import Plan, problems
from resvm_cli.errors import CommandLineError, ModelError
from resvm_cli.files.model_dir import StoredModel
from resvm_cli.files.streams import STDIN
from resvm_cli.jobs.training_data import Progress, TrainingData
from resvm_cli.jobs.training_input import TrainingInput
from resvm_cli.svm.problem import Problem


def redrawn(stored: StoredModel, path: str) -> tuple[Plan, list[Problem]]:
    """The plan and the problems of a model's members, from its seed and sizes."""
    manifest = stored.manifest
    if manifest.get("bags") != bags.RULE:
        raise ModelError(
            f"{path}: its bags were drawn by the rule {manifest.get('bags')!r}, and this version"
            f" knows '{bags.RULE}'",
            "use the version of resvm that trained it, or a newer one, or train again",
        )
    parameters = manifest["parameters"]
    counts = [parameters.get(name) for name in ("n_pos", "n_unl")]
    data = manifest["data"]
    sizes = [data[name]["rows"] for name in ("positive", "unlabeled")]
    if not all(type(one) is int and 0 < one <= 2**53 for one in (*counts, *sizes)):
        raise ModelError(f"{path}: its manifest does not say how its bags were drawn")
    n_models = len(manifest["members"])  # as many as there are, also after it has grown
    plan = Plan(
        method=manifest["method"],
        kernel=stored.ensemble.kernel,
        c_pos=float(parameters.get("c_pos") or 1.0),
        c_unl=float(parameters.get("c_unl") or 1.0),
        w_pos=parameters.get("w_pos"),
        n_models=n_models,
        n_pos=counts[0],
        n_unl=counts[1],
        solver="libsvm",
        bias=None,
        tolerance=1e-3,
        cache_mb=100.0,
        seed=manifest["seed"],
        rows_pos=sizes[0],
        rows_unl=sizes[1],
    )
    return plan, list(problems(plan, range(n_models)))


def as_stored(source: TrainingInput, stored: StoredModel) -> TrainingInput:
    """The input, read as it was when the model was trained."""
    if source.zero_based and not stored.zero_based:
        raise CommandLineError(
            "--zero-based, but the model was trained on features counted from 1",
            "leave the option out",
        )
    return replace(source, zero_based=stored.zero_based)


def require_same_data(
    stored: StoredModel, path: str, data: TrainingData, progress: Progress
) -> None:
    """Refuse rows that are not those the model was trained on, by number or digest."""
    trained: dict[str, Any] = stored.manifest["data"]
    found = data.description()
    if trained["unlabeled"].get("sampled"):
        found = _sampled(stored, data, progress)
    for which, letter in (("positive", "P"), ("unlabeled", "U")):
        there, here = trained[which], found[which]
        if there["rows"] != here["rows"]:
            apart = f"{there['rows']:,} rows, and here are {here['rows']:,}"
        elif there["sha256"] != here["sha256"]:
            apart = f"other rows than here, or in another order, though as many: {here['rows']:,}"
        else:
            continue
        raise ModelError(
            f"{path}: trained on other data: its {letter} has {apart}",
            "give the files it was trained on, or leave --model out to train on these",
        )


def _sampled(stored: StoredModel, data: TrainingData, progress: Progress) -> dict[str, Any]:
    """What --no-check had said of these files."""
    source = data.input
    if source.data is not None or STDIN in (source.positives, source.unlabeled):
        raise ModelError(
            "the model was trained with --no-check, on files given by -P and -U",
            "give the same files by -P and -U",
        )
    unchecked = TrainingInput(
        source.positives,
        source.unlabeled,
        zero_based=source.zero_based,
        features=stored.manifest["n_features"],
        unchecked=True,
    )
    with TrainingData(unchecked, False, progress) as sampled:
        return sampled.description()
