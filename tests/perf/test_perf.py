"""Speed beside peers on sets of seconds: rows that agree, and disagreement instead of a time."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perf import agreement, contest, growth, table
from perf.bench import Bench
from perf.case import Asked, Case, Group, Part
from perf.contest import Outcome, Row, Verdict, compete, verdict
from perf.data import Data
from perf.ensembles import Ensemble
from perf.measure import Failed, Run, command, run
from perf.programs.ensemble_svm import EnsembleSvm
from perf.programs.program import script
from perf.sizes import QUICK
from perf.work import KINDS
from studies.markdown import BEGIN, END, put_between_marks
from tests.conftest import write_svm

SVC = "scikit-learn SVC, sparse rows"
TINY = replace(
    QUICK,
    members=(3,),
    rows_pos=20,
    rows_unl=40,
    n_pos=5,
    n_unl=20,
    generated_rows=600,
    parse_rows=300,
    test_rows=60,
    probe_rows=20,
    long_rows=300,
    short_rows=100,
    large_members=2,
    large_rows=(20, 60),
    large_bag=(5, 20),
    large_test_rows=50,
    hard_rows=(20, 60),
    hard_bag=(5, 10),
    ranked_rows=200,
    scored_rows=500,
    many_members=4,
    part_rows=(50, 100),
    repeats=1,
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("perf")
    return Bench(folder, Data(folder, None, TINY), TINY, peers=("scikit-learn",))


@pytest.fixture(autouse=True)
def _one_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that is taken off is run once: no figure is looked at here."""
    monkeypatch.setattr(contest, "STARTS", 1)


def first_group(bench: Bench, name: str, cases: slice = slice(None)) -> Group:
    group = next(KINDS[name].groups(bench))
    return replace(group, cases=group.cases[cases])


def case(group: Group, name: str) -> Case:
    return next(case for case in group.cases if case.name == name)


def quiet(text: str) -> None:
    del text


@pytest.mark.slow
def test_resvm_and_scikit_learn_train_members_that_agree(bench):
    group = first_group(bench, "train")
    kept = [case for case in group.cases if case.name in (group.cases[0].name, SVC)]
    rows = compete(replace(group, cases=kept), TINY, quiet).rows
    assert rows[1].name == SVC
    assert all(row.agrees and row.seconds and row.peak_mb for row in rows)
    assert "members within" in rows[1].agreement


@pytest.mark.slow
def test_predictions_of_resvm_and_scikit_learn_agree_row_by_row(bench):
    group = first_group(bench, "predict", slice(0, 3))
    rows = compete(group, TINY, quiet).rows
    assert [row.agrees for row in rows] == [True] * 3
    assert rows[1].agreement == "same bytes"
    assert "votes and d of 15 rows" in rows[2].agreement  # a quarter, from which the total follows


@pytest.mark.slow
def test_a_peer_with_other_members_gets_no_time(bench):
    group = first_group(bench, "train")
    victim = next(case for case in group.cases if case.name == SVC)

    def break_members() -> agreement.Agreement:
        import joblib

        target = Path(victim.steps[0][0][5])
        members = joblib.load(target)
        joblib.dump(members[::-1], target)
        return victim.check()

    broken = replace(victim, check=break_members)
    row = compete(replace(group, cases=(broken,)), TINY, quiet).rows[0]
    assert (row.seconds, row.ratio, row.agrees) == (None, None, False)
    assert row.agreement.startswith("DISAGREES: members within")


@pytest.mark.slow
def test_both_readers_see_the_same_numbers(bench):
    group = first_group(bench, "parse")
    ours, peer = group.cases[0], group.cases[2]
    rows = compete(replace(group, cases=(ours, replace(peer, less=None))), TINY, quiet).rows
    assert [row.agrees for row in rows] == [True, True]
    assert "values of 300 rows" in rows[1].agreement


@pytest.mark.parametrize("name", ["sklearn_read", "libsvm_read"])
def test_readers_can_be_checked_on_features_the_member_lacks(tmp_path, name):
    rows = write_svm(tmp_path / "rows.svm", np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 4.0]]))
    np.save(tmp_path / "weights.npy", [1.0, 10.0])
    run(script(name, rows, tmp_path / "weights.npy", tmp_path / "values.npy"))
    assert np.load(tmp_path / "values.npy").tolist() == [21.0, 10.0]


def test_a_program_that_fails_is_reported_with_its_last_words(bench):
    case = Case("failing", command("python3", "-c", "raise SystemExit('no such luck')"))
    row = compete(Group("one", (case,)), TINY, quiet).rows[0]
    assert row.seconds is None
    assert row.agreement == "FAILED: exit code 1: no such luck"


def test_a_program_that_takes_too_long_is_stopped():
    with pytest.raises(Failed, match=r"stopped after 0\.2 s"):
        run(command("sleep", "20"), timeout=0.2)


def test_peak_memory_is_the_programs_own():
    ballast = np.ones(20_000_000)  # 160 MB here must not show there
    small = run(command("true"))
    large = run(command("python3", "-c", "held = b'x' * 100_000_000"))
    assert len(ballast)
    assert small.peak_mb < 50
    assert 100 < large.peak_mb < 150


def test_cpu_seconds_are_those_of_all_programs_of_all_steps():
    busy = ["python3", "-c", "while __import__('time').process_time() < 0.2: pass"]
    assert run([[["sleep", "0"]]]).cpu_seconds < 0.2
    assert run([[busy, busy], [busy]]).cpu_seconds >= 0.6


@pytest.mark.slow
def test_larger_bags_and_many_members_have_work_for_all_that_are_here(bench):
    train, predict, *_, one_row = KINDS["large"].groups(bench)
    assert train.title.startswith("train 2 linear members of 5 + 20 rows")
    rows = compete(replace(predict, cases=predict.cases[:3]), TINY, quiet).rows
    assert [row.agrees for row in rows] == [True] * 3
    assert all(row.cpu_seconds for row in rows)
    assert [row.agrees for row in compete(one_row, TINY, quiet).rows] == [True] * 4


@pytest.mark.slow
def test_members_with_large_penalties_agree_with_those_of_scikit_learn(bench):
    *_, hard, _ = KINDS["large"].groups(bench)
    assert hard.title.endswith("C_U 100")
    (row,) = compete(replace(hard, cases=[case(hard, SVC)]), TINY, quiet).rows
    assert row.agrees


@pytest.mark.slow
def test_areas_of_a_score_are_those_of_scikit_learn(bench):
    ranking, scoring = KINDS["analysis"].groups(bench)
    assert [row.agrees for row in compete(ranking, TINY, quiet).rows] == [True] * 2
    rows = compete(scoring, TINY, quiet).rows
    assert [row.agrees for row in rows] == [True] * 3
    (bench.folder / "scored.sklearn.json").write_text('{"average_precision": 0.5, "roc_auc": 0.5}')
    assert not scoring.cases[2].check().agrees


def test_ensemblesvm_gets_the_same_bags_by_row_numbers(bench, monkeypatch):
    problem = bench.data.problem("mnist.scale", "mnist.scale.t", 7, bench.command)
    ensemble = Ensemble(bench, problem, "rbf", 3)
    program = EnsembleSvm()
    ((words,),) = program.train(ensemble, Path("target"))
    options = dict(zip(words[4::2], words[5::2], strict=True))
    assert words[:4] == ["esvm-train", "-labels", "1", "-1"]
    assert (options["-kfun"], options["-nmodels"], options["-o"]) == ("2", "3", "target")
    lines = Path(options["-data"]).read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["1"] * 20 + ["-1"] * 40
    given = ensemble.parameters
    for bag, text in enumerate(Path(options["-bootstrap"]).read_text().splitlines()):
        numbers = [int(word) - 1 for word in text.split()]
        expected = [*given["positive"][bag], *(given["unlabeled"][bag] + 20)]
        assert numbers == expected
    monkeypatch.setenv("PATH", "")
    assert not program.installed()


def test_a_pipeline_passes_its_data_on(tmp_path):
    out = tmp_path / "out"
    run([[["printf", "a\\nb\\n"], ["wc", "-l"]]], stdout=out)
    assert out.read_text().split() == ["2"]


def test_threads_are_held_by_the_environment_unless_left_open(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    program = command("python3", "-c", "import os; print(os.environ.get('OMP_NUM_THREADS'))")
    found = []
    for threads in (1, None):
        run(program, stdout=tmp_path / "out", threads=threads)
        found.append((tmp_path / "out").read_text().strip())
    assert found == ["1", "None"]


def test_a_part_is_extrapolated_without_multiplying_start_up():
    part = Part((), (10, 20), 120, "rows")
    assert part.seconds(3.0, 4.0) == pytest.approx(14.0)  # 2 s of start-up, 0.1 s a row
    assert part.seconds(4.0, 4.1) is None


VALUES = np.array([[0.5, -0.4, 0.009], [-0.2, -0.3, -0.4], [0.3, 0.4, 0.5]])


def write_predictions(path: Path, votes: list[float], d: list[float]) -> Path:
    path.write_text("".join(f"1 {b!r} {a!r}\n" for a, b in zip(votes, d, strict=True)))
    return path


@pytest.mark.parametrize(
    ("votes", "d", "agrees"),
    [
        ([2 / 3, 0.0, 1.0], [2 / 3, -0.9, 2.2], True),
        ([1 / 3, 0.0, 1.0], [1 / 3, -0.9, 2.2], True),  # the third member is too near to zero
        ([0.0, 0.0, 1.0], [0.109, -0.9, 2.2], False),
        ([2 / 3, 0.0, 1.0], [2 / 3, -0.8, 2.2], False),
        ([2 / 3, 0.0, 1.0], [0.5, -0.9, 2.2], False),
    ],
)
def test_votes_may_differ_only_where_a_member_is_near_zero(tmp_path, votes, d, agrees):
    path = write_predictions(tmp_path / "pred", votes, d)
    assert agreement.votes_and_values(VALUES, path, np.full(3, 0.01)).agrees is agrees


def test_only_as_many_members_are_excused_as_the_solver_left_unfinished():
    other = VALUES + np.array([0.0, 0.3, 0.3])
    verdicts = [
        agreement.Members(VALUES, other, 0.01, unfinished).agreement().agrees
        for unfinished in (0, 1, 2)
    ]
    assert verdicts == [False, False, True]


def test_members_stored_in_another_order_are_matched_each_once():
    shuffled = VALUES[:, [2, 0, 1]] + 0.005
    assert not agreement.Members(VALUES, shuffled, 0.01).agreement().agrees
    assert agreement.Members(VALUES, shuffled, 0.01).matched().agreement().agrees
    wrong = shuffled + np.array([0.0, 0.0, 0.3])
    repeated = VALUES[:, [0, 1, 0]]
    for other in (wrong, repeated, VALUES[:, :2]):
        assert not agreement.Members(VALUES, other, 0.01).matched().agreement().agrees


def test_an_asked_ratio_takes_the_fastest_peer_that_agrees():
    def row(name: str, seconds: float | None, agrees: bool = True) -> Row:
        return Row(name, seconds, None, None, 10.0, "", agrees)

    asked = Asked("all", 4.0, "ours", ("slow", "fast", "wrong"), "least")
    rows = (row("ours", 2.0), row("slow", 30.0), row("fast", 10.0), row("wrong", None, False))
    assert str(verdict(asked, rows)) == "all: asked >= 4x: 5x, met"
    assert "not measured" in str(verdict(asked, rows[:1]))


def tables() -> list[table.Table]:
    row = Row("zcat | wc -c", 1.5, 2.0, None, 10.0, "same bytes", True, cpu_seconds=1.25)
    asked = Asked("gzip", 1.3, "a", ("b",), "most")
    return [table.Table("parse", "Parsing", [Outcome("gzip", "", (row,), (Verdict(asked, 2.0),))])]


def test_tables_are_put_between_the_marks_of_a_document(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    put_between_marks(path, table.markdown(tables(), quick=True))
    put_between_marks(path, table.markdown(tables(), quick=True))
    text = path.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert text.count("| zcat \\| wc -c | 1.500 | 1.250 | 2.00 | 10 | same bytes |") == 1
    assert "- gzip: asked <= 1.3x: 2x, NOT met" in text


def test_json_holds_every_row_and_every_figure_asked_for():
    written = json.loads(table.as_json(tables(), TINY, quick=False))
    (group,) = written["tables"][0]["groups"]
    assert group["rows"][0]["seconds"] == 1.5
    assert (group["asked"][0]["ratio"], group["asked"][0]["met"]) == (2.0, False)


@pytest.mark.slow
def test_a_program_writes_the_same_bytes_as_itself_and_not_as_with_another_seed(tmp_path, capsys):
    from perf.same_bytes import Draw, compare

    resvm = Path(sys.executable).with_name("resvm")
    other = tmp_path / "other"
    other.write_text(f'#!/bin/sh\n[ "$1" = train ] && set -- "$@" --seed 1\nexec "{resvm}" "$@"\n')
    other.chmod(0o755)
    rows = np.random.default_rng(0).normal(size=(60, 2)).round(3)
    lines = [f"{1 if n < 30 else -1} 1:{a} 2:{b}\n" for n, (a, b) in enumerate(rows)]
    (tmp_path / "small").write_text("".join(lines))
    draw = Draw("small", "small", 1, 10, 20, 0.1, (5, 5))
    steps = "small-model train -P data/pos.svm -U data/unl.svm -o model --n-models 3"
    for name, program, same in (("itself", resvm, True), ("seed", other, False)):
        programs = {"before": resvm, "after": program}
        assert compare(draw, steps, programs, tmp_path / name, tmp_path) is same
    printed = capsys.readouterr().out
    assert "small-model         8 files  same" in printed
    assert "model/manifest.json: seed, out_of_bag.sha256" in printed


def test_a_difference_is_described_by_what_differs(tmp_path):
    from perf.same_bytes import differences

    texts = {
        "a.json": ('{"n": 1, "m": [{"k": 1}, {"k": 2}]}', '{"n": 1, "m": [{"k": 1}, {"k": 3}]}'),
        "b.jsonl": ('{"n": 1}\n{"n": 2}\n', '{"n": 1}\n{"n": 3, "m": 4}\n'),
        "c.tsv": ("id\tvalue\na\t1\nb\t2\n", "id\tvalue\na\t1\nb\t3\n"),
        "d.out": ("+1 0.5\n-1 0.2\n", "+1 0.5\n-1 0.1\n"),
        "same": ("x", "x"),
    }
    before, after = tmp_path / "before", tmp_path / "after"
    for folder, which in ((before, 0), (after, 1)):
        folder.mkdir()
        for name, pair in texts.items():
            (folder / name).write_text(pair[which])
    (after / "more").write_text("")
    assert list(differences(before, after, {Path(name) for name in (*texts, "more")})) == [
        "a.json: m[].k",
        "b.jsonl: 1 of 2 lines in n, m",
        "c.tsv: 1 of 3 lines in value",
        "d.out: 1 of 2 lines, the first is line 2",
        "more: only after",
    ]


def test_growth_is_measured_without_the_time_of_the_smallest_size():
    runs = {10: Run(1.0, 50.0, 1.0), 100: Run(1.1, 50.0, 1.1), 1000: Run(2.0, 50.0, 2.0)}
    assert growth.Line("train", runs).exponent() == pytest.approx(1.0)
    assert growth.Line("train", {10: runs[10], 100: runs[100]}).exponent() is None
