"""The report of train and merge: a model's settings, expected performance and path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from resvm_cli.cli.terminal import print_json, say_row

if TYPE_CHECKING:
    from resvm_cli.ensemble.oob import ExpectedPerformance
    from resvm_cli.ensemble.plan import Plan, SettingPlan
    from resvm_cli.parameters import RuleName
    from resvm_cli.svm.kernels import Kernel
    from resvm_cli.tuning.learn import TrainResult


def report(command: str, result: TrainResult, *, json: bool, quiet: bool) -> None:
    """Report a new model on stderr unless ``quiet``, and as JSON on stdout if ``json``."""
    if not quiet:
        _show(result)
    if json:
        expected = asdict(result.expected)
        for name in () if result.plan.rows_neg else ("n_negatives", "n_false"):
            del expected[name]
        content = {
            "model": result.path,
            "notes": list(result.notes),
            "expected_performance": expected,
            "manifest": result.manifest,
        }
        print_json(command, content)


def _show(result: TrainResult) -> None:
    """Print the settings, the expected performance and the path of a new model."""
    plan = result.plan
    rows = [
        ("data", f"{rows_of(plan)}, {result.manifest['n_features']:,} features"),
        ("method", plan.method),
        *(_committee(plan) if len(plan.settings) > 1 else _setting(plan.settings[0])),
        ("seed", str(plan.seed)),
    ]
    treated = []
    if kinds := [scaling["kind"] for scaling in result.manifest["scalings"]]:
        treated.append(f"scaled by {' and '.join(kinds)}")
    if len(plan.settings) == 1 and plan.settings[0].relevance_power is not None:
        treated.append(f"weighted by {plan.settings[0].feature_weights}")
    if treated:
        rows.insert(2, ("features", ", ".join(treated)))
    rows += _expected(result.expected, plan)
    for name, text in rows:
        say_row(name, text)
    say_row("model", result.path)
    if plan.candidates:
        say_row("repeat", f"--params {result.path} trains the same members without the search")


def _setting(plan: SettingPlan) -> list[tuple[str, str]]:
    """Return the report lines for a model with one setting."""
    solver: str = plan.solver
    if plan.solver == "liblinear" and plan.bias is None:
        solver += ", bias: mean row norm of each bag"
    elif plan.solver == "liblinear" and plan.bias is not None:
        solver += f", bias {plan.bias:g}" if plan.bias > 0 else ", no bias"
    penalties = f"C_P {plan.c_pos:.12g}, C_U {plan.c_unl:.12g}"
    if plan.w_pos is not None and plan.method != "bagging":
        penalties += f" (w_pos {plan.w_pos:g})"
    if plan.w_neg is not None:
        penalties += f", known negatives {plan.c_neg:.12g} (w_neg {plan.w_neg:g})"
    rows = [("kernel", _kernel(plan.kernel)), ("penalties", penalties), ("solver", solver)]
    if plan.method != "cwsvm":
        rows.append(("members", f"{plan.n_models}, each trained on {bags_of([plan])}"))
    return rows


def _kernel(kernel: Kernel) -> str:
    described: str = kernel.name
    if "gamma" in kernel.parameters:
        described += f", gamma {kernel.gamma!r}"
    if "coef0" in kernel.parameters:
        described += f", coef0 {kernel.coef0:g}"
    if "degree" in kernel.parameters:
        described += f", degree {kernel.degree}"
    return described


def _committee(plan: Plan) -> list[tuple[str, str]]:
    """Return the report lines for a model that pools several settings."""
    rows = [
        ("kernel", plan.kernel_names),
        ("members", f"{plan.n_models} from {len(plan.settings)} settings, pooled by weight:"),
    ]
    for each in plan.settings:
        gamma = f", gamma {each.kernel.gamma:.3g}" if "gamma" in each.kernel.parameters else ""
        rows.append(
            (
                f"{each.weight:.3f}",
                f"{each.n_models} of {each.n_pos:,} + {each.n_unl:,} rows, C_U {each.c_unl:.3g},"
                f" w_pos {each.w_pos or 1:.3g}{gamma}{_own(each, plan)}",
            )
        )
    return rows


def _own(setting: SettingPlan, plan: Plan) -> str:
    """Return what distinguishes this setting from the model's other settings, except numbers."""
    words: list[str] = []
    if len({each.kernel.name for each in plan.settings}) > 1:
        words.append(setting.kernel.name)
    if len(plan.scalings) > 1:
        words.append(setting.scale or "unscaled")
    if setting.relevance_power is not None:
        words.append(setting.feature_weights)
    return "".join(f", {word}" for word in words)


def rows_of(plan: Plan) -> str:
    """Describe the sizes of the training sets."""
    text = f"{plan.rows_pos:,} positive, {plan.rows_unl:,} unlabeled rows"
    return text if not plan.rows_neg else text + f", {plan.rows_neg:,} known negatives"


def bags_of(plans: Sequence[SettingPlan]) -> str:
    """Describe the bag sizes of these settings."""

    def span(sizes: list[int]) -> str:
        low, high = min(sizes), max(sizes)
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"

    n_pos, n_unl = [plan.n_pos for plan in plans], [plan.n_unl for plan in plans]
    text = f"{span(n_pos)} positive and {span(n_unl)} unlabeled rows"
    n_neg = [plan.n_neg for plan in plans]
    return text if not any(n_neg) else text + f" and {span(n_neg)} known negatives"


def _expected(expected: ExpectedPerformance, plan: Plan) -> list[tuple[str, str]]:
    """Return the report lines for the threshold and the out-of-bag separation of P from U."""
    threshold = expected.threshold
    rates = threshold.recall, threshold.fraction_positive
    how = predicted_positive(expected.rule, threshold.value, *rates, single=plan.method == "cwsvm")
    rows = [("threshold", f"predicted positive: {how}")]
    if expected.n_negatives:
        text = f"{expected.n_false:,} of {expected.n_negatives:,} known negatives, out of bag"
        rows.append(("false", text))
    if (area := expected.roc_auc) is not None:
        text = f"{area.value:.3f} ({area.low:.3f} to {area.high:.3f}), P against U"
        if expected.n_unlabeled < plan.rows_unl:
            text += f", from {expected.n_unlabeled:,} of {plan.rows_unl:,} rows of U"
        rows.append(("ROC AUC", text))
    return rows


def predicted_positive(
    rule: RuleName,
    threshold: float,
    recall: float | None,
    fraction: float | None,
    *,
    single: bool = False,
) -> str:
    """Say in words which rows are predicted positive, and how many are out of bag."""
    text = f"decision value above {threshold:.4g}"
    if rule == "votes" and not single:  # the paper's decision value
        if threshold >= 1:
            total = f"{threshold - 1:.4g}"
            text += f" (all members vote positive, with values that add up to more than {total})"
        elif threshold >= 0:
            text += f" (more than {100 * threshold:.3g}% of the members vote positive)"
        else:
            text += f" (any member votes positive, or values add up to more than {threshold:.4g})"
    if recall is not None and fraction is not None:
        text += f": {100 * recall:.0f}% of P and {100 * fraction:.2g}% of U out of bag"
    return text
