"""score, as users run it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re

import numpy as np
import pytest
from sklearn import metrics as oracle

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


def test_predict_can_be_piped_into_it(model, problem, resvm):
    predicted = resvm("predict", model, problem / "test.svm").out
    ran = resvm("score", "-", "--labels", problem / "test.svm", stdin=predicted)
    assert ran.code == 0, ran.err
    assert "average precision" in ran.out.decode()
    assert ran.err == ""


def test_the_table_is_on_stdout_with_the_confusion_counts(folder, resvm, report):
    ran = resvm("score", "a.pred", "--labels", "test.svm", cwd=folder)
    text = ran.out.decode()
    one = report["files"][0]
    assert f"average precision              {one['average_precision']:.4f}" in text
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
    for wrong in ("0", "1,0", str(2**53)):
        ran = resvm(*words[:-1], wrong, cwd=folder)
        assert ran.code == 2
        assert f"must be positive integers such as 10,100, got '{wrong}'" in ran.err


def test_the_thresholds_on_a_page_are_those_of_the_values(folder, resvm, arrays, tmp_path):
    path = tmp_path / "page.html"
    assert resvm("score", "a.pred", "--labels", "test.svm", "--html", path, cwd=folder).code == 0
    data = re.search(rb'id="data">(.*?)</script>', path.read_bytes(), re.S)
    lists = re.findall(r'"thresholds": ?(\[.*?\])', data[1].decode())
    found = json.loads(lists[0])
    values = np.loadtxt(folder / "a.num")
    assert len(found) > 5
    assert all(np.isclose(one, values).any() for one in found)
    assert found == sorted(found, reverse=True)


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


def test_the_page_names_the_command(folder, resvm, tmp_path):
    arguments = ["score", "a.num", "--labels", "zeros", "--bootstrap", 0, "-q"]
    assert resvm(*arguments, "--html", tmp_path / "page.html", cwd=folder).code == 0
    page = (tmp_path / "page.html").read_text()
    assert '"command": "resvm score a.num --labels zeros --bootstrap 0 -q' in page.replace(
        '"command":"', '"command": "'
    )


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
    ran = resvm("rank", *arguments, "--with-known", "--format", form)
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
    options = ["--labels", "test.svm", "--pu", "--contamination-pos", "0.05..0.15"]
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


def test_the_curve_of_contaminated_sets_has_corrected_columns(folder, resvm):
    options = ["--labels", "test.svm", "--pu", "--contamination-unl", "0.1", "--bootstrap", 0]
    ran = resvm("score", "a.pred", *options, "--curve", "-", cwd=folder)
    rows = list(csv.DictReader(io.StringIO(ran.out.decode())))
    recalls = [float(row["corrected_recall"]) for row in rows]
    assert recalls == pytest.approx([float(row["recall"]) for row in rows])  # P is clean
    assert recalls[-1] == float(rows[-1]["corrected_fpr"]) == 1
    assert float(rows[-1]["corrected_precision"]) == pytest.approx(0.1)
    middle = rows[len(rows) // 2]
    expected = (float(middle["fpr"]) - 0.1 * float(middle["recall"])) / 0.9
    assert float(middle["corrected_fpr"]) == pytest.approx(max(0, expected), abs=0.02)


def test_the_share_of_positives_in_u_can_be_estimated(folder, resvm):
    options = ["--labels", "test.svm", "--pu", "--contamination-unl", "estimate", "--json"]
    (one,) = json.loads(resvm("score", "a.pred", *options, cwd=folder).out)["files"]
    low, high = (one[f"contamination_unl_estimate_{end}"] for end in ("low", "high"))
    assert 0 <= low <= one["contamination_unl_estimate"] <= high < 0.5
    assert one["contamination_unl"] == one["contamination_unl_estimate"]


def test_a_share_that_cannot_be_known_is_not_estimated(folder, resvm):
    lines = (folder / "a.pred").read_text().splitlines()
    values = np.random.default_rng(0).standard_normal(len(lines))
    (folder / "chance.pred").write_text("".join(f"1 {value:.6f}\n" for value in values))
    options = ["--labels", "test.svm", "--pu", "--contamination-unl", "estimate"]
    ran = resvm("score", "chance.pred", *options, cwd=folder)
    assert (ran.code, ran.out) == (3, b"")
    told = " ".join(ran.err.split())
    assert "P and U overlap too much to estimate the fraction of positives in U" in told
    assert "give a range instead: --contamination-unl 0.1..0.3" in told


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


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ("-1\n" * 400, [], "no row is positive"),
        ("1\n" * 400, [], "every row is positive; negative rows are needed"),
        ("1\n" * 400, ["--pu"], "every row is positive; unlabeled rows are needed"),
        ("1\n3\n" * 200, [], "which label is positive? The labels are 1, 3"),
        ("1\n0\n-1\n1\n" * 100, [], "The labels are -1, 0, 1"),
        ("1\n3\n" * 200, ["--positive-label", "5"], "no row has the label 5"),
        ("1\nnan\n" * 200, [], "'nan' cannot be ranked"),
        ("", [], "no labels"),
    ],
)
def test_labels_that_cannot_be_used_are_exit_3(labels, options, message, folder, resvm):
    (folder / "bad").write_text(labels)
    code, told = bad(resvm, folder, "a.pred", "--labels", "bad", *options)
    assert code == 3
    assert message in told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "stdin: no predictions"),
        (b"0.5\nnan\n", "stdin:2:1: 'nan' cannot be ranked"),
        (b"1 1:2 3:4\n", "an svmlight file, not predictions"),
        (b"PK\x03\x04...\n", "not a prediction file"),
    ],
)
def test_predictions_that_are_none_are_exit_3(text, message, folder, resvm):
    code, told = bad(resvm, folder, "-", "--labels", "test.svm", stdin=text)
    assert code == 3
    assert message in told


def test_ids_that_do_not_fit_are_refused(folder, resvm):
    (folder / "foreign").write_text("BRCA1\nTP53\n")
    code, told = bad(resvm, folder, "a.pred", "--positive-ids", "foreign")
    assert (code, "none of the 2 ids in foreign is in a.pred" in told) == (3, True)
    (folder / "part").write_text("row-1\nTP53\n")
    code, told = bad(resvm, folder, "a.pred", "--positive-ids", "part")
    assert code == 3
    assert "1 of the 2 ids in part are not in a.pred: TP53" in told
    allowed = ("--positive-ids", "part", "--allow-missing", "--bootstrap", 0)
    ran = resvm("score", "a.pred", *allowed, cwd=folder)
    assert "1 of the 2 ids in part are not in a.pred: TP53" in ran.out.decode()
    lines = (folder / "b.pred").read_text().splitlines(keepends=True)
    (folder / "b.cut").write_text("".join(lines[1:]))
    code, told = bad(resvm, folder, "a.pred", "b.cut", "--positive-ids", "ids")
    assert "do not have the same rows: 1 ids are in only one of them" in told
    (folder / "twice").write_text("".join([*lines, lines[5]]))
    code, told = bad(resvm, folder, "twice", "a.pred", "--positive-ids", "ids")
    assert "the id 'row-5' is not unique" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "resvm score: PREDICTIONS... is missing"),
        (["a.pred"], "give either --labels or --positive-ids"),
        (["a.pred", "--labels", "zeros", "--positive-ids", "ids"], "give either"),
        (["-", "--labels", "-"], "only one input can be stdin"),
        (["b.pred", "a.pred", "--labels", "./a.pred"], "is also one of the prediction files: ./a"),
        (["a.pred", "--labels", "zeros", "--contamination-unl", "0.1"], "require --pu"),
        (["a.pred", "--labels", "zeros", "--pu", "--contamination-pos", "0.1"], "requires"),
        (
            ["a.pred", "--labels", "zeros", "--pu", "--contamination-unl", "0.3..0.1"],
            "a fraction such as 0.1 or a range",
        ),
        (
            ["a.pred", "--labels", "zeros", "--pu", "--contamination-pos", "0.5",
             "--contamination-unl", "0.5"],
            "must add up to less than 1",
        ),
        (["a.pred", "--labels", "zeros", "-T", "inf"], "must be a finite number"),
        (["a.pred", "--labels", "zeros", "-k", "ten"], "integers such as 10,100, got 'ten'"),
        (["a.pred", "--labels", "zeros", "--plot", "x.gif"], "must end in .png, .svg or .pdf"),
        (["a.pred", "--labels", "zeros", "--json", "--curve", "-"], "cannot both write to stdout"),
        (["a.pred", "--positive-ids", "ids", "--positive-label", "1"], "requires --labels"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_exit_2(arguments, message, folder, resvm):
    code, told = bad(resvm, folder, *arguments)
    assert code == 2
    assert message in told


def test_without_matplotlib_a_plot_is_refused_with_the_pip_command(folder):
    script = (
        "import sys; sys.modules['matplotlib'] = None; sys.argv[1:] = "
        "['score', 'a.pred', '--labels', 'zeros', '--plot', 'x.png'];"
        "from resvm_cli.cli import main; main()"
    )
    ran = run(script_command(script), cwd=folder)
    assert ran.code == 2
    assert "--plot needs matplotlib" in ran.err
    assert "pip install 'resvm-cli[plot]'" in ran.err
    assert not (folder / "x.png").exists()


def test_scoring_imports_no_matplotlib_and_a_small_one_no_scipy(folder):
    script = (
        "import sys; sys.argv[1:] = ['score', 'a.pred', '--labels', 'zeros', '-q'];"
        "from resvm_cli.cli import main\n"
        "try: main()\n"
        "finally: print([n for n in ('matplotlib', 'scipy', 'joblib') if n in sys.modules])"
    )
    ran = run(script_command(script), cwd=folder)
    assert ran.out == b"[]\n", ran.err


def test_a_ranking_has_no_threshold_unless_one_is_given(problem, model, resvm, tmp_path):
    arguments = ["-P", problem / "pos.svm", "-U", problem / "unl.svm", "--model", model, "-q"]
    (tmp_path / "r.tsv").write_bytes(resvm("rank", *arguments, "--with-known").out)
    (tmp_path / "ids").write_text("".join(f"{n}\n" for n in range(1, 31)))
    options = ["score", "r.tsv", "--positive-ids", "ids", "--pu"]
    shown = resvm(*options, cwd=tmp_path).out.decode()
    assert "a ranking has no threshold; set one with -T" in shown
    assert "degenerate" not in shown
    assert "recall" not in shown.split("assumed:")[0]
    plots = ["--plot", "p.svg", "--html", "p.html"]
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
    options = ["--positive-ids", "part", "--allow-missing", "--bootstrap", 0, "-q"]
    ran = resvm("score", "a.pred", *options, cwd=folder)
    assert ran.out == b""
    assert "1 of the 2 ids in part are not in a.pred: TP53" in ran.err
