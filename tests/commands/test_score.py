"""score, as users run it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics as oracle

from resvm_cli.commands import score
from resvm_cli.data.predictions import BY_ORDER
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
    assert (report["schema"], report["command"]) == (1, "score")
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


def test_most_figures_are_shown_only_with_all(folder, resvm, report):
    words = ["score", "a.pred", "--labels", "test.svm"]
    ran = resvm(*words, cwd=folder)
    text = ran.out.decode()
    one = report["files"][0]
    assert re.search(rf"\n  average precision +{one['average_precision']:.4f}  0", text)
    assert re.search(rf"\npredicted \+ +{one['tp']} +{one['fp']}\n", text)
    for title in ("at the threshold: T = 0.5, from the file's labels", "in the top 100"):
        assert f"\n{title}\n" in text
    assert ran.err == ""
    every = resvm(*words, "--all", cwd=folder).out.decode()
    for figure in ("BEDROC", "mcc", "F1", "enrichment", "in the top 0.5%"):
        assert (figure.lower() in text.lower(), figure.lower() in every.lower()) == (False, True)
    assert resvm(*words, "-q", cwd=folder).out == b""


def test_precision_is_given_at_the_depths_that_are_asked_for(folder, resvm, arrays):
    words = ["score", "a.pred", "--labels", "test.svm", "--json", "-k", "1,7"]
    ran = resvm(*words, cwd=folder)
    assert ran.code == 0, ran.err
    assert {"precision_at_1", "precision_at_7"} <= set(json.loads(ran.out)["files"][0])


def test_several_files_are_reported_one_after_the_other(folder, resvm, arrays):
    ran = resvm("score", "a.pred", "b.pred", "--labels", "test.svm", cwd=folder)
    text = ran.out.decode()
    assert re.findall(r"(?m)^\S+ against", text) == ["a.pred against", "b.pred against"]


def test_files_in_another_order_are_joined_by_id(folder, resvm):
    options = ["--positive-ids", "ids", "--json"]
    straight = resvm("score", "a.pred", "b.pred", *options, cwd=folder)
    shuffled = resvm("score", "a.pred", "b.shuffled", *options, cwd=folder)
    assert shuffled.code == 0, shuffled.err
    one, other = (json.loads(ran.out)["files"][1] for ran in (straight, shuffled))
    assert {**one, "file": ""} == {**other, "file": ""}
    assert (folder / "b.pred").read_text() != (folder / "b.shuffled").read_text()


TRUTH = "patient,truth\nd,benign\nb,benign\na,malignant\nc,malignant\n"
JOINED = ["--label-column", "truth", "--positive-label", "malignant"]


def score_table(resvm, folder, predicted, truth, *options):
    (folder / "pred").write_text(predicted)
    (folder / "truth.csv").write_text(truth)
    return resvm("score", "pred", "--labels", "truth.csv", *JOINED, *options, cwd=folder)


@pytest.mark.parametrize(
    "predicted",
    [
        "id\tlabel\tdecision_value\na\t1\t2\nb\t-1\t-2\nc\t1\t1\nd\t-1\t-3\n",
        # annotated by predict, with columns of its own of the same names
        "patient,label,resvm_label,decision_value\na,x,1,2\nb,x,-1,-2\nc,x,1,1\nd,y,-1,-3\n",
        "1 2 # a\n-1 -2 # b\n1 1 # c\n-1 -3 # d\n",
    ],
)
def test_labels_in_a_table_are_joined_by_id(predicted, resvm, tmp_path):
    options = ["--id-column", "patient", "--json", "--bootstrap", 0]
    ran = score_table(resvm, tmp_path, predicted, TRUTH, *options)
    assert ran.code == 0, ran.err
    (figures,) = json.loads(ran.out)["files"]
    assert [figures[name] for name in ("roc_auc", "tp", "tn", "fp", "fn")] == [1, 2, 2, 0, 0]


IDS = "id\tdecision_value\na\t2\nb\t-2\nc\t1\nd\t-3\n"


@pytest.mark.parametrize(
    ("predicted", "truth", "options", "message"),
    [
        (IDS, TRUTH, [], "truth.csv: which column has the ids? pred has ids to join by"),
        (IDS, TRUTH, ["--id-column", "pateint"], "no column 'pateint' (--id-column)"),
        (IDS + "e\t1\n", TRUTH, ["--id-column", "patient"],
         "1 of the 5 ids in pred are not in truth.csv: e"),
        (IDS + "a\t1\n", TRUTH, ["--id-column", "patient"], "pred: the id 'a' is not unique"),
        (IDS, TRUTH + "e,\n", ["--id-column", "patient"], "no label in column 'truth'"),
        ("2\n-2\n1\n-3\n", TRUTH, ["--id-column", "patient"], "pred: contains no ids to join by"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_joined_are_refused(
    predicted, truth, options, message, resvm, tmp_path
):
    ran = score_table(resvm, tmp_path, predicted, truth, *options)
    assert (ran.code, ran.out) == (3, b"")
    assert message in ran.err


@pytest.mark.parametrize("first", ["rank", "other"])
def test_predictions_are_scored_by_the_labels_of_their_rows(first, resvm, tmp_path):
    predicted = f"{first}\tid\tdecision_value\n1\tc\t1\n2\tb\t0\n3\td\t-1\n"
    options = ["--id-column", "patient", "--bootstrap", 0]
    ran = score_table(resvm, tmp_path, predicted, TRUTH, *options)
    assert ran.code == 0, ran.err
    assert "1 positive, 2 negative" in ran.out.decode()
    assert "1 of the 4 rows in truth.csv are not in pred" in ran.out.decode()


def test_a_table_without_ids_is_joined_by_order(resvm, tmp_path):
    ran = score_table(resvm, tmp_path, "-2\n2\n1\n-3\n", TRUTH, "--json", "--bootstrap", 0)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["files"][0]["n_positives"] == 2
    ran = score_table(resvm, tmp_path, "2\n-2\n", TRUTH)
    assert "pred has 2 predictions but truth.csv has 4 labels" in ran.err


def test_labels_in_a_plain_file_may_be_text(folder, resvm, report, arrays):
    truth, _, _ = arrays
    (folder / "texts").write_text("".join("yes\n" if one else "no way\n" for one in truth))
    words = ["score", "a.pred", "--labels", "texts", "--json"]
    ran = resvm(*words, "--positive-label", "yes", cwd=folder)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["files"] == [{**report["files"][0], "file": "a.pred"}]
    code, told = bad(resvm, folder, *words[1:])
    assert (code, "The labels are yes, no way" in told or "The labels are no way, yes" in told) == (
        3,
        True,
    )


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
    assert "--positive-ids" in ran.err


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
    assert "a ranking has no threshold; set one with -T" in str(ran.out)
    assert "predicted +" not in str(ran.out)
    ran = resvm("score", "r.tsv", "--positive-ids", "ids", "--json", cwd=tmp_path)
    (figures,) = json.loads(ran.out)["files"]
    assert {figures[name] for name in ("threshold", "tp", "precision", "recall_low")} == {None}


def test_quiet_keeps_warnings(folder, resvm):
    (folder / "part").write_text("row-1\nTP53\n")
    options = ["--positive-ids", "part", "--bootstrap", 0, "-q"]
    ran = resvm("score", "a.pred", *options, cwd=folder)
    assert ran.out == b""
    assert "1 of the 2 ids in part are not in a.pred, so recall ignores them: TP53" in ran.err


@pytest.mark.parametrize("labels", [[1.0, -1.0], [1.0, 0.0], [1.0], [0.0], [-1.0]])
def test_one_is_positive_beside_minus_one_or_zero(labels):
    chosen = score.find_positive(np.array(labels), [], "x")
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
    """The predictions in the order of the labels, and whether their labels were found."""
    (folder / "labels").write_bytes("\n".join(labels).encode("utf-8", "surrogateescape"))
    names = [str(folder / f"p{number}") for number in range(len(predictions))]
    for name, text in zip(names, predictions, strict=True):
        Path(name).write_text(text)
    options = score.ScoreOptions(labels=str(folder / "labels"))
    rows, _ = score.read_rows(names, options, Run())
    return [dict(zip(file.values.tolist(), found.tolist(), strict=True)) for found, file in rows]


@pytest.mark.parametrize("form", NAMED)
def test_predictions_and_labels_with_ids_are_joined_by_id(form, tmp_path):
    positive = {2: True, -2: False, 1: True, -3: False}
    assert joined(tmp_path, LABELS, NAMED[form], NAMED["text"]) == [positive, positive]


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
    positive = {-3: True, 2: False, 1: True, -2: False}
    if labels[1] == "1 # b":
        positive |= {2: True}
    assert joined(tmp_path, labels, predictions) == [positive]


def test_an_id_that_is_not_utf_8_is_the_same_in_json(tmp_path):
    labels = ("1 # \udcff", "-1 # b")
    lines = '{"id": "b", "decision_value": 1}\n{"id": "\\\\xff", "decision_value": 2}\n'
    assert joined(tmp_path, labels, lines) == [{2: True, 1: False}]


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        ("1 1 # x\n1 1 # b\n1 1 # c\n1 1 # d\n", "1 of the 4 ids in .* are not in .*: x"),
        ("1 1 # b\n1 1 # a\n1 1 # c\n1 1 # d\n1 1 # d\n", "the id 'd' is not unique"),
        ("1 1 # b\n1 1 # a\n1 1 #\n1 1 # d\n", "1 of the 4 ids in"),
    ],
)
def test_ids_that_cannot_be_joined_are_refused(predictions, message, tmp_path):
    with pytest.raises(DataError, match=message) as caught:
        joined(tmp_path, LABELS, predictions)
    assert caught.value.hint == BY_ORDER


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
            score.find_positive(labels[:count], [], "rows")
        assert str(refused.value.message).endswith(end)
