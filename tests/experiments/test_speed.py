"""Speed beside peers on tiny data: rows that agree, and disagreement instead of a time."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.speed import agreement, analysis, contest, members, parse, same_bytes
from experiments.speed.bench import Bench
from experiments.speed.contest import Case, Group, compete, table
from experiments.speed.data import Data
from experiments.speed.measure import Failed, command, run

RESVM = Path(sys.executable).with_name("resvm")
SVC = "scikit-learn SVC, sparse rows"
TINY = replace(
    members.AUTHORS, rows_pos=20, rows_unl=40, n_pos=5, n_unl=20, members=(3,), test_rows=60
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("speed")
    return Bench(folder, Data(folder, None, 600), peers=("scikit-learn",))


def results(group: Group) -> list[contest.Row]:
    return compete(group, 1, 60.0, len)


def only(group: Group, *names: str) -> Group:
    return replace(group, cases=[case for case in group.cases if case.name in names])


def test_resvm_and_scikit_learn_train_and_predict_with_members_that_agree(bench):
    group = only(next(members.training(bench, (TINY,))), "resvm train, one thread", SVC)
    rows = results(group)
    assert [row.agrees for row in rows] == [True, True]
    assert "members within" in rows[1].agreement
    predicted = results(only(next(members.prediction(bench, (TINY,))), SVC))
    assert "votes and d of 60 rows" in predicted[0].agreement
    assert f"| {SVC} |" in table(group, rows)


@pytest.mark.slow
def test_a_peer_with_other_members_gets_no_time(bench):
    group = next(members.training(bench, (TINY,)))
    victim = next(case for case in group.cases if case.name == SVC)

    def check_reversed() -> agreement.Agreement:
        import joblib

        target = Path(victim.steps[0][0][5])
        joblib.dump(joblib.load(target)[::-1], target)
        return victim.check()

    (row,) = results(replace(group, cases=[replace(victim, check=check_reversed)]))
    assert (row.seconds, row.ratio, row.agrees) == (None, None, False)
    assert row.agreement.startswith("DISAGREES: members within")


@pytest.mark.slow
def test_readers_and_areas_agree(bench, monkeypatch):
    monkeypatch.setattr(contest, "STARTS", 1)
    monkeypatch.setattr(parse, "AUTHORS", TINY)
    assert all(row.agrees for row in results(next(parse.groups(bench))))
    ranked = replace(analysis.RANKED, rows_pos=20, rows_unl=100)
    for group in analysis.groups(bench, ranked, 500):
        assert all(row.agrees for row in results(group))


def test_a_program_that_fails_or_takes_too_long_is_reported():
    case = Case("failing", command("python3", "-c", "raise SystemExit('no such luck')"))
    (row,) = results(Group("one", [case]))
    assert row.seconds is None
    assert row.agreement == "FAILED: exit code 1: no such luck"
    with pytest.raises(Failed, match=r"stopped after 0\.2 s"):
        run(command("sleep", "20"), timeout=0.2)


def test_memory_and_cpu_seconds_are_those_of_the_programs_alone(tmp_path):
    ballast = np.ones(20_000_000)  # 160 MB here must not show there
    busy = ["python3", "-c", "while __import__('time').process_time() < 0.2: pass"]
    small = run([[busy, ["wc", "-l"]], [busy]], stdout=tmp_path / "out")
    assert len(ballast)
    assert small.peak_mb < 50
    assert small.cpu_seconds >= 0.4


VALUES = np.array([[0.5, -0.4, 0.009], [-0.2, -0.3, -0.4], [0.3, 0.4, 0.5]])


@pytest.mark.parametrize(
    ("votes", "d", "agrees"),
    [
        ([2 / 3, 0.0, 1.0], [2 / 3, -0.9, 2.2], True),
        ([1 / 3, 0.0, 1.0], [1 / 3, -0.9, 2.2], True),  # the third member is too near to zero
        ([2 / 3, 0.0, 1.0], [2 / 3, -0.8, 2.2], False),
        ([2 / 3, 0.0, 1.0], [0.5, -0.9, 2.2], False),
    ],
)
def test_votes_may_differ_only_where_a_member_is_near_zero(tmp_path, votes, d, agrees):
    path = tmp_path / "pred"
    path.write_text("".join(f"1 {b!r} {a!r}\n" for a, b in zip(votes, d, strict=True)))
    assert agreement.votes_and_values(VALUES, path, np.full(3, 0.01)).agrees is agrees


STEPS = f"""
model   train {same_bytes.PU} -o model --n-models 3 --seed 4
renamed check data/pos.svm --no-such-option || check data/pos.svm --json
gone    train {same_bytes.PU} -o gone --n-models 3
"""


@pytest.mark.parametrize(
    ("change", "verdicts"),
    [
        ("", {"same"}),
        (
            """case "$*" in
*gone*) echo "resvm train has no option -o" >&2; exit 2;;
*"seed 4") set -- "$@" --w-pos 0.5;;
*simulate*) ;;
*) echo a new note >&2;;
esac""",
            {"same", "differs", "skipped", "same values"},
        ),
    ],
)
def test_programs_are_compared_in_what_both_know(tmp_path, change, verdicts):
    other = tmp_path / "other"
    other.write_text(f'#!/bin/sh\n{change}\nexec "{RESVM}" "$@"\n')
    other.chmod(0o755)
    rows = np.random.default_rng(0).normal(size=(60, 2)).round(3)
    lines = [f"{1 if n < 30 else -1} 1:{a} 2:{b}\n" for n, (a, b) in enumerate(rows)]
    (tmp_path / "small").write_text("".join(lines))
    draw = same_bytes.Draw("small", "small", 1, 10, 20, 0.1, (5, 5))
    work = same_bytes.Work("small", STEPS, draw)
    programs = {"before": RESVM, "after": other}
    assert same_bytes.compare(work, programs, tmp_path / "runs", tmp_path) == verdicts


@pytest.mark.parametrize(
    ("before", "after", "text", "in_values"),
    [
        ('{"n": 1, "m": [{"k": 2}]}', '{"n": 1, "m": [{"k": 3}]}', "m[].k", True),
        ('{"n": 1, "old": 2}', '{"n": 1, "new": 2}', "only before: old; only after: new", False),
        ('{"format": 2, "n": 1}', '{"n": 1, "format": 1}', "bookkeeping: format", False),
        ("id\tvalue\nb\t2\n", "id\tvalue\nb\t3\n", "value", True),
        ("id\tp\tvalue\nb\t1\t2\n", "id\tvalue\nb\t2\n", "only before: p", False),
        ("id\tvalue\nb\t2\n", "id\tvalue\n", "1 of 2 lines, the first is line 2", True),
        ("+1 0.5\n-1 0.2\n", "+1 0.5\n-1 0.1\n", "1 of 2 lines, the first is line 2", True),
    ],
)
def test_a_difference_is_described_by_what_differs(before, after, text, in_values):
    found = same_bytes.describe(before, after)
    assert (found.text, found.in_values) == (text, in_values)
