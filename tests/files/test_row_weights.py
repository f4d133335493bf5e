"""Weights of known positives, as a user gives them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import resvm_cli
from resvm_cli.errors import DataError
from resvm_cli.files.row_weights import WeightLines
from resvm_cli.files.svmlight import read_file
from resvm_cli.model.bags import PositiveWeights
from resvm_cli.model.plan import bag_of
from resvm_cli.model_files import directory as model_dir
from tests.conftest import train_arguments

N_POS = 30  # rows of P of the small problem


@pytest.fixture
def weights(tmp_path):
    """A file of weights: every third row of P is unsure."""
    path = tmp_path / "weights.txt"
    path.write_text("# how sure\n" + "".join(f"{1 if i % 3 else 0.1}\n" for i in range(N_POS)))
    return path


def quick(problem, command="train", *more):
    return [command, *train_arguments(problem)[1:], "--n-models", 6, *more]


def same_model(first, second):
    names = {path.relative_to(first) for path in first.rglob("*") if path.is_file()}
    assert names == {path.relative_to(second) for path in second.rglob("*") if path.is_file()}
    return all((first / name).read_bytes() == (second / name).read_bytes() for name in names)


def test_equal_weights_give_the_bytes_of_none(problem, resvm, tmp_path):
    assert resvm(*quick(problem), "-o", tmp_path / "none").code == 0
    for value in ("1", "0.5"):
        (tmp_path / "equal").write_text(f"{value}\n" * N_POS)
        target = tmp_path / f"equal-{value}"
        assert resvm(*quick(problem), "--weights", tmp_path / "equal", "-o", target).code == 0
        assert same_model(tmp_path / "none", target)


def test_rows_are_drawn_by_their_weights_whatever_the_jobs(problem, weights, resvm, tmp_path):
    for jobs in (1, 2):
        target = tmp_path / f"m{jobs}"
        ran = resvm(*quick(problem), "--weights", weights, "-j", jobs, "-o", target)
        assert ran.code == 0, ran.err
    assert same_model(tmp_path / "m1", tmp_path / "m2")
    stored = model_dir.load(str(tmp_path / "m1"))
    assert stored.manifest["bags"] == "pcg64-1-weighted"
    plain = resvm(*quick(problem), "-o", tmp_path / "plain")
    assert plain.code == 0
    assert not same_model(tmp_path / "m1", tmp_path / "plain")
    # members have no support row that was not drawn for them
    plan = stored.plan.with_weights(
        PositiveWeights.from_values([1 if i % 3 else 0.1 for i in range(N_POS)])
    )
    positives = read_file(str(problem / "pos.svm")).rows
    keys = positives.without_zeros().content_keys()
    pool = stored.ensemble.pool
    for number, member in enumerate(stored.ensemble.members):
        drawn = {keys[row] for row in bag_of(plan.plans[0], number)[0]}
        own = pool.take(member.support[: member.n_positive]).content_keys()
        assert set(own) <= drawn


def test_parts_resumed_and_grown_models_are_those_of_one_run(problem, weights, resvm, tmp_path):
    whole = tmp_path / "whole"
    given = ("--weights", weights)
    assert resvm(*quick(problem), *given, "-o", whole).code == 0
    parts = [tmp_path / "a", tmp_path / "b"]
    for number, part in enumerate(parts, 1):
        ran = resvm(*quick(problem), *given, "--task", f"{number}/2", "-o", part)
        assert ran.code == 0, ran.err
    assert resvm("merge", *parts, "-o", tmp_path / "merged").code == 0
    assert same_model(whole, tmp_path / "merged")
    few = [*train_arguments(problem), "--n-models", 3, *given, "-o", tmp_path / "grown"]
    assert resvm(*few).code == 0
    grown = [*train_arguments(problem), "--grow", 6, "-o", tmp_path / "grown"]
    ran = resvm(*grown)
    assert (ran.code, "was trained with --weights" in ran.err) == (4, True)
    ran = resvm(*grown, *given)
    assert ran.code == 0, ran.err
    assert same_model(whole, tmp_path / "grown")


def test_a_part_of_other_weights_is_not_continued_or_merged(problem, weights, resvm, tmp_path):
    other = tmp_path / "other"
    other.write_text("0.2\n" + "1\n" * (N_POS - 1))
    first, second = tmp_path / "first", tmp_path / "second"
    task = (*quick(problem), "--weights", weights, "--task")
    assert resvm(*task, "1/2", "-o", first).code == 0
    ran = resvm(*quick(problem), "--weights", other, "--task", "1/2", "-o", first)
    assert (ran.code, "a part of another model" in ran.err) == (2, True)
    assert resvm(*quick(problem), "--weights", other, "--task", "2/2", "-o", second).code == 0
    assert resvm("merge", first, second, "-o", tmp_path / "m").code == 4


def test_rank_by_a_stored_model_needs_its_weights(problem, weights, resvm, tmp_path):
    given = ("--weights", weights)
    kept = resvm(*quick(problem, "rank"), *given, "--decision", "votes", "-o", tmp_path / "m")
    assert kept.code == 0, kept.err
    stored = ("rank", *train_arguments(problem)[1:], "--model", tmp_path / "m")
    stored = (*stored, "--decision", "votes")
    assert resvm(*stored, *given).out == kept.out
    ran = resvm(*stored)
    assert (ran.code, "was trained with --weights" in ran.err) == (4, True)
    (tmp_path / "other").write_text("0.2\n" + "1\n" * (N_POS - 1))
    ran = resvm(*stored, "--weights", tmp_path / "other")
    assert (ran.code, "with other --weights than these" in ran.err) == (4, True)
    assert resvm(*quick(problem), "-o", tmp_path / "plain").code == 0
    ran = resvm("rank", *train_arguments(problem)[1:], "--model", tmp_path / "plain", *given)
    assert (ran.code, "leave --weights out" in ran.err) == (4, True)


@pytest.mark.parametrize("estimate", [["--oob"], ["-v", "3"]])
def test_tune_judges_by_the_weights(estimate, problem, weights, resvm, tmp_path):
    common = ["tune", *train_arguments(problem)[1:], *estimate, "--search", "random"]
    common += ["--trials", 3, "--n-models", 4, "--max-extensions", 0]
    scores = {}
    (tmp_path / "equal.txt").write_text("0.7\n" * N_POS)
    for name, given in (
        ("none", []),
        ("equal", ["--weights", tmp_path / "equal.txt"]),
        ("given", ["--weights", weights]),
    ):
        ran = resvm(*common, *given, "-j", 1, "-o", tmp_path / name)
        assert ran.code == 0, ran.err
        scores[name] = (tmp_path / name / "trials.jsonl").read_bytes()
    assert scores["none"] == scores["equal"] != scores["given"]
    assert resvm(*common, "--weights", weights, "-j", 2, "-o", tmp_path / "again").code == 0
    assert (tmp_path / "again" / "trials.jsonl").read_bytes() == scores["given"]
    ran = resvm(*common, "--resume", "-o", tmp_path / "given")
    assert ran.code != 0


def test_with_ids_weights_are_told_by_id_in_any_order(problem, resvm, tmp_path):
    lines = (problem / "pos.svm").read_text().splitlines()
    lines += (problem / "unl.svm").read_text().splitlines()
    all_rows = tmp_path / "all.svm"
    named = [f"{line.split(' #')[0]} # row {number}\n" for number, line in enumerate(lines)]
    all_rows.write_text("".join(named))
    order = np.random.default_rng(0).permutation(N_POS)
    (tmp_path / "known").write_text("".join(f"row {i}\n" for i in order))
    (tmp_path / "by-id").write_text("".join(f"row {i}\t{1 if i % 3 else 0.1}\n" for i in order))
    by_place = tmp_path / "by-place"
    by_place.write_text("".join(f"{1 if i % 3 else 0.1}\n" for i in range(N_POS)))
    ids = ["--data", all_rows, "--positive-ids", tmp_path / "known", "--n-models", 6]
    ran = resvm("train", *ids, "--weights", tmp_path / "by-id", "-o", tmp_path / "ids")
    assert ran.code == 0, ran.err
    assert resvm(*quick(problem), "--weights", by_place, "-o", tmp_path / "files").code == 0
    digests = [
        json.loads((tmp_path / name / "manifest.json").read_text())["data"]["positive"]
        for name in ("ids", "files")
    ]
    assert digests[0] == digests[1]
    for text, message in (
        ("row 0 1\n", "29 known positives have no weight; the first is 'row 1'"),
        ("row 99 1\n", ":1: 'row 99' is not among --positive-ids"),
        ("row 1 1\nrow 1 0\n", ":2: 'row 1' has a weight already, in line 1"),
        ("0.5\n", ":1: no id before the weight"),
    ):
        (tmp_path / "bad").write_text(text)
        ran = resvm("train", *ids, "--weights", tmp_path / "bad", "-o", tmp_path / "no")
        assert (ran.code, message in ran.err) == (3, True), ran.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no weights"),
        ("0.5\n", "1 weights, and P has 30 rows"),
        ("1\n" * 31, "31 weights, and P has 30 rows"),
        ("1\n1.5\n", ":2: the weight is '1.5'; a number from 0 to 1 was expected"),
        ("1\n-0.5\n", ":2: the weight is '-0.5'"),
        ("nan\n", ":1: the weight is 'nan'"),
        ("1\n1e999\n", ":2: the weight is '1e999'"),
        ("# sure\n1_0\n", ":2: the weight is '1_0'"),
        ("1\n\n1\n", ":2: an empty line"),
        ("1 1:0.5\n", ":1: '1 1:0.5' is no single number"),
        ("0\n" * 30, "every weight is 0"),
        ("0\n" * 29 + "1\n", "only one row of P"),
    ],
)
def test_bad_weights_are_exit_3_with_their_place(text, message, problem, resvm, tmp_path):
    path = tmp_path / "weights"
    path.write_text(text)
    ran = resvm(*quick(problem), "--weights", path, "-o", tmp_path / "m")
    assert (ran.code, message in ran.err) == (3, True), ran.err
    assert str(path) in ran.err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("command", ["train", "tune"])
@pytest.mark.parametrize("method", ["bagging", "cwsvm"])
def test_methods_that_draw_no_row_of_p_refuse_weights(command, method, problem, resvm, tmp_path):
    arguments = [command, *train_arguments(problem)[1:], "--method", method]
    ran = resvm(*arguments, "--weights", "missing", "-o", tmp_path / "m")
    assert (ran.code, f"no meaning for --method {method}" in ran.err) == (2, True)


def test_only_one_input_is_stdin(problem, resvm, tmp_path):
    arguments = ["train", "-P", "-", "-U", problem / "unl.svm", "--weights", "-"]
    ran = resvm(*arguments, "-o", tmp_path / "m")
    assert (ran.code, "only one input can be stdin" in ran.err) == (2, True)


def test_trailing_blank_lines_and_comments_are_passed_over(tmp_path):
    (tmp_path / "w").write_bytes(b"\xef\xbb\xbf# sure\n1\n# not\n.5\n\n\n")
    read = WeightLines.read(str(tmp_path / "w"), with_ids=False)
    assert read.of_rows(2, None).tolist() == [1.0, 0.5]
    assert read.lines == [2, 4]


def test_from_python_weights_of_known_positives_count(problem, weights, resvm, tmp_path):
    blocks = [
        resvm_cli.read_svmlight(problem / f"{name}.svm", features=5).X for name in ("pos", "unl")
    ]
    X = np.vstack([block.toarray() for block in blocks])
    y = np.repeat([1, 0], [N_POS, len(X) - N_POS])
    given = np.full(len(X), np.nan)
    given[:N_POS] = [1 if i % 3 else 0.1 for i in range(N_POS)]
    model = resvm_cli.fit(X, y, weights=given, n_models=6)
    assert resvm(*quick(problem), "--weights", weights, "-o", tmp_path / "m").code == 0
    stored = json.loads((tmp_path / "m" / "manifest.json").read_text())
    assert model.manifest["data"]["positive"] == stored["data"]["positive"]
    assert model.manifest["bags"] == stored["bags"]
    plain = resvm_cli.fit(X, y, n_models=6)
    assert plain.manifest["bags"] == "pcg64-1"
    with pytest.raises(ValueError, match=r"3 weights, and X has"):
        resvm_cli.fit(X, y, weights=[1, 1, 1])
    with pytest.raises(ValueError, match=r"weights has no meaning for method"):
        resvm_cli.fit(X, y, weights=given, method="bagging")
    with pytest.raises(DataError, match="the weight of row 1 of P is 2"):
        resvm_cli.fit(X, y, weights=np.full(len(X), 2.0))
