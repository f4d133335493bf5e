"""resvm rank as a user runs it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import shutil
import threading

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from resvm_cli.commands import rank
from resvm_cli.data.inputs import read_file
from resvm_cli.metrics.intervals import Interval
from resvm_cli.ranking.batch import BatchSummary
from resvm_cli.ranking.precision import ASSUMPTION, FdrEstimate
from tests.conftest import SAMPLE, data_arguments, few_members, train_arguments, write_svm
from tests.fitting import ranked
from tests.programs import PATIENCE_SECONDS, run, script_command

DIGITS = SAMPLE / "digits"
COLUMNS = [
    "rank", "id", "known", "decision_value", "votes", "members", "rank_low", "rank_high",
]  # fmt: skip
PRECISION = ["precision", "precision_low", "precision_high"]


def data(problem):
    return data_arguments(problem)


def quick(problem, *more, n_models=9, **params):
    return ["rank", *data(problem), "--params", few_members(n_models, **params), *more]


def table(ran):
    assert ran.code == 0, ran.err
    return list(csv.DictReader(io.StringIO(ran.out.decode()), delimiter="\t"))


def column(rows, name):
    return np.array([float(row[name]) for row in rows])


@pytest.fixture(scope="module")
def one_file(tmp_path_factory):
    """All digits of P and U in one file, with the ids of P in a list."""
    folder = tmp_path_factory.mktemp("one_file")
    pos = read_file(str(DIGITS / "pos.svm"), with_comments=True)
    lines = [
        line
        for name in ("pos", "unl")
        for line in (DIGITS / f"{name}.svm").read_text().splitlines(keepends=True)
    ]
    np.random.default_rng(0).shuffle(lines)
    (folder / "all.svm").write_text("".join(lines))
    (folder / "known.txt").write_text("".join(f"{name}\n" for name in pos.comments))
    return folder


def truth(which):
    rows = csv.DictReader((DIGITS / "truth.csv").read_text().splitlines())
    names = read_file(str(DIGITS / f"{which}.svm"), with_comments=True).comments
    wrong = [row["mislabeled"] == "1" for row in rows if row["file"] == f"{which}.svm"]
    return dict(zip(names, wrong, strict=True))


def test_hidden_positives_come_first_and_false_ones_are_the_most_suspicious(one_file, resvm):
    source = ("--data", one_file / "all.svm", "--positive-ids", one_file / "known.txt", "-q")
    rows = table(resvm("rank", *source))
    assert list(rows[0]) == [*COLUMNS, *PRECISION, "probability"]
    hidden = truth("unl")
    assert {row["id"] for row in rows} == set(hidden)
    wanted = [hidden[row["id"]] for row in rows]
    assert average_precision_score(wanted, -column(rows, "rank")) > 0.9
    false = truth("pos")
    suspects = table(resvm("rank", *source, "--audit"))
    assert {row["id"] for row in suspects} == set(false)
    assert sum(false[row["id"]] for row in suspects[:5]) >= 4
    values = column(suspects, "decision_value")
    assert np.all(np.diff(values) >= 0)


@pytest.mark.parametrize(
    ("more", "params"),
    [((), {}), ((), {"kernel": "linear", "scale": "standard"}), (("--audit",), {})],
)
def test_jobs_pipes_and_stored_models_do_not_change_a_byte(more, params, problem, resvm, tmp_path):
    first = resvm(*quick(problem, *more, "-j", 1, "--save-model", tmp_path / "m", **params))
    assert first.code == 0, first.err
    assert resvm(*quick(problem, *more, "-j", 3, **params)).out == first.out
    again = resvm(
        "rank", *data(problem), "--model", tmp_path / "m", *more, "-q", "-o", tmp_path / "l"
    )
    assert (tmp_path / "l").read_bytes() == first.out, again.err
    assert again.out == b""
    if more or params:
        return
    os.mkfifo(tmp_path / "pipe")
    content = gzip.compress((problem / "unl.svm").read_bytes())
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,), daemon=True)
    writer.start()
    source = ("-P", problem / "pos.svm", "-U", tmp_path / "pipe", "-q")
    piped = resvm("rank", *source, "--params", few_members(9))
    writer.join(PATIENCE_SECONDS)
    assert piped.out == first.out


def test_a_u_too_large_to_keep_gives_the_same_bytes(one_file, tmp_path, resvm):
    source = ("--data", one_file / "all.svm", "--positive-ids", one_file / "known.txt", "-q")
    first = resvm("rank", *source, "--params", few_members(9))
    code = (
        "import sys; from resvm_cli.ranking import scores as out_of_bag_scores\n"
        "from resvm_cli.data import pufiles\n"
        "pufiles.KEPT_NONZEROS = 0; out_of_bag_scores.CELLS_AT_ONCE = 1000\n"
        "sys.argv[0] = 'resvm'; from resvm_cli.cli.app import main; main()"
    )
    ran = run(script_command(code, "rank", *source, "--params", few_members(9)))
    assert ran.out == first.out, ran.err


def test_tuned_parameters_and_the_search_work_as_in_train(problem, resvm, tmp_path):
    best = tmp_path / "t" / "best.json"
    resvm("tune", *data(problem), "-o", tmp_path / "t", "--trials", 4, "--n-models", 5)
    ran = resvm("rank", *data(problem)[:-1], "--params", best, "--json")
    assert json.loads(ran.out)["n_members"] == 5
    resvm(*train_arguments(problem), "--params", best, "-o", tmp_path / "m")
    again = resvm("rank", *data(problem), "--model", tmp_path / "m", "--json")
    assert json.loads(again.out)["rows"] == json.loads(ran.out)["rows"]
    ran = resvm("rank", *data(problem)[:-1])
    assert "settings were scored out of bag in " in ran.err
    assert resvm("train", *data(problem), "-o", tmp_path / "n").code == 0
    again = resvm("rank", *data(problem), "--model", tmp_path / "n")
    assert table(again) == table(ran)


def test_other_formats_say_the_same(problem, resvm):
    rows = table(resvm(*quick(problem, "--top", 5)))
    assert len(rows) == 5
    separated = resvm(*quick(problem, "--top", 5, "--format", "csv")).out.decode()
    assert list(csv.DictReader(io.StringIO(separated))) == rows
    lines = resvm(*quick(problem, "--top", 5, "--format", "jsonl")).out.splitlines()
    whole = json.loads(resvm(*quick(problem, "--top", 5, "--json")).out)
    assert whole["rows"] == [json.loads(line) for line in lines]
    assert [str(row["decision_value"]) for row in whole["rows"]] == [
        row["decision_value"] for row in rows
    ]
    assert (whole["command"], whole["n_ranked"], whole["resamples"]) == ("rank", 100, 200)


@pytest.mark.parametrize("more", [(), ("--audit",)])
def test_a_page_does_not_change_the_list(more, problem, resvm, tmp_path):
    page = ("--html", tmp_path / "page.html")
    assert resvm(*quick(problem, *more, *page)).out == resvm(*quick(problem, *more)).out
    assert (tmp_path / "page.html").read_bytes().endswith(b"</html>\n")


def test_fdr_writes_the_longest_list_that_is_expected_to_hold_it(problem, resvm):
    told = ("--contamination-unl", 0.25)
    whole = table(resvm(*quick(problem, *told)))
    listed = table(resvm(*quick(problem, *told, "--fdr", 0.3)))
    assert 0 < len(listed) < len(whole)
    assert listed == whole[: len(listed)]
    # a list is chosen with more caution than the column states
    stated = [row for row in whole if float(row["precision"]) >= 0.7]
    assert len(listed) < len(stated)
    found = json.loads(resvm(*quick(problem, *told, "--fdr", 0.3, "--json")).out)["fdr_estimate"]
    assert found["n_listed"] == len(listed)
    assert found["precision"]["low"] <= found["precision"]["value"] <= found["precision"]["high"]
    assert found["assumption"].startswith("P is a random sample of the positives")


def test_a_rate_that_cannot_be_promised_gives_an_empty_list_and_says_so(problem, resvm):
    few = ("--contamination-unl", 0.25, "--fdr", 0.001)
    ran = resvm(*quick(problem, *few))
    assert ran.code == 0
    assert ran.out.decode().split() == [*COLUMNS, *PRECISION, "probability"]
    notes = json.loads(resvm(*quick(problem, *few, "--json")).out)["notes"]
    assert "try a larger --fdr" in notes[-1]


@pytest.fixture(scope="module")
def overlapping(tmp_path_factory):
    """P and U drawn from the same distribution."""
    folder = tmp_path_factory.mktemp("overlapping")
    rows = np.random.default_rng(3).standard_normal((160, 3))
    write_svm(folder / "pos.svm", rows[:40])
    write_svm(folder / "unl.svm", rows[40:])
    return folder


def test_where_p_and_u_overlap_nothing_is_claimed(overlapping, resvm):
    rows = table(resvm(*quick(overlapping)))
    assert {row[name] for row in rows for name in PRECISION} == {""}
    found = json.loads(resvm(*quick(overlapping, "--json")).out)
    estimate = found["fdr_estimate"]
    assert estimate["separable"] is False
    assert estimate["contamination_unl"]["value"] is None
    assert estimate["contamination_unl"]["low"] == 0
    assert estimate["contamination_unl"]["high"] > 0.5
    assert estimate["contamination_pos"]["high"] > 0.5
    assert found["n_suspects"] is None
    cases = [case for case in estimate["cases"] if case["n_first"] == 50]
    assert [case["contamination_unl"] for case in cases] == [0.01, 0.02, 0.05, 0.1, 0.2, 0.4]
    assert all(0 <= case["low"] <= case["n_positive"] <= case["high"] <= 50 for case in cases)
    counts = [case["n_positive"] for case in cases]
    assert counts == sorted(counts)


def test_where_p_and_u_overlap_the_summary_says_what_can_be_said(overlapping, resvm):
    loud = ["rank", *data(overlapping)[:-1], "--params", few_members(9)]
    told = resvm(*loud).err
    assert "positives  unknown: P and U overlap too much" in told  # at most 100% says nothing
    counts = r"\d+ \(\d+ to \d+\)"
    first = (
        f"expected  if 1% of U is positive: {counts} of 10, {counts} of 50, {counts} of 100 rows"
    )
    assert re.search(f"{first}\n +if 2%: {counts}, {counts}, {counts}\n", told)
    assert "look false" not in told
    audit = resvm(*loud, "--audit")
    assert "suspects  ranked, but not counted" in audit.err
    assert {row["expected_false"] for row in table(audit)} == {""}
    counted = resvm(*loud, "--audit", "--contamination-pos", 0.1)
    assert "4 of the known positives look false" in counted.err


def test_where_p_and_u_overlap_fdr_is_refused_unless_more_is_known(overlapping, resvm):
    ran = resvm(*quick(overlapping, "--fdr", 0.1))
    assert (ran.code, ran.out) == (3, b"")
    why = "depends on the fraction of U that is positive, which values alone do not tell"
    assert why in " ".join(ran.err.split())
    assert "give --contamination-unl, --tested or --known-negatives" in " ".join(ran.err.split())
    assert resvm(*quick(overlapping, "--fdr", 0.1, "--contamination-unl", 0.3)).code == 0


def test_a_few_tested_rows_let_precision_be_stated(overlapping, resvm, tmp_path):
    names = [row["id"] for row in table(resvm(*quick(overlapping)))]
    lines = [f"{name}\t{number % 3 == 0:d}" for number, name in enumerate(names[::4])]
    (tmp_path / "tested.tsv").write_text("# tested in May\n" + "\n".join(lines) + "\n")
    with_tests = quick(overlapping, "--tested", tmp_path / "tested.tsv")
    rows = table(resvm(*with_tests))
    assert 0.2 < float(rows[-1]["precision"]) < 0.5
    assert all(0 <= float(row["probability"]) <= 1 for row in rows)
    assert resvm(*with_tests, "--fdr", 0.5).code == 0
    assert resvm(*with_tests, "-j", 2).out == resvm(*with_tests, "-j", 1).out


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("nobody\t1\n", "tested.tsv:1: 'nobody' is not the id of a row of U"),
        ("{first}\t2\n", "tested.tsv:1: the outcome is '2'"),
        ("{first}\n", "tested.tsv:1: no id before the outcome"),
        ("{first} 1\n\n{first} 0\n", "tested.tsv:3: '{first}' already has an outcome, at"),
        ("# none\n", "tested.tsv: no tested rows"),
    ],
)
def test_bad_outcomes_are_refused_by_name(lines, said, overlapping, resvm, tmp_path):
    first = table(resvm(*quick(overlapping)))[0]["id"]
    (tmp_path / "tested.tsv").write_text(lines.format(first=first))
    ran = resvm(*quick(overlapping, "--tested", "tested.tsv"), cwd=tmp_path)
    assert (ran.code, ran.out) == (3, b"")
    assert said.format(first=first) in " ".join(ran.err.split())


def test_a_stated_contamination_is_what_precision_ends_at(problem, resvm):
    rows = table(resvm(*quick(problem, "--contamination-unl", 0.15)))
    assert float(rows[-1]["precision"]) == pytest.approx(0.15)


@pytest.fixture
def negatives(tmp_path):
    return write_svm(tmp_path / "neg.svm", np.random.default_rng(5).standard_normal((60, 5)) - 1)


@pytest.mark.parametrize("method", ["resvm", "bagging"])
def test_known_negatives_calibrate_the_list(method, problem, negatives, resvm):
    def ranked(*more):
        ran = resvm(*quick(problem, "-N", negatives, *more, method=method))
        return table(ran)

    whole = ranked()
    assert "p_value" not in whole[0]
    listed = ranked("--fdr", 0.4)
    assert list(listed[0])[-2:] == ["p_value", "q_value"]
    assert 0 < len(listed) < len(whole)
    assert max(column(listed, "q_value")) <= 0.4
    assert [row["id"] for row in listed] == [row["id"] for row in whole[: len(listed)]]
    assert ranked("--fdr", 0.4, "-j", 2) == ranked("--fdr", 0.4, "-j", 1)


def test_known_negatives_are_compared_by_their_own_out_of_bag_values(
    problem, negatives, resvm, tmp_path
):
    known = ("-N", negatives, "--save-model", tmp_path / "m")
    found = json.loads(resvm(*quick(problem, *known, "--fdr", 0.99, "--json")).out)
    assert found["fdr_estimate"]["n_negatives"] == 60
    lines = (tmp_path / "m" / "out_of_bag.tsv").read_text().splitlines()
    stored = list(csv.DictReader(lines, delimiter="	"))
    values = np.array([float(row["mean_value"]) for row in stored if row["set"] == "N"])
    assert len(values) == 60
    for row in found["rows"]:
        expected = (1 + np.sum(values >= row["decision_value"] - 1e-9)) / 61
        assert row["p_value"] == pytest.approx(expected)


def test_too_few_known_negatives_give_an_empty_list_and_say_so(problem, negatives, resvm):
    ran = resvm(*quick(problem, "-N", negatives, "--fdr", 0.001))
    assert len(table(ran)) == 0
    assert "with 60 known negatives, p-values are at least 0.016" in ran.err


def test_members_that_saw_a_duplicate_do_not_judge(resvm, tmp_path):
    rng = np.random.default_rng(0)
    features = rng.standard_normal((40, 3))
    write_svm(tmp_path / "p.svm", features[:10])
    write_svm(tmp_path / "u.svm", np.concatenate([features[10:], features[:1], features[12:13]]))
    source = ("rank", "-P", tmp_path / "p.svm", "-U", tmp_path / "u.svm")
    small = few_members(20, n_pos=2, n_unl=4)
    rows = {row["id"]: row for row in table(resvm(*source, "--params", small))}
    assert rows["3"]["members"] == rows["32"]["members"]
    ran = resvm(*source, "--params", few_members(20, method="bagging", n_unl=4))
    marked = next(row for row in table(ran) if row["id"] == "31")  # identical to a row of P
    assert [marked[name] for name in ("members", "rank_low", "rank_high")] == ["0", "", ""]
    assert marked["decision_value"]
    assert "1 of 32 rows, or rows like them, are in every bag" in ran.err


@pytest.mark.parametrize("by", ["file", "qid"])
def test_members_that_saw_a_row_of_the_group_do_not_judge(by, resvm, tmp_path):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(10), 5)
    lines = [
        f"{label} qid:{group} " + " ".join(f"{i + 1}:{x:.3f}" for i, x in enumerate(row)) + "\n"
        for label, group, row in zip(
            np.arange(50) % 3 == 0, groups, rng.standard_normal((50, 3)), strict=True
        )
    ]
    text = "".join(line.replace("True", "1").replace("False", "0") for line in lines)
    (tmp_path / "all.svm").write_text(text)
    (tmp_path / "groups").write_text("".join(f"g{group}\n" for group in groups))
    where = tmp_path / "groups" if by == "file" else "qid"
    source = ("rank", "--data", tmp_path / "all.svm", "--positive-label", 1, "--groups", where)
    given = ("--params", few_members(30, n_pos=1, n_unl=1))
    rows = [row for more in ((), ("--audit",)) for row in table(resvm(*source, *given, *more))]
    members = {int(row["id"]) - 1: row["members"] for row in rows}
    assert len(members) == 50
    for group in range(10):
        assert len({members[row] for row in np.flatnonzero(groups == group).tolist()}) == 1
    assert len(set(members.values())) > 1


def test_rows_in_every_bag_are_an_error_where_there_are_no_others(problem, resvm):
    ran = resvm(*quick(problem, "--audit", n_models=1, n_pos=300, n_unl=9))
    assert ran.code == 3
    assert "every row is in every bag" in ran.err


def test_a_stored_bagging_model_ranks_u_and_a_stored_cwsvm_nothing(problem, resvm, tmp_path):
    for method in ("bagging", "cwsvm"):
        resvm(*train_arguments(problem), "--method", method, "-o", tmp_path / method)
    assert len(table(resvm("rank", *data(problem), "--model", tmp_path / "bagging"))) == 100
    ran = resvm("rank", *data(problem), "--model", tmp_path / "bagging", "--audit")
    assert (ran.code, "all of P" in ran.err) == (2, True)
    ran = resvm("rank", *data(problem), "--model", tmp_path / "cwsvm")
    assert (ran.code, "it has no out-of-bag values" in ran.err) == (2, True)


def test_a_model_of_other_data_is_refused_by_what_differs(problem, model, resvm, tmp_path):
    for name in ("pos.svm", "unl.svm"):
        shutil.copy(problem / name, tmp_path / name)
    lines = (problem / "unl.svm").read_text().splitlines(keepends=True)
    (tmp_path / "unl.svm").write_text("".join([lines[1], lines[0], *lines[2:]]))
    arguments = ("--model", model, "-q")
    ran = resvm("rank", *data(tmp_path), *arguments)
    assert ran.code == 4
    assert "but they differ or are in a different order" in ran.err
    assert "leave --model out" in ran.err
    (tmp_path / "pos.svm").write_text("1 1:1\n")
    ran = resvm("rank", *data(tmp_path), *arguments)
    assert ran.code == 4
    assert "its P has 30 rows, but this data has 1" in ran.err


def test_train_and_tune_take_ids_too(one_file, resvm, tmp_path):
    source = ("--data", one_file / "all.svm", "--positive-ids", one_file / "known.txt")
    given = ("--params", few_members(9), "-q")
    assert resvm("train", *source, *given, "-o", tmp_path / "m").code == 0
    ran = resvm("rank", *source, "--model", tmp_path / "m", "-q")
    assert ran.out == resvm("rank", *source, *given).out
    ran = resvm("tune", *source, "--trials", 2, "--n-models", 3, "-o", tmp_path / "t")
    assert ran.code == 0, ran.err
    assert f"--positive-ids {one_file / 'known.txt'}" in ran.err


def test_an_upper_bound_is_shown_where_it_says_something():
    estimate = FdrEstimate(None, None, False, False, None, why_unknown="P and U overlap too much")
    bounded = rank._unknown_text(estimate, Interval(np.nan, 0.0, 0.401))
    assert bounded == "unknown, but at most 41% of U: P and U overlap too much"
    unbounded = rank._unknown_text(estimate, Interval(np.nan, 0.0, 1.0))
    assert unbounded == "unknown: P and U overlap too much"


def test_a_list_chosen_by_its_false_discovery_rate_states_its_precision():
    few, certain = Interval(0.12, 0.08, 0.31), Interval(0.25, 0.25, 0.25)
    estimate = FdrEstimate(
        few, few, True, True, fdr=0.2, n_listed=1234, precision=certain, assumption=ASSUMPTION
    )
    assert rank._estimate_rows(estimate) == [
        ("positives", "12% (8 to 31) of U, if P is a random sample of the positives"),
        ("list", "1,234 rows, 25% of them expected to be positive"),
    ]


def test_a_list_chosen_by_known_negatives_says_how_many_there_were():
    estimate = FdrEstimate(None, None, False, False, 5000, fdr=0.05, n_listed=7)
    ((name, text),) = rank._estimate_rows(estimate)
    assert name == "list"
    start = "7 rows chosen by conformal p-values from 5,000 known negatives: at most 5%"
    assert text.startswith(start)


def test_an_empty_list_is_stated_without_a_precision():
    few = Interval(0.1, 0.1, 0.1)
    estimate = FdrEstimate(None, few, True, True, None, fdr=0.2, n_listed=0)
    assert rank._estimate_rows(estimate)[-1] == ("list", "0 rows")


def test_a_batch_is_described_by_what_was_chosen_and_passed_over():
    assert rank._batch_text(BatchSummary(20, 0, 0, 0)) == "20 rows by rank"
    assert rank._batch_text(BatchSummary(20, 1, 2, 1234)) == (
        "20 rows by rank, 1 near-duplicate passed over, 2 rows from chosen groups passed over,"
        " 1,234 tested rows left out"
    )


@pytest.mark.parametrize("shown", [1, 3])
def test_reasons_beyond_those_shown_are_counted(shown, capsys, monkeypatch):
    rng = np.random.default_rng(1)
    y = np.repeat([1, 0], [20, 60])
    ranking = ranked(rng.normal(size=(80, 2)) + y[:, None], y, {"n_models": 9}, why=3)
    monkeypatch.setattr(rank, "MAX_SHOWN", shown)
    rank.show_reasons(ranking.reasons)
    told = capsys.readouterr().err
    assert told.count("rank ") == shown
    assert ("and 2 more rows: --json prints all of them" in told) == (shown == 1)
