"""P and U to a ranking of U by out-of-bag values, or to an audit of P."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from resvm_cli.commands.rank.fdr import (
    Promise,
    doubtful_negatives,
    doubts,
    negatives_unlike,
    promised_list,
    read_negatives,
    scored_negatives,
)
from resvm_cli.commands.rank.listing import Recovery, listings
from resvm_cli.commands.rank.out_of_bag_scores import (
    MemberResamples,
    OutOfBagScorer,
    OutOfBagScores,
    n_resamples,
    ranking_threads,
)
from resvm_cli.commands.rank.ranked_rows import Listing
from resvm_cli.commands.rank.reasons import Reasons, feature_names, reasons_of
from resvm_cli.commands.rank.request import RankRequest
from resvm_cli.errors import DataError, Message, Text
from resvm_cli.metrics.class_mixture import REPLICATES, ClassMixture
from resvm_cli.metrics.curves import Histogram
from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.members import Part, rows_drawn
from resvm_cli.model.out_of_bag import Absences, TrainingRows
from resvm_cli.model.plan import ModelPlan
from resvm_cli.model.pu_data import PUData
from resvm_cli.model_files import directory as model_dir
from resvm_cli.model_files.directory import StoredModel, load_model, stored_plan
from resvm_cli.parameters import RuleName
from resvm_cli.rows import IntArray, Rows
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.svm.problem import Problem
from resvm_cli.svm.solver_libraries import silenced
from resvm_cli.training.data import TrainingData, as_stored, require_same_data
from resvm_cli.training.resource_budget import kept_nonzeros
from resvm_cli.training.train import make_plan, save, train_on


@dataclass(frozen=True, eq=False)
class RankResult:
    """The list that was asked for, and what else there is to show."""

    listing: Listing
    n_listed: int  # before --top
    plan: ModelPlan
    rule: RuleName
    audit: bool
    with_known: bool
    n_unjudged: int  # of those listed
    n_suspects: int | None  # known positives that look wrong, where P and U were judged
    resamples: int  # 0 without intervals
    recovery: Recovery | None
    promise: Promise | None  # None: P was not judged, and there are no trusted negatives
    known: Listing | None  # P, most suspicious first, for a page
    histogram: Histogram | None  # values of P and of U, for a page
    model: str | None
    notes: tuple[Text, ...]
    reasons: tuple[Reasons, ...] = ()  # for the first rows, where they were asked for


def rank(request: RankRequest, run: Run) -> RankResult:
    """Train or load, judge every row out of bag, and put the rows in order."""
    request.check()
    source = replace(request.source, keep_ids=True)
    stored = None
    if request.model is not None:
        stored = load_model(request.model)
        request.check_method(stored.manifest["method"])
        source = as_stored(source, stored)
    else:
        source = source.for_kernel(request.choice.params.kernel)
    negatives = None
    if request.negatives is not None:
        negatives = read_negatives(request.negatives, zero_based=source.zero_based)
    with (
        parallel.inner_threads_held(),
        silenced(),
        TrainingData(source, False, run, kept_nonzeros(run.memory_mb)) as data,
    ):
        return rank_on(data, request, run, stored, negatives)


def rank_on(
    data: PUData,
    request: RankRequest,
    run: Run,
    stored: StoredModel | None = None,
    negatives: Rows | None = None,
) -> RankResult:
    """Rank sets that are read already, by the stored model where there is one."""
    groups = data.groups()  # first: training takes long
    kernel = request.choice.params.kernel
    if stored is not None:
        kernel = stored.ensemble.groups[0].kernel.name
    names = feature_names(request.feature_map, kernel)
    if stored is None:
        plan, judge = _trained(request, data, groups, run)
    else:
        plan, judge = _loaded(request, stored, data, groups, run)
    if negatives is not None:
        judge = replace(judge, negatives=scored_negatives(negatives, judge))
    result = _ranked(request, data, plan, judge, run)
    if request.why is not None:
        reasons = reasons_of(result.listing, request.why, data, plan, judge, names, run)
        result = replace(result, reasons=reasons)
    return result


def _trained(
    request: RankRequest,
    data: PUData,
    groups: IntArray | None,
    run: Run,
) -> tuple[ModelPlan, OutOfBagScorer]:
    choice = request.choice
    if choice.auto is not None:
        from resvm_cli.tuning.auto import choose_settings  # it takes a while to import

        choice = choose_settings(data, choice, run)
    if run.memory_mb is not None:  # before training, which takes long
        _scoring_run(request, make_plan(data, choice), data, run)
    part, model = train_on(data, choice, run)
    if request.target is not None:
        save(model, request.target, force=request.force)
    within = _scoring_run(request, part.plan, data, run)
    return part.plan, judge_of(part, model, data, groups, request.rule, within)


def _scoring_run(request: RankRequest, plan: ModelPlan, data: PUData, run: Run) -> Run:
    """The run with the threads that its memory allows while every row is scored."""
    return replace(run, jobs=ranking_threads(plan, data, run, intervals=request.intervals))


def judge_of(
    part: Part,
    model: model_dir.StoredModel,
    data: PUData,
    groups: IntArray | None,
    rule: RuleName,
    run: Run,
) -> OutOfBagScorer:
    """Judges the rows that a model was trained on."""
    training_rows = TrainingRows(data.positives, part.unlabeled, part.drawn, groups)
    predictor = Predictor(model.ensemble, data.scaling)
    return _judge(predictor, part.problems, training_rows, rule, run)


def _loaded(
    request: RankRequest,
    stored: StoredModel,
    data: PUData,
    groups: IntArray | None,
    run: Run,
) -> tuple[ModelPlan, OutOfBagScorer]:
    assert request.model is not None
    plan = stored_plan(stored, request.model)
    require_same_data(stored, request.model, data, run)
    plan = plan.with_weights(data.positive_weights)
    tasks = plan.problems(range(plan.n_models))
    for text in data.notes:
        run.notice(text)
    drawn = rows_drawn(tasks)
    training_rows = TrainingRows(data.positives, data.fetch(drawn), drawn, groups)
    predictor = Predictor(stored.ensemble, stored.scaling)
    within = _scoring_run(request, plan, data, run)
    return plan, _judge(predictor, tasks, training_rows, request.rule, within)


def _judge(
    predictor: Predictor,
    tasks: Sequence[Problem],
    training_rows: TrainingRows,
    rule: RuleName,
    run: Run,
) -> OutOfBagScorer:
    absences = Absences(tasks, training_rows)
    return OutOfBagScorer(predictor, absences, training_rows.n_positives, rule, run)


def _ranked(
    request: RankRequest,
    data: PUData,
    plan: ModelPlan,
    judge: OutOfBagScorer,
    run: Run,
) -> RankResult:
    known, unlabeled, n_resampled = _judged_sets(request, data, plan, judge)
    classes = None
    if known is not None and unlabeled is not None:
        classes = ClassMixture.fit(
            known.values[known.scored],
            unlabeled.values[unlabeled.scored],
            request.contamination_pos,
            request.contamination_unl,
            REPLICATES if request.intervals else 0,
            plan.seed,
        )
    listing, audited = listings(request, data.ids(), plan, known, unlabeled, classes)
    n_unjudged = int((listing.n_members == 0).sum())
    if n_unjudged == len(listing):
        raise DataError(
            "every row is in every bag: no member is left to score any of them",
            Message("use smaller bags ({n_pos}, {n_unl}), more members or fewer groups"),
        )
    if n_unjudged:
        run.notice(
            f"{n_unjudged:,} of {len(listing):,} rows, or their groups, are in every bag: they come"
            " last, without a value; smaller bags or more members would judge them"
        )
    n_listed = len(listing)
    promise = None
    if known is not None or judge.negatives is not None:
        n_unlike = negatives_unlike(
            judge,
            None if known is None else known.values[known.scored],
            unlabeled.values[unlabeled.scored],
        )
        promise = Promise.of(classes, judge.negatives, n_unlike)
        for text in doubtful_negatives(promise):
            run.notice(text)
        if request.fdr is not None:
            listing, promise = promised_list(listing, promise, request.fdr)
            for doubt in doubts(promise):
                run.notice(doubt)
    histogram = None
    if request.page and known is not None and unlabeled is not None:
        both = OutOfBagScores.joined(known, unlabeled)
        of_pos = np.arange(len(both)) < len(known)
        histogram = Histogram.from_scores(of_pos[both.scored], both.values[both.scored])
    return RankResult(
        listing if request.top is None else listing.head(request.top),
        n_listed,
        plan,
        request.rule,
        request.audit,
        request.with_known,
        n_unjudged,
        None if classes is None else classes.n_false(),
        n_resampled,
        None if known is None or unlabeled is None else Recovery.of(known, unlabeled),
        promise,
        audited if request.page else None,
        histogram,
        request.model or request.target,
        tuple(run.notes),
    )


def _judged_sets(
    request: RankRequest, data: PUData, plan: ModelPlan, judge: OutOfBagScorer
) -> tuple[OutOfBagScores | None, OutOfBagScores, int]:
    """P, where that can be judged, and U, and how many resamples their ranks have."""
    n_listed = (plan.rows_pos if request.audit or request.with_known else 0) + (
        0 if request.audit else plan.rows_unl
    )
    resamples = None
    if request.intervals:
        resamples = MemberResamples(plan.n_models, n_resamples(n_listed), plan.seed)
    known = None
    if plan.method == "resvm":
        known = judge.positives(data.positives, resamples)
    unlabeled = judge.unlabeled(
        data.unlabeled(), plan.rows_unl, None if request.audit else resamples
    )
    return known, unlabeled, 0 if resamples is None else resamples.count
