"""Which informed settings should ``--auto`` try, and how many should it pool?

``python -m studies.informed_lists --data-dir DIR --folder DIR`` takes draws from
``studies.pu_tasks``. For each draw, it scores every setting of a wide list out of bag, as
``--auto`` does, trains a model with it, and stores the values of the test rows. The results of any
shorter list and any committee size are then computed from these files, without further training.
The last table leaves out one data set at a time. It shows the list and size that are best on the
others, and their gain on the one left out. Existing files are not computed again.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score

from resvm_cli.errors import ResvmError
from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.pu_data import MemoryData
from resvm_cli.parameters import MethodParameters, Setting
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.svm.libsvm import silenced
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.train import train_on
from resvm_cli.tuning.sample import TuningSample
from resvm_cli.tuning.search import (
    INFORMED,
    MAX_SETTINGS,
    SCREENING_MEMBERS,
    Informed,
    Trial,
    TuningSettings,
    informed_candidates,
    informed_settings,
    pooled,
)
from resvm_cli.tuning.space import Candidate
from resvm_cli.tuning.tune import settle_scaling
from resvm_cli.tuning.validation import CandidateScorer
from studies.pu_tasks import TASKS, Draw, draw

MEMBERS = 20
CONTAMINATIONS = (0.0, 0.3)
FIRST_DRAW = 100  # docs/quality.md uses draws with lower numbers
PENALTIES = (1.0, 10.0, 100.0)
GAMMAS = (0.1, 0.3, 1.0, 3.0)
Bags = tuple[float, float, float]  # fraction of |P|, rows of U per row of P, w_pos
TWO, FIVE = (1.0, 2.0, 0.7), (1.0, 5.0, 0.5)


def grid(bags: Bags, gammas: Sequence[float], penalties: Sequence[float]) -> list[Informed]:
    return [Informed(*bags, gamma, c_unl) for gamma in gammas for c_unl in penalties]


def weighted(
    bags: Bags, gammas: Sequence[float], penalties: Sequence[float], powers: Sequence[float]
) -> list[Informed]:
    """Return settings that weight features."""
    return [replace(one, power=power) for one in grid(bags, gammas, penalties) for power in powers]


def linear(penalties: Sequence[float], powers: Sequence[float]) -> list[Informed]:
    """Return settings with linear members; penalties are relative to gamma="scale"."""
    return [replace(one, linear=True) for one in weighted(TWO, (1.0,), penalties, powers)]


UNTUNED = Informed(*TWO, 1.0, 1.0)
FORMER = [*grid(TWO, GAMMAS[:3], PENALTIES[:1]), *grid(FIVE, GAMMAS[:3], PENALTIES)]
TODAY = [
    *grid(TWO, GAMMAS[1:], PENALTIES[:1]),
    *weighted(TWO, (3.0,), (1.0,), (1.0, 2.0)),
    *linear((10.0,), (1.0,)),
    *grid(FIVE, (0.3, 1.0), (10.0,)),
]
TODAY += [replace(one, quantile=True) for one in TODAY if one != Informed(*FIVE, 0.3, 10.0)]
ONE_SCALING = [
    *FORMER,
    *grid(TWO, GAMMAS, PENALTIES[:1]),
    *weighted(TWO, (1.0, 3.0), (1.0,), (1.0, 2.0)),
    *weighted(TWO, (10.0,), (1.0,), (2.0,)),
    *weighted(FIVE, (1.0, 3.0), (1.0, 10.0), (1.0,)),
    *linear((1.0, 10.0, 100.0), (0.0, 1.0, 2.0)),
]
WIDE = [*ONE_SCALING, *(replace(one, quantile=True) for one in ONE_SCALING)]
LISTS = {
    "the former 12": FORMER,
    "all": WIDE,
    "today's": TODAY,
    "without quantiles": [one for one in TODAY if not one.quantile],
    "without weights": [one for one in TODAY if not one.power],
    "without linear members": [one for one in TODAY if not one.linear],
    "without large bags": [one for one in TODAY if one.ratio == TWO[1]],
    "and large weighted bags": [
        *TODAY,
        *weighted(FIVE, (3.0,), (10.0,), (1.0,)),
        *(replace(one, quantile=True) for one in weighted(FIVE, (3.0,), (10.0,), (1.0,))),
    ],
    "and more linear members": [*TODAY, *linear((1.0, 10.0), (0.0, 1.0, 2.0))],
}
FORMER_NAME, FORMER_KEPT = "the former 12", 4
KEPT = (2, 3, 4, 6, 8)
Way = tuple[str, int]  # name of a list, committee size


@dataclass(frozen=True, eq=False)
class Measured:
    """The results of each setting of the wide list on one draw."""

    task: str
    truth: np.ndarray
    scores: dict[Informed, float]
    candidates: dict[Informed, Candidate]
    values: dict[Candidate, np.ndarray]  # of the test rows, standardized

    def answer(self, settings: Sequence[Informed], kept: int) -> np.ndarray:
        """Return the values of a committee, pooled with the same weights as ``--auto``."""
        scored: dict[Candidate, float] = {}
        for setting in settings:
            if setting in self.scores:
                scored.setdefault(self.candidates[setting], self.scores[setting])
        trials = [
            Trial(number, candidate, SCREENING_MEMBERS, score)
            for number, (candidate, score) in enumerate(scored.items())
        ]
        chosen = pooled(trials, max_settings=kept)
        return sum(one.weight * self.values[one.trial.candidate] for one in chosen)


def measure(task: str, drawn: Draw, seed: int) -> Measured:
    """Score and train every setting of the wide list."""
    params = MethodParameters(seed=seed)
    data = MemoryData(drawn.positives, drawn.unlabeled, scale="auto")
    settle_scaling(data, params, Run(jobs=1))
    settings = TuningSettings(base=params, oob=True, **INFORMED)
    sample = TuningSample.from_data(data, settings, Run(jobs=1))
    n_pos, n_unl = len(sample.kernels.positives), len(sample.kernels.unlabeled)
    space = sample.space("resvm", settings)
    gammas = {kind: each.gamma for kind, each in sample.scaled.items()}
    candidates = {
        one: informed_candidates([one], space, n_pos, n_unl, gammas)[0]
        for one in dict.fromkeys(WIDE)
    }
    scorer = CandidateScorer(sample, settings)
    scores = {}
    for _, group in itertools.groupby(
        sorted(candidates, key=lambda one: repr(candidates[one].kernel_key)),
        key=lambda one: candidates[one].kernel_key,
    ):
        some = list(group)
        answers = scorer.scores([candidates[one] for one in some], Run(jobs=1))
        for one, answer in zip(some, answers, strict=True):
            if not isinstance(answer, ResvmError):
                scores[one] = answer.values[settings.metric]
    distinct = list(dict.fromkeys(candidates.values()))
    _, model = train_on(
        data,
        TrainingChoice(
            tuple(
                Setting(
                    one.parameters(params, MEMBERS, n_pos, data.n_unlabeled),
                    1 / len(distinct),
                    one.scale,
                )
                for one in distinct
            ),
            decision="mean",
        ),
        Run(jobs=1),
    )
    members = Predictor(model.ensemble).member_values(drawn.test)
    values = {
        one: (members[:, group.columns].mean(axis=1) - group.shift) / group.scale
        for one, group in zip(distinct, model.ensemble.groups, strict=True)
    }
    return Measured(task, drawn.truth_test, scores, candidates, values)


def save(measured: Measured, path: Path) -> None:
    """Write settings in the order of the wide list; equal candidates share one row of values."""
    candidates = list(measured.values)
    settings = list(measured.candidates)
    partial = path.with_suffix(".part.npz")
    np.savez_compressed(
        partial,
        task=np.array(measured.task),
        settings=np.array([astuple(one) for one in settings], np.float64),
        truth=measured.truth,
        scores=np.array([measured.scores.get(one, np.nan) for one in settings]),
        places=np.array([candidates.index(measured.candidates[one]) for one in settings]),
        values=np.array([measured.values[one] for one in candidates], np.float32),
    )
    partial.replace(path)


def load(path: Path) -> Measured:
    """Read a file written by ``save``, in which candidates have only numbers."""
    with np.load(path, allow_pickle=False) as held:
        settings = [
            Informed(*numbers[:-2], *map(bool, numbers[-2:]))
            for numbers in held["settings"].tolist()
        ]
        by_number = [
            Candidate("resvm", (("n_pos", float(number)),)) for number in range(len(held["values"]))
        ]
        candidates = {
            one: by_number[number] for one, number in zip(settings, held["places"], strict=True)
        }
        scores = {
            one: float(score)
            for one, score in zip(settings, held["scores"], strict=True)
            if np.isfinite(score)
        }
        values = dict(zip(by_number, held["values"], strict=True))
        return Measured(str(held["task"]), held["truth"], scores, candidates, values)


def by_set(draws: Sequence[Measured], way: Way) -> dict[str, float]:
    """Return average precision by data set, in percent; a family of tasks is one data set."""
    found = defaultdict(list)
    for one in draws:
        values = one.answer(LISTS[way[0]], way[1])
        found[TASKS[one.task].family].append(100 * average_precision_score(one.truth, values))
    return {name: float(np.mean(areas)) for name, areas in found.items()}


def tables(draws: Sequence[Measured], show: Callable[[str], object] = print) -> None:
    """Show the results of each list and size, then those of leaving out each data set."""
    areas = {way: by_set(draws, way) for way in itertools.product(LISTS, KEPT)}
    former = areas[FORMER_NAME, FORMER_KEPT]
    show(f"{len(draws)} draws of {len(former)} data sets; average precision, mean over data sets\n")
    show("| settings | of them | " + " | ".join(f"{kept} pooled" for kept in KEPT) + " |")
    show("| --- " + "| --: " * (len(KEPT) + 1) + "|")
    for name, some in LISTS.items():
        cells = [f"{np.mean(list(areas[name, kept].values())):.2f}" for kept in KEPT]
        show(f"| {name} | {len(set(some))} | " + " | ".join(cells) + " |")
    show("\n| data set left out | best on the others | gain there over the former 12 | today's |")
    show("| --- | --- | --: | --: |")
    gains = []
    for name in former:
        others = [other for other in former if other != name]
        best = max(areas, key=lambda way: np.mean([areas[way][other] for other in others]))
        today = areas["today's", MAX_SETTINGS][name] - former[name]
        gains.append((areas[best][name] - former[name], today))
        show(f"| {name} | {best[0]}, {best[1]} pooled | {gains[-1][0]:+.2f} | {today:+.2f} |")
    mean, error = np.mean(gains, axis=0), np.std(gains, axis=0, ddof=1) / np.sqrt(len(gains))
    cells = [f"{gain:+.2f} ({width:.2f})" for gain, width in zip(mean, error, strict=True)]
    show(f"| mean (standard error) | | {cells[0]} | {cells[1]} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", default=".")
    parser.add_argument("--folder", required=True, help="folder with one file per draw")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    given = parser.parse_args()
    folder = Path(given.folder)
    folder.mkdir(parents=True, exist_ok=True)
    assert set(TODAY) == set(informed_settings(MethodParameters(), quantiles=True))
    paths = []
    with parallel.inner_threads_held(), silenced():
        for number, task, share in itertools.product(
            range(FIRST_DRAW, FIRST_DRAW + given.draws), given.tasks, CONTAMINATIONS
        ):
            path = folder / f"{task.replace(' ', '')}-{share:g}-{number}.npz"
            paths.append(path)
            if not path.exists():
                print(path.name, file=sys.stderr, flush=True)
                drawn = draw(task, share, number, Path(given.data_dir))
                save(measure(task, drawn, number), path)
    tables([load(path) for path in paths])


if __name__ == "__main__":
    main()
