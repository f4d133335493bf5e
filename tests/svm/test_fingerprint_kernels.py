"""The kernels for fingerprints: values by brute force, and members through training to ranking."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import SVC

from resvm_cli.ensemble.decisions import decide
from resvm_cli.ensemble.ensemble import Member, Predictor
from resvm_cli.errors import DataError, ParameterError
from resvm_cli.rows import Rows
from resvm_cli.run import Run
from resvm_cli.storage import model as directory
from resvm_cli.svm import products
from resvm_cli.svm.kernels import Kernel
from resvm_cli.svm.libsvm import library
from resvm_cli.svm.products import Bag, bag_values, kernel_products, kernel_values
from resvm_cli.tuning.sample import SharedKernels
from tests.conftest import few_members, train_arguments, write_svm
from tests.ensemble.test_ensemble import ensemble_of

NAMES = ("tanimoto", "minmax")


def by_brute_force(name: str, x: np.ndarray, y: np.ndarray) -> float:
    if name == "minmax":
        common, everything = np.minimum(x, y).sum(), np.maximum(x, y).sum()
    else:
        common = sum(a * b for a, b in zip(x, y, strict=True))
        everything = (x**2).sum() + (y**2).sum() - common
    return 1.0 if everything == 0 else common / everything


def matrix(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.array([[by_brute_force(name, a, b) for b in y] for a in x])


def counts(n_rows: int, density: float, seed: int = 0, width: int = 60) -> np.ndarray:
    rng = np.random.default_rng(seed)
    some = rng.poisson(2.0, (n_rows, width)) * (rng.random((n_rows, width)) < density)
    some[3] = 0
    some[7] = 0
    return some.astype(float)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("density", [0.05, 0.7])
def test_every_way_to_kernel_values_agrees_with_brute_force(name, density):
    dense = counts(40, density)
    rows, kernel = Rows.from_dense(dense), Kernel(name)
    expected = matrix(name, dense, dense)
    assert expected[3, 7] == 1.0
    bag = Bag.from_rows(rows).part(np.arange(40), kernel)
    np.testing.assert_allclose(bag_values(kernel, bag), expected, rtol=1e-14)
    whole = kernel_values(kernel, kernel_products(rows, kernel))
    np.testing.assert_allclose(whole, expected, rtol=1e-14)
    with SharedKernels(rows, Rows.empty(), 100.0).trainer(kernel, Run()) as trainer:
        np.testing.assert_allclose(trainer._values, expected, rtol=1e-14)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("density", [0.05, 0.7])
def test_a_member_predicts_by_the_sum_of_its_kernel_values(name, density):
    pool, judged = counts(30, density), counts(25, density, seed=1, width=65)
    coefficients = np.random.default_rng(2).standard_normal(30)
    member = Member(np.arange(30), coefficients, 0.25, 10)
    ensemble = ensemble_of(Kernel(name), Rows.from_dense(pool), [member], True)
    wide = np.zeros((30, 65))
    wide[:, :60] = pool
    expected = matrix(name, judged, wide) @ coefficients - 0.25
    found = Predictor(ensemble).member_values(Rows.from_dense(judged))[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_both_kernels_agree_with_rdkit_on_bits():
    from rdkit import DataStructs
    from rdkit.DataStructs import ExplicitBitVect

    bits = (counts(12, 0.2) > 0).astype(float)
    made = []
    for row in bits:
        made.append(ExplicitBitVect(60))
        made[-1].SetBitsFromList(np.flatnonzero(row).tolist())
    theirs = np.array([DataStructs.BulkTanimotoSimilarity(one, made) for one in made])
    theirs[np.ix_([3, 7], [3, 7])] = 1.0  # where neither has a bit RDKit says 0 or 1, by version
    for name in NAMES:
        kernel = Kernel(name)
        found = kernel_values(kernel, kernel_products(Rows.from_dense(bits), kernel))
        np.testing.assert_allclose(found, theirs, rtol=1e-14)


def test_minmax_rejects_negative_numbers():
    rows = Rows.from_dense([[1.0, 0.0, 2.0], [0.0, -3.0, 1.0]])
    kernel = Kernel("minmax")
    bag = Bag.from_rows(rows).part(np.arange(2), kernel)
    for attempt in (
        lambda: kernel.norms(rows),
        lambda: kernel_products(rows, kernel),
        lambda: bag_values(kernel, bag),
    ):
        with pytest.raises(DataError, match=r"feature 2 is -3 in some row, but the minmax kernel"):
            attempt()


def test_a_bag_too_large_for_its_matrix_is_an_error_unless_libsvm_can_train_on_rows(
    monkeypatch,
):
    rows = Rows.from_dense(counts(40, 0.7))
    monkeypatch.setattr(products, "MAX_ROWS", 10)
    monkeypatch.setattr(products, "MAX_CELLS", 10)
    assert Bag.from_rows(rows).part(np.arange(40), Kernel("rbf", 1.0)) is None
    bag = Bag.from_rows(rows).part(np.arange(40), Kernel("tanimoto"))
    expected = matrix("tanimoto", counts(40, 0.7), counts(40, 0.7))
    np.testing.assert_allclose(bag_values(Kernel("tanimoto"), bag), expected, rtol=1e-14)
    monkeypatch.setattr(products, "MAX_MATRIX_ROWS", 39)
    with pytest.raises(
        ParameterError, match="a bag has 40 rows, but the limit for the tanimoto kernel is 39"
    ):
        Bag.from_rows(rows).part(np.arange(40), Kernel("tanimoto"))


@pytest.fixture(scope="module")
def fingerprints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Positives that share most of twelve features, among rows that do not."""
    folder = tmp_path_factory.mktemp("fingerprints")
    rng = np.random.default_rng(4)

    def some(n_rows: int, alike: bool) -> np.ndarray:
        made = rng.poisson(1.5, (n_rows, 80)) * (rng.random((n_rows, 80)) < 0.06)
        if alike:
            made[:, :12] += rng.random((n_rows, 12)) < 0.7
        return made.astype(float)

    write_svm(folder / "pos.svm", some(40, True))
    write_svm(folder / "unl.svm", np.concatenate([some(30, True), some(200, False)]))
    truth = np.repeat([1, -1], 50)
    write_svm(folder / "test.svm", np.concatenate([some(50, True), some(50, False)]), truth)
    return folder


def dense(path: Path) -> np.ndarray:
    from sklearn.datasets import load_svmlight_file

    return load_svmlight_file(str(path), n_features=80)[0].toarray()


@pytest.mark.parametrize("name", NAMES)
def test_a_trained_member_is_the_one_scikit_learn_finds(name, fingerprints, resvm, tmp_path):
    model = tmp_path / "m"
    ran = resvm(
        *train_arguments(fingerprints), "-t", name, "--method", "cwsvm", "-e", 1e-9, "-o", model
    )
    assert ran.code == 0, ran.err
    manifest = json.loads((model / "manifest.json").read_text())
    (group,) = manifest["groups"]
    assert group["kernel"] == {"name": name}
    x = np.concatenate([dense(fingerprints / "pos.svm"), dense(fingerprints / "unl.svm")])
    y = np.repeat([1, -1], [40, 230])
    weights = {1: group["parameters"]["c_pos"], -1: group["parameters"]["c_unl"]}
    machine = SVC(kernel="precomputed", C=1.0, class_weight=weights, tol=1e-9)
    machine.fit(matrix(name, x, x), y)
    expected = machine.decision_function(matrix(name, dense(fingerprints / "test.svm"), x))
    out = resvm("predict", model, fingerprints / "test.svm").out
    found = np.array([float(line.split()[1]) for line in out.splitlines()])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert resvm("inspect", model).code == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_member_file_says_that_libsvm_cannot_use_it_and_libsvm_rejects_it(
    name, fingerprints, resvm, tmp_path, capfd
):
    model = tmp_path / "m"
    resvm(*train_arguments(fingerprints), "-t", name, "--n-models", 2, "-o", model)
    member = model / "members" / "00000.model"
    lines = member.read_text().splitlines()
    assert lines[:3] == [f"not_a_kernel_of_libsvm {name}", "svm_type c_svc", f"kernel_type {name}"]
    code = ctypes.CDLL(library().path)
    code.svm_load_model.argtypes = [ctypes.c_char_p]
    code.svm_load_model.restype = ctypes.c_void_p
    assert not code.svm_load_model(str(member).encode())
    assert "[not_a_kernel_of_libsvm]" in capfd.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_tuning_and_ranking_support_them(name, fingerprints, resvm, tmp_path):
    sets = ("-P", fingerprints / "pos.svm", "-U", fingerprints / "unl.svm")
    ran = resvm("rank", *sets, "-t", name, "--params", few_members(20), "--format", "tsv")
    assert ran.code == 0, ran.err
    first = [int(line.split(b"\t")[1]) for line in ran.out.splitlines()[1:31]]
    assert sum(number <= 30 for number in first) >= 20
    ran = resvm("tune", *sets, "-t", name, "--trials", 4, "-o", tmp_path / "t", "-q")
    assert ran.code == 0, ran.err
    best = json.loads((tmp_path / "t" / "best.json").read_text())
    assert "gamma" not in json.dumps(best)
    ran = resvm("tune", *sets, "-t", name, "--gamma", "0.1:1", "-o", tmp_path / "u", "-q")
    assert ran.code == 2
    best_file = tmp_path / "t" / "best.json"
    ran = resvm(*train_arguments(fingerprints), "--params", best_file, "-o", tmp_path / "m")
    assert ran.code == 0, ran.err
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
    assert all(group["kernel"] == {"name": name} for group in manifest["groups"])


@pytest.mark.parametrize("name", NAMES)
def test_a_committee_of_them_predicts_as_its_members_do(name, fingerprints, resvm, tmp_path):
    model = tmp_path / "m"
    arguments = [each for each in train_arguments(fingerprints) if each != "--no-auto"]
    ran = resvm(*arguments, "-t", name, "-q", "-o", model)
    assert ran.code == 0, ran.err
    stored = directory.load_model(str(model))
    ensemble = stored.ensemble
    assert len(ensemble.sections) > 1
    judged = dense(fingerprints / "test.svm")
    pool = np.zeros((len(ensemble.pool), 80))
    pool[ensemble.pool.row_numbers, ensemble.pool.indices - 1] = ensemble.pool.values
    kernel = matrix(name, judged, pool)
    expected = np.transpose(
        [kernel[:, one.support] @ one.coefficients - one.rho for one in ensemble.members]
    )
    found = Predictor(ensemble).member_values(Rows.from_dense(judged))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    out = resvm("predict", model, fingerprints / "test.svm").out
    means = [float(line.split()[1]) for line in out.splitlines()]
    np.testing.assert_allclose(means, decide(expected, ensemble.sections).means, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_fingerprints_are_left_as_they_are_by_auto_and_no_scaling_is_advised(name, resvm, tmp_path):
    rng = np.random.default_rng(5)
    for path, counts_of_set, n_rows in (("pos.svm", 4, 40), ("unl.svm", 1, 120)):
        noise = rng.poisson(400, (n_rows, 1)) * 10.0  # scaling helps: the wide feature says nothing
        write_svm(
            tmp_path / path, np.hstack([noise, rng.poisson(counts_of_set, (n_rows, 5)) + 1.0])
        )
    sets = ("-P", tmp_path / "pos.svm", "-U", tmp_path / "unl.svm")
    told = resvm("train", *sets, "-t", "rbf", "-o", tmp_path / "r").err
    assert "the features are on different scales" in told
    for number, options in enumerate([("--no-auto",), ()]):
        model = tmp_path / str(number)
        ran = resvm("train", *sets, "-t", name, *options, "-o", model)
        assert ran.code == 0, ran.err
        assert "scale" not in ran.err
        assert json.loads((model / "manifest.json").read_text())["scalings"] == []
