"""New."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from resvm_cli.report.terminal import print_json, say

if TYPE_CHECKING:
    from resvm_cli.commands.predict.many_files import FilesResult
    from resvm_cli.commands.predict.predict import PredictRequest, PredictResult


def show_files(result: FilesResult) -> None:
    """How many files were judged, and how many were left."""
    text = f"{result.n_predicted:,} judged"
    if result.n_skipped:
        text += f", {result.n_skipped:,} finished before"
    if result.n_elsewhere:
        text += f", {result.n_elsewhere:,} left to other tasks"
    say(f"{'files':>10}  {text}")
    say(f"{'written to':>10}  {result.path}")


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
