"""``train --auto``: score informed settings out of bag, on rows in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from resvm_cli.errors import Message, ParameterError, ResvmError
from resvm_cli.model.pu_data import PUData
from resvm_cli.parameters import MethodParameters
from resvm_cli.running.run import Run
from resvm_cli.svm.kernels import Kernel
from resvm_cli.training.choice import TrainingChoice
from resvm_cli.tuning import committee
from resvm_cli.tuning.sample import TuningSample, within_memory
from resvm_cli.tuning.search import ScoringTask
from resvm_cli.tuning.settings import SCREENING_MEMBERS, TuningSettings
from resvm_cli.tuning.space import Axis
from resvm_cli.tuning.trials import TrialLog, run_search
from resvm_cli.tuning.tune import Winner, winner_of
from resvm_cli.tuning.validation import CandidateScorer


def choose_settings(data: PUData, choice: TrainingChoice, run: Run) -> TrainingChoice:
    """Return the choice, with settings found out of bag if it asks for ``auto``.

    Whether to scale features is settled as well, if that is left open.
    """
    settle_scaling(data, choice.params, run)
    if choice.auto is None:
        return choice
    winner = tune_quickly(data, choice.params, choice.kept, run, single=choice.auto == "single")
    what = f"the best of {winner.n_trials} settings has"
    if len(winner.settings) > 1:
        what = f"{len(winner.settings)} of {winner.n_trials} settings pooled, the best of which has"
    area = winner.trial.score("roc_auc_of_mean")
    run.notice(
        f"tuned out of bag: {what} a ROC area of {area:.4f}, P against U (selected, so optimistic)",
        routine=True,
    )
    decision = choice.decision or winner.params.get("decision", "votes")
    return replace(choice, settings=winner.settings, decision=decision, auto=None)


def tune_quickly(
    data: PUData,
    params: MethodParameters,
    kept: Sequence[str],
    run: Run,
    *,
    single: bool,
) -> Winner:
    """Score informed settings out of bag, on rows in memory.

    Parameters named in ``kept`` are not changed.
    """
    if params.method != "resvm":
        raise ParameterError(
            "{auto:True} scores out of bag, which {method:" + params.method + "} cannot do",
            "use tune, which can also use cross-validation",
        )
    if not data.checked:
        raise ParameterError("give either {auto:True} or {unchecked:True}, not both")
    settings = TuningSettings(
        base=replace(params, n_models=None, n_pos=None, n_unl=None, w_pos=None),
        axes=tuple(_fixed_axes(params, kept)),
        fixed=tuple(kept),
        oob=True,
        search="informed",
        metric=committee.INFORMED_METRIC,
        committee=1 if single else committee.MAX_SETTINGS,
        n_models=params.n_models,
        max_unl=committee.QUICK_MAX_UNL,
        gram_mb=committee.QUICK_GRAM_MB,
    )
    settings.check()
    sample = TuningSample.from_data(data, settings, run.silent())
    sample, settings, run = within_memory(data, sample, settings, run)
    log = TrialLog(
        None, (), settings.metric, lambda done, total, best: run.progress("tuning", done, total)
    )
    outcome = run_search(sample, "resvm", settings, log, run)
    scale = data.scale
    return winner_of(outcome, sample, settings, log, data, scale)


def settle_scaling(data: PUData, params: MethodParameters, run: Run) -> None:
    """Choose whether to scale features by scoring the untuned setting both ways.

    Nothing is done if the user chose a scaling or the features have similar scales.
    """
    if not data.scaling_is_open or data.scaling is None:
        return
    if not Kernel(params.kernel).takes_scaling:
        data.scaling = None
        return
    # rbf members, because linear ones take very long on features that are not scaled
    base = MethodParameters(seed=params.seed)
    settings = TuningSettings(
        base=base,
        oob=True,
        search="informed",
        metric=committee.INFORMED_METRIC,
        fixed=("scale",),
        n_models=SCREENING_MEMBERS,
        max_unl=committee.QUICK_MAX_UNL,
        gram_mb=committee.QUICK_GRAM_MB,
    )
    learned = data.scaling
    scores = []
    for scaling in (learned, None):
        data.scaling = scaling
        sample = TuningSample.from_data(data, settings, run.silent())
        untuned = ScoringTask(sample.informed(settings)[0], SCREENING_MEMBERS)
        (score,) = CandidateScorer(sample, settings).scores([untuned], run)
        scores.append(0.0 if isinstance(score, ResvmError) else score.values[settings.metric])
    helps = scores[0] >= scores[1]
    data.scaling = learned if helps else None
    run.notice(
        Message(
            "the features are on different scales: the out-of-bag ROC area of P against U is"
            " {scaled:.4f} with {scale:" + learned.kind + "}, {plain:.4f} without; {what}",
            scaled=scores[0],
            plain=scores[1],
            what="they are scaled" if helps else "they are not scaled",
        ),
        routine=True,
    )


def _fixed_axes(params: MethodParameters, kept: Sequence[str]) -> Iterator[Axis]:
    """Yield an axis with a single value for each parameter that the user has chosen."""
    for name in ("gamma", "degree", "coef0", "n_pos", "w_pos", "c_unl"):
        value = getattr(params, name)
        if name in kept and isinstance(value, (int, float)):
            yield Axis(name, float(value), float(value))
    if "n_unl" in kept and params.n_unl:
        if "n_pos" not in kept or not params.n_pos:
            raise ParameterError("{auto:True} with {n_unl} also needs {n_pos}")
        ratio = params.n_unl / params.n_pos
        yield Axis("unl_per_pos", ratio, ratio)
