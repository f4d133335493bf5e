"""score, as users run it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as oracle

from resvm_cli.commands import score
from resvm_cli.errors import DataError
from resvm_cli.run import Run
from tests.programs import run, script_command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two files of predictions with ids, and their labels in several forms."""
    path = tmp_path_factory.mktemp("score")
    rng = np.random.default_rng(11)
    truth = rng.random(400) < 0.25
    first = np.round(rng.standard_normal(400) + 1.5 * truth, 2)
    second = np.round(first + rng.standard_normal(400), 2)
    for name, values in (("a", first), ("b", second)):
        lines = [
            f"{1 if value > 0.5 else -1} {value!r} # row-{number}"
            for number, value in enumerate(values.tolist())
        ]
        (path / f"{name}.pred").write_text("\n".join(lines) + "\n")
        (path / f"{name}.num").write_text("".join(f"{value!r}\n" for value in values.tolist()))
    (path / "b.shuffled").write_text(
        "".join(sorted((path / "b.pred").read_text().splitlines(keepends=True)))
    )
    rows = [f"{1 if positive else -1} 1:{n} 7:0.5" for n, positive in enumerate(truth, 1)]
    (path / "test.svm").write_text("\n".join(rows) + "\n")
    (path / "zeros").write_text("".join(f"{int(positive)}\n" for positive in truth))
    (path / "classes").write_text("".join(f"{7 if positive else 3}\n" for positive in truth))
    names = [f"row-{number}" for number in np.flatnonzero(truth)]
    (path / "ids").write_text("\n".join(names) + "\n")
    np.savez(path / "truth.npz", truth=truth, first=first, second=second)
    return path


@pytest.fixture(scope="module")
def arrays(folder):
    loaded = np.load(folder / "truth.npz")
    return loaded["truth"], loaded["first"], loaded["second"]


@pytest.fixture(scope="module")
def report(folder, resvm):
    """What --json says of the first file."""
    ran = resvm("score", folder / "a.pred", "--labels", folder / "test.svm", "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_the_json_is_versioned_and_flat_and_agrees_with_scikit_learn(report, arrays):
    truth, first, _ = arrays
    assert (report["schema"], report["kind"]) == (1, "score")
    (one,) = report["files"]
    close = {"abs": 1e-12}
    precision, recall, _ = oracle.precision_recall_curve(truth, first)
    called = first > 0.5
    expected = {
        "average_precision": oracle.average_precision_score(truth, first),
        "roc_auc": oracle.roc_auc_score(truth, first),
        "pr_auc_trapezoid": oracle.auc(recall, precision),
        "precision": oracle.precision_score(truth, called),
        "recall": oracle.recall_score(truth, called),
        "f1": oracle.f1_score(truth, called),
        "mcc": oracle.matthews_corrcoef(truth, called),
        "threshold": 0.5,
        "n_rows": 400,
    }
    assert {name: one[name] for name in expected} == {
        name: pytest.approx(value, **close) for name, value in expected.items()
    }
    for name in (
        "average_precision",
        "roc_auc",
        "precision",
        "bedroc_20",
        "enrichment_at_1_percent",
    ):
        assert one[f"{name}_low"] <= one[name] <= one[f"{name}_high"]
    assert one["average_precision_low"] < one["average_precision"]
    assert one["tp"] + one["fp"] + one["fn"] + one["tn"] == 400
    assert {"precision_at_10", "recall_at_100", "enrichment_at_0.5_percent"} <= one.keys()


@pytest.mark.parametrize(
    "labels",
    [
        ["--labels", "zeros"],
        ["--labels", "classes", "--positive-label", "7"],
        ["--positive-ids", "ids"],
    ],
)
def test_labels_come_in_several_forms(labels, folder, report, resvm):
    ran = resvm("score", "a.pred", *labels, "--json", cwd=folder)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["files"] == [{**report["files"][0], "file": "a.pred"}]


def test_stdin_gzip_and_bare_numbers_give_the_same(folder, report, resvm):
    text = (folder / "a.pred").read_bytes()
    wanted = report["files"][0]
    for options, stdin in (
        (["-"], text),
        (["-"], gzip.compress(text)),
        (["-", "-T", "0.5"], (folder / "a.num").read_bytes()),
    ):
        ran = resvm("score", *options, "--labels", folder / "test.svm", "--json", stdin=stdin)
        (one,) = json.loads(ran.out)["files"]
        said = "threshold_from"
        assert {**one, "file": "", said: ""} == {**wanted, "file": "", said: ""}


def test_the_table_is_on_stdout_with_the_confusion_counts(folder, resvm, report):
    ran = resvm("score", "a.pred", "--labels", "test.svm", cwd=folder)
    text = ran.out.decode()
    one = report["files"][0]
    assert f"average precision             {one['average_precision']:.4f}" in text
    assert f"predicted +{one['tp']:>13}{one['fp']:>13}" in text
    assert "from the file's labels" in text
    for title in ("at the threshold", "screening"):
        assert f"\n{title}\n" in text
    assert ran.err == ""
    assert resvm("score", "a.pred", "--labels", "test.svm", "-q", cwd=folder).out == b""


def test_precision_is_given_at_the_depths_that_are_asked_for(folder, resvm, arrays):
    words = ["score", "a.pred", "--labels", "test.svm", "--json", "-k", "1,7"]
    ran = resvm(*words, cwd=folder)
    assert ran.code == 0, ran.err
    assert {"precision_at_1", "precision_at_7"} <= set(json.loads(ran.out)["files"][0])


def test_several_files_stand_side_by_side_with_paired_differences(folder, resvm, arrays):
    ran = resvm("score", "a.pred", "b.pred", "--labels", "test.svm", cwd=folder)
    lines = ran.out.decode().splitlines()
    assert lines[1].split() == ["a.pred", "b.pred"]
    # the digits of a column end at the same place
    rows = [line for line in lines if re.search(r"\d\.\d{4} +\d\.\d{4}$", line)]
    assert len({tuple(one.end() for one in re.finditer(r"\d\.\d{4}", row)) for row in rows}) == 1
    assert len(rows) > 10
    assert "difference from a.pred (paired bootstrap)" in lines
    ran = resvm("score", "a.pred", "b.pred", "--labels", "test.svm", "--json", cwd=folder)
    first, second = json.loads(ran.out)["files"]
    for name in ("average_precision", "roc_auc"):
        difference = second[f"{name}_minus_first"]
        assert difference == pytest.approx(second[name] - first[name])
        assert second[f"{name}_minus_first_low"] < difference < second[f"{name}_minus_first_high"]
        assert second[f"{name}_minus_first_high"] < 0
    assert "roc_auc_minus_first" not in first


def test_files_in_another_order_are_joined_by_id(folder, resvm):
    options = ["--positive-ids", "ids", "--json"]
    straight = resvm("score", "a.pred", "b.pred", *options, cwd=folder)
    shuffled = resvm("score", "a.pred", "b.shuffled", *options, cwd=folder)
    assert shuffled.code == 0, shuffled.err
    one, other = (json.loads(ran.out)["files"][1] for ran in (straight, shuffled))
    assert {**one, "file": ""} == {**other, "file": ""}
    assert (folder / "b.pred").read_text() != (folder / "b.shuffled").read_text()


@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl"])
def test_a_ranking_is_not_scored_by_labels_in_the_order_of_rows(
    form, problem, model, resvm, tmp_path
):
    data = tmp_path / "data.svm"
    data.write_bytes((problem / "pos.svm").read_bytes() + (problem / "unl.svm").read_bytes())
    arguments = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "--model", model, "-q"]
    ran = resvm("rank", *arguments, "--format", form)
    (tmp_path / "ranking").write_bytes(ran.out)
    ran = resvm("score", "ranking", "--labels", "data.svm", cwd=tmp_path)
    assert ran.code == 3
    assert "ranking is a ranking: its rows are not in the order of data.svm" in ran.err
    assert "--positive-ids FILE" in ran.err


def test_the_same_seed_gives_the_same_intervals(folder, report, resvm):
    options = ["score", folder / "a.pred", "--labels", folder / "test.svm", "--json"]
    assert json.loads(resvm(*options).out) == report
    other = json.loads(resvm(*options, "--seed", 1).out)["files"][0]
    mine = report["files"][0]
    assert other["average_precision"] == mine["average_precision"]
    assert other["average_precision_low"] != mine["average_precision_low"]
    without = json.loads(resvm(*options, "--bootstrap", 0).out)["files"][0]
    assert not [name for name in without if name.endswith(("_low", "_high"))]
    assert without["average_precision"] == mine["average_precision"]


def test_the_curve_is_every_threshold(folder, resvm, arrays):
    truth, first, _ = arrays
    ran = resvm("score", "a.pred", "--labels", "test.svm", "--curve", "-", cwd=folder)
    rows = list(csv.DictReader(io.StringIO(ran.out.decode())))
    assert list(rows[0]) == ["threshold", "precision", "recall", "fpr", "tp", "fp"]
    precision, recall, thresholds = oracle.precision_recall_curve(truth, first)
    assert [float(row["threshold"]) for row in rows] == thresholds[::-1].tolist()
    assert [float(row["precision"]) for row in rows] == pytest.approx(precision[-2::-1])
    assert [float(row["recall"]) for row in rows] == pytest.approx(recall[-2::-1])
    assert int(rows[-1]["tp"]) + int(rows[-1]["fp"]) == 400
    resvm("score", "a.pred", "b.pred", "--labels", "test.svm", "--curve", "c.csv", cwd=folder)
    with open(folder / "c.csv") as handle:
        assert {row["file"] for row in csv.DictReader(handle)} == {"a.pred", "b.pred"}


def test_positive_and_unlabeled_rows_give_what_they_allow(folder, resvm, arrays):
    truth, first, _ = arrays
    options = ["--labels", "test.svm", "--pu", "--contamination-pos", "0.1"]
    options += ["--contamination-unl", "0.1"]
    ran = resvm("score", "a.pred", *options, "--json", cwd=folder)
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    (one,) = found["files"]
    recall, fraction = (first[truth] > 0.5).mean(), (first > 0.5).mean()
    assert one["pu_score"] == pytest.approx(recall**2 / fraction)
    assert one["recall"] == pytest.approx(recall)
    assert one["roc_auc_pu"] == pytest.approx(oracle.roc_auc_score(truth, first))
    expected = 0.5 + (one["roc_auc_pu"] - 0.5) / (1 - 0.1 - 0.1)
    assert one["corrected_roc_auc"] == pytest.approx(min(1, expected))
    low, high = one["corrected_roc_auc_low"], one["corrected_roc_auc_high"]
    assert low < one["corrected_roc_auc"] < high
    assert len(found["assumptions"]) == 3
    assert found["warnings"] == []
    assert "average_precision" not in one  # of known positives only: it would mislead
    text = resvm("score", "a.pred", *options, cwd=folder).out.decode()
    assert "assumed: known positives were drawn at random" in text


@pytest.mark.parametrize(("threshold", "what"), [("99", "no row is"), ("-99", "all rows are")])
@pytest.mark.parametrize("pu", [[], ["--pu"]])
def test_a_degenerate_predictor_is_called_so(threshold, what, pu, folder, resvm):
    options = ["--labels", "test.svm", "-T", threshold, "--bootstrap", 20, *pu]
    ran = resvm("score", "a.pred", *options, cwd=folder)
    assert ran.code == 0, ran.err
    assert f"degenerate: {what} predicted positive at T" in ran.out.decode()


def bad(resvm, folder, *arguments, **more):
    ran = resvm("score", *arguments, cwd=folder, **more)
    assert ran.out == b""
    return ran.code, ran.err


def test_lengths_that_differ_are_refused_with_the_difference(folder, resvm):
    text = (folder / "a.pred").read_bytes()
    shorter = b"".join(text.splitlines(keepends=True)[:-3])
    code, told = bad(resvm, folder, "-", "--labels", "test.svm", stdin=shorter)
    assert code == 3
    assert "stdin has 397 predictions but test.svm has 400 labels: test.svm is longer by 3" in told
    code, told = bad(resvm, folder, "-", "--labels", "test.svm", stdin=text + b"1 2\n")
    assert "stdin is longer by 1" in told


def test_ids_that_do_not_fit_are_refused(folder, resvm):
    (folder / "foreign").write_text("BRCA1\nTP53\n")
    code, told = bad(resvm, folder, "a.pred", "--positive-ids", "foreign")
    assert (code, "none of the 2 ids in foreign is in a.pred" in told) == (3, True)
    (folder / "part").write_text("row-1\nTP53\n")
    ran = resvm("score", "a.pred", "--positive-ids", "part", "--bootstrap", 0, cwd=folder)
    assert "1 of the 2 ids in part are not in a.pred, so recall ignores" in ran.out.decode()
    lines = (folder / "b.pred").read_text().splitlines(keepends=True)
    (folder / "b.cut").write_text("".join(lines[1:]))
    code, told = bad(resvm, folder, "a.pred", "b.cut", "--positive-ids", "ids")
    assert "do not have the same rows: 1 ids are in only one of them" in told
    (folder / "twice").write_text("".join([*lines, lines[5]]))
    code, told = bad(resvm, folder, "twice", "a.pred", "--positive-ids", "ids")
    assert "the id 'row-5' is not unique" in told


def test_without_matplotlib_a_plot_is_refused_with_the_pip_command(folder):
    script = (
        "import sys; sys.modules['matplotlib'] = None; sys.argv[1:] = "
        "['score', 'a.pred', '--labels', 'zeros', '--plot', 'x.png'];"
        "from resvm_cli.cli.app import main; main()"
    )
    ran = run(script_command(script), cwd=folder)
    assert ran.code == 2
    assert "--plot needs matplotlib" in ran.err
    assert "pip install 'resvm-cli[plot]'" in ran.err
    assert not (folder / "x.png").exists()


def test_scoring_imports_no_matplotlib_and_a_small_one_no_scipy(folder):
    script = (
        "import sys; sys.argv[1:] = ['score', 'a.pred', '--labels', 'zeros', '-q'];"
        "from resvm_cli.cli.app import main\n"
        "try: main()\n"
        "finally: print([n for n in ('matplotlib', 'scipy', 'joblib') if n in sys.modules])"
    )
    ran = run(script_command(script), cwd=folder)
    assert ran.out == b"[]\n", ran.err


def test_a_ranking_has_no_threshold_unless_one_is_given(problem, model, resvm, tmp_path):
    arguments = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "--model", model, "-q"]
    ranked = resvm("rank", *arguments).out
    audited = resvm("rank", *arguments, "--audit").out
    (tmp_path / "r.tsv").write_bytes(ranked + audited.partition(b"\n")[2])
    (tmp_path / "ids").write_text("".join(f"{n}\n" for n in range(1, 31)))
    options = ["score", "r.tsv", "--positive-ids", "ids", "--pu"]
    shown = resvm(*options, cwd=tmp_path).out.decode()
    assert "a ranking has no threshold; set one with -T" in shown
    assert "degenerate" not in shown
    assert "recall" not in shown.split("assumed:")[0]
    plots = ["--plot", "p.svg"]
    ran = resvm(*options, "--json", "--contamination-unl", 0.2, *plots, cwd=tmp_path)
    assert ran.code == 0, ran.err
    (figures,) = json.loads(ran.out)["files"]
    assert figures["roc_auc_pu"] > 0.5
    for name in ("threshold", "recall", "recall_low", "pu_score", "corrected_precision"):
        assert figures[name] is None, name
    (given,) = json.loads(resvm(*options, "--json", "-T", 0, cwd=tmp_path).out)["files"]
    assert given["threshold"] == 0
    assert given["recall"] > 0.5
    ran = resvm("score", "r.tsv", "--positive-ids", "ids", cwd=tmp_path)
    assert "a ranking has no threshold, so figures at T = 0.5 mean little" in str(ran.out)


def test_quiet_keeps_warnings(folder, resvm):
    (folder / "part").write_text("row-1\nTP53\n")
    options = ["--positive-ids", "part", "--bootstrap", 0, "-q"]
    ran = resvm("score", "a.pred", *options, cwd=folder)
    assert ran.out == b""
    assert "1 of the 2 ids in part are not in a.pred, so recall ignores them: TP53" in ran.err


@pytest.mark.parametrize("labels", [[1.0, -1.0], [1.0, 0.0], [1.0], [0.0], [-1.0]])
def test_one_is_positive_beside_minus_one_or_zero(labels):
    chosen = score.find_positive(np.array(labels), None, "x")
    assert chosen.tolist() == [label == 1 for label in labels]


LABELS = ("1 1:2 # a", "-1 1:3 # b", "# not a row", "1 2:1 # c", "", "-1 1:1 # d")
NAMED = {  # as predict --ids writes them, in another order
    "text": "-1 -3 # d\n1 2 # a\n1 1 # c\n-1 -2 # b\n",
    "tsv": "id\tlabel\tdecision_value\nd\t-1\t-3\na\t1\t2\nc\t1\t1\nb\t-1\t-2\n",
    "csv": "label,decision_value,id\n-1,-3,d\n1,2,a\n1,1,c\n-1,-2,b\n",
    "jsonl": "".join(
        f'{{"id": "{name}", "label": {1 if value > 0 else -1}, "decision_value": {value}}}\n'
        for name, value in (("d", -3), ("a", 2), ("c", 1), ("b", -2))
    ),
}


def joined(folder, labels, *predictions):
    (folder / "labels").write_bytes("\n".join(labels).encode("utf-8", "surrogateescape"))
    names = [str(folder / f"p{number}") for number in range(len(predictions))]
    for name, text in zip(names, predictions, strict=True):
        Path(name).write_text(text)
    options = score.ScoreOptions(labels=str(folder / "labels"))
    positive, files, _ = score.read_rows(names, options, Run())
    return [positive.tolist(), *(file.values.tolist() for file in files)]


@pytest.mark.parametrize("form", NAMED)
def test_predictions_and_labels_with_ids_are_joined_by_id(form, tmp_path):
    values = [2, -2, 1, -3]
    positive = [True, False, True, False]
    assert joined(tmp_path, LABELS, NAMED[form], NAMED["text"]) == [positive, values, values]


@pytest.mark.parametrize(
    ("labels", "predictions"),
    [
        (("1", "-1", "1", "-1"), NAMED["text"]),
        (LABELS, "-1 -3\n1 2\n1 1\n-1 -2\n"),
        (LABELS, "-1 -3 #\n1 2 #\n1 1 #\n-1 -2 #\n"),
        (LABELS, "-3\n2\n1\n-2\n"),
        (LABELS, "-1 -3\n1 2\n1 1 # c\n-1 -2\n"),  # the only ids that can be compared agree
        (("1", "1 # b", "1 # a", "0 # b"), "-1 -3 # b\n1 2 # b\n1 1 #a\n-1 -2 # b\n"),
    ],
)
def test_rows_without_ids_or_with_the_same_ids_are_joined_by_order(labels, predictions, tmp_path):
    assert joined(tmp_path, labels, predictions)[1] == [-3, 2, 1, -2]


def test_an_id_that_is_not_utf_8_is_the_same_in_json(tmp_path):
    labels = ("1 # \udcff", "-1 # b")
    lines = '{"id": "b", "decision_value": 1}\n{"id": "\\\\xff", "decision_value": 2}\n'
    assert joined(tmp_path, labels, lines) == [[True, False], [2, 1]]


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ("1 1 # x\n1 1 # b\n1 1 # c\n1 1 # d\n", "2 ids are in only one of them, such as 'x'"),
        ("1 1 # b\n1 1 # a\n1 1 # c\n", "1 ids are in only one of them, such as 'd'"),
        ("1 1 # b\n1 1 # a\n1 1 # c\n1 1 # d\n1 1 # d\n", "an id is not unique"),
        ("1 1 # b\n1 1 # a\n1 1 #\n1 1 # d\n", "2 ids are in only one of them"),
    ],
)
def test_ids_that_cannot_be_joined_are_refused(predictions, message, tmp_path):
    with pytest.raises(DataError, match=f"do not have the same rows: {message}") as caught:
        joined(tmp_path, LABELS, predictions)
    assert caught.value.hint == score.BY_ORDER


@pytest.mark.parametrize(
    ("extra", "message"),
    [("1 # a", "the id 'a' is not unique"), ("1\n1", "some rows have no id")],
)
def test_labels_whose_ids_are_not_unique_cannot_be_joined(extra, message, tmp_path):
    with pytest.raises(DataError, match=f"labels: {message}, so files cannot be joined"):
        joined(tmp_path, (*LABELS, extra), NAMED["text"])


def test_twenty_labels_are_listed_and_no_more():
    labels = np.arange(2.0, 23.0)
    for count, end in ((20, "20, 21"), (21, "20, 21, and 1 more")):
        with pytest.raises(DataError) as refused:
            score.find_positive(labels[:count], None, "rows")
        assert str(refused.value.message).endswith(end)


def test_what_is_unknown_is_an_empty_cell():
    shown = [score._number(value) for value in (None, math.nan, 1234, 0.5)]
    assert shown == ["", "", "1,234", "0.5000"]
