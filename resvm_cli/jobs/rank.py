"""P and U to a ranking of U by out-of-bag values, or to an audit of P."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from resvm_cli import parallel
from resvm_cli.dataset import FloatArray, IntArray
from resvm_cli.ensemble.fit import rows_drawn
from resvm_cli.ensemble.methods import Plan
from resvm_cli.ensemble.model import Predictor
from resvm_cli.ensemble.rank_intervals import MemberResamples, n_resamples, rank_bounds
from resvm_cli.errors import DataError
from resvm_cli.evaluation.contamination_correction import Contamination
from resvm_cli.evaluation.curves import Histogram
from resvm_cli.evaluation.pu import expected_false, n_suspects
from resvm_cli.files import model_dir
from resvm_cli.files.ranked_rows import Listing
from resvm_cli.jobs.judgement import Judged, OutOfBagJudge
from resvm_cli.jobs.rank_request import RankRequest
from resvm_cli.jobs.stored_bags import as_stored, redrawn, require_same_data
from resvm_cli.jobs.train import save, train_on
from resvm_cli.jobs.training_data import Progress, TrainingData


@dataclass(frozen=True, eq=False)
class Recovery:
    """How known positives, judged as if they were unlabeled, are found by going down U."""

    depths: IntArray  # for each of them, ascending: how many rows of U come before it

    def recall_at(self, depth: int) -> float:
        """The share that would be among the first ``depth`` rows."""
        return float(np.searchsorted(self.depths, depth, "left") / len(self.depths))

    def depth_of(self, share: float) -> int:
        """How many rows must be looked at to find this share."""
        return int(self.depths[int(np.ceil(round(share * len(self.depths), 9))) - 1]) + 1


@dataclass(frozen=True, eq=False)
class RankResult:
    """The list that was asked for, and what else there is to show."""

    listing: Listing
    n_listed: int  # before --top
    plan: Plan
    audit: bool
    with_known: bool
    n_unjudged: int  # of those listed
    n_suspects: int | None  # known positives that look wrong, where P and U were judged
    resamples: int  # 0 without intervals
    recovery: Recovery | None
    known: Listing | None  # P, most suspicious first, for a page
    histogram: Histogram | None  # values of P and of U, for a page
    model: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Ready:
    """An ensemble that may judge, and how it came to be."""

    plan: Plan
    judge: OutOfBagJudge
    kept_at: str | None


def rank(
    request: RankRequest,
    progress: Progress,
    notice: Callable[[str], None] = lambda text: None,
) -> RankResult:
    """Train or load, judge every row out of bag, and put the rows in order."""
    request.check()
    notes: list[str] = []

    def tell(text: str) -> None:
        notes.append(text)
        notice(text)

    source = replace(request.source, keep_ids=True)
    stored = None
    if request.model is not None:
        stored = model_dir.load(request.model)
        request.check_method(stored.manifest["method"])
        source = as_stored(source, stored)
    with parallel.inner_threads_held(), TrainingData(source, False, progress) as data:
        groups = data.groups()  # first: training takes long
        ready = (
            _trained(request, data, groups, progress, tell)
            if stored is None
            else _loaded(request, stored, data, groups, progress, tell)
        )
        return _ranked(request, data, ready, tell, notes)


def _trained(
    request: RankRequest,
    data: TrainingData,
    groups: IntArray | None,
    progress: Progress,
    tell: Callable[[str], None],
) -> _Ready:
    trained = train_on(
        data,
        request.params,
        auto=request.auto,
        jobs=request.jobs,
        progress=progress,
        notice=tell,
    )
    plan = trained.plan
    if request.target is not None:
        save(trained, data, request.target, force=request.force)
    judge = OutOfBagJudge.of(
        Predictor(trained.ensemble, data.scaling),
        trained.problems,
        data.positives,
        trained.unlabeled,
        trained.drawn,
        groups,
        request.jobs,
        progress,
    )
    return _Ready(plan, judge, request.target)


def _loaded(
    request: RankRequest,
    stored: model_dir.StoredModel,
    data: TrainingData,
    groups: IntArray | None,
    progress: Progress,
    tell: Callable[[str], None],
) -> _Ready:
    assert request.model is not None
    plan, tasks = redrawn(stored, request.model)
    require_same_data(stored, request.model, data, progress)
    for text in data.notes:
        tell(text)
    drawn = rows_drawn(tasks)
    judge = OutOfBagJudge.of(
        Predictor(stored.ensemble, stored.scaling),
        tasks,
        data.positives,
        data.fetch(drawn),
        drawn,
        groups,
        request.jobs,
        progress,
    )
    return _Ready(plan, judge, request.model)


def _ranked(
    request: RankRequest,
    data: TrainingData,
    ready: _Ready,
    tell: Callable[[str], None],
    notes: list[str],
) -> RankResult:
    plan, judge = ready.plan, ready.judge
    judges_p = plan.method == "resvm"
    judges_u = not request.audit or request.page or request.contamination_pos is not None
    n_listed = (plan.rows_pos if request.audit or request.with_known else 0) + (
        0 if request.audit else plan.rows_unl
    )
    resamples = None
    if request.intervals:
        resamples = MemberResamples(plan.n_models, n_resamples(n_listed), plan.seed)
    known = judge.positives(data.positives, resamples) if judges_p else None
    unlabeled = None
    if judges_u:
        unlabeled = judge.unlabeled(
            data.unlabeled(), plan.rows_unl, None if request.audit else resamples
        )
    ids = data.ids()
    ids_pos, ids_unl = ids[: plan.rows_pos], ids[plan.rows_pos :]
    audited = None
    if known is not None and (request.audit or request.page):
        audited = _audit(request, ids_pos, known, unlabeled)
    if request.audit:
        assert audited is not None
        listing = audited
    elif request.with_known:
        assert known is not None
        assert unlabeled is not None
        listing = _list(ids, _joined(known, unlabeled), plan.rows_pos, lowest_first=False)
    else:
        assert unlabeled is not None
        listing = _list(ids_unl, unlabeled, 0, lowest_first=False)
    n_unjudged = int((listing.n_members == 0).sum())
    if n_unjudged == len(listing):
        raise DataError(
            "every row is in every bag: no member is left to judge any of them",
            "use smaller bags (--n-pos, --n-unl), more members or fewer groups",
        )
    if n_unjudged:
        tell(
            f"{n_unjudged:,} of {len(listing):,} rows, or their groups, are in every bag: they come"
            " last, without a value; smaller bags or more members would judge them"
        )
    histogram = None
    if request.page and known is not None and unlabeled is not None:
        both = _joined(known, unlabeled)
        judged = both.n_members > 0
        of_pos = np.arange(len(both)) < len(known)
        histogram = Histogram.of(of_pos[judged], both.values[judged])
    return RankResult(
        listing if request.top is None else listing.head(request.top),
        len(listing),
        plan,
        request.audit,
        request.with_known,
        n_unjudged,
        _suspects(request, known, unlabeled),
        0 if resamples is None else resamples.count,
        None if known is None or unlabeled is None else _recovery(known, unlabeled),
        audited if request.page else None,
        histogram,
        ready.kept_at,
        tuple(notes),
    )


def _joined(known: Judged, unlabeled: Judged) -> Judged:
    resampled = None
    if known.resampled is not None and unlabeled.resampled is not None:
        resampled = np.concatenate([known.resampled, unlabeled.resampled], axis=1)
    return Judged(
        np.concatenate([known.values, unlabeled.values]),
        np.concatenate([known.votes, unlabeled.votes]),
        np.concatenate([known.n_members, unlabeled.n_members]),
        resampled,
    )


def _list(ids: list[str], judged: Judged, n_known: int, *, lowest_first: bool) -> Listing:
    """Rows in order; equal ones by their row number, those without a value last."""
    order = np.argsort(judged.values if lowest_first else -judged.values, kind="stable")
    low = high = None
    if judged.resampled is not None:
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(1, len(order) + 1)
        low, high = rank_bounds(judged.resampled, ranks, lowest_first=lowest_first)
        low, high = low[order], high[order]
    return Listing(
        [ids[number] for number in order.tolist()],
        order < n_known,
        judged.values[order],
        judged.votes[order],
        judged.n_members[order],
        low,
        high,
        None,
    )


def _audit(
    request: RankRequest, ids: list[str], known: Judged, unlabeled: Judged | None
) -> Listing:
    if known.resampled is not None:  # ranks take the place of values, which others may need
        known = replace(known, resampled=known.resampled.copy())
    listing = _list(ids, known, len(ids), lowest_first=True)
    if request.contamination_pos is None:
        return listing
    assert unlabeled is not None
    told = Contamination(request.contamination_pos, request.contamination_unl or 0.0)
    n_judged = len(known) - known.n_unjudged
    expected: FloatArray = np.full(len(known), np.nan)
    expected[:n_judged] = expected_false(
        listing.values[:n_judged], unlabeled.values[unlabeled.n_members > 0], told
    )
    return replace(listing, expected_false=expected)


def _suspects(request: RankRequest, known: Judged | None, unlabeled: Judged | None) -> int | None:
    """As many as are said to be false, else those that look more like U."""
    if known is None or unlabeled is None:
        return None
    if request.contamination_pos is not None:
        return min(round(request.contamination_pos * len(known)), len(known) - known.n_unjudged)
    return n_suspects(known.values[known.n_members > 0], unlabeled.values[unlabeled.n_members > 0])


def _recovery(known: Judged, unlabeled: Judged) -> Recovery | None:
    values = known.values[known.n_members > 0]
    if not len(values):
        return None
    ascending = np.sort(unlabeled.values[unlabeled.n_members > 0])
    before = len(ascending) - np.searchsorted(ascending, values, "right")
    return Recovery(np.sort(before))
