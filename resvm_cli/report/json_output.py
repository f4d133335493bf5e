"""What a program sees of results: versioned JSON on stdout, curves as CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from resvm_cli.commands.tune.report import train_command
from resvm_cli.report.summaries import RECOVERED_SHARES
from resvm_cli.report.terminal import print_data, with_unicode_names

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from resvm_cli.commands.check.check import FileCheck
    from resvm_cli.commands.inspect.inspect import FeatureWeight, Inspection
    from resvm_cli.commands.predict.predict import PredictRequest, PredictResult
    from resvm_cli.commands.rank.fdr import Promise
    from resvm_cli.commands.rank.rank import RankResult
    from resvm_cli.commands.score.compare import CompareResult
    from resvm_cli.commands.score.score import FileScore, ScoreResult
    from resvm_cli.metrics.bootstrap import Interval
    from resvm_cli.training.parts import PartResult
    from resvm_cli.training.train import TrainResult
    from resvm_cli.tuning.tune import TuneResult

SCHEMA = 1
# What the manifest says first of a model, and what programs ask for.
DESCRIBING = (
    *("format", "method", "seed", "groups", "kernel", "parameters", "decision"),
    *("n_features", "zero_based", "scaling", "unconverged"),
)
CURVE_LINES = 100_000
RANKED_DEPTHS = (10, 100, 1000)


def print_json(kind: str, content: dict[str, Any]) -> None:
    """A versioned object on stdout."""
    named = with_unicode_names(content)
    print_data(json.dumps({"schema": SCHEMA, "kind": kind, **named}, indent=1) + "\n")


def print_result(kind: str, result: DataclassInstance) -> None:
    """A result whose fields say all there is to say."""
    print_json(kind, asdict(result))


def print_prediction(result: PredictResult, request: PredictRequest) -> None:
    """What was judged, and how many rows were unlike those of training."""
    share = None if result.n_unlike is None else result.n_unlike / max(1, result.n_rows)
    print_json(
        "predict",
        {
            "model": request.model,
            "file": request.source,
            "output": request.target,
            **asdict(result),
            "share_unlike": share,
        },
    )


def print_training(result: TrainResult) -> None:
    print_json(
        "train",
        {
            "model": result.path,
            "notes": list(result.notes),
            "outlook": asdict(result.outlook),
            "manifest": result.manifest,
        },
    )


def print_part(part: PartResult) -> None:
    print_json(
        "part",
        {
            "part": part.path,
            "first": part.members.start,
            "last": part.members.stop - 1,
            "n_trained": part.n_trained,
            "n_members": part.n_models,
        },
    )


def print_check(checks: list[FileCheck]) -> None:
    print_json("check", {"files": [asdict(check) for check in checks]})


def print_weights(weights: Sequence[FeatureWeight]) -> None:
    """A line a feature, with a header."""
    lines = ["feature\tname\tweight\tdeviation"]
    for one in weights:
        name = one.name.replace("\t", " ").replace("\n", " ")
        lines.append(f"{one.feature}\t{name}\t{one.weight!r}\t{one.deviation!r}")
    print_data("\n".join([*lines, ""]))


def print_inspection(inspection: Inspection) -> None:
    asked, manifest = inspection.weights, inspection.manifest
    weights = {} if asked is None else {"weights": [asdict(one) for one in asked]}
    print_json(
        "inspect",
        {
            "model": inspection.path,
            "intact": True,
            **{name: manifest[name] for name in DESCRIBING if name in manifest},
            "n_members": inspection.n_members,
            "n_support_vectors": inspection.n_support_vectors,
            "n_distinct_support_vectors": inspection.n_pool,
            "member_bytes": inspection.n_bytes,
            **weights,
            "manifest": manifest,
        },
    )


def finite(value: Any) -> Any:
    """JSON has neither nan nor infinities: null."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _flat(file: FileScore) -> dict[str, Any]:
    """Every figure under its own name, its bounds beside it."""
    flat: dict[str, Any] = {
        "file": file.name,
        "provenance": file.provenance,
        "degenerate": file.degenerate,
        "threshold_from": file.threshold_from,
    }
    for name, value in file.figures.values.items():
        flat[name] = value
        if name in file.figures.bounds:
            flat[f"{name}_low"], flat[f"{name}_high"] = file.figures.bounds[name]
    for name, interval in file.differences.items():
        flat[f"{name}_minus_first"] = interval.value
        flat[f"{name}_minus_first_low"] = interval.low
        flat[f"{name}_minus_first_high"] = interval.high
    return flat


def scores(result: ScoreResult) -> dict[str, Any]:
    """What score found, as plain data; also what its page is made from."""
    content = {
        "labels": result.labels,
        "pu": result.pu,
        "bootstrap": result.settings.n_replicates,
        "seed": result.settings.seed,
        "deployed_prevalence": result.settings.prevalence,
        "assumptions": list(result.assumptions),
        "warnings": list(result.warnings),
        "files": [_flat(file) for file in result.files],
    }
    return {name: finite(value) for name, value in content.items()}


def print_scores(result: ScoreResult) -> None:
    print_json("score", scores(result))


def curve_lines(result: ScoreResult) -> Iterator[bytes]:
    """Every threshold of every file as CSV; with several files their names come first."""
    several = len(result.files) > 1
    header = "threshold,precision,recall,fpr,tp,fp"
    if result.files[0].corrected is not None:
        header += ",corrected_precision,corrected_recall,corrected_fpr"
    header += "\n"
    yield (f"file,{header}" if several else header).encode()
    for file in result.files:
        points = file.points
        assert points is not None
        name = '"' + file.name.replace('"', '""') + '",' if several else ""
        for start in range(0, len(points.thresholds), CURVE_LINES):
            part = slice(start, start + CURVE_LINES)
            columns = [
                list(map(repr, array[part].tolist()))
                for array in (points.thresholds, points.precision, points.recall, points.fpr)
            ]
            columns += [
                list(map(str, array[part].astype("int64").tolist()))
                for array in (points.tp, points.fp)
            ]
            if (curve := file.corrected) is not None:
                columns += [
                    list(map(repr, array[part].tolist()))
                    for array in (curve.precision, curve.tpr, curve.fpr)
                ]
            lines = map(",".join, zip(*columns, strict=True))
            yield "".join(f"{name}{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def print_comparison(result: CompareResult) -> None:
    content: dict[str, Any] = finite(asdict(result))
    print_json("compare", content)


def print_ranking(result: RankResult) -> None:
    """The whole result as JSON."""
    plan = result.plan
    recovery: dict[str, Any] | None = None
    if result.recovery is not None:
        recovery = {
            f"{100 * share:.0f}_percent_by_rank": result.recovery.depth_of(share)
            for share in RECOVERED_SHARES
        }
        recovery["share_among_first"] = {
            str(depth): result.recovery.recall_at(depth) for depth in RANKED_DEPTHS
        }
    names = result.listing.columns
    print_json(
        "rank",
        {
            "audit": result.audit,
            "with_known": result.with_known,
            "method": plan.method,
            "decision": result.rule,
            "n_members": plan.n_models,
            "seed": plan.seed,
            "rows_pos": plan.rows_pos,
            "rows_unl": plan.rows_unl,
            "model": result.model,
            "n_ranked": result.n_listed,
            "n_without_value": result.n_unjudged,
            "n_suspects": result.n_suspects,
            "resamples": result.resamples,
            "known_positives_found": recovery,
            "promise": None if result.promise is None else _promise(result.promise),
            "notes": list(result.notes),
            "why": [finite(asdict(one)) for one in result.reasons] if result.reasons else None,
            "rows": [dict(zip(names, record, strict=True)) for record in result.listing.records()],
        },
    )


def _promise(promise: Promise) -> dict[str, Any]:
    def bounded(share: Interval | None) -> Any:
        return None if share is None else finite(asdict(share))

    return {
        "contamination_pos": bounded(promise.contamination_pos),
        "contamination_unl": bounded(promise.contamination_unl),
        "separable": promise.separable,
        "n_negatives": promise.n_negatives,
        "n_negatives_unlike": promise.n_unlike,
        "fdr": promise.fdr,
        "n_listed": promise.n_listed,
        "precision": bounded(promise.precision),
    }


def print_tuning(result: TuneResult) -> None:
    """The result as versioned JSON on stdout."""
    best = result.best
    print_json(
        "tune",
        {
            "directory": result.request.target,
            "best": best.params,
            "methods": [
                {
                    "method": winner.params["method"],
                    "params": winner.params,
                    **winner.trial.record,
                    "edges": list(winner.outcome.edges),
                    "extensions": winner.outcome.extensions,
                }
                for winner in result.winners
            ],
            "n_trials": len(result.trials),
            "n_repeated": result.n_repeated,
            "outer": list(result.outer),
            "members": [
                {
                    "n_models": step.n_models,
                    "score": step.score,
                    "difference": step.difference,
                    "overlap": step.overlap,
                }
                for step in result.growth
            ],
            "train": train_command(result),
            "notes": list(result.notes),
        },
    )
