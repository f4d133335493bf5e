"""resvm benchmark run, as a user runs it."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.svm import SVC

from resvm_cli.benchmark.cells import Protocol, default_grids_text, read_grids
from resvm_cli.benchmark.data import PAPER_TASKS, BenchmarkData, Cell, LabeledRows, draw
from resvm_cli.benchmark.run import BenchmarkRequest, run_benchmark
from resvm_cli.model.simulation import Sizes
from resvm_cli.rows import Rows
from resvm_cli.running.run import Run
from tests.conftest import write_svm

RNG = np.random.default_rng(11)
LABELS = RNG.integers(0, 2, 600)
FEATURES = RNG.standard_normal((600, 4)) + LABELS[:, None] * 1.5
OWN = ["--positive-label", 1, "--n-pos", 20, "--n-unl", 60]

ONE_CANDIDATE = {
    "kind": "resvm-benchmark-grids",
    "format": 1,
    "data_sets": {
        "default": {
            "kernel": "rbf",
            "gamma": "0.1",
            "c_unl": "1",
            "resvm": {"n_pos": "10", "unl_per_pos": "1", "w_pos": "1"},
            "bagging": {"unl_per_pos": "0.5"},
            "cwsvm": {"w_pos": "1"},
        }
    },
}


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    path = tmp_path_factory.mktemp("grids") / "grid.json"
    path.write_text(json.dumps(ONE_CANDIDATE))
    return path


@pytest.fixture(scope="module")
def plan(grid):
    """A small run of every method: 2 repetitions of one task in two settings."""
    words = ["benchmark", "run", "--tasks", "synthetic", "--settings", "pu,semi"]
    return [*words, "--repetitions", 2, "--grid", grid, "-q"]


@pytest.fixture(scope="module")
def whole(plan, resvm, tmp_path_factory):
    """The results of an uninterrupted run."""
    target = tmp_path_factory.mktemp("whole") / "bench"
    ran = resvm(*plan, "-j", 1, "-o", target)
    assert ran.code == 0, ran.err
    assert ran.out == b""
    return target


def lines(directory):
    return [json.loads(line) for line in (directory / "results.jsonl").read_text().splitlines()]


def test_every_method_of_every_cell_has_a_line_in_the_order_of_the_plan(whole):
    found = [(line["repetition"], line["setting"], line["method"]) for line in lines(whole)]
    methods = ("resvm", "bagging", "cwsvm")
    wanted = [(r, s, m) for r in (0, 1) for s in ("pu", "semi-supervised") for m in methods]
    assert found == wanted
    first = lines(whole)[0]
    assert first["protocol"] == "paper"
    assert (first["contamination_pos"], first["contamination_unl"]) == (0.0, 0.3)
    assert first["candidates"] == 1
    assert first["parameters"]["n_pos"] == 10
    assert first["parameters"]["n_models"] == 50
    assert len(first["curve"]) == 100
    times = [json.loads(line) for line in (whole / "times.jsonl").read_text().splitlines()]
    assert len(times) == len(found)
    assert all(0 <= one["cpu_seconds_test"] <= one["cpu_seconds"] for one in times)
    assert "seconds" not in first


def test_areas_match_scikit_learn_on_the_same_rows(whole):
    data = BenchmarkData(".", None, 0)
    for line in lines(whole):
        if line["method"] != "cwsvm":
            continue
        shares = line["contamination_pos"], line["contamination_unl"]
        drawn = data.draw(Cell(line["setting"], "synthetic", line["repetition"], *shares))
        dense = [rows_of(part) for part in (drawn.positives, drawn.unlabeled, drawn.test)]
        assert [len(part) for part in dense] == [100, 200, 10_000]
        labels = np.repeat([0, 1], [100, 200])  # the first class is the one LIBSVM calls positive
        # w_pos is 1: the total penalties of both classes are equal
        theirs = SVC(C=1.0, gamma=0.1, class_weight={0: 2.0, 1: 1.0}, tol=1e-3)
        values = -theirs.fit(np.concatenate(dense[:2]), labels).decision_function(dense[2])
        precision = average_precision_score(drawn.truth, values)
        assert line["average_precision"] == pytest.approx(precision, abs=1e-9)
        assert line["roc_auc"] == pytest.approx(roc_auc_score(drawn.truth, values), abs=1e-9)


def rows_of(rows):
    dense = np.zeros((len(rows), 2))
    dense[rows.row_numbers, rows.indices - 1] = rows.values
    return dense


def test_the_curve_is_the_best_precision_at_each_recall_or_higher(whole):
    for line in lines(whole):
        curve = np.array(line["curve"])
        assert (np.diff(curve) <= 0).all()
        # the interpolated curve lies above the steps
        assert line["average_precision"] <= curve.mean() + 0.02


def test_the_time_of_the_whole_run_is_announced_once_after_the_first_result(grid, tmp_path):
    protocol = Protocol("paper", read_grids(str(grid)))
    request = BenchmarkRequest(
        str(tmp_path / "b"), protocol, tasks=("synthetic",), settings=("pu",), methods=("cwsvm",),
        repetitions=3,
    )  # fmt: skip
    told = []
    run_benchmark(request, Run(jobs=1, on_announce=told.append))
    (text,) = [text for text in told if "in total" in text]
    assert text.startswith("3 results in total, 2 to go, about ")


def test_threads_change_no_byte(plan, whole, resvm, tmp_path):
    ran = resvm(*plan, "-j", 2, "-o", tmp_path / "b")
    assert ran.code == 0, ran.err
    assert (tmp_path / "b/results.jsonl").read_bytes() == (whole / "results.jsonl").read_bytes()


def test_a_run_truncated_anywhere_resumes_to_the_same_file(plan, whole, resvm, tmp_path):
    wanted = (whole / "results.jsonl").read_bytes()
    target = tmp_path / "b"
    for name in ("settings.json", "run.json"):
        target.mkdir(exist_ok=True)
        (target / name).write_bytes((whole / name).read_bytes())
    for cut in (0, len(wanted) // 3, len(wanted) - 1):
        (target / "results.jsonl").write_bytes(wanted[:cut])
        ran = resvm(*plan, "--resume", "-o", target)
        assert ran.code == 0, ran.err
        assert (target / "results.jsonl").read_bytes() == wanted


@pytest.fixture
def copied(whole, tmp_path):
    """A finished run, and the lines of its results."""
    target = tmp_path / "b"
    shutil.copytree(whole, target)
    return target, (target / "results.jsonl").read_bytes().splitlines(keepends=True)


def test_damaged_lines_are_named_and_run_again(plan, whole, copied, resvm):
    target, before = copied
    wanted = b"".join(before)
    accented = before[4].replace(b"synthetic", "synthétique".encode())
    damaged = {
        2: before[2].replace(b":", b"", 1),
        4: accented[: accented.index(b"\xc3") + 1] + b"\n",  # cut off within a character
        7: bytes(4096) + b"\n",  # zeros, as a file system leaves after a crash
    }
    lines = [damaged.get(number, line) for number, line in enumerate(before)]
    (target / "results.jsonl").write_bytes(b"".join(lines) + before[3] + before[5][:20])
    told = resvm("benchmark", "report", target)
    assert told.code == 3
    assert "results.jsonl:3: the line is damaged" in told.err
    words = [word for word in plan if word != "-q"]
    ran = resvm(*words, "--resume", "-o", target)
    assert ran.code == 0, ran.err
    for number in (3, 5, 8):
        assert f"results.jsonl:{number}: was damaged; its cell is run again" in ran.err
    assert "3 of them new" in ran.err
    assert (target / "results.jsonl").read_bytes() == wanted
    assert (target / "results.jsonl").read_bytes() == (whole / "results.jsonl").read_bytes()


def test_lines_of_another_run_are_reported_by_number(plan, copied, resvm):
    target, before = copied
    first = json.loads(before[0])
    for changes, said in (
        ({"roc_auc": 0.5}, "13: an earlier line has different values for the same cell"),
        ({"protocol": "fast"}, "13: the protocol is fast, but the run uses paper"),
        ({"roc_auc": None}, "13: not a result of a benchmark"),
    ):
        line = json.dumps({**first, **changes}).encode() + b"\n"
        (target / "results.jsonl").write_bytes(b"".join(before) + line)
        ran = resvm(*plan, "--resume", "-o", target)
        assert ran.code == 3
        assert f"results.jsonl:{said}" in ran.err
        assert "remove the line" in ran.err
    (target / "results.jsonl").write_bytes(b"".join(before))
    ran = resvm(*plan, "--seed", 1, "--resume", "-o", target)
    assert ran.code == 2
    assert "was started with different settings: seed" in ran.err


def test_directories_of_parts_are_joined_to_the_same_file(plan, whole, resvm, tmp_path):
    for setting in ("semi", "pu"):
        words = [setting if word == "pu,semi" else word for word in plan]
        assert resvm(*words, "-o", tmp_path / setting).code == 0
    ran = resvm("benchmark", "join", *(tmp_path / name for name in ("semi", "pu")),
                "-o", tmp_path / "b", "--json")  # fmt: skip
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["n_results"] == 12
    assert (tmp_path / "b/results.jsonl").read_bytes() == (whole / "results.jsonl").read_bytes()
    ran = resvm(*plan, "--resume", "-o", tmp_path / "b", "--json")
    assert json.loads(ran.out)["n_run"] == 0


def test_an_existing_directory_is_not_overwritten(plan, whole, resvm):
    ran = resvm(*plan, "-o", whole)
    assert ran.code == 2
    assert "--resume" in ran.err


def test_tasks_of_an_array_job_join_to_the_same_file(plan, whole, resvm, tmp_path):
    target = tmp_path / "b"
    loud = [word for word in plan if word != "-q"]
    ran = resvm(*loud, "--task", "2/3", "-o", target)
    assert ran.code == 0, ran.err
    assert "--array=1,3" in ran.err
    assert not (target / "results.jsonl").exists()
    assert resvm(*plan, "--task", "3/3", "-o", target).code == 0
    again = resvm(*loud, "--task", "3/3", "-o", target)
    assert "0 of them new" in again.err
    ran = resvm(*loud, "-o", target)  # the missing cells are run now
    assert ran.code == 0, ran.err
    assert "12, 4 of them new" in ran.err
    assert (target / "results.jsonl").read_bytes() == (whole / "results.jsonl").read_bytes()


def test_an_array_task_skips_what_a_run_has_finished(plan, whole, resvm, tmp_path):
    target = tmp_path / "b"
    loud = [word for word in plan if word != "-q"]
    few = [*plan, "--methods", "cwsvm"]
    assert resvm(*few, "-o", target).code == 0
    log = (target / "results.jsonl").read_bytes()
    (target / "results.jsonl").write_bytes(log + b'{"torn')  # as if the run were still working
    for share in ("1/2", "2/2"):
        ran = resvm(*loud, "--task", share, "-o", target)
        assert ran.code == 0, ran.err
        assert "results  6, 4 of them new" in ran.err
    assert "results  6, 0 of them new" in resvm(*loud, "--task", "2/2", "-o", target).err
    assert (target / "results.jsonl").read_bytes() == log + b'{"torn'
    assert resvm(*plan, "--resume", "-o", target).code == 0
    assert (target / "results.jsonl").read_bytes() == (whole / "results.jsonl").read_bytes()
    ran = resvm(*plan, "--seed", 1, "--task", "1/3", "-o", target)
    assert (ran.code, "different settings: seed" in ran.err) == (2, True)


def test_array_tasks_on_other_rows_fail(resvm, tmp_path):
    words = ["benchmark", "run", "--data", tmp_path / "own.svm", *OWN, "--methods", "cwsvm", "-q"]
    words += ["--repetitions", 2, "-o", tmp_path / "b"]
    write_svm(tmp_path / "own.svm", FEATURES, LABELS)
    assert resvm(*words, "--task", "1/2").code == 0
    write_svm(tmp_path / "own.svm", FEATURES + 1, LABELS)
    for more in (["--task", "2/2"], []):
        ran = resvm(*words, *more)
        assert (ran.code, "was started with different rows of own" in ran.err) == (2, True)
    assert not (tmp_path / "b" / "results.jsonl").exists()


def test_results_of_another_seed_are_not_mixed_in(plan, whole, resvm, tmp_path):
    target = tmp_path / "b"
    assert resvm(*plan, "--task", "1/3", "-o", target).code == 0
    ran = resvm(*plan, "--seed", 1, "-o", target)
    assert ran.code == 2
    assert "different settings: seed" in ran.err


def test_a_directory_takes_more_repetitions_settings_and_methods_later(
    plan, whole, resvm, tmp_path
):
    target = tmp_path / "b"
    few = [*plan[:6], "--repetitions", 1, *plan[8:], "--methods", "bagging"]
    few[few.index("pu,semi")] = "semi-supervised"
    assert resvm(*few, "-o", target).code == 0
    ran = resvm(*plan, "--resume", "-o", target)
    assert ran.code == 0, ran.err
    assert (target / "results.jsonl").read_bytes() == (whole / "results.jsonl").read_bytes()
    plans = [json.loads((place / "run.json").read_text()) for place in (target, whole)]
    for name in ("tasks", "settings", "methods", "repetitions", "data", "missing"):
        assert plans[0][name] == plans[1][name], name


def test_missing_files_are_named_with_their_address_and_the_rest_runs(grid, resvm, tmp_path):
    words = ["benchmark", "run", "--data-dir", tmp_path, "--methods", "cwsvm", "--grid", grid]
    words += ["--settings", "supervised", "--repetitions", 1, "-o", tmp_path / "b"]
    ran = resvm(*words, "--tasks", "synthetic,cancer,mnist-3")
    assert ran.code == 0, ran.err
    assert "breast-cancer_scale is not in" in ran.err
    assert "datasets/multiclass/mnist.scale.bz2" in ran.err
    assert [line["task"] for line in lines(tmp_path / "b")] == ["synthetic"]
    missing = json.loads((tmp_path / "b/run.json").read_text())["missing"]
    assert [entry["task"] for entry in missing] == ["cancer", "mnist-3"]
    told = resvm("benchmark", "report", tmp_path / "b")
    assert "breast-cancer_scale" in told.out.decode()
    ran = resvm(*words[:-1], tmp_path / "c", "--tasks", "cancer")
    assert ran.code == 3
    assert "nothing to run" in ran.err


def test_own_data_at_several_contaminations(resvm, tmp_path):
    data = write_svm(tmp_path / "mine.svm", FEATURES, LABELS)
    ran = resvm(
        "benchmark", "run", "--data", data, *OWN, "--contamination-pos", "0:0.2:0.1",
        "--contamination-unl", 0.1, "--methods", "cwsvm", "--repetitions", 1,
        "-o", tmp_path / "b", "-j", 1,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    found = lines(tmp_path / "b")
    assert [line["contamination_pos"] for line in found] == [0.0, 0.1, 0.2]
    assert {(line["protocol"], line["setting"], line["task"]) for line in found} == {
        ("fast", "own", "mine")
    }
    assert found[0]["candidates"] == 12
    assert resvm("benchmark", "report", tmp_path / "b").code == 0


def test_the_fast_protocol_pools_settings_and_records_the_heaviest(resvm, tmp_path):
    data = write_svm(tmp_path / "mine.svm", FEATURES, LABELS)
    ran = resvm(
        "benchmark", "run", "--data", data, *OWN, "--methods", "resvm", "--repetitions", 1,
        "-o", tmp_path / "b", "-q",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    (line,) = lines(tmp_path / "b")
    assert line["settings"] > 1
    assert {"gamma", "c_unl", "n_pos", "n_unl"} <= set(line["parameters"])


def test_no_group_is_both_trained_and_tested_on(resvm, tmp_path):
    groups = np.arange(600) // 10
    features = np.column_stack([np.arange(1, 601), FEATURES])  # the first is unique
    labeled = LabeledRows(Rows.from_dense(features), LABELS == 1, groups)
    for repetition in range(5):
        drawn = draw(labeled, Sizes(20, 60, 0.1, 0.1), Cell("own", "a", repetition, 0.1, 0.1), 0)
        numbers = [
            part.values[part.indices == 1].astype(int) - 1
            for part in (drawn.positives, drawn.unlabeled, drawn.test)
        ]
        assert not set(groups[np.concatenate(numbers[:2])]) & set(groups[numbers[2]])
        assert drawn.groups.tolist() == groups[np.concatenate(numbers[:2])].tolist()
        assert (LABELS[numbers[0]] == 0).sum() == 2
        assert (LABELS[numbers[1]] == 1).sum() == 6
    data = write_svm(tmp_path / "mine.svm", FEATURES, LABELS)
    (tmp_path / "groups.txt").write_text("".join(f"g{number}\n" for number in groups))
    words = ["benchmark", "run", "--data", data, *OWN, "--methods", "cwsvm", "-q"]
    words += ["--repetitions", 1, "--groups", tmp_path / "groups.txt"]
    assert resvm(*words, "-o", tmp_path / "b").code == 0
    (tmp_path / "groups.txt").write_text("a\nb\n")
    ran = resvm(*words, "-o", tmp_path / "c")
    assert ran.code == 3
    assert "2 groups, but" in ran.err
    (tmp_path / "groups.txt").write_text("a\n" * 600)
    ran = resvm(*words, "-o", tmp_path / "d")
    assert ran.code == 2
    assert "all rows are in one group" in ran.err


@pytest.mark.parametrize(("n_groups", "n_held_out"), [(2, 1), (3, 1), (10, 3)])
def test_about_a_third_of_the_groups_is_held_out(n_groups, n_held_out):
    groups = np.arange(600) % n_groups
    features = np.column_stack([np.arange(1, 601), FEATURES])
    labeled = LabeledRows(Rows.from_dense(features), LABELS == 1, groups)
    drawn = draw(labeled, Sizes(20, 60, 0.1, 0.1), Cell("own", "a", 0, 0.1, 0.1), 0)
    numbers = drawn.test.values[drawn.test.indices == 1].astype(int) - 1
    assert len(set(groups[numbers])) == n_held_out


def test_draws_depend_on_their_cell_alone():
    data = BenchmarkData(".", None, 0)
    cells = [Cell("pu", "synthetic", number, 0.0, 0.3) for number in (0, 1)]
    cells += [Cell("semi-supervised", "synthetic", 0, 0.3, 0.3)]
    drawn = [data.draw(cell).positives.values.tolist() for cell in cells]
    assert drawn == [data.draw(cell).positives.values.tolist() for cell in cells]
    assert len({tuple(values[:5]) for values in drawn}) == 3
    other = BenchmarkData(".", None, 1)
    assert other.draw(cells[0]).positives.values.tolist() != drawn[0]
    assert len({cell.seed(0) for cell in cells}) == 3


def test_the_sizes_are_the_papers():
    data = BenchmarkData(".", None, 0)
    for setting, false, hidden in (
        ("supervised", 0, 0),
        ("pu", 0, 200),
        ("semi-supervised", 5, 200),
    ):
        task = PAPER_TASKS["mnist-4"]
        sizes = data.sizes(Cell(setting, task.name, 0, *task.contaminations(setting)))
        assert (sizes.n_pos, sizes.n_unl) == (50, 2000)
        assert (sizes.false_positives, sizes.hidden_positives) == (false, hidden)
    assert len(PAPER_TASKS) == 17


def test_the_printed_grids_can_be_used(resvm, tmp_path):
    shown = resvm("benchmark", "grids")
    assert shown.code == 0
    assert shown.out.decode() == default_grids_text()
    (tmp_path / "g.json").write_bytes(shown.out)
    ran = resvm(
        "benchmark", "run", "--tasks", "synthetic", "--settings", "pu", "--methods", "cwsvm",
        "--repetitions", 1, "--grid", tmp_path / "g.json", "-o", tmp_path / "b", "-q",
    )  # fmt: skip
    assert ran.code == 0, ran.err


def changed_grid(**changes):
    sets = {"default": {**ONE_CANDIDATE["data_sets"]["default"], **changes}}
    return json.dumps({**ONE_CANDIDATE, "data_sets": sets})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "not JSON written by resvm"),
        ("{}", "contains no grids"),
        (json.dumps({**ONE_CANDIDATE, "format": 99}), "contains no grids"),
        (json.dumps({**ONE_CANDIDATE, "kind": "else"}), "contains no grids"),
        (json.dumps({**ONE_CANDIDATE, "data_sets": []}), "data_sets is missing"),
        (
            json.dumps({**ONE_CANDIDATE, "data_sets": {"default": 1}}),
            "there is no grid for default",
        ),
        (changed_grid(kernel="cubic"), "default: kernel is 'cubic'"),
        (changed_grid(gamma="0.1..1"), "must be a list of values"),
        (changed_grid(gamma=0.1), "'gamma' is not a parameter with values"),
        (changed_grid(c_unl="x"), "default: "),
        (changed_grid(c_unl="-1"), "values must be positive"),
        (changed_grid(bagging={}), "bagging: unl_per_pos is missing"),
        (changed_grid(bagging=[]), "bagging is not an object"),
        (
            changed_grid(c_unl=",".join(map(str, range(1, 50)))),
            "49 candidates; at most 48",
        ),
    ],
)
def test_invalid_grids_are_errors(text, said, resvm, tmp_path):
    (tmp_path / "g.json").write_text(text)
    ran = resvm("benchmark", "run", "--grid", tmp_path / "g.json", "-o", tmp_path / "b")
    assert ran.code in (3, 5), ran.err
    assert said in ran.err
    assert "g.json" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tasks", "iris"], "got 'iris'"),
        (["--settings", "pu,none"], "got 'none'"),
        (["--methods", "svm"], "got 'svm'"),
        (["--repetitions", 0], "--repetitions must be at least 1, got 0"),
        (["--seed", -1], "--seed must be at least 0, got -1"),
        (["--protocol", "slow"], "got 'slow'"),
        (["--protocol", "fast", "--grid", "g"], "--grid requires --protocol paper"),
        (["--protocol", "search", "--grid", "g"], "--grid requires --protocol paper"),
        (["--trials", 5], "--trials requires --protocol search"),
        (["--protocol", "search", "--trials", 0], "--trials must be at least 1, got 0"),
        (["--contamination-pos", 0.1], "require --data, or --tasks"),
        (
            ["--contamination-pos", 0.1, "--tasks", "cancer", "--settings", "pu"],
            "without --settings",
        ),
        (["--contamination-unl", 2, "--tasks", "synthetic"], "--contamination-unl must be"),
        (["--n-pos", 5], "--n-pos requires --data"),
        (["--groups", "g"], "--groups requires --data"),
        (["--data", "mine.svm"], "--data requires --positive-label"),
        (
            ["--data", "mine.svm", *OWN, "--tasks", "cancer"],
            "--tasks cannot be combined with --data",
        ),
        (["--data", "mine.svm", *OWN, "--contamination-pos", "0:1"], "LOW:HIGH:STEP"),
        (["--data", "mine.svm", *OWN, "--contamination-pos", "0:1:0"], "LOW:HIGH:STEP"),
        (["--data", "mine.svm", *OWN, "--contamination-pos", "0:1:1e-9"], "more than 1000"),
        (["--data", "mine.svm", *OWN, "--contamination-unl", "0,2"], "must be at most 1, got 2"),
        (["--data", "mine.svm", *OWN, "--n-pos", 0], "--n-pos must be at least 1, got 0"),
        (["--task", "3/2"], "got '3/2'"),
    ],
)
def test_bad_options_fail_before_anything_is_read(words, said, resvm, tmp_path):
    ran = resvm("benchmark", "run", "-o", "b", *words, cwd=tmp_path)
    assert ran.code == 2, ran.err
    assert said in ran.err
    assert not (tmp_path / "b").exists()


def test_sets_too_large_for_the_data_are_errors(resvm, tmp_path):
    data = write_svm(tmp_path / "mine.svm", FEATURES, LABELS)
    words = ["benchmark", "run", "--data", data, "--positive-label", 1, "-q", "-o", tmp_path / "b"]
    ran = resvm(*words, "--n-pos", 500, "--n-unl", 50)
    assert ran.code == 3
    assert "truly positive rows are needed" in ran.err
    ran = resvm(*words[:-1], tmp_path / "c", "--n-pos", int(LABELS.sum()), "--n-unl", 50)
    assert ran.code == 3
    assert "no positive rows are left for testing" in ran.err
