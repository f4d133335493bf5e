"""What a benchmark shows beyond its tables: conclusions, tests, margins, curves, parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from resvm_cli.benchmark.report_cells import (
    NOTHING,
    TITLES,
    Cell,
    Figure,
    Section,
    Table,
    number,
    p_value,
)

if TYPE_CHECKING:
    from resvm_cli.benchmark.report import RunReport
    from resvm_cli.benchmark.verdicts import OverallTest
    from resvm_cli.metrics.significance import OverDataSets

PARAMETER_TITLES = {"n_pos": "n_pos", "unl_per_pos": "n_unl / n_pos", "w_pos": "w_pos"}


def conclusions(run: RunReport) -> Section:
    """The paper's conclusions, each with what these results say of it."""
    marks = {"confirmed": "above", "weaker": "within", "not confirmed": "below"}
    rows = tuple(
        (Cell(one.claim), Cell(one.finding, None, marks[one.finding]), Cell(one.evidence))
        for one in run.conclusions
    )
    table = Table("", ("the paper's conclusion", "here", "by what"), rows, 3, prose=True)
    told = (
        "confirmed: the test says what the paper says; weaker: it leans that way, without all that"
        " was claimed; not confirmed: it does not. Tests are over the tasks of this run.",
    )
    return Section("The paper's conclusions", told, (table,))


def tests(run: RunReport) -> Section:
    """Friedman's test, and pairs, over tasks and over data sets, with diagrams."""
    summary = []
    pairs = []
    figures = []
    told = [
        "Methods are ranked by their mean area on each task (1 is best). Over data sets the tasks"
        " of one data set count together: methods are ranked by the mean of their ranks on its"
        " tasks. The paper's figures are those of the middles of its intervals, on the same tasks.",
    ]
    if any(len(test.names) < 6 for test in run.tests):
        told.append("With five pairs or fewer no two-sided Wilcoxon p is below 0.06.")
    for test in run.tests:
        title = f"{TITLES[test.setting]}, over {len(test.names)} {test.over}"
        names = (Cell(TITLES[test.setting]), Cell(f"{len(test.names)} {test.over}"))
        summary.append((*names, *_summary(test)))
        pairs += [(*names, *cells) for cells in _pairs(test)]
        figures.append(Figure("ranks", title, _ranks(test.result)))
        if test.left_out:
            told.append(
                f"{title}: left out, without a complete repetition: {', '.join(test.left_out)}."
            )
    methods = "/".join(run.tests[0].result.methods)
    columns = (
        "setting", "over", "Friedman p", "paper", f"average ranks, {methods}", "paper",
        "critical difference",
    )  # fmt: skip
    of_pairs = (
        "setting", "over", "pair", "Nemenyi p", "paper", "Wilcoxon p", "with Holm's correction",
        "paper",
    )  # fmt: skip
    tables = (
        Table("Friedman's test and average ranks", columns, tuple(summary), 2),
        Table("Pairs of methods", of_pairs, tuple(pairs), 3),
    )
    return Section("Tests over tasks and data sets", tuple(told), tables, tuple(figures))


def _summary(test: OverallTest) -> tuple[Cell, ...]:
    result, beside = test.result, test.published

    def ranks(of: OverDataSets | None) -> Cell:
        if of is None:
            return Cell(NOTHING)
        return Cell("/".join(f"{rank:.2f}" for rank in of.average_ranks), of.average_ranks[-1])

    return (
        p_value(result.friedman_p),
        p_value(beside.friedman_p if beside else None),
        ranks(result),
        ranks(beside),
        number(result.critical_difference, 2),
    )


def _pairs(test: OverallTest) -> list[tuple[Cell, ...]]:
    found: list[tuple[Cell, ...]] = []
    for place, pair in enumerate(test.result.pairs):
        other = None if test.published is None else test.published.pairs[place]
        found.append(
            (
                Cell(f"{pair.first}, {pair.second}"),
                p_value(pair.nemenyi), p_value(other.nemenyi if other else None),
                p_value(pair.wilcoxon),
                p_value(pair.holm), p_value(other.holm if other else None),
            )
        )  # fmt: skip
    return found


def _ranks(result: OverDataSets) -> dict[str, Any]:
    return {
        "methods": list(result.methods),
        "ranks": list(result.average_ranks),
        "difference": result.critical_difference,
        "cliques": [list(group) for group in result.cliques],
    }


def margins(run: RunReport) -> Section:
    """By how much resvm is ahead, and what that is of the published margin."""
    rows = []
    for one in run.margins:
        remains = None
        if one.published is not None and one.published > 0:
            remains = 100 * one.pr_auc_trapezoid / one.published
        rows.append(
            (
                Cell(TITLES[one.setting]), Cell(one.tasks), Cell(one.method),
                Cell(str(one.n_tasks), one.n_tasks),
                number(one.pr_auc_trapezoid, 1, True), number(one.average_precision, 1, True),
                number(one.published, 1, True), number(remains, 0), p_value(one.p_resvm_over),
            )
        )  # fmt: skip
    told = [
        "Points by which resvm is ahead, in the mean over tasks; the published margin of"
        " cwsvm-published is that over the paper's cwsvm. What remains: this margin as a share of"
        " the published one. p: one-sided Wilcoxon test over tasks.",
    ]
    for one in run.margins:
        if one.method == "cwsvm" and one.tasks == "mnist":
            place = "ahead of" if one.pr_auc_trapezoid >= 0 else "behind"
            sentence = (
                f"{TITLES[one.setting]}: on mnist resvm is {abs(one.pr_auc_trapezoid):.1f} points"
                f" {place} cwsvm solved exactly"
            )
            if one.published is not None:
                sentence += f", where {one.published:+.1f} were published"
            told.append(f"{sentence}; by average precision {one.average_precision:+.1f}.")
    columns = (
        "setting", "tasks", "over", "n", "trapezoids", "average precision", "paper",
        "remains, %", "p",
    )  # fmt: skip
    return Section(
        "What remains of resvm's margin", tuple(told), (Table("", columns, tuple(rows), 3),)
    )


def dominance(run: RunReport) -> Section:
    """resvm's PR curves against the others'."""
    rows = tuple(
        (
            Cell(TITLES[one.setting]), Cell(one.method), Cell(str(one.n), one.n),
            number(100 * one.whole, 0), number(100 * one.levels, 1), number(one.shortfall, 1),
        )
        for one in run.dominance
    )  # fmt: skip
    told = (
        "resvm's precision against another method's at recall 0.01, 0.02 to 1, pair by pair of"
        " repetitions, over all digits: how often it is nowhere below, at how many levels of recall"
        " it is not below, and the largest shortfall in the mean.",
    )
    columns = (
        "setting", "resvm against", "pairs", "nowhere below, %", "levels not below, %",
        "largest shortfall, points",
    )  # fmt: skip
    figures = []
    for setting in dict.fromkeys(curve.setting for curve in run.curves):
        own = [curve for curve in run.curves if curve.setting == setting]
        data = {
            "methods": [curve.method for curve in own],
            "precision": [list(curve.precision) for curve in own],
        }
        figures.append(Figure("curves", f"{TITLES[setting]}: mean precision on mnist", data))
    return Section("PR dominance on mnist", told, (Table("", columns, rows, 2),), tuple(figures))


def medians(run: RunReport) -> Section:
    """Tuned parameters by digit, the paper's below each."""
    tables = []
    for parameter, title in PARAMETER_TITLES.items():
        of_parameter = [one for one in run.medians if one.parameter == parameter]
        if not of_parameter:
            continue
        columns = (
            "setting",
            "",
            *(t.removeprefix("mnist-") for t in of_parameter[0].tasks),
            "mean",
        )
        rows: list[tuple[Cell, ...]] = []
        for one in of_parameter:
            for name, values, mean in (
                ("here", one.values, one.mean),
                ("paper", one.published, one.published_mean),
            ):
                cells = [
                    Cell(NOTHING) if v is None else Cell(f"{v:.3g}", v) for v in (*values, mean)
                ]
                rows.append((Cell(TITLES[one.setting]), Cell(name), *cells))
        tables.append(Table(title, columns, tuple(rows), 2))
    told = ("Medians over repetitions of what tuning chose for resvm, by digit.",)
    return Section("Tuned parameters on mnist", told, tuple(tables))


def widths(run: RunReport) -> Section:
    """How wide the intervals are."""
    rows = tuple(
        (
            Cell(TITLES[one.setting]), Cell(one.method), Cell(str(one.n_tasks), one.n_tasks),
            number(one.mean, 2), number(one.median, 2), number(one.published_mean, 2),
            Cell(NOTHING) if one.n_resvm_narrower is None
            else Cell(f"{one.n_resvm_narrower} of {one.n_tasks}", one.n_resvm_narrower),
            p_value(one.p_resvm_narrower),
        )
        for one in run.widths
    )  # fmt: skip
    told = (
        "Widths of the 95 % intervals in points, over tasks; on how many of them resvm's is"
        " narrower, with a one-sided Wilcoxon test over tasks. Fewer repetitions make wider"
        " intervals: only the methods compare, not this run with the paper.",
    )
    columns = ("setting", "method", "tasks", "mean", "median", "paper, mean", "resvm narrower", "p")
    return Section("Width of the intervals", told, (Table("", columns, rows, 2),))
