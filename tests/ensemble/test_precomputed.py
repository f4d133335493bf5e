"""Kernel values that are given: the same models, by every command, and LIBSVM reads them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import resvm_cli
from resvm_cli.data.inputs import read_file
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.data.svmlight import Block, format_block
from resvm_cli.errors import DataError
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.storage import model as directory
from resvm_cli.svm import kernels
from resvm_cli.tuning.candidates import SearchOptions, tuning_settings
from resvm_cli.tuning.search import tune
from tests.conftest import few_members, write_svm
from tests.fitting import fitted
from tests.libsvm_oracle import predict_values

GAMMA = 0.2
TRAIN = ("--n-models", 7, "-q")


def rbf(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    distances = ((rows[:, None, :] - others[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-GAMMA * distances)


def write_kernel(path: Path, values: np.ndarray, serials: np.ndarray, **more) -> Path:
    return write_svm(path, np.column_stack([serials, values]), first_index=0, **more)


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> Path:
    """pos, unl and test as features, and k-pos, k-unl and k-test as kernel values."""
    folder = tmp_path_factory.mktemp("precomputed")
    rng = np.random.default_rng(3)
    features = rng.standard_normal((90, 4)) + np.repeat([[1.0], [-0.5]], [25, 65], axis=0)
    test = rng.standard_normal((40, 4))
    np.save(folder / "features.npy", features)
    values = rbf(features, features)
    numbers = np.arange(1, 91)
    ids = [f"row {number}" for number in numbers]
    write_svm(folder / "pos.svm", features[:25], comments=ids[:25])
    write_svm(folder / "unl.svm", features[25:], comments=ids[25:])
    write_svm(folder / "test.svm", test)
    write_kernel(folder / "k-pos.svm", values[:25], numbers[:25], comments=ids[:25])
    write_kernel(folder / "k-unl.svm", values[25:], numbers[25:], comments=ids[25:])
    write_kernel(folder / "k-test.svm", rbf(test, features), np.arange(1, 41))
    return folder


def kernel_data(folder: Path) -> tuple[object, ...]:
    return ("-P", folder / "k-pos.svm", "-U", folder / "k-unl.svm", "-t", "precomputed")


@pytest.fixture(scope="module")
def trained(both, resvm) -> Path:
    path = both / "k-model"
    ran = resvm("train", "--no-auto", *kernel_data(both), *TRAIN, "-o", path)
    assert ran.code == 0, ran.err
    return path


def written(ran) -> np.ndarray:
    assert ran.code == 0, ran.err
    return np.array([[float(part) for part in line.split()] for line in ran.out.splitlines()])


def test_given_values_make_the_model_that_the_kernel_itself_makes(both, trained, resvm):
    data = ("-P", both / "pos.svm", "-U", both / "unl.svm", "-t", "rbf", "-g", GAMMA)
    ran = resvm("train", "--no-auto", *data, *TRAIN, "-e", 1e-9, "-o", both / "rbf")
    assert ran.code == 0, ran.err
    ran = resvm("train", "--no-auto", *kernel_data(both), *TRAIN, "-e", 1e-9, "-o", both / "given")
    assert ran.code == 0, ran.err
    of_features = resvm("predict", both / "rbf", both / "test.svm", "--member-values")
    of_values = resvm("predict", both / "given", both / "k-test.svm", "--member-values")
    np.testing.assert_allclose(written(of_values), written(of_features), atol=1e-6)


def test_libsvm_reads_members_and_says_the_same(both, trained, resvm):
    said = written(resvm("predict", trained, both / "k-test.svm", "--member-values"))
    rows = read_file(str(both / "k-test.svm"), zero_based=True).rows
    members = sorted((trained / "members").iterdir())
    assert len(members) == 7
    for place, member in enumerate(members):
        assert b"\nkernel_type precomputed\n" in member.read_bytes()
        np.testing.assert_allclose(
            said[:, 2 + place], predict_values(member, rows), rtol=1e-12, atol=1e-12
        )


def test_support_vectors_are_serial_numbers(trained):
    pool = directory.load_model(str(trained)).ensemble.pool
    assert (pool.indices == 0).all()
    assert set(pool.values.tolist()) <= set(range(1, 91))


def test_a_ranking_is_that_of_the_kernel_and_its_stored_model(both, trained, resvm):
    data = ("-P", both / "pos.svm", "-U", both / "unl.svm", "-q")

    def ranked(*arguments: object) -> list[list[str]]:
        ran = resvm("rank", *arguments)
        assert ran.code == 0, ran.err
        return [line.split("\t") for line in ran.out.decode().splitlines()]

    given = few_members(7, kernel="precomputed")
    by_kernel = ranked(*data, "--params", few_members(7, gamma=GAMMA))
    by_values = ranked(*kernel_data(both)[:4], "-q", "--params", given)
    assert [line[1] for line in by_kernel] == [line[1] for line in by_values]
    stored = ranked(*kernel_data(both)[:4], "--model", trained, "-q")
    given = few_members(7, kernel="precomputed", decision="votes")
    assert stored == ranked(*kernel_data(both)[:4], "-q", "--params", given)


@pytest.mark.parametrize("gram_mb", [150.0, 0.001], ids=["shared", "bag by bag"])
def test_tuning_has_no_kernel_parameters_and_its_best_is_trained(both, resvm, tmp_path, gram_mb):
    source = TrainingInput(*map(str, kernel_data(both)[1:4:2]))
    settings = tuning_settings({"kernel": "precomputed"}) | {"gram_mb": gram_mb}
    tune(source, SearchOptions(**settings), str(tmp_path / "tuning"), Run(jobs=1))
    best = json.loads((tmp_path / "tuning" / "best.json").read_text())
    assert "gamma" not in json.dumps(best)
    ran = resvm(
        "train", "--no-auto", *kernel_data(both)[:4], "-q", "-o", tmp_path / "m", "--params",
        tmp_path / "tuning" / "best.json",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert directory.load_model(str(tmp_path / "m")).ensemble.is_precomputed


def test_auto_chooses_for_given_values_too(both, resvm, tmp_path):
    ran = resvm("train", *kernel_data(both), "-q", "-o", tmp_path / "m")
    assert ran.code == 0, ran.err


def test_inspect_tells_how_many_rows_the_values_are_with(trained, resvm):
    told = resvm("inspect", trained).out.decode()
    assert "precomputed" in told
    assert "with rows 1 to 90" in told


def broken(folder: Path, row: int, *, serial: object = None, index: int | None = None) -> Path:
    """k-unl.svm with another serial number in one line, or another value."""
    lines = (folder / "k-unl.svm").read_text().splitlines()
    parts = lines[row].split(" ")
    place = next(number for number, part in enumerate(parts) if part.startswith("0:"))
    if serial == "":
        del parts[place]
    elif serial is not None:
        parts[place] = f"0:{serial}"
    if index is not None:
        place = next(n for n, part in enumerate(parts) if part.startswith(f"{index}:"))
        parts[place] = f"{index}:0.9"
    lines[row] = " ".join(parts)
    path = folder / f"broken-{row}-{serial}-{index}.svm"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("serial", "said"),
    [
        ("", ":4: its serial number, 0:N, is missing"),
        (2.5, ":4: its serial number is 2.5; it must be an integer from 1"),
        (-3, ":4: its serial number is -3; it must be an integer from 1"),
        (0, ":4: its serial number is 0; it must be an integer from 1"),
        (1e300, ":4: its serial number is 1e+300; it must be an integer from 1"),
        (91, ":4: the serial number is 91, but rows have only"),
    ],
)
def test_a_senseless_serial_number_is_refused_with_its_line(both, resvm, tmp_path, serial, said):
    path = broken(both, 3, serial=serial)
    ran = resvm(
        "train", "--no-auto", "-P", both / "k-pos.svm", "-U", path, "-t", 4, "-q", "-o",
        tmp_path / "m"
    )  # fmt: skip
    assert ran.code == 3
    assert f"{path}{said}" in ran.err


def test_values_that_are_not_symmetric_are_refused(both, resvm, tmp_path):
    path = broken(both, 3, index=30)  # the row of serial 29, so 30 is the next
    data = ("-P", both / "k-pos.svm", "-U", path, "-t", 4, "-q")
    ran = resvm("train", "--no-auto", *data, "--method", "cwsvm", "-o", tmp_path / "m")
    assert ran.code == 3
    assert "not symmetric: row 29 has 0.9 at 30, but row 30 has" in ran.err


def test_scaling_is_refused_unless_it_is_left_open(both, resvm, tmp_path):
    ran = resvm("train", "--no-auto", *kernel_data(both), "--scale", "minmax", "-o", tmp_path / "m")
    assert ran.code == 2
    assert "rows contain kernel values, not features" in ran.err
    ran = resvm(
        "train", "--no-auto", *kernel_data(both), *TRAIN, "--scale", "auto", "-o", tmp_path / "m"
    )
    assert ran.code == 0, ran.err


def test_index_0_is_refused_with_other_kernels(both, resvm, tmp_path):
    ran = resvm("train", "--no-auto", *kernel_data(both)[:4], "-t", "rbf", "-o", tmp_path / "m")
    assert ran.code == 3
    assert "k-pos.svm:1:" in ran.err


def test_rows_of_features_are_not_predicted_by_given_values(both, trained, resvm):
    ran = resvm("predict", trained, both / "test.svm")
    assert ran.code == 3
    assert f"{both / 'test.svm'}:1: the model has a precomputed kernel" in ran.err


def test_python_takes_square_matrices_and_numbers_their_rows(both, trained):
    features = np.load(both / "features.npy")
    values = rbf(features, features)
    labels = np.repeat([1, 0], [25, 65])
    model = fitted(values, labels, kernel="precomputed", n_models=7)
    test = read_file(str(both / "k-test.svm"), zero_based=True).rows
    matrix = np.zeros((40, 91))
    matrix[test.row_numbers, test.indices] = test.values
    loaded = resvm_cli.load_model(trained)
    ours, theirs = (one.decision_values(matrix[:, 1:]) for one in (model, loaded))
    np.testing.assert_array_equal(ours, theirs)
    assert len(resvm_cli.rank(values, labels, model=model)) == 65
    with pytest.raises(ValueError, match="square"):
        fitted(values[:, :50], labels, kernel="precomputed")


def test_a_damaged_support_vector_is_refused():
    rows = Rows(np.array([0, 1]), np.array([1], np.int32), np.array([3.0]))
    with pytest.raises(DataError, match="missing"):
        kernels.unit_rows(rows)


def test_zeros_may_be_left_out_and_rows_come_in_any_order():
    values = np.array([[2.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 3.0]])
    order = np.array([2, 0, 1])
    rows = kernels.with_serials(Rows.from_dense(values)).take(order)
    np.testing.assert_array_equal(kernels.precomputed_matrix(rows), values[np.ix_(order, order)])
    text = format_block(Block.from_rows(rows)).decode()
    assert text.splitlines()[1] == "0:1 1:2 3:0.5"
