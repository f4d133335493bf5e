"""How good are tuned models? ``python -m studies.tuning_quality --data-dir DIR --log FILE``.

This study uses the paper's data sets, sizes and contamination, with several draws of each set. For
each candidate of a random sample, it computes every criterion both out of bag and by ten-fold
cross-validation, and the test PR AUC of the model trained with the candidate. The tables compare
the results that each criterion would have selected. Results already in the log are not computed
again. ``--markdown FILE`` writes the tables between the marks of a document.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from resvm_cli.metrics.ranking import ScoredLabels
from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.model.setting_plan import gamma_scale
from resvm_cli.model.simulation import Sizes, split
from resvm_cli.parameters import METRIC_NAMES, MethodParameters
from resvm_cli.rows import DataSummary, Rows, variance
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.train import train_on
from resvm_cli.tuning.sample import Folds, SharedKernels, TuningSample
from resvm_cli.tuning.search import TuningSettings, sampled
from resvm_cli.tuning.space import default_space
from resvm_cli.tuning.tune import choose_settings
from resvm_cli.tuning.validation import CandidateScorer
from studies.markdown import put_between_marks
from studies.paper_sets import Source, load

N_MODELS = 50
MAX_UNL = 5000
# |P|, |U| and contamination (paper, table 1), and the numbers of positive and negative test rows,
# at most 3,000 in total
SETS = {
    "synthetic": (100, 200, 0.3, 1500, 1500),
    "cancer": (50, 200, 0.3, 100, 100),
    "covtype": (100, 1000, 0.3, 1500, 1500),
    "mnist7": (50, 2000, 0.1, 300, 2700),
    "mnist8": (50, 2000, 0.1, 300, 2700),
    "ijcnn1": (100, 10000, 0.1, 290, 2710),
}
SETTINGS = ("pu", "semi")
DEFAULTS, AUTO = -1, -2  # used instead of a trial number


@dataclass(frozen=True, eq=False)
class Draw:
    """P, U and a test set."""

    positives: Rows
    unlabeled: Rows
    test: Rows
    truth: np.ndarray
    n_features: int
    variance: float


def draw(source: Source, name: str, setting: str, number: int) -> Draw:
    n_pos, n_unl, share, test_pos, test_neg = SETS[name]
    rng = np.random.default_rng(1000 + number)
    own = source.test_rows is None
    sizes = Sizes(
        n_pos,
        n_unl,
        share if setting == "semi" else 0.0,
        share,
        test_pos if own else None,
        test_neg if own else None,
    )
    sets = split(source.truth, sizes, rng)
    positives, unlabeled = source.rows.take(sets.positives), source.rows.take(sets.unlabeled)
    if source.test_rows is None or source.test_truth is None:
        test, truth = source.rows.take(sets.test), source.truth[sets.test]
    else:
        picked = np.concatenate(
            [
                rng.choice(np.flatnonzero(source.test_truth), test_pos, replace=False),
                rng.choice(np.flatnonzero(~source.test_truth), test_neg, replace=False),
            ]
        )
        test, truth = source.test_rows.take(picked), source.test_truth[picked]
    surveys = DataSummary(), DataSummary()
    surveys[0].add(positives)
    surveys[1].add(unlabeled)
    n_features = max(survey.max_index for survey in surveys)
    return Draw(positives, unlabeled, test, truth, n_features, variance(surveys, n_features))


def pr_auc(drawn: Draw, values: np.ndarray) -> float:
    """Return the trapezoidal PR AUC on the test rows."""
    return float(ScoredLabels.from_scores(drawn.truth, values).pr_auc_trapezoid())


def test_area(params: MethodParameters, drawn: Draw) -> float:
    """Return the trapezoidal PR AUC, in percent, of a model trained on all of P and U."""
    data = MemoryData(drawn.positives, drawn.unlabeled)
    _, model = train_on(data, TrainingChoice.from_params(params), Run(jobs=1))
    values = Predictor(model.ensemble).decisions(drawn.test).values
    return 100 * pr_auc(drawn, values)


def measure(key: dict, drawn: Draw, trials: int) -> Iterator[dict]:
    """Yield one record for the untuned defaults, then one for each candidate."""
    number = key["draw"]
    base = MethodParameters(seed=number)
    yield key | {"trial": DEFAULTS, "test": test_area(base, drawn)}
    unlabeled = drawn.unlabeled
    if len(unlabeled) > MAX_UNL:
        some = np.random.default_rng(number).choice(len(unlabeled), MAX_UNL, replace=False)
        unlabeled = unlabeled.take(np.sort(some))
    gamma = gamma_scale(drawn.n_features, drawn.variance)
    kernels = SharedKernels(drawn.positives, unlabeled, 2000, gamma)
    folds = Folds.drawn(len(drawn.positives), len(unlabeled), 10, number)
    # use the search space of the folds, which have fewer rows, in both cases
    space = default_space(
        "resvm",
        "rbf",
        len(drawn.positives) * 9 // 10,
        len(unlabeled) * 9 // 10,
        gamma,
    )
    sample = TuningSample({None: kernels}, folds)
    settings = TuningSettings(base=base, oob=True, metric="partial_roc_auc", n_models=N_MODELS)
    out_of_bag = CandidateScorer(sample, settings)
    by_folds = replace(out_of_bag, settings=replace(settings, oob=False))
    for trial, candidate in enumerate(sampled(space, trials, number, 0)):
        record = key | {"trial": trial, "params": dict(candidate.values)}
        for label, scorer in (("oob", out_of_bag), ("folds", by_folds)):
            started = time.perf_counter()
            (scores,) = scorer.scores([candidate], Run(jobs=1))
            values = getattr(scores, "values", None)
            record[label] = values
            record[f"{label}_seconds"] = round(time.perf_counter() - started, 3)
        sizes = len(drawn.positives), len(drawn.unlabeled)
        params = candidate.parameters(base, N_MODELS, *sizes)
        yield record | {"test": test_area(params, drawn)}


def measure_auto(key: dict, drawn: Draw) -> dict:
    """Measure the CPU seconds of ``train --auto``, and its PR AUC by its own rule and by d."""
    started = time.process_time()
    data = MemoryData(drawn.positives, drawn.unlabeled, scale="auto")
    choice = TrainingChoice.from_params(MethodParameters(seed=key["draw"]), auto="committee")
    run = Run(jobs=1)
    _, model = train_on(data, choose_settings(data, choice, run), run)
    seconds = time.process_time() - started
    decisions = Predictor(model.ensemble).decisions(drawn.test)
    areas = {
        "test": pr_auc(drawn, decisions.by(model.decision.rule)),
        "test_by_votes": pr_auc(drawn, decisions.values),
    }
    shown = {name: 100 * area for name, area in areas.items()}
    return key | {"trial": AUTO, "auto_seconds": round(seconds, 2)} | shown


def run(arguments: argparse.Namespace) -> None:
    log = Path(arguments.log)
    lines = log.read_text().splitlines() if log.exists() else []
    done = {
        (record["set"], record["setting"], record["draw"], record["trial"])
        for record in map(json.loads, lines)
    }
    last = AUTO if arguments.auto else arguments.trials - 1
    sources: dict[str, Source] = {}
    with log.open("a") as handle:
        for number, name, setting in itertools.product(
            range(arguments.draws), arguments.sets, SETTINGS
        ):
            if (name, setting, number, last) in done:
                continue
            if name not in sources:
                sources[name] = load(name, Path(arguments.data_dir))
            started = time.perf_counter()
            drawn = draw(sources[name], name, setting, number)
            key = {"set": name, "setting": setting, "draw": number}
            if arguments.auto:
                records = [measure_auto(key, drawn)]
            else:
                records = measure(key, drawn, arguments.trials)
            for record in records:
                handle.write(json.dumps(record) + "\n")
                handle.flush()
            seconds = time.perf_counter() - started
            print(name, setting, number, f"{seconds:.0f} s", file=sys.stderr, flush=True)


def tables(records: list[dict]) -> str:
    """Format Markdown tables of the test PR AUC that each way of choosing reaches."""
    groups: dict[tuple, list[dict]] = defaultdict(list)
    for record in records:
        groups[record["set"], record["setting"], record["draw"]].append(record)
    columns = [(name, setting) for name in SETS for setting in SETTINGS]
    ways: list[tuple[str, object]] = [("best candidate", None)]
    for estimate in ("oob", "folds"):
        ways += [(f"{estimate}: {metric}", (estimate, metric)) for metric in METRIC_NAMES]
    ways += [
        ("train --auto", AUTO),
        ("untuned defaults", DEFAULTS),
        ("median candidate", "median"),
    ]
    rows = []
    for title, way in ways:
        cells = []
        for column in columns:
            areas = []
            for key, group in groups.items():
                if key[:2] != column:
                    continue
                trials = [record for record in group if record["trial"] >= 0]
                tests = [record["test"] for record in trials]
                if way in (AUTO, DEFAULTS):
                    areas += [record["test"] for record in group if record["trial"] == way]
                elif not trials:
                    continue
                elif way is None:
                    areas.append(max(tests))
                elif way == "median":
                    areas.append(float(np.median(tests)))
                else:
                    judged = [record for record in trials if record[way[0]]]
                    best = max(judged, key=lambda record: record[way[0]][way[1]])
                    areas.append(best["test"])
            cells.append(float(np.mean(areas)) if areas else float("nan"))
        rows.append((title, cells))
    head = " | ".join(f"{name} {setting}" for name, setting in columns)
    lines = [f"| chosen by | {head} | mean |", "|---" * (len(columns) + 2) + "|"]
    for title, cells in rows:
        shown = " | ".join(f"{cell:.1f}" for cell in cells)
        lines.append(f"| {title} | {shown} | **{np.mean(cells):.1f}** |")
    draws = {key[2] for key in groups}
    trials = max(record["trial"] for record in records) + 1
    lines.append("")
    seconds = [record["auto_seconds"] for record in records if "auto_seconds" in record]
    if seconds:
        lines.append(
            f"`train --auto` took {np.median(seconds):.1f} s in the median, {max(seconds):.1f} s"
            " at most, of one core.\n"
        )
    lines.append(
        f"Test PR AUC (trapezoidal, percent), mean of {len(draws)} draws; {trials} random"
        f" candidates per draw, {N_MODELS} members, rbf."
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", default=".")
    parser.add_argument("--log", required=True, help="JSON lines; a run continues where they end")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--auto", action="store_true", help="measure train --auto instead")
    parser.add_argument("--markdown", help="a document whose tables are replaced")
    arguments = parser.parse_args()
    with parallel.inner_threads_held():
        run(arguments)
    text = tables([json.loads(line) for line in Path(arguments.log).read_text().splitlines()])
    print(text)
    if arguments.markdown:
        put_between_marks(Path(arguments.markdown), text + "\n")


if __name__ == "__main__":
    main()
