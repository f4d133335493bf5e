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

from resvm_cli.model.ensemble import Predictor
from resvm_cli.model.setting_plan import problems, resolve_defaults
from resvm_cli.model_files import directory
from resvm_cli.parameters import MethodParameters
from resvm_cli.tables.inputs import read_file
from tests.conftest import SAMPLE, assert_exit, train_arguments, write_svm
from tests.programs import PATIENCE_SECONDS, run, script_command

DIGITS = SAMPLE / "digits"
COLUMNS = [
    "rank", "id", "known", "decision_value", "votes", "members", "rank_low", "rank_high",
]  # fmt: skip
PRECISION = ["precision", "precision_low", "precision_high"]
EXPECTED_FALSE = ["expected_false", "expected_false_low", "expected_false_high"]


def data(problem):
    return train_arguments(problem)[1:]


def quick(problem, *more):
    return ["rank", *data(problem), "--n-models", 9, *more]


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
    wrong = [row["mislabelled"] == "1" for row in rows if row["file"] == f"{which}.svm"]
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


@pytest.mark.parametrize("rule", ["mean", "votes"])
def test_values_are_those_of_the_members_whose_bags_lack_the_row(rule, problem, resvm, tmp_path):
    more = () if rule == "mean" else ("--decision", rule)  # the mean is the default
    rows = table(resvm(*quick(problem, "-q", "-o", tmp_path / "m", "--with-known", *more)))
    stored = directory.load_model(str(tmp_path / "m"))
    pos, unl = (read_file(str(problem / name)).rows for name in ("pos.svm", "unl.svm"))
    plan = resolve_defaults(MethodParameters(n_models=9), len(pos), len(unl), 5, lambda: 1.0)
    tasks = list(problems(plan, range(9)))
    predictor = Predictor(stored.ensemble)
    for row in rows[::7]:
        number = int(row["id"]) - 1
        known = row["known"] == "1"
        values = predictor.member_values((pos if known else unl).slice(number, number + 1))
        psi = [
            value
            for value, task in zip(values[0], tasks, strict=True)
            if number not in (task.positive if known else task.unlabeled)
        ]
        assert int(row["members"]) == len(psi)
        votes = (len(psi) + np.sign(psi).sum()) / (2 * len(psi))
        assert float(row["votes"]) == pytest.approx(votes)
        expected = votes
        if votes in (0.0, 1.0):
            expected = votes + sum(psi) * 9 / len(psi)
        found = float(row["decision_value"])
        if rule == "mean":
            assert found == pytest.approx(np.mean(psi), rel=1e-9)
        else:
            assert found == pytest.approx(expected, abs=1 / (4 * len(psi)))


def test_rows_come_in_the_order_of_their_values_within_their_intervals(problem, resvm):
    for more in ((), ("--with-known",)):
        rows = table(resvm(*quick(problem, *more)))
        assert column(rows, "rank").tolist() == list(range(1, len(rows) + 1))
        assert np.all(np.diff(column(rows, "decision_value")) <= 0)
        low, high = column(rows, "rank_low"), column(rows, "rank_high")
        assert np.all((low >= 1) & (low <= column(rows, "rank")))
        assert np.all((column(rows, "rank") <= high) & (high <= len(rows)))
        assert np.any(low < high)
    assert len(rows) == 130
    assert sum(row["known"] == "1" for row in rows) == 30


@pytest.mark.parametrize("more", [(), ("-t", "linear", "--scale", "standard"), ("--audit",)])
def test_jobs_pipes_and_stored_models_do_not_change_a_byte(more, problem, resvm, tmp_path):
    first = resvm(*quick(problem, *more, "-q", "-j", 1, "-o", tmp_path / "m"))
    assert first.code == 0, first.err
    assert resvm(*quick(problem, *more, "-q", "-j", 3)).out == first.out
    audit = ("--audit",) if "--audit" in more else ()
    again = resvm("rank", *data(problem), "--model", tmp_path / "m", *audit, "-q")
    assert again.out == first.out, again.err
    if more:
        return
    os.mkfifo(tmp_path / "pipe")
    content = gzip.compress((problem / "unl.svm").read_bytes())
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,), daemon=True)
    writer.start()
    piped = resvm(
        "rank", "-P", problem / "pos.svm", "-U", tmp_path / "pipe", "--n-models", 9, "-q", *more
    )
    writer.join(PATIENCE_SECONDS)
    assert piped.out == first.out


def test_a_u_too_large_to_keep_gives_the_same_bytes(one_file, tmp_path, resvm):
    source = ("--data", one_file / "all.svm", "--positive-ids", one_file / "known.txt", "-q")
    first = resvm("rank", *source, "--n-models", 9)
    code = (
        "import sys; from resvm_cli.commands.rank import out_of_bag_scores\n"
        "from resvm_cli.training import input as training_input\n"
        "training_input.KEPT_NONZEROS = 0; out_of_bag_scores.CELLS_AT_ONCE = 1000\n"
        "sys.argv[0] = 'resvm'; from resvm_cli.cli import main; main()"
    )
    ran = run(script_command(code, "rank", *source, "--n-models", 9))
    assert ran.out == first.out, ran.err


def test_what_rank_keeps_is_what_train_trains(problem, resvm, tmp_path):
    resvm(*quick(problem, "-q", "-o", tmp_path / "ranked", "--seed", 4))
    resvm(*train_arguments(problem), "--n-models", 9, "-o", tmp_path / "trained", "--seed", 4)
    for path in sorted((tmp_path / "trained").rglob("*.*")):
        other = tmp_path / "ranked" / path.relative_to(tmp_path / "trained")
        assert path.read_bytes() == other.read_bytes()


def test_tuned_parameters_and_auto_work_as_in_train(problem, resvm, tmp_path):
    best = tmp_path / "t" / "best.json"
    resvm("tune", *data(problem), "-o", tmp_path / "t", "--oob", "--trials", 4, "--n-models", 5)
    ran = resvm("rank", *data(problem)[:-1], "--params", best, "--json")
    assert json.loads(ran.out)["n_members"] == 5
    resvm(*train_arguments(problem), "--params", best, "-o", tmp_path / "m")
    again = resvm("rank", *data(problem), "--model", tmp_path / "m", "--json")
    assert json.loads(again.out)["rows"] == json.loads(ran.out)["rows"]
    ran = resvm("rank", *data(problem)[:-1], "--auto", "--n-models", 5)
    assert "tuned out of bag" in ran.err
    assert len(table(ran)) == 100


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
    assert (whole["kind"], whole["n_ranked"], whole["resamples"]) == ("rank", 100, 200)
    bare = table(resvm(*quick(problem, "--no-interval")))
    assert {(row["rank_low"], row["rank_high"]) for row in bare} == {("", "")}
    assert [row["decision_value"] for row in bare[:5]] == [row["decision_value"] for row in rows]


@pytest.mark.parametrize("more", [(), ("--with-known",), ("--audit",)])
def test_a_page_does_not_change_the_list(more, problem, resvm, tmp_path):
    page = ("--html", tmp_path / "page.html")
    assert resvm(*quick(problem, *more, *page)).out == resvm(*quick(problem, *more)).out
    assert (tmp_path / "page.html").read_bytes().endswith(b"</html>\n")


def test_score_reads_a_ranking(one_file, resvm, tmp_path):
    known = ("--positive-ids", one_file / "known.txt")
    for form in ("tsv", "jsonl"):
        ran = resvm(
            "rank", "--data", one_file / "all.svm", *known, "--with-known", "-q", "--format", form
        )
        (tmp_path / "ranking").write_bytes(ran.out)
        scored = resvm("score", tmp_path / "ranking", *known, "--pu", "--json", "--bootstrap", 0)
        assert scored.code == 0, scored.err
        assert json.loads(scored.out)["files"][0]["roc_auc_pu"] > 0.8


def test_the_audit_tells_how_many_are_expected_to_be_false(problem, resvm):
    told = ("--audit", "--contamination-pos", 0.2, "--contamination-unl", 0.2)
    rows = table(resvm(*quick(problem, *told)))
    assert list(rows[0]) == [*COLUMNS, *EXPECTED_FALSE]
    expected = column(rows, "expected_false")
    assert np.all(np.diff(expected) >= 0)
    assert expected[-1] == pytest.approx(6)
    assert np.all(column(rows, "expected_false_low") <= expected)
    assert np.all(expected <= column(rows, "expected_false_high"))


def test_precision_falls_down_the_list_within_its_bounds(problem, resvm):
    rows = table(resvm(*quick(problem)))
    value, low, high = (column(rows, name) for name in PRECISION)
    assert np.all(np.diff(value) <= 0)
    assert np.all((low <= value) & (value <= high))
    empty = table(resvm(*quick(problem, "--no-interval")))
    assert {row["precision_low"] + row["precision_high"] for row in empty} == {""}
    assert [row["precision"] for row in empty] == [row["precision"] for row in rows]


def test_among_known_positives_precision_is_still_that_of_u(problem, resvm):
    alone, among = (table(resvm(*quick(problem, *more))) for more in ((), ("--with-known",)))
    of_unl = [row["precision"] for row in among if row["known"] == "0"]
    assert of_unl == [row["precision"] for row in alone]


def test_fdr_writes_the_longest_list_that_is_expected_to_hold_it(problem, resvm):
    whole = table(resvm(*quick(problem)))
    listed = table(resvm(*quick(problem, "--fdr", 0.3)))
    assert 0 < len(listed) < len(whole)
    assert listed == whole[: len(listed)]
    # averaged over what may be true, precision is less than the column says
    stated = [row for row in whole if float(row["precision"]) >= 0.7]
    assert len(listed) < len(stated)
    found = json.loads(resvm(*quick(problem, "--fdr", 0.3, "--json")).out)["promise"]
    assert found["n_listed"] == len(listed)
    assert found["precision"]["low"] <= found["precision"]["value"] <= found["precision"]["high"]


def test_a_rate_that_cannot_be_promised_gives_an_empty_list_and_says_so(problem, resvm):
    ran = resvm(*quick(problem, "--fdr", 0.001))
    assert ran.code == 0
    assert ran.out.decode().split() == [*COLUMNS, *PRECISION, "probability"]
    notes = json.loads(resvm(*quick(problem, "--fdr", 0.001, "--json")).out)["notes"]
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
    promise = found["promise"]
    assert promise["separable"] is False
    assert promise["contamination_unl"]["value"] is None
    assert promise["contamination_unl"]["low"] == 0
    assert promise["contamination_unl"]["high"] > 0.4
    assert found["n_suspects"] is None
    cases = [case for case in promise["cases"] if case["n_first"] == 50]
    assert [case["contamination_unl"] for case in cases] == [0.01, 0.05, 0.1, 0.2, 0.4]
    counts = [case["n_positive"] for case in cases]
    assert counts == sorted(counts)
    assert counts[-1] <= 50


def test_where_p_and_u_overlap_the_summary_says_what_can_be_said(overlapping, resvm):
    loud = ["rank", *data(overlapping)[:-1], "--n-models", 9]
    told = resvm(*loud).err
    assert "positives  unknown: P and U overlap too much" in told  # at most 100 % says nothing
    assert re.search(r"if 1 % of U is positive, \d+ of the first 50; if 5 %, \d+;", told)
    assert "look false" not in told
    audit = resvm(*loud, "--audit")
    assert "suspects  ranked, but not counted" in audit.err
    assert {row["expected_false"] for row in table(audit)} == {""}
    counted = resvm(*loud, "--audit", "--contamination-pos", 0.1)
    assert "4 of the known positives look false" in counted.err


def test_where_p_and_u_overlap_fdr_is_refused_unless_more_is_known(overlapping, resvm):
    ran = resvm(*quick(overlapping, "--fdr", 0.1))
    assert (ran.code, ran.out) == (3, b"")
    assert "the false discovery rate of a list is unknown: P and U overlap too much" in ran.err
    assert "give --contamination-unl, --tested or --negatives" in " ".join(ran.err.split())
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


@pytest.mark.parametrize("method", ["resvm", "bagging"])
def test_trusted_negatives_give_p_values_by_which_rows_are_listed(method, problem, resvm, tmp_path):
    rng = np.random.default_rng(5)
    write_svm(tmp_path / "neg.svm", rng.standard_normal((60, 5)) - 1)
    told = ("--method", method, "--negatives", tmp_path / "neg.svm")
    whole = table(resvm(*quick(problem, *told)))
    assert list(whole[0])[-2:] == ["p_value", "q_value"]
    listed = table(resvm(*quick(problem, *told, "--fdr", 0.4)))
    assert 0 < len(listed) < len(whole)
    assert listed == [row for row in whole if float(row["q_value"]) <= 0.4]
    assert resvm(*quick(problem, *told, "-j", 2)).out == resvm(*quick(problem, *told, "-j", 1)).out


def test_negatives_that_are_rows_of_u_are_told_and_judged_by_members_without_them(
    problem, resvm, tmp_path
):
    rng = np.random.default_rng(5)
    lines = (problem / "unl.svm").read_text().splitlines(keepends=True)
    write_svm(tmp_path / "fresh.svm", rng.standard_normal((20, 5)) - 1)
    (tmp_path / "neg.svm").write_text((tmp_path / "fresh.svm").read_text() + "".join(lines[:30]))
    several = quick(problem, "--negatives", tmp_path / "neg.svm", "--n-unl", 60, "--json")
    found = json.loads(resvm(*several).out)
    assert any(note.startswith("30 of 50 trusted negatives are also") for note in found["notes"])
    huge = json.loads(resvm(*several, "--n-unl", 300).out)["notes"]
    assert any("of them are in every bag and are ignored" in note for note in huge)
    alone = resvm(*quick(problem, "--negatives", tmp_path / "fresh.svm", "--json"))
    assert not any("rows of U:" in note for note in json.loads(alone.out)["notes"])


def test_a_negative_that_is_a_known_positive_is_refused_with_its_line(problem, resvm, tmp_path):
    known = (problem / "pos.svm").read_text().splitlines()[2]
    (tmp_path / "neg.svm").write_text(f"# trusted\n0 1:77\n\n{known}\n")
    ran = resvm(*quick(problem, "--negatives", tmp_path / "neg.svm"))
    assert ran.code == 3
    assert "neg.svm:4: this trusted negative equals row 3 of P" in ran.err
    assert "remove it" in ran.err
    assert ran.out == b""


def test_negatives_that_cannot_be_read_are_refused_before_training(problem, resvm, tmp_path):
    (tmp_path / "none.svm").write_text("")
    (tmp_path / "bad.svm").write_text("0 1:x\n")
    for name, message in (("none.svm", "none.svm"), ("bad.svm", "bad.svm:1"), ("no.svm", "no.svm")):
        ran = resvm(*quick(problem, "--negatives", tmp_path / name))
        assert ran.code in (3, 5)
        assert message in ran.err
        assert ran.out == b""


def test_members_that_saw_a_duplicate_do_not_judge(resvm, tmp_path):
    rng = np.random.default_rng(0)
    features = rng.standard_normal((40, 3))
    write_svm(tmp_path / "p.svm", features[:10])
    write_svm(tmp_path / "u.svm", np.concatenate([features[10:], features[:1], features[12:13]]))
    source = ("-P", tmp_path / "p.svm", "-U", tmp_path / "u.svm", "--n-models", 20)
    rows = {row["id"]: row for row in table(resvm("rank", *source, "--n-pos", 2, "--n-unl", 4))}
    assert rows["3"]["members"] == rows["32"]["members"]
    ran = resvm("rank", *source, "--method", "bagging", "--n-unl", 4)
    last = table(ran)[-1]
    assert last["id"] == "31"
    assert [last[name] for name in COLUMNS[3:]] == ["", "", "0", "", ""]
    assert "1 of 32 rows, or their groups, are in every bag" in ran.err


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
    source = ("--data", tmp_path / "all.svm", "--positive-label", 1, "--n-models", 30)
    bags = ("--n-pos", 1, "--n-unl", 1, "--with-known")
    where = tmp_path / "groups" if by == "file" else "qid"
    rows = table(resvm("rank", *source, *bags, "--groups", where))
    members = {int(row["id"]) - 1: row["members"] for row in rows}
    assert len(members) == 50
    for group in range(10):
        assert len({members[row] for row in np.flatnonzero(groups == group).tolist()}) == 1
    assert len(set(members.values())) > 1


def test_rows_in_every_bag_are_an_error_where_there_are_no_others(problem, resvm):
    ran = resvm(*quick(problem, "--n-models", 1, "--n-pos", 300, "--n-unl", 9, "--audit"))
    assert ran.code == 3
    assert "every row is in every bag" in ran.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--method", "bagging", "--audit"), "bagging trains every member on all of P"),
        (("--method", "bagging", "--with-known"), "bagging trains every member on all of P"),
        (("--method", "cwsvm"), "it has no out-of-bag values"),
        (("--audit", "--with-known"), "choose one"),
        (("--method", "bagging", "--contamination-pos", 0.1), "which --contamination-pos needs"),
        (("--method", "bagging", "--fdr", 0.1), "which --fdr needs"),
        (("--fdr", 0), "--fdr must be positive and finite, got 0"),
        (("--fdr", "nan"), "--fdr must be positive and finite, got nan"),
        (("--fdr", 0.1, "--audit"), "--audit lists known positives"),
        (("--fdr", 0.1, "--with-known"), "--with-known adds known positives"),
        (("--fdr", 0.1, "-k", 3), "choose one"),
        (("--negatives", "x", "--audit"), "--audit lists P"),
        (("--audit", "--contamination-pos", 1.5), "--contamination-pos must be below 1, got 1.5"),
        (
            ("--audit", "--contamination-pos", 0.5, "--contamination-unl", 0.5),
            "add up to 1 or more",
        ),
        (("--model", "m", "--n-models", 5), "--n-models is for training"),
        (("--model", "m", "--seed", 5), "--seed is for training"),
        (("--auto", "--params", "x"), "give either --auto or --params, not both"),
        (("--auto", "committee", "--no-auto"), "give either --auto or --no-auto, not both"),
        (("--json", "--format", "csv"), "give either --json or --format, not both"),
        (("--force",), "requires -o"),
        (("-o", "my list.tsv"), "resvm rank ... > 'my list.tsv', without -o"),
        (("--format", "xml"), "--format must be tsv, csv or jsonl"),
    ],
)
def test_what_makes_no_sense_is_exit_2_with_the_reason(more, message, resvm):
    ran = resvm("rank", "-P", "no-such-file", "-U", "nor-this", *more)
    assert ran.code == 2
    assert message in ran.err


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
    assert "but different rows or a different order" in ran.err
    assert "leave --model out" in ran.err
    (tmp_path / "pos.svm").write_text("1 1:1\n")
    ran = resvm("rank", *data(tmp_path), *arguments)
    assert ran.code == 4
    assert "its P has 30 rows, but this data has 1" in ran.err


def test_a_model_of_unchecked_rows_is_not_redrawn(problem, unchecked_model, resvm):
    ran = resvm("rank", *data(problem), "--model", unchecked_model)
    assert_exit(ran, 4, "older version of resvm trained it without checking U", "train it again")


def test_bags_drawn_by_an_unknown_rule_are_refused(problem, model, resvm, tmp_path):
    shutil.copytree(model, tmp_path / "m")
    path = tmp_path / "m" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["bags"] = "dice-7"
    manifest["manifest_sha256"] = directory._own_digest(manifest)
    path.write_bytes(directory._render(manifest))
    ran = resvm("rank", *data(problem), "--model", tmp_path / "m")
    assert ran.code == 4
    assert "'dice-7'" in ran.err


def test_train_and_tune_take_ids_too(one_file, resvm, tmp_path):
    source = ("--data", one_file / "all.svm", "--positive-ids", one_file / "known.txt")
    assert resvm("train", *source, "-q", "--n-models", 9, "-o", tmp_path / "m").code == 0
    ran = resvm("rank", *source, "--model", tmp_path / "m", "-q")
    assert ran.out == resvm("rank", *source, "--n-models", 9, "-q").out
    ran = resvm("tune", *source, "--oob", "--trials", 2, "--n-models", 3, "-o", tmp_path / "t")
    assert ran.code == 0, ran.err
    assert f"--positive-ids {one_file / 'known.txt'}" in ran.err


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ("image-1003\nno-such-image\n", "1 of the 2 ids"),
        ("image-1003\nimage-1003\n", "is listed twice"),
        ("1 3:0.5 4:1\n", "an svmlight row"),
        ("", "no ids"),
    ],
)
def test_bad_lists_of_ids_are_exit_3(known, message, one_file, resvm, tmp_path):
    (tmp_path / "known.txt").write_text(known)
    source = ("--data", one_file / "all.svm", "--positive-ids", tmp_path / "known.txt")
    ran = resvm("rank", *source)
    assert ran.code == 3
    assert message in ran.err
    assert "hint:" in ran.err
