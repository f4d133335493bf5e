"""``rank``: rank U by out-of-bag values, or audit P."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from resvm_cli.commands.rank.baselines import Baseline, compared
from resvm_cli.commands.rank.batch import BatchSummary, choose_batch, excluded_rows
from resvm_cli.commands.rank.fdr import (
    FdrEstimate,
    Outcomes,
    estimated,
    read_negatives,
    require_untrained,
    scored_negatives,
)
from resvm_cli.commands.rank.listing import (
    Listing,
    Recovery,
    ordered,
    with_expected_false,
    with_precision,
)
from resvm_cli.commands.rank.out_of_bag_scores import (
    MemberResamples,
    OutOfBagScorer,
    OutOfBagScores,
    n_resamples,
    ranking_threads,
)
from resvm_cli.commands.rank.reasons import Reasons, feature_names, reasons_of
from resvm_cli.errors import DataError, Message, ParameterError, Text
from resvm_cli.files.row_lists import read_known_ids, read_outcomes
from resvm_cli.files.streams import name_of
from resvm_cli.metrics.class_mixture import REPLICATES, ClassMixture
from resvm_cli.metrics.curves import Histogram
from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.importance import FeatureImportance, feature_importance
from resvm_cli.model.model_plan import ModelPlan
from resvm_cli.model.out_of_bag import TrainingRows, UnseenMask
from resvm_cli.model.pu_data import PUData
from resvm_cli.model_files.directory import (
    StoredModel,
    check_model_target,
    load_model,
)
from resvm_cli.parameters import RankingParameters, RuleName
from resvm_cli.records import dataclass
from resvm_cli.rows import IntArray, Rows
from resvm_cli.running import parallel
from resvm_cli.running.run import Run
from resvm_cli.svm.libsvm import silenced
from resvm_cli.tables.encoding import check_annotated
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.training.data import TrainingData
from resvm_cli.training.input import TrainingInput
from resvm_cli.training.train import (
    as_stored,
    check,
    make_plan,
    redrawn_rows,
    save,
    train_on,
)

SEEN_BY_ALL = "bagging trains every member on all of P, so none can score known positives"

ONE_MODEL = "cwsvm is a single model that has seen every row, so it has no out-of-bag values"


@dataclass(frozen=True, kw_only=True)
class RankRequest(RankingParameters):
    """Which rows to rank, with which ensemble, and what to add to the list."""

    source: TrainingInput = field(default_factory=TrainingInput)  # unless rows are in memory
    choice: TrainingChoice = field(default_factory=TrainingChoice)
    model: str | None = None  # instead of training
    target: str | None = None  # where to save the trained model
    force: bool = False
    negatives: str | None = None  # a file of trusted negatives
    tested: str | None = None  # a file of outcomes of rows of U
    exclude: str | None = None  # a file of ids of rows of U that cannot be tested
    feature_map: str | None = None  # names of features
    annotate: str | None = None  # where to write the table with its ranks
    intervals: bool = True
    page: bool = False  # compute what the HTML page shows
    importance: bool = False  # feature importance for the page; omitted if it cannot be computed

    @property
    def rule(self) -> RuleName:
        """The decision rule; by default the mean value, which ranks best (docs/quality.md)."""
        return self.choice.decision or "mean"

    def check(self) -> None:
        """Reject requests that cannot work, before any file is read."""
        check(self.source, self.choice)
        self.check_list()

    def check_list(self) -> None:
        """Reject combinations that are invalid whatever the data."""
        super().check_list()
        if self.annotate is not None:
            check_annotated(self.annotate)
        if self.negatives is not None and self.audit:
            raise ParameterError("{negatives} is for rankings of U, but {audit:True} lists P")
        if self.exclude is not None and self.next is None:
            raise ParameterError("{exclude} requires {next}")
        if self.feature_map is not None and self.why is None:
            raise ParameterError("{feature_map} requires {why}, which prints feature names")
        if self.model is None:
            self.check_method(self.choice.params.method)
            if self.target is not None:
                check_model_target(self.target, force=self.force)

    def check_method(self, method: str) -> None:
        """Reject requests for which this method has no out-of-bag values."""
        hint = "use {method:resvm}, which resamples P as well as U"
        if method == "cwsvm":
            raise ParameterError(f"{ONE_MODEL}; it cannot rank its own rows", hint)
        if method != "bagging":
            return
        if self.audit or self.with_known:
            what = "audit P" if self.audit else "rank known positives among others"
            raise ParameterError(f"{SEEN_BY_ALL}; it cannot {what}", hint)
        for name, value in (
            ("fdr", self.fdr if self.negatives is None else None),
            ("contamination_pos", self.contamination_pos),
            ("contamination_unl", self.contamination_unl),
            ("tested", self.tested),
        ):
            if value is not None:
                raise ParameterError(SEEN_BY_ALL + ", which {" + name + "} needs", hint)


@dataclass(frozen=True, eq=False)
class RankResult:
    """The requested list, and what the report shows with it."""

    request: RankRequest
    plan: ModelPlan
    listing: Listing
    n_listed: int  # before ``top`` shortens the list
    n_unscored: int  # listed rows without a value
    n_suspects: int | None  # known positives that look false; None if P has no scores
    resamples: int  # 0 without intervals
    recovery: Recovery | None
    fdr_estimate: FdrEstimate | None  # None: neither P nor trusted negatives have scores
    known: Listing | None  # P, most suspicious first, for a page
    histogram: Histogram | None  # values of P and of U, for a page
    notes: tuple[Text, ...]
    stored: StoredModel | None = None  # the ensemble
    baselines: tuple[Baseline, ...] = ()  # empty if P has no scores
    importance: tuple[FeatureImportance, ...] = ()  # largest first
    reasons: tuple[Reasons, ...] = ()  # for the first ``why`` rows
    batch: BatchSummary | None = None  # how ``next`` rows were chosen


def rank(request: RankRequest, run: Run) -> RankResult:
    """Train or load a model, score every row out of bag, and sort the rows."""
    source = replace(request.source, keep_ids=True)
    request = replace(request, source=source)
    request.check()
    stored = None
    if request.model is not None:
        stored = load_model(request.model)
        request.check_method(stored.manifest["method"])
        source = as_stored(source, stored)
    else:
        source = source.for_kernel(request.choice.params.kernel)
    outcomes = None if request.tested is None else read_outcomes(request.tested)
    excluded = None
    if request.exclude is not None:
        name = name_of(request.exclude)
        listed = read_known_ids(request.exclude).items()
        excluded = [(row_id, f"{name}:{line}") for row_id, line in listed]
    with (
        parallel.inner_threads_held(),
        silenced(),
        TrainingData(source, run) as data,
    ):
        if request.annotate is not None:
            data.require_tables()
        negatives = None if request.negatives is None else read_negatives(request.negatives, data)
        result = rank_on(data, request, run, stored, negatives, outcomes, excluded)
        if request.annotate is not None:
            columns = result.listing.by_column()
            del columns["id"]  # the table has its own ids
            data.annotate(request.annotate, result.listing.numbers, columns)
        return result


def rank_on(
    data: PUData,
    request: RankRequest,
    run: Run,
    stored: StoredModel | None = None,
    negatives: tuple[Rows, Callable[[int], str]] | None = None,
    outcomes: Mapping[str, tuple[bool, str]] | None = None,
    excluded: Sequence[tuple[str, str]] | None = None,
) -> RankResult:
    """Rank data that is in memory, with the stored model if there is one.

    Trusted negatives, ``outcomes`` of tested rows by id, and ids of ``excluded`` rows come with
    their locations, for error messages.
    """
    groups = data.groups()  # read first, because training is slow
    kernels: list[str] = [request.choice.params.kernel]
    if stored is not None:
        kernels = list({group.kernel.name: None for group in stored.ensemble.groups})
    elif request.choice.auto is not None:
        kernels.append("linear")  # some members may be linear
    if negatives is not None:
        require_untrained(*negatives, data, precomputed="precomputed" in kernels)
    names = feature_names(request.feature_map, kernels)
    tested = untestable = None
    if outcomes is not None or excluded is not None:
        n_pos = len(data.positives)
        ids = data.ids()[n_pos : n_pos + data.n_unlabeled]
        tested = None if outcomes is None else Outcomes.from_ids(outcomes, ids)
        untestable = None if excluded is None else excluded_rows(ids, excluded)
    plan, scorer, stored = _scorer(request, data, groups, stored, run)
    if negatives is not None:
        trusted, notes = scored_negatives(negatives[0], scorer, data.unlabeled())
        scorer = replace(scorer, negatives=trusted)
        for note in notes:
            run.remark(note)
    result = replace(_ranked(request, data, plan, scorer, run, tested, names), stored=stored)
    ensemble = stored.ensemble
    if request.importance and plan.method == "resvm" and not ensemble.is_precomputed:
        mask = scorer.unseen_mask
        found = feature_importance(ensemble, data, mask, plan.seed, run, names)
        result = replace(result, importance=found)
    if request.next is not None:
        done = None if tested is None else tested.numbers
        batch, summary = choose_batch(
            result.listing, data, plan, request.next, request.explore or 0.0, untestable, done
        )
        result = replace(result, listing=batch, batch=summary)
    if request.why is not None:
        reasons = reasons_of(result.listing, request.why, data, plan, scorer, names, run)
        result = replace(result, reasons=reasons)
    return result


def _scorer(
    request: RankRequest,
    data: PUData,
    groups: IntArray | None,
    stored: StoredModel | None,
    run: Run,
) -> tuple[ModelPlan, OutOfBagScorer, StoredModel]:
    """Train a model, or redraw the bags of the stored one, to score its training rows."""
    if stored is not None:
        assert request.model is not None
        plan, problems, rows = redrawn_rows(stored, request.model, data, run)
    else:
        choice = request.choice
        if choice.auto is not None or data.scaling_is_open:
            from resvm_cli.tuning.tune import choose_settings  # slow to import

            choice = choose_settings(data, choice, run)
        if run.memory_mb is not None:  # fail before training, which is slow
            ranking_threads(make_plan(data, choice), data, run, intervals=request.intervals)
        part, stored = train_on(data, choice, run)
        if request.target is not None:
            save(stored, request.target, force=request.force)
        plan, problems = part.plan, part.problems
        rows = TrainingRows(data.positives, part.unlabeled, part.drawn, groups)
    threads = ranking_threads(plan, data, run, intervals=request.intervals)
    mask, predictor = UnseenMask(problems, rows), Predictor(stored.ensemble)
    within = replace(run, jobs=threads)
    scorer = OutOfBagScorer(predictor, mask, len(data.positives), request.rule, within)
    return plan, scorer, stored


def _ranked(
    request: RankRequest,
    data: PUData,
    plan: ModelPlan,
    scorer: OutOfBagScorer,
    run: Run,
    tested: Outcomes | None,
    names: list[str] | None,
) -> RankResult:
    known, unlabeled, n_resampled = _scored_sets(request, data, plan, scorer)
    workers = scorer.run.threads()

    def fitted() -> ClassMixture | None:
        if known is None:
            return None
        return ClassMixture.fit(
            known.present,
            unlabeled.present,
            request.contamination_pos,
            request.contamination_unl,
            REPLICATES if request.intervals else 0,
            plan.seed,
            None if tested is None else tested.ranked(unlabeled.values),
            sampled=not plan.rows_neg,  # with known negatives, P contains tested rows
        )

    def listed() -> tuple[Listing, Listing | None, tuple[Baseline, ...]]:
        ensemble = scorer.predictor.ensemble
        baselines: tuple[Baseline, ...] = ()
        if known is not None:
            baselines = compared(data, ensemble, known, unlabeled, names, plan.seed)
        others = max(1, workers - 1)  # the fit takes one thread
        return *_listings(request, data.ids(), plan, known, unlabeled, others), baselines

    classes, (listing, audited, baselines) = parallel.both(fitted, listed, workers)
    if audited is not None:
        audited = with_expected_false(audited, classes)
    if request.audit and audited is not None:
        listing = audited
    elif known is not None:
        listing = with_precision(listing, classes)
    n_listed, n_unscored = len(listing), int((listing.n_members == 0).sum())
    if n_unscored == n_listed:
        raise DataError(
            "every row is in every bag, so no member can score any of them out of bag",
            Message("use smaller bags ({n_pos}, {n_unl}), more members or smaller groups"),
        )
    if n_unscored:
        run.notice(
            f"{n_unscored:,} of {n_listed:,} rows, or their groups, are in every bag, so they"
            " are listed last, without a value; to score them, use smaller bags or more members"
        )
    listing, estimate, warnings = estimated(listing, known, unlabeled, classes, scorer, request.fdr)
    for text in (*warnings, *(one.note() for one in baselines if not one.is_beaten)):
        run.notice(text)
    histogram = None
    if request.page and known is not None:
        values = np.concatenate([known.present, unlabeled.present])
        histogram = Histogram.from_scores(np.arange(len(values)) < len(known.present), values)
    return RankResult(
        request,
        plan,
        listing if request.top is None else listing.head(request.top),
        n_listed,
        n_unscored,
        n_suspects=None if classes is None else classes.n_false(),
        resamples=n_resampled,
        recovery=None if known is None else Recovery.from_values(known, unlabeled),
        fdr_estimate=estimate,
        known=audited if request.page else None,
        histogram=histogram,
        notes=tuple(run.notes),
        baselines=baselines,
    )


def _scored_sets(
    request: RankRequest, data: PUData, plan: ModelPlan, scorer: OutOfBagScorer
) -> tuple[OutOfBagScores | None, OutOfBagScores, int]:
    """Return the scores of P (None if it cannot be scored) and U, and the number of resamples."""
    resamples = None
    if request.intervals:
        n_pos = plan.rows_pos if request.audit or request.with_known else 0
        n_listed = n_pos + (0 if request.audit else plan.rows_unl)
        resamples = MemberResamples(plan.n_models, n_resamples(n_listed), plan.seed)
    known = None
    if plan.method == "resvm":
        of_known = resamples if request.audit or request.page or request.with_known else None
        known = scorer.positives(data.positives, of_known)
    unlabeled = scorer.unlabeled(
        data.unlabeled(), plan.rows_unl, None if request.audit else resamples
    )
    return known, unlabeled, 0 if resamples is None else resamples.count


def _listings(
    request: RankRequest,
    ids: list[str],
    plan: ModelPlan,
    known: OutOfBagScores | None,
    unlabeled: OutOfBagScores,
    workers: int,
) -> tuple[Listing, Listing | None]:
    """Return the requested list, and the audit of P if it is shown, without expected figures."""
    audited = None
    if known is not None and (request.audit or request.page):
        # rank_bounds overwrites values that the other list may need
        resampled = None if known.resampled is None else known.resampled.copy()
        own, n_pos = replace(known, resampled=resampled), plan.rows_pos
        audited = ordered(ids[:n_pos], own, n_pos, lowest_first=True, workers=workers)
    if request.audit:
        assert audited is not None
        return audited, audited
    values, n_known = unlabeled, 0
    if request.with_known:
        assert known is not None
        values, n_known = OutOfBagScores.joined(known, unlabeled), plan.rows_pos
    first = plan.rows_pos - n_known
    listing = ordered(ids[first:], values, n_known, first, lowest_first=False, workers=workers)
    return listing, audited
