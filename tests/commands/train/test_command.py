"""resvm train, as a user runs it."""

from __future__ import annotations

import gzip
import json
import os
import platform
import resource
import threading
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from resvm_cli.tables.inputs import read_file
from tests.conftest import assert_exit, train_arguments, write_svm
from tests.programs import PATIENCE_SECONDS

KERNELS = ["linear", "poly", "rbf", "sigmoid"]


def snapshot(path: Path) -> dict[str, bytes]:
    return {
        str(found.relative_to(path)): found.read_bytes()
        for found in sorted(path.rglob("*"))
        if found.is_file()
    }


@pytest.mark.parametrize(
    ("method", "kernel"),
    [*(("resvm", kernel) for kernel in KERNELS), ("bagging", "rbf"), ("cwsvm", "linear")],
)
def test_same_seed_same_bytes_whatever_the_jobs(method, kernel, problem, resvm, tmp_path):
    size = [] if method == "cwsvm" else ["--n-models", 7]
    common = [*train_arguments(problem), "--method", method, "-t", kernel, *size]
    models = []
    for name, jobs in (("a", ["-j", 1]), ("b", ["-j", 2]), ("c", [])):
        ran = resvm(*common, *jobs, "-o", tmp_path / name)
        assert ran.code == 0, ran.err
        assert (ran.out, ran.err) == (b"", "")
        models.append(snapshot(tmp_path / name))
    assert all(model == models[0] for model in models)
    assert len(models[0]) == {"resvm": 9, "bagging": 8, "cwsvm": 2}[method]


@pytest.mark.parametrize("method", ["resvm", "bagging"])
def test_growing_keeps_the_earlier_members(method, problem, resvm, tmp_path):
    for name, size in (("small", 4), ("large", 9)):
        resvm(
            *train_arguments(problem), "--method", method, "--n-models", size, "-o", tmp_path / name
        )
    small, large = snapshot(tmp_path / "small"), snapshot(tmp_path / "large")
    del small["manifest.json"]
    small.pop("out_of_bag.tsv", None)  # the values of all members
    assert len(small) == 4
    assert small.items() <= large.items()


def test_another_seed_gives_another_model(problem, resvm, tmp_path):
    for seed in (0, 1):
        resvm(
            *train_arguments(problem), "--n-models", 2, "--seed", seed, "-o", tmp_path / str(seed)
        )
    member = Path("members") / "00000.model"
    assert (tmp_path / "0" / member).read_bytes() != (tmp_path / "1" / member).read_bytes()


def test_compression_spacing_zeros_and_pipes_do_not_change_the_model(problem, resvm, tmp_path):
    unl = (problem / "unl.svm").read_bytes()
    (tmp_path / "unl.gz").write_bytes(gzip.compress(unl))
    spaced = b"\xef\xbb\xbf# head\n\n" + unl.replace(b" ", b" \t ").replace(b"\n", b" # x\r\n")
    (tmp_path / "spaced").write_bytes(spaced)
    zeros = []
    for line in unl.decode().splitlines():
        values = dict(pair.split(":") for pair in line.split()[1:])
        zeros.append(" ".join(["0", *[f"{i}:{values.get(str(i), 0)}" for i in range(1, 6)]]))
    (tmp_path / "zeros").write_text("\n".join(zeros) + "\n")
    sources = {
        "plain": (problem / "unl.svm", None),
        "gzip": (tmp_path / "unl.gz", None),
        "spaced": (tmp_path / "spaced", None),
        "zeros": (tmp_path / "zeros", None),
        "stdin": ("-", unl),
        "gzip-stdin": ("-", gzip.compress(unl)),
    }
    models = {}
    for name, (path, stdin) in sources.items():
        ran = resvm(
            "train",
            "-P",
            problem / "pos.svm",
            "-U",
            path,
            "-q",
            "--n-models",
            3,
            "-o",
            tmp_path / f"{name}.model",
            stdin=stdin,
        )
        assert ran.code == 0, ran.err
        models[name] = snapshot(tmp_path / f"{name}.model")
    assert all(model == models["plain"] for model in models.values())


def test_a_named_pipe_as_training_input_trains_the_same_model(problem, resvm, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(
        target=lambda: pipe.write_bytes((problem / "unl.svm").read_bytes()), daemon=True
    )
    writer.start()
    ran = resvm(
        "train", "-P", problem / "pos.svm", "-U", pipe, "-q", "--n-models", 3, "-o", tmp_path / "a"
    )
    writer.join(PATIENCE_SECONDS)
    assert ran.code == 0, ran.err
    resvm(*train_arguments(problem), "--n-models", 3, "-o", tmp_path / "b")
    assert snapshot(tmp_path / "a") == snapshot(tmp_path / "b")


def test_one_labelled_file_is_the_same_as_two(problem, resvm, tmp_path):
    pos, unl = (problem / "pos.svm").read_text(), (problem / "unl.svm").read_text()
    lines = [f"7{line[1:]}" for line in pos.splitlines()]
    lines += [f"{number % 3}{line[1:]}" for number, line in enumerate(unl.splitlines())]
    (tmp_path / "all.svm").write_text("\n".join(lines) + "\n")
    ran = resvm(
        "train",
        "--data",
        tmp_path / "all.svm",
        "--positive-label",
        "7.0",
        "-q",
        "--n-models",
        3,
        "-o",
        tmp_path / "one",
    )
    assert ran.code == 0, ran.err
    resvm(*train_arguments(problem), "--n-models", 3, "-o", tmp_path / "two")
    one, two = snapshot(tmp_path / "one"), snapshot(tmp_path / "two")
    assert json.loads(one.pop("manifest.json"))["labels"]["trained_on"] == 7.0
    two.pop("manifest.json")
    assert one == two


def test_what_was_chosen_is_printed_and_stored(problem, resvm, tmp_path):
    ran = resvm("train", "-P", problem / "pos.svm", "-U", problem / "unl.svm", cwd=tmp_path)
    assert ran.code == 0
    assert ran.out == b""
    features = np.zeros((130, 5))
    rows = [read_file(str(problem / name)).rows for name in ("pos.svm", "unl.svm")]
    features[:30][rows[0].row_numbers, rows[0].indices - 1] = rows[0].values
    features[30:][rows[1].row_numbers, rows[1].indices - 1] = rows[1].values
    gamma = 1 / (5 * features.var())
    for expected in (
        "30 positive, 100 unlabeled rows, 5 features",
        f"rbf, gamma {gamma:.6g}",
        "C_P 1.16666666667, C_U 1 (w_pos 0.7)",
        "50, each trained on 30 positive and 50 unlabeled rows",
        "votes above 0.",
        "% of U out of bag",
        " ROC AUC  0.",
    ):
        assert expected in ran.err
    manifest = json.loads((tmp_path / "resvm-model" / "manifest.json").read_text())
    (group,) = manifest["groups"]
    assert group["parameters"] == {
        "c_pos": 0.7 * 50 / 30,
        "c_unl": 1.0,
        "w_pos": 0.7,
        "n_models": 50,
        "n_pos": 30,
        "n_unl": 50,
        "tolerance": 0.001,
    }
    assert len(manifest["members"]) == 50


def test_feature_weights_and_quantiles_are_printed_and_stored(problem, resvm, tmp_path):
    more = ["--scale", "quantile", "--feature-weights", "relevance:1.25", "--n-models", 2]
    ran = resvm(
        *[word for word in train_arguments(problem) if word != "-q"], *more, "-o", "m", cwd=tmp_path
    )
    assert ran.code == 0, ran.err
    assert "features  scaled by quantile, weighted by relevance:1.25" in ran.err
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
    assert manifest["format"] == 3
    (group,) = manifest["groups"]
    assert (group["scaling"], group["parameters"]["relevance_power"]) == ("quantile", 1.25)
    member = (tmp_path / "m" / "members" / "00000.model").read_text()
    assert member.startswith("multiply_features_by 1:")


def test_a_model_without_them_keeps_its_format(problem, resvm, tmp_path):
    for more in ([], ["--scale", "minmax"], ["--feature-weights", "none"]):
        assert (
            resvm(
                *train_arguments(problem), *more, "--n-models", 2, "-o", tmp_path / "m", "--force"
            ).code
            == 0
        )
        manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
        assert manifest["format"] == 2
        assert "scalings" not in manifest
        assert "scaling" not in manifest["groups"][0]
        assert "relevance_power" not in manifest["groups"][0]["parameters"]


def test_json_says_the_same_to_programs(problem, resvm, tmp_path):
    ran = resvm(*train_arguments(problem), "--n-models", 2, "--json", "-o", tmp_path / "m")
    told = json.loads(ran.out)
    assert told["kind"] == "train"
    assert told["manifest"] == json.loads((tmp_path / "m" / "manifest.json").read_text())


def test_nothing_in_a_model_tells_when_or_where_it_was_made(problem, resvm, tmp_path):
    resvm(*train_arguments(problem), "--n-models", 1, "-o", tmp_path / "m")
    manifest = (tmp_path / "m" / "manifest.json").read_text()
    assert str(tmp_path) not in manifest
    assert str(problem) not in manifest
    words = {word.strip('",') for word in manifest.split()}
    assert not words & {os.uname().nodename, str(date.today().year), platform.python_version()}


def test_bags_larger_than_their_set_are_drawn_with_a_word(problem, resvm, tmp_path):
    ran = resvm(
        "train",
        "-P",
        problem / "pos.svm",
        "-U",
        problem / "unl.svm",
        "--n-pos",
        31,
        "--n-unl",
        101,
        "--n-models",
        2,
        "-o",
        tmp_path / "m",
    )
    assert ran.code == 0
    assert "n_pos = 31 rows of P, which has only 30" in ran.err
    assert "n_unl = 101 rows of U, which has only 100" in ran.err


def test_files_that_count_from_zero_are_the_same_data(problem, resvm, tmp_path):
    rng = np.random.default_rng(0)
    p, u = rng.standard_normal((20, 4)) + 1, rng.standard_normal((40, 4))
    for base in (0, 1):
        folder = tmp_path / str(base)
        folder.mkdir()
        write_svm(folder / "pos.svm", p, first_index=base)
        write_svm(folder / "unl.svm", u, first_index=base)
    zero, one = tmp_path / "0", tmp_path / "1"
    refused = resvm(*train_arguments(zero), "-o", zero / "m")
    assert refused.code == 3
    assert "--zero-based" in refused.err
    assert resvm(*train_arguments(zero), "--zero-based", "-o", zero / "m").code == 0
    assert resvm(*train_arguments(one), "-o", one / "m").code == 0
    first = resvm("predict", zero / "m", zero / "unl.svm").out
    assert first == resvm("predict", one / "m", one / "unl.svm").out
    manifest = json.loads((zero / "m" / "manifest.json").read_text())
    assert (manifest["n_features"], manifest["zero_based"]) == (4, True)
    grown = resvm(*train_arguments(one), "--zero-based", "--grow", 60, "-o", one / "m")
    assert_exit(grown, 2, "features counted from 1", "leave --zero-based out")
    for folder, last in ((zero, 3), (one, 4)):
        for index, is_new in ((last, False), (last + 1, True)):
            (folder / "new.svm").write_text(f"1 {index}:1\n")
            ran = resvm("predict", folder / "m", folder / "new.svm")
            assert (f"1 of 1 rows have feature indices above {last}," in ran.err) == is_new


def test_libsvms_numbers_and_letters_mean_what_they_mean_there(problem, resvm, tmp_path):
    ran = resvm(
        *train_arguments(problem),
        "-t",
        1,
        "-d",
        2,
        "-g",
        0.5,
        "-r",
        1,
        "-c",
        3,
        "-e",
        0.01,
        "-m",
        50,
        "--n-models",
        1,
        "-o",
        tmp_path / "m",
    )
    assert ran.code == 0, ran.err
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
    (group,) = manifest["groups"]
    assert group["kernel"] == {"name": "poly", "gamma": 0.5, "coef0": 1.0, "degree": 2}
    assert group["parameters"]["c_unl"] == 3.0
    assert group["parameters"]["tolerance"] == 0.01
    text = (tmp_path / "m" / "members" / "00000.model").read_text().splitlines()
    assert text[:5] == [
        "svm_type c_svc",
        "kernel_type polynomial",
        "degree 2",
        "gamma 0.5",
        "coef0 1.0",
    ]


def test_linear_members_are_collapsed_to_one_weight_vector(problem, resvm, tmp_path):
    resvm(*train_arguments(problem), "-t", "linear", "--n-models", 1, "-o", tmp_path / "m")
    lines = (tmp_path / "m" / "members" / "00000.model").read_text().splitlines()
    assert "total_sv 1" in lines
    assert "nr_sv 1 0" in lines
    assert lines[-1].startswith("1.0 1:")
    assert lines[-2] == "SV"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "-P (known positives) is missing"),
        (["-P", "pos.svm"], "-U (unlabeled rows) is missing"),
        (["-P", "x", "-U", "x"], "-P and -U are the same file: x"),
        (["-P", "-", "-U", "-"], "-P and -U are the same file: stdin"),
        (["-P", "x", "-U", "y", "-o", ""], "-o is ''"),
        (["-P", "x", "-U", "y", "-o", "-", "--force"], "-o is '-'"),
        (["--data", "x"], "--data needs --positive-label"),
        (["--data", "x", "--positive-label", "1", "-P", "y"], "not both"),
        (["-P", "x", "-U", "y", "--positive-label", "1"], "--positive-label requires --data"),
        (["-P", "x", "-U", "y", "-t", "fourier"], "got 'fourier'"),
        (["-P", "x", "-U", "y", "-g", "wide"], "--gamma must be a number, 'scale' or 'auto'"),
        (["-P", "x", "-U", "y", "--method", "forest"], "or 'cwsvm', got 'forest'"),
        (["-P", "x", "-U", "y", "-c", "0"], "--c-unl must be positive and finite, got 0"),
        (["-P", "x", "-U", "y", "--n-models", "0"], "--n-models must be at least 1, got 0"),
        (["-P", "x", "-U", "y", "--n-pos", "0"], "--n-pos must be at least 1, got 0"),
        (["-P", "x", "-U", "y", "--n-unl", "0"], "--n-unl must be at least 1, got 0"),
        (["-P", "x", "-U", "y", "--features", "0"], "--features must be at least 1, got 0"),
        (["-P", "x", "-U", "y", "--scale", "log"], "or 'auto', got 'log'"),
        *(
            (
                ["-P", "x", "-U", "y", "--feature-weights", word],
                f"must be 'none', 'relevance' or 'relevance:2', got '{word}'",
            )
            for word in (
                "relevance:0",
                "relevance:-1",
                "relevance:x",
                "relevance:",
                "relevance:nan",
            )
        ),
        (["-P", "x", "-U", "y", "--feature-weights", "none:2"], "or 'relevance:2', got 'none:2'"),
        (["-P", "x", "-U", "y", "--feature-weights", "all"], "or 'relevance:2', got 'all'"),
        *(
            (
                ["-P", "x", "-U", "y", "--feature-weights", "relevance", "-t", kernel],
                f"--feature-weights does not apply to --kernel {kernel}",
            )
            for kernel in ("tanimoto", "minmax", "precomputed")
        ),
        (["-P", "x", "-U", "y", "--solver", "magic"], "or 'liblinear', got 'magic'"),
        (["-P", "x", "-U", "y", "--solver", "liblinear"], "trains only linear members"),
        (["-P", "x", "-U", "y", "-B", "1"], "--bias applies to LIBLINEAR"),
        (["-P", "x", "-U", "y", "--no-such-option"], "has no option --no-such-option"),
        (["-P", "x", "-U", "y", "-c", "much"], "-c/--c-unl must be a number, got 'much'"),
    ],
)
def test_a_wrong_command_line_is_exit_2_before_any_file_is_read(
    arguments, message, resvm, tmp_path
):
    ran = resvm("train", *arguments, cwd=tmp_path)
    assert ran.code == 2, ran.err
    assert message in " ".join(ran.err.split())
    assert ran.out == b""
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("which", ["-P", "-U"])
@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (b"", "bad.svm:", "no rows"),
        (b"1 1:1\n1 2:nan\n", "bad.svm:2:3:", "not finite"),
        (b"1 4294967297:1\n", "bad.svm:1:3:", "index 4294967297 is too large"),
        (b"1 1:1 1:2\n", "bad.svm:1:7:", "appears twice"),
    ],
)
def test_bad_data_is_exit_3_with_its_place(which, text, place, message, problem, resvm, tmp_path):
    (tmp_path / "bad.svm").write_bytes(text)
    other = ["-U", problem / "unl.svm"] if which == "-P" else ["-P", problem / "pos.svm"]
    ran = resvm("train", which, "bad.svm", *other, cwd=tmp_path)
    assert ran.code == 3
    assert f"resvm: error: {place}" in ran.err
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert os.listdir(tmp_path) == ["bad.svm"]


def test_a_labelled_file_must_have_the_label_and_others(problem, resvm, tmp_path):
    write_svm(tmp_path / "d", np.ones((4, 2)), np.array([1, 2, 2, 3]))
    common = ["train", "--data", tmp_path / "d", "-o", tmp_path / "m", "--positive-label"]
    ran = resvm(*common, 9)
    assert ran.code == 3
    assert "no row has the label 9" in ran.err
    assert "labels in the file: 1, 2, 3" in ran.err
    write_svm(tmp_path / "d", np.ones((4, 2)), np.array([2, 2, 2, 2]))
    ran = resvm(*common, 2)
    assert ran.code == 3
    assert "every row has the label 2" in ran.err
    (tmp_path / "d").write_text("1 1:1\n1:5\n")
    ran = resvm(*common, 1)
    assert ran.code == 3
    assert "d:2: the row has no label" in ran.err


def test_one_file_under_two_names_is_not_two_sets(problem, resvm, tmp_path):
    (tmp_path / "link").symlink_to(problem / "pos.svm")
    ran = resvm("train", "-P", problem / "pos.svm", "-U", tmp_path / "link", cwd=tmp_path)
    assert ran.code == 2
    assert "-P and -U are the same" in ran.err


def test_stdin_under_two_names_is_not_two_sets(problem, resvm, tmp_path):
    ran = resvm(
        "train",
        "-P",
        "/dev/stdin",
        "-U",
        "-",
        cwd=tmp_path,
        stdin=(problem / "pos.svm").read_bytes(),
    )
    assert ran.code == 2
    assert "-P and -U are the same" in ran.err


def test_a_copy_of_p_as_u_is_remarked_on(problem, resvm, tmp_path):
    (tmp_path / "copy.svm").write_bytes((problem / "pos.svm").read_bytes() + b"# end\n")
    ran = resvm("train", "-P", problem / "pos.svm", "-U", "copy.svm", cwd=tmp_path)
    assert ran.code == 0
    assert "P and U contain the same rows" in ran.err


def test_more_jobs_than_cores_are_no_trouble(problem, resvm, tmp_path):
    for method in ("resvm", "cwsvm"):
        ran = resvm(
            *train_arguments(problem), "--method", method, "-j", 100_000, "-o", tmp_path / method
        )
        assert ran.code == 0, ran.err


def test_values_beyond_doubles_are_refused_quietly(resvm, tmp_path):
    (tmp_path / "pos.svm").write_text("1 1:1e200\n1 1:-1e200\n")
    (tmp_path / "unl.svm").write_text("1 1:1\n1 2:1\n")
    ran = resvm(*train_arguments(tmp_path), "-o", tmp_path / "m")
    assert ran.code == 3
    assert "variance is too large" in ran.err
    assert "Warning" not in ran.err


def test_a_missing_file_is_exit_5(problem, resvm, tmp_path):
    ran = resvm("train", "-P", "nowhere.svm", "-U", problem / "unl.svm", cwd=tmp_path)
    assert ran.code == 5
    assert "nowhere.svm: cannot read: No such file" in ran.err


def test_an_existing_model_needs_force_and_other_directories_are_safe(problem, resvm, tmp_path):
    target = tmp_path / "m"
    common = [*train_arguments(problem), "--n-models", 2, "-o", target]
    assert resvm(*common).code == 0
    before = snapshot(target)
    ran = resvm(*common, "--seed", 1)
    assert ran.code == 2
    assert "use --force" in ran.err
    assert snapshot(target) == before
    assert resvm(*common, "--seed", 1, "--force").code == 0
    assert snapshot(target) != before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    ran = resvm(*train_arguments(problem), "-o", tmp_path / "mine", "--force")
    assert ran.code == 2
    assert "not a resvm model" in ran.err
    assert os.listdir(tmp_path / "mine") == ["thesis.tex"]


def test_rows_without_features_and_a_single_positive_train(resvm, tmp_path):
    (tmp_path / "pos.svm").write_text("1 2:1\n")
    (tmp_path / "unl.svm").write_text("0\n0 1:0\n0 3:1\n")
    for kernel in KERNELS:
        ran = resvm(
            *train_arguments(tmp_path), "-t", kernel, "-o", tmp_path / kernel, "--n-models", 3
        )
        assert ran.code == 0, ran.err
        out = resvm("predict", tmp_path / kernel, tmp_path / "unl.svm").out
        assert len(out.splitlines()) == 3


def test_data_without_any_feature_still_trains(resvm, tmp_path):
    (tmp_path / "pos.svm").write_text("1\n1\n")
    (tmp_path / "unl.svm").write_text("0\n0\n0\n")
    ran = resvm(*train_arguments(tmp_path), "-o", tmp_path / "m", "--n-models", 3)
    assert ran.code == 0, ran.err
    assert resvm("predict", tmp_path / "m", tmp_path / "unl.svm").code == 0
    assert resvm("inspect", tmp_path / "m").code == 0  # no known positive is out of bag


def test_a_member_that_could_be_written_in_part_only_is_an_error(problem, resvm, tmp_path):
    sizes = ["--n-models", 1, "--n-pos", 60, "--n-unl", 200, "-c", 0.001]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert resvm(*train_arguments(problem), *sizes, "-o", whole).code == 0
    member = (whole / "members" / "00000.model").stat().st_size
    limit = max((whole / name).stat().st_size for name in ("manifest.json", "out_of_bag.tsv")) + 1
    assert member > limit

    def limit_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    arguments = [*train_arguments(problem), *sizes, "-o", cut]
    ran = resvm(*arguments, preexec_fn=limit_files)
    assert ran.code == 5, ran.err
    assert "cannot write" in ran.err
    assert list(tmp_path.iterdir()) == [whole]


@pytest.fixture
def grouped(problem, resvm, tmp_path):
    """Files of groups for 130 rows, and a model trained with the first."""
    names = {
        "groups": [f"g{row // 4}" for row in range(130)],
        "renamed": [f"{-row // 4 * 4}" for row in range(0, -130, -1)],
        "other": [f"g{row // 5}" for row in range(130)],
    }
    for name, lines in names.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    command = [*train_arguments(problem), "--n-models", 3, "--groups", tmp_path / "groups"]
    ran = resvm(*command, "-o", tmp_path / "m")
    assert ran.code == 0, ran.err
    return tmp_path


def test_a_model_trained_with_groups_says_so_in_format_3(problem, grouped, resvm):
    manifest = json.loads((grouped / "m/manifest.json").read_text())
    assert manifest["format"] == 3
    assert manifest["data"]["groups"]["count"] == 33
    assert "33 groups, sha256" in resvm("inspect", grouped / "m").out.decode()
    assert resvm("predict", grouped / "m", problem / "test.svm").code == 0


def test_rank_and_grow_need_the_groups_that_the_model_was_trained_with(problem, grouped, resvm):
    data, model = train_arguments(problem)[1:], grouped / "m"
    before = snapshot(model)
    for command in (["rank", *data, "--model", model], ["train", *data, "--grow", 5, "-o", model]):
        assert_exit(resvm(*command), 4, "was trained with --groups", "give the --groups")
        ran = resvm(*command, "--groups", grouped / "other")
        assert_exit(ran, 4, "was trained with different --groups", "give the --groups")
    assert snapshot(model) == before
    ranks = [
        resvm("rank", *data, "--model", model, "--groups", grouped / name).out
        for name in ("groups", "renamed")
    ]
    assert ranks[0] == ranks[1] != b""
    ran = resvm("train", *data, "--grow", 5, "-o", model, "--groups", grouped / "renamed")
    assert ran.code == 0, ran.err


def test_a_task_or_an_interrupted_run_is_not_continued_with_other_groups(problem, grouped, resvm):
    command = [*train_arguments(problem), "--n-models", 4]
    part = [*command, "--task", "1/2", "-o", grouped / "part"]
    assert resvm(*part, "--groups", grouped / "groups").code == 0
    assert_exit(resvm(*part), 2, "a part of another model", "data.groups differ")
    assert_exit(resvm(*part, "--groups", grouped / "other"), 2, "data.groups differ")
    assert resvm(*part, "--groups", grouped / "renamed").code == 0
    os.rename(grouped / "part", grouped / "new.part")
    ran = resvm(*command, "--resume", "-o", grouped / "new", "--groups", grouped / "other")
    assert_exit(ran, 2, "data.groups differ")


def test_a_format_2_model_does_not_record_groups_and_takes_any(problem, model, grouped, resvm):
    command = ["rank", *train_arguments(problem)[1:], "--model", model]
    assert resvm(*command, "--groups", grouped / "other").code == 0


def test_quiet_keeps_warnings_and_hides_remarks_and_summaries(problem, resvm, tmp_path):
    both = (problem / "pos.svm").read_bytes() + (problem / "unl.svm").read_bytes()
    (tmp_path / "both.svm").write_bytes(both)
    ran = resvm(
        *("train", "-P", problem / "pos.svm", "-U", tmp_path / "both.svm", "-o", tmp_path / "m"),
        *("--auto", "single", "-q"),
    )
    assert ran.code == 0, ran.err
    assert "30 of 30 rows of P are also in U" in ran.err
    assert "--drop-repeated leaves them out of U" in ran.err
    assert "tuned out of bag" not in ran.err
    assert "ROC AUC " not in ran.err
    assert len(ran.err.splitlines()) == 1


def test_dropping_rows_of_p_gives_the_model_of_a_u_without_them(problem, resvm, tmp_path):
    both = (problem / "pos.svm").read_bytes() + (problem / "unl.svm").read_bytes()
    (tmp_path / "both.svm").write_bytes(both)
    options = ["-P", problem / "pos.svm", "--n-models", 5, "-q"]
    dropped, plain = tmp_path / "dropped", tmp_path / "plain"
    ran = resvm("train", *options, "-U", tmp_path / "both.svm", "--drop-repeated", "-o", dropped)
    assert ran.code == 0, ran.err
    assert "30 rows of U duplicate rows of P and are left out" in ran.err
    assert resvm("train", *options, "-U", problem / "unl.svm", "-o", plain).code == 0
    for path in sorted(plain.rglob("*")):
        if path.is_file():
            assert (dropped / path.relative_to(plain)).read_bytes() == path.read_bytes()
    ranked = ["rank", "-P", problem / "pos.svm", "-U", tmp_path / "both.svm", "--model", dropped]
    ran = resvm(*ranked, "--drop-repeated", "-q")
    assert ran.code == 0, ran.err
    ids = [line.split(b"\t")[1] for line in ran.out.splitlines()[1:]]
    assert sorted(map(int, ids)) == list(range(31, 131))
    assert resvm(*ranked, "-q").code == 4


def test_a_model_of_unchecked_rows_cannot_grow(problem, unchecked_model, resvm):
    grown = resvm(*train_arguments(problem), "--grow", 12, "-o", unchecked_model)
    assert_exit(grown, 4, "older version of resvm trained it without checking U", "train it again")
