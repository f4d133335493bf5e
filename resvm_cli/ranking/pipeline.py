"""``rank``: rank U by out-of-bag values, or audit P."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from resvm_cli import threads as parallel
from resvm_cli.data.encoding import check_annotated
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.data.pudata import PUData
from resvm_cli.data.pufiles import PUFiles
from resvm_cli.data.row_lists import read_outcomes
from resvm_cli.ensemble.ensemble import Predictor
from resvm_cli.ensemble.importance import FeatureImportance, feature_importance
from resvm_cli.ensemble.oob import TrainingRows, UnseenMask
from resvm_cli.ensemble.plan import Plan
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.metrics.class_mixture import ClassMixture
from resvm_cli.metrics.curves import Histogram
from resvm_cli.parameters import Params, RankingParameters
from resvm_cli.ranking.batch import BatchSummary, choose_batch
from resvm_cli.ranking.listing import Listing, Recovery, add_estimates, rank_rows
from resvm_cli.ranking.precision import FdrEstimate, Outcomes, apply_fdr_estimate
from resvm_cli.ranking.reasons import Reasons, feature_names, reasons_of
from resvm_cli.ranking.scores import (
    MemberResamples,
    OutOfBagScorer,
    n_resamples,
    ranking_threads,
)
from resvm_cli.records import dataclass
from resvm_cli.run import Run
from resvm_cli.storage.model import StoredModel, check_model_target, load_model
from resvm_cli.svm.libsvm import silenced
from resvm_cli.tuning.learn import as_stored, check, learn, redrawn_rows, save

SEEN_BY_ALL = "bagging trains every member on all of P, so none can score known positives"
USE_RESVM = "train with resampling of P as well: resvm train `method='resvm'`"
UNSURE = "are ranked by members that have seen rows like them, and marked by 0 members"


def check_list(wanted: RankingParameters, method: str | None) -> None:
    """Reject combinations that are invalid whatever the data; ``method`` is None if unknown."""
    wanted.check()
    if wanted.annotate is not None:
        check_annotated(wanted.annotate)
    if method == "cwsvm":
        raise ParameterError(
            "cwsvm is a single model that has seen every row, so it has no out-of-bag values; it"
            " cannot rank its own rows",
            USE_RESVM,
        )
    if method != "bagging":
        return
    if wanted.audit:
        raise ParameterError(f"{SEEN_BY_ALL}; it cannot audit P", USE_RESVM)
    for name in ("contamination_pos", "contamination_unl", "tested"):
        if getattr(wanted, name) is not None:
            raise _needs_scores_of_p(name)


def _needs_scores_of_p(name: str) -> ParameterError:
    return ParameterError(f"{SEEN_BY_ALL}; `{name}` requires such scores", USE_RESVM)


@dataclass(frozen=True, eq=False)
class RankResult:
    """The requested list, and what the report shows with it."""

    wanted: RankingParameters
    stored: StoredModel  # the ensemble, whose rule orders the list
    plan: Plan
    listing: Listing
    n_listed: int  # before ``top`` shortens the list
    n_unscored: int  # listed rows without a value
    n_suspects: int | None  # known positives that look false; None if P has no scores
    resamples: int
    recovery: Recovery | None
    fdr_estimate: FdrEstimate | None  # None: neither P nor known negatives have scores
    known: Listing | None  # P, most suspicious first, for the page
    histogram: Histogram | None  # values of P and of U, for the page
    notes: tuple[str, ...]  # with the warnings
    warnings: tuple[str, ...] = ()
    own_columns: Mapping[str, Mapping[int, str]] = field(default_factory=dict)  # for the page
    model: str | None = None  # its directory
    source: TrainingInput | None = None  # None if the rows were in memory
    importance: tuple[FeatureImportance, ...] = ()  # largest first
    reasons: tuple[Reasons, ...] = ()  # for the first ``why`` rows
    batch: BatchSummary | None = None  # how the ``next`` rows were chosen


def rank(
    source: TrainingInput,
    params: Params,
    wanted: RankingParameters,
    run: Run,
    *,
    model: str | None = None,
    target: str | None = None,
    force: bool = False,
) -> RankResult:
    """Train an ensemble or load ``model``, score every row out of bag, and sort the rows.

    A trained ensemble is saved in ``target``.
    """
    source = replace(source, keep_ids=True)
    check(source, params)
    check_list(wanted, params.method if model is None else None)
    stored = None
    if model is not None:
        stored = load_model(model)
        check_list(wanted, stored.manifest["method"])
        source = as_stored(source, stored)
    else:
        source = source.for_kernel(params.kernel)
    if target is not None:
        check_model_target(target, force=force)
    outcomes = None if wanted.tested is None else read_outcomes(wanted.tested)
    with parallel.one_blas_thread(), silenced(), PUFiles(source, run) as data:
        if wanted.annotate is not None:
            data.require_tables()
        data.own_columns(wanted.show)  # all are there
        result = rank_on(
            data, params, wanted, run, stored, outcomes, model=model, target=target, force=force
        )
        listing, own_columns = result.listing, dict[str, dict[int, str]]()
        important = [each.name for each in result.importance]
        if wanted.page and (names := data.own_columns(wanted.show, important)):
            lists = [listing] if result.known is None else [listing, result.known]
            numbers = np.concatenate([each.numbers for each in lists])
            for name, texts in data.texts(numbers, names).items():
                own_columns[name] = dict(zip(numbers.tolist(), texts, strict=True))
        if wanted.annotate is not None:
            columns = listing.by_column()
            del columns["id"]  # the tables have their own ids
            # P, which is not in the list
            others = np.setdiff1d(np.arange(len(data.positives)), listing.numbers)
            for name, column in columns.items():
                column += [1 if name == "known" else None] * len(others)
            data.annotate(wanted.annotate, np.concatenate([listing.numbers, others]), columns)
        return replace(result, source=source, own_columns=own_columns)


def rank_on(
    data: PUData,
    params: Params,
    wanted: RankingParameters,
    run: Run,
    stored: StoredModel | None = None,
    outcomes: Mapping[str, tuple[bool, str]] | None = None,
    *,
    model: str | None = None,
    target: str | None = None,
    force: bool = False,
) -> RankResult:
    """Rank data that has been read, with the stored model if there is one.

    ``outcomes`` of tested rows by id come with their locations, for error messages.
    """
    groups = data.groups()  # read before training, which is slow
    method = params.method if stored is None else stored.manifest["method"]
    if wanted.fdr is not None and method == "bagging" and not len(data.negatives):
        raise _needs_scores_of_p("fdr")
    kernels: list[str] = [params.kernel]
    if stored is not None:
        kernels = [group.kernel.name for group in stored.ensemble.sections]
    names = feature_names(wanted.feature_map, kernels)
    tested, n_pos = None, len(data.positives)
    if outcomes is not None:
        tested = Outcomes.from_ids(outcomes, data.ids()[n_pos : n_pos + data.n_unlabeled])
    if stored is not None:
        assert model is not None
        plan, problems, rows = redrawn_rows(stored, model, data, run)
    else:
        part, stored = learn(data, params, run)
        if target is not None:
            save(stored, target, force=force)
        plan, problems = part.plan, part.problems
        rows = TrainingRows(data.positives, part.unlabeled, part.drawn, groups)
    ensemble, rule = stored.ensemble, stored.decision.rule
    mask, predictor = UnseenMask(problems, rows), Predictor(ensemble)
    within = replace(run, jobs=ranking_threads(plan, data, run))
    scorer = OutOfBagScorer(predictor, mask, rule, within)
    lists_known = wanted.audit or wanted.page
    n_rows = n_pos if wanted.audit else plan.rows_unl
    resamples = MemberResamples(plan.n_models, n_resamples(n_rows), plan.seed)
    known = None
    if plan.method == "resvm":
        redrawn = resamples if lists_known else None
        known = scorer.score("P", [data.positives], 0, n_pos, redrawn)
    redrawn = None if wanted.audit else resamples
    unlabeled = scorer.score("U", data.unlabeled(), n_pos, plan.rows_unl, redrawn)
    ids, workers = data.ids(), scorer.run.threads()

    def fitted() -> ClassMixture | None:
        if known is None:
            return None
        return ClassMixture.fit(
            known.present,
            unlabeled.present,
            wanted.contamination_pos,
            wanted.contamination_unl,
            plan.seed,
            None if tested is None else tested.ranked(unlabeled),
            sampled=not plan.rows_neg,  # with known negatives, P contains tested rows
        )

    def listed() -> tuple[Listing | None, Listing | None]:
        """Return the list of U and that of P, as far as they are shown, before estimates."""
        others = max(1, workers - 1)  # the fit takes one thread
        audited = listing = None
        if known is not None and lists_known:
            audited = rank_rows(ids[:n_pos], known, known=True, workers=others)
        if not wanted.audit:
            listing = rank_rows(ids[n_pos:], unlabeled, known=False, first=n_pos, workers=others)
        return listing, audited

    calls: list[Callable[[], Any]] = [fitted, listed]  # at the same time, if there are two workers
    classes, (listing, audited) = parallel.run(lambda call: call(), calls, workers)
    if audited is not None:
        audited = add_estimates(audited, classes, known=True)
    if listing is None:
        assert audited is not None
        listing = audited
    elif known is not None:
        listing = add_estimates(listing, classes, known=False)
    n_listed, n_unscored = len(listing), int((listing.n_members == 0).sum())
    if n_unscored == n_listed:
        raise DataError(
            "every row is in every bag, so no member can score any of them out of bag",
            "use smaller groups, or a model of smaller bags: resvm train `n_pos=20` `n_unl=40`",
        )
    if n_unscored:
        run.warn(
            f"{n_unscored:,} of {n_listed:,} rows, or rows like them, are in every bag, so they"
            f" {'are listed last' if wanted.audit else UNSURE}; to score them out of bag, use"
            " smaller bags or more members"
        )
    negatives = None
    if wanted.fdr is not None and plan.rows_neg:
        first = n_pos + plan.rows_unl
        negatives = scorer.score("the known negatives", [data.negatives], first, plan.rows_neg)
    estimate = None
    if known is not None or negatives is not None:
        listing, estimate, warnings = apply_fdr_estimate(listing, classes, negatives, wanted.fdr)
        for text in warnings:
            run.warn(text)
    histogram = None
    if wanted.page and known is not None:
        values = np.concatenate([known.present, unlabeled.present])
        histogram = Histogram.from_scores(np.arange(len(values)) < len(known.present), values)
    if wanted.top is not None:
        listing = listing.head(wanted.top)
    notes, importance = tuple(run.notes), tuple[FeatureImportance, ...]()
    if wanted.importance and plan.method == "resvm" and not ensemble.is_precomputed:
        importance = feature_importance(ensemble, data, mask, plan.seed, run, names)
    batch, reasons = None, tuple[Reasons, ...]()
    if wanted.next is not None:
        done = None if tested is None else tested.numbers
        listing, batch = choose_batch(listing, data, plan, ensemble, wanted.next, tested=done)
    if wanted.why is not None:
        reasons = reasons_of(listing, wanted.why, data, plan, scorer, names, run)
    return RankResult(
        wanted,
        stored,
        plan,
        listing,
        n_listed,
        n_unscored,
        n_suspects=None if classes is None else classes.n_false(),
        resamples=resamples.count,
        recovery=None if known is None else Recovery.from_values(known, unlabeled),
        fdr_estimate=estimate,
        known=audited if wanted.page else None,
        histogram=histogram,
        notes=notes,
        warnings=tuple(run.warnings),
        model=model or target,
        importance=importance,
        reasons=reasons,
        batch=batch,
    )
