"""What train, rank, simulate, check and inspect say to a person of their results."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from resvm_cli.report.terminal import note, print_data, print_table, rendered, say

if TYPE_CHECKING:
    from resvm_cli.benchmark.join import JoinResult
    from resvm_cli.benchmark.run import BenchmarkResult
    from resvm_cli.commands.check.check import FileCheck
    from resvm_cli.commands.convert.convert import ConvertResult
    from resvm_cli.commands.inspect.inspect import Inspection
    from resvm_cli.commands.predict.many_files import FilesResult
    from resvm_cli.commands.rank.fdr import Promise
    from resvm_cli.commands.rank.rank import RankResult
    from resvm_cli.commands.simulate.simulate import SimulateResult
    from resvm_cli.metrics.bootstrap import Interval
    from resvm_cli.model.methods import Plan
    from resvm_cli.model.plan import ModelPlan
    from resvm_cli.svm.kernels import Kernel
    from resvm_cli.training.expected_performance import Outlook
    from resvm_cli.training.parts import PartResult
    from resvm_cli.training.train import TrainResult

# shares of the known positives: by which ranks they would be found
RECOVERED_SHARES = (0.5, 0.9)


def show_training(result: TrainResult) -> None:
    """What was chosen, what to expect of it, and where it went."""
    plan = result.plan
    rows = [
        (
            "data",
            f"{plan.rows_pos:,} positive, {plan.rows_unl:,} unlabeled rows, "
            f"{result.manifest['n_features']:,} features",
        ),
        ("method", plan.method),
        *(_committee(plan) if len(plan.plans) > 1 else _setting(plan.plans[0])),
        ("seed", str(plan.seed)),
    ]
    if scaling := result.manifest["scaling"]:
        rows.insert(2, ("features", f"scaled by {scaling['kind']}"))
    rows += _outlook(result.outlook)
    for name, text in rows:
        say(f"{name:>10}  {text}")
    say(f"{'model':>10}  {result.path}")


def show_part(part: PartResult) -> None:
    """Which members a part holds, and what comes next."""
    if not part.members:
        return
    first, last = part.members[0], part.members[-1]
    say(f"{'members':>10}  {first} to {last} of {part.n_models}, {part.n_trained} of them new")
    say(f"{'part':>10}  {part.path}")


def show_benchmark(result: BenchmarkResult) -> None:
    """How much was run, and what comes next."""
    say(f"{'results':>10}  {result.n_results:,}, {result.n_run:,} of them new")
    if result.missing_tasks:
        from resvm_cli.running.array_tasks import as_ranges

        say(f"{'missing':>10}  {result.n_missing:,}; --array={as_ranges(result.missing_tasks)}")
    say(f"{'took':>10}  {result.seconds:,.0f} s")
    say(f"{'directory':>10}  {result.path}; resvm benchmark report {result.path} has the tables")


def show_joined(result: JoinResult) -> None:
    """How many results came together, and what comes next."""
    say(f"{'results':>10}  {result.n_results:,} of {result.n_directories} directories")
    say(f"{'directory':>10}  {result.path}; resvm benchmark report {result.path} has the tables")


def show_files(result: FilesResult) -> None:
    """How many files were judged, and how many were left."""
    text = f"{result.n_predicted:,} judged"
    if result.n_skipped:
        text += f", {result.n_skipped:,} finished before"
    if result.n_elsewhere:
        text += f", {result.n_elsewhere:,} left to other tasks"
    say(f"{'files':>10}  {text}")
    say(f"{'written to':>10}  {result.path}")


def _bias(bias: float | None) -> str:
    if bias is None:
        return "bias the mean row norm of each bag"
    return f"bias {bias:g}" if bias > 0 else "no bias"


def _setting(plan: Plan) -> list[tuple[str, str]]:
    """One setting, line by line."""
    solver: str = plan.solver
    if plan.solver == "liblinear":
        solver += ", " + _bias(plan.bias)
    penalties = f"C_P {plan.c_pos:.12g}, C_U {plan.c_unl:.12g}"
    if plan.w_pos is not None and plan.method != "bagging":
        penalties += f" (w_pos {plan.w_pos:g})"
    rows = [("kernel", _kernel(plan.kernel)), ("penalties", penalties), ("solver", solver)]
    if plan.method != "cwsvm":
        rows.append(("members", f"{plan.n_models}, each of {bags_of([plan])}"))
    return rows


def _kernel(kernel: Kernel) -> str:
    described: str = kernel.name
    if kernel.uses_gamma:
        described += f", gamma {kernel.gamma!r}"
    if kernel.uses_coef0:
        described += f", coef0 {kernel.coef0:g}"
    if kernel.uses_degree:
        described += f", degree {kernel.degree}"
    return described


def _committee(plan: ModelPlan) -> list[tuple[str, str]]:
    """Several settings, a line each."""
    rows = [
        ("kernel", plan.plans[0].kernel.name),
        ("members", f"{plan.n_models} of {len(plan.plans)} settings, pooled by weight:"),
    ]
    for each, weight in zip(plan.plans, plan.weights, strict=True):
        gamma = f", gamma {each.kernel.gamma:.3g}" if each.kernel.uses_gamma else ""
        rows.append(
            (
                f"{weight:.3f}",
                f"{each.n_models} of {each.n_pos:,} + {each.n_unl:,} rows, C_U {each.c_unl:.3g},"
                f" w_pos {each.w_pos or 1:.3g}{gamma}",
            )
        )
    return rows


def bags_of(plans: Sequence[Plan]) -> str:
    """How many rows bags hold, over some settings."""

    def span(sizes: list[int]) -> str:
        low, high = min(sizes), max(sizes)
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"

    n_pos, n_unl = [plan.n_pos for plan in plans], [plan.n_unl for plan in plans]
    return f"{span(n_pos)} positive and {span(n_unl)} unlabeled rows"


def _outlook(outlook: Outlook) -> list[tuple[str, str]]:
    """The threshold, and how well P and U are told apart out of bag."""
    threshold = outlook.threshold
    text = f"{outlook.rule} above {threshold.value:.4g}"
    if threshold.recall is not None and threshold.share is not None:
        text += (
            f": {100 * threshold.recall:.0f} % of P and {100 * threshold.share:.3g} % of U"
            " out of bag"
        )
    rows = [("positive", text)]
    if (area := outlook.roc_auc) is not None:
        rows.append(
            ("ROC area", f"{area.value:.3f} ({area.low:.3f} to {area.high:.3f}), P against U")
        )
    return rows


def show_ranking(result: RankResult) -> None:
    """How rows were judged, and what that says of the list."""
    plan = result.plan
    rows = [
        ("data", f"{plan.rows_pos:,} positive, {plan.rows_unl:,} unlabeled rows"),
        (
            "ensemble",
            f"{plan.method}, {plan.plans[0].kernel.name}: {plan.n_models} members, each of"
            f" {bags_of(plan.plans)}; by {result.rule}; seed {plan.seed}",
        ),
    ]
    if result.model is not None:
        rows.append(("model", result.model))
    what = "known positives" if result.audit else "rows of U"
    if result.with_known:
        what = "rows of P and U"
    rows.append(("ranked", f"{result.n_listed:,} {what} out of bag"))
    recovery = result.recovery
    if recovery is not None:
        ranks = " and ".join(
            f"{100 * share:.0f} % by rank {recovery.depth_of(share):,}"
            for share in RECOVERED_SHARES
        )
        rows.append(("recall", f"known positives would be found: {ranks} of U"))
    if result.promise is not None:
        rows += _promise(result.promise)
    if result.n_suspects is not None:
        rows.append(("suspects", f"{result.n_suspects:,} of the known positives look false"))
    for name, text in rows:
        say(f"{name:>10}  {text}")


def _promise(promise: Promise) -> list[tuple[str, str]]:
    """What is expected of U, and of the list that was asked for."""
    rows = []
    if (share := promise.contamination_unl) is not None:
        text = f"{_percent(share)} of U expected"
        if not (promise.separable or promise.contamination_given):
            text += ": cannot be known, P and U overlap"
        rows.append(("positives", text))
    if promise.fdr is not None:
        text = f"{promise.n_listed:,} rows"
        if promise.precision is not None:
            text += f", {_percent(promise.precision)} of them positive, expected"
        elif promise.n_negatives is not None:
            text += (
                f" by conformal p-values of {promise.n_negatives:,} trusted negatives: at most"
                f" {100 * promise.fdr:g} % of them false, expected"
            )
        rows.append(("list", text))
    return rows


def _percent(share: Interval) -> str:
    text = f"{100 * share.value:.0f} %"
    if share.low < share.high:
        text += f" ({100 * share.low:.0f} to {100 * share.high:.0f})"
    return text


def show_simulation(result: SimulateResult) -> None:
    """What was drawn and where it went."""
    for name, text in (
        ("pos.svm", f"{result.n_pos:,} rows, {result.false_positives:,} of them truly negative"),
        ("unl.svm", f"{result.n_unl:,} rows, {result.hidden_positives:,} of them truly positive"),
        ("test.svm", f"{result.test_pos:,} positive, {result.test_neg:,} negative rows"),
        ("truth.csv", "which rows of pos.svm and unl.svm are mislabelled"),
        ("seed", str(result.seed)),
        ("written to", result.path),
    ):
        say(f"{name:>10}  {text}")
    if not (result.test_pos and result.test_neg):
        note("no row of one class was left for test.svm: ask for smaller sets")


def show_conversion(result: ConvertResult) -> None:
    """What was read and where it went."""
    rows = f"{result.n_rows:,} rows"
    if result.n_positives is not None:
        rows += f", {result.n_positives:,} of them positive"
    say(f"{'read':>10}  {rows}, {result.n_features:,} features")
    for text in result.notes:
        note(text)
    if result.targets != ("-",):
        say(f"{'written to':>10}  {', '.join(result.targets)}")


def show_check(check: FileCheck) -> None:
    """Bad lines first, as an editor can jump to them, then what the file holds, on stdout."""
    lines = list(check.bad_lines)
    if check.n_bad_lines > len(check.bad_lines):
        lines.append(f"... and {check.n_bad_lines - len(check.bad_lines):,} more bad lines")
    if not check.n_rows:
        print_table("\n".join(lines) + "\n")
        return
    lines.append(check.path)
    labels = ", ".join(f"{label} ({count:,})" for label, count in check.labels.items())
    if check.n_labels > len(check.labels):
        labels += f", and {check.n_labels - len(check.labels):,} more"
    if check.rows_without_label:
        labels += f"{'; ' if labels else ''}{check.rows_without_label:,} rows without"
    values = "none"
    if check.smallest is not None:
        values = f"{check.smallest:g} to {check.largest:g}"
        if check.explicit_zeros:
            values += f", and {check.explicit_zeros:,} explicit zeros"
    rows = [
        ("state", "sound" if check.sound else f"not sound, bad lines: {check.n_bad_lines:,}"),
        ("rows", f"{check.n_rows:,}, {check.rows_without_features:,} of them without features"),
        ("features", f"{check.n_features:,}"),
        ("non-zeros", f"{check.n_nonzeros:,} ({100 * check.density:.3g} %)"),
        ("values", values),
        ("labels", labels),
        ("repeated", f"{check.duplicate_rows:,} rows repeat an earlier one"),
    ]
    if check.n_constant_features:
        rows.append(("constant", _listed(check.n_constant_features, check.constant_features)))
    if check.n_duplicate_features:
        groups = [" = ".join(map(str, group[:5])) for group in check.duplicate_features]
        rows.append(("the same", _listed(check.n_duplicate_features, groups)))
    scaling = "features are of similar range"
    if check.scaling:
        scaling = f"advisable: {check.scaling}"
    elif not check.features_examined:
        scaling = "too many features to look at each"
    rows.append(("scaling", scaling))
    lines += [f"{name:>10}  {text}" for name, text in rows]
    print_table("\n".join(lines) + "\n")


def _listed(count: int, names: Sequence[object]) -> str:
    shown = ", ".join(str(name) for name in names)
    return f"{count:,} features: {shown}" + (", ..." if count > len(names) else "")


def show_inspection(inspection: Inspection) -> None:
    """A table of what a model holds, on stdout."""
    from rich.table import Table
    from rich.text import Text

    manifest = inspection.manifest
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")

    def pairs(mapping: dict[str, Any]) -> str:
        return ", ".join(
            f"{name} {format(value, 'g') if float(format(value, 'g')) == value else repr(value)}"
            if isinstance(value, float)
            else f"{name} {value}"
            for name, value in mapping.items()
            if value is not None
        )

    groups = manifest.get("groups", [manifest])  # format 1 has one
    name = groups[0]["kernel"]["name"]
    table.add_row("model", Text(inspection.path))
    table.add_row("state", "intact: every digest verified")
    table.add_row("method", manifest["method"])
    for number, group in enumerate(groups, 1):
        kernel = {key: value for key, value in group["kernel"].items() if key != "name"}
        several = f" {number}" if len(groups) > 1 else ""
        table.add_row(f"kernel{several}", f"{name}, {pairs(kernel)}" if kernel else name)
        table.add_row(f"parameters{several}", pairs(group["parameters"]))
        if several:
            counts = {key: group[key] for key in ("weight", "shift", "scale")}
            table.add_row(f"counts{several}", pairs(counts))
    if decision := manifest.get("decision"):
        for rule, threshold in decision["thresholds"].items():
            own = " (the model's rule)" if rule == decision["rule"] else ""
            table.add_row(f"T of {rule}", pairs(threshold) + own)
    table.add_row("seed", str(manifest["seed"]))
    table.add_row("members", f"{inspection.n_members:,} ({inspection.n_bytes:,} bytes)")
    vectors = "weight vectors" if name == "linear" else "support vectors"
    table.add_row(vectors, f"{inspection.n_support_vectors:,}, {inspection.n_pool:,} distinct")
    if judged := manifest.get("out_of_bag"):
        table.add_row(
            "out of bag",
            f"{judged['positives']:,} known positives judged"
            + (f", {judged['unlabeled']:,} rows of U" if "unlabeled" in judged else ""),
        )
    if manifest["unconverged"]:
        table.add_row("unconverged", f"{manifest['unconverged']} members")
    features = f"{manifest['n_features']:,}"
    if manifest["scaling"]:
        features += f", scaled by {manifest['scaling']['kind']}"
    if name == "precomputed":
        table.add_row("kernel values", f"with rows 1 to {manifest['n_features'] - 1:,}")
    else:
        counted = ", counted from 0" if manifest["zero_based"] else ""
        table.add_row("features", features + counted)
    for which, data in manifest["data"].items():
        table.add_row(which, f"{data['rows']:,} rows, sha256 {data['sha256'][:16]}...")
    table.add_row("versions", pairs(manifest["versions"]))
    table.add_row("format", str(manifest["format"]))
    colours = sys.stdout is not None and sys.stdout.isatty()
    print_data(rendered(table, None if colours else 100, colours=colours))
