"""``rank`` and ``tune`` give what the commands print and write."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import resvm_cli
from resvm_cli.errors import DataError, ModelError
from tests.commands.test_train import snapshot
from tests.fitting import ESTIMATORS, fitted, options_of, ranked
from tests.programs import run, script_command

# the rows of some tests are not scaled
pytestmark = pytest.mark.filterwarnings("ignore::resvm_cli.ResultWarning")

NINE = {"n_models": 9}


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"trials": 4, "c_unl": "0.1..10", "n_pos": [5, 10], "random_state": 3, "n_models": 6},
        {"method": "bagging", "trials": 3, "folds": 3, "n_models": 4, "metric": "pu_score"},
        {"method": "cwsvm", "search": "grid", "gamma": 0.1, "c_unl": "1,10", "folds": 3},
        {"scale": "minmax", "trials": 2, "n_models": 4},
    ],
    ids=["informed", "random", "bagging", "cwsvm", "scaled"],
)
def test_a_tuning_is_the_one_that_tune_writes_and_is_fitted_as_train_does(
    labeled, keywords, resvm, tmp_path
):
    texts = {
        name.replace("random_state", "seed"): ",".join(map(str, value))
        if isinstance(value, list)
        else value
        for name, value in keywords.items()
    }
    ran = resvm(
        "tune", *labeled.arguments, *options_of({"auto": True, **texts}), "-o", tmp_path / "t"
    )
    assert ran.code == 0, ran.err
    tuning = resvm_cli.tune(labeled.X, labeled.y, **keywords)
    assert tuning.params == json.loads((tmp_path / "t" / "best.json").read_text())
    lines = (tmp_path / "t" / "trials.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert json.loads(json.dumps(tuning.trials)) == [one for one in records if "trial" in one]
    assert repr(tuning) == f"<tuning: {len(tuning.trials)} trials, the best in params>"

    best = tmp_path / "t" / "best.json"
    more = {} if keywords.get("method") == "cwsvm" else {"n_models": 12}
    options = ("--params", best, *options_of({"auto": True, **more}))
    ran = resvm("train", *labeled.arguments, *options, "-o", tmp_path / "cli")
    assert ran.code == 0, ran.err
    method = keywords.get("method", "resvm")
    for number, params in enumerate((tuning, tuning.params, str(best))):
        model = fitted(labeled.X, labeled.y, method=method, params=params, **more)
        model.save(tmp_path / str(number))
        assert snapshot(tmp_path / str(number)) == snapshot(tmp_path / "cli")


@pytest.mark.parametrize(
    ("training", "keywords", "arguments"),
    [
        ({}, {}, []),
        ({}, {"top": 11}, ["--top", 11]),
        ({}, {"audit": True, "contamination_pos": 0.1}, ["--audit", "--contamination-pos", 0.1]),
        ({"method": "bagging", "decision": "mean"}, {}, []),
        ({}, {"contamination_unl": 0.2, "why": 1}, ["--contamination-unl", 0.2, "--why", 1]),
    ],
    ids=["U", "top", "audit", "bagging", "probability"],
)
def test_the_columns_of_a_ranking_are_those_that_rank_prints(
    labeled, training, keywords, arguments, resvm, tmp_path
):
    model = fitted(labeled.X, labeled.y, **NINE, **training)
    model.save(tmp_path / "m")
    ran = resvm("rank", *labeled.arguments, "--model", tmp_path / "m", *arguments)
    assert ran.code == 0, ran.err
    header, *lines = (line.split("\t") for line in ran.out.decode().splitlines())
    printed = dict(zip(header, zip(*lines, strict=True), strict=True))
    for given in (model, tmp_path / "m"):
        found = resvm_cli.rank(labeled.X, labeled.y, model=given, ids=labeled.ids, **keywords)
        assert found.index.tolist() == list(printed["id"])
        assert [labeled.ids[row] for row in found.rows] == found.index.tolist()
        assert ["rank", "id", *list(found.columns)[1:]] == header
        for name, values in found.columns.items():
            expected = np.array([float(text or "nan") for text in printed[name]])
            np.testing.assert_array_equal(values.astype(float), expected)
    np.testing.assert_array_equal(labeled.y[found.rows] == 1, found.columns["known"])


def test_without_a_model_rank_trains_the_one_that_the_command_trains(labeled, resvm, tmp_path):
    for number, (keywords, options) in enumerate(
        [({}, []), ({"auto": False, "random_state": 5}, ["--no-auto", "--seed", 5])]
    ):
        target = tmp_path / f"{number}"
        ran = resvm("rank", *labeled.arguments, *options, "--save-model", target)
        assert ran.code == 0, ran.err
        ranking = resvm_cli.rank(labeled.X, labeled.y, ids=labeled.ids, **keywords)
        lines = ran.out.decode().splitlines()[1:]
        assert ranking.index.tolist() == [line.split("\t")[1] for line in lines]
        ranking.model.save(tmp_path / f"python-{number}")
        assert snapshot(tmp_path / f"python-{number}") == snapshot(target)
        again = resvm_cli.rank(labeled.X, labeled.y, model=ranking.model, ids=labeled.ids)
        assert again.index.tolist() == ranking.index.tolist()


def test_a_model_ranks_the_rows_it_was_trained_on_and_no_others(labeled, tmp_path):
    model = fitted(labeled.X, labeled.y, **NINE)
    with pytest.raises(ModelError, match="trained on different data"):
        resvm_cli.rank(labeled.X * 2, labeled.y, model=model)
    with pytest.raises(
        ValueError, match="`kernel` is for training, but `model` is already trained"
    ):
        resvm_cli.rank(labeled.X, labeled.y, model=model, kernel="linear")
    for wrong in (3, ESTIMATORS["resvm"]()):
        with pytest.raises(
            ValueError, match="`model` must be a fitted estimator or a model's path"
        ):
            resvm_cli.rank(labeled.X, labeled.y, model=wrong)
    with pytest.raises(ModelError, match="no such"):
        resvm_cli.rank(labeled.X, labeled.y, model=tmp_path / "none")
    single = fitted(labeled.X, labeled.y, method="cwsvm")
    with pytest.raises(ValueError, match="it cannot rank its own rows"):
        resvm_cli.rank(labeled.X, labeled.y, model=single)


def test_a_model_ranks_only_with_the_weights_it_was_trained_with(labeled):
    X, y = labeled.X, labeled.y
    weights = np.linspace(0.5, 1.0, len(y))
    plain, weighted = fitted(X, y, **NINE), fitted(X, y, weights=weights, **NINE)
    for model, given, told in (
        (plain, weights, "was trained without `weights`"),
        (weighted, None, "was trained with `weights`"),
        (weighted, weights[::-1], "was trained with different `weights`"),
    ):
        with pytest.raises(ModelError, match=told):
            resvm_cli.rank(X, y, model=model, weights=given)
    assert len(resvm_cli.rank(X, y, model=weighted, weights=weights))


@pytest.mark.parametrize("kind", ["names", "numbers", "levels", "dates", "equal"])
def test_an_index_of_any_kind_is_kept(rows, kind):
    pandas = pytest.importorskip("pandas")
    X, y = rows
    index = {
        "names": pandas.Index([f"gene-{number * 7 % 150}" for number in range(150)], name="gene"),
        "numbers": pandas.Index(np.arange(150) * 3),
        "levels": pandas.MultiIndex.from_product([["x", "y"], range(75)], names=["arm", "number"]),
        "dates": pandas.date_range("2026-01-01", periods=150),
        "equal": pandas.Index(["same"] * 150),
    }[kind]
    frame = pandas.DataFrame(X, index=index, columns=list("abcd"))
    ranking = ranked(frame, y, NINE)
    table = ranking.to_frame()
    assert table.index.equals(index[ranking.rows])
    assert table.index.dtype == index.dtype
    assert table.index.names == (["id"] if index.names == [None] else list(index.names))
    assert list(table.columns) == list(ranking.columns)
    assert table["known"].dtype == bool
    assert {one.kind for one in table.dtypes} <= set("bif")  # no objects
    if kind == "names":
        joined = frame.join(table)
        assert joined.loc[ranking.index[0], "rank"] == 1
        assert joined["known"].notna().sum() == (y == 0).sum()
        by_ids = ranked(frame, y, NINE, ids=range(1000, 1150))
        assert by_ids.index.tolist() == (1000 + by_ids.rows).tolist()  # ids override the index


def test_ids_are_row_numbers_from_0_in_the_order_of_the_rows(rows):
    X, y = rows
    for keywords in ({}, {"audit": True}, {"fdr": 0.5, "contamination_unl": 0.3}):
        ranking = ranked(X, y, NINE, **keywords)
        assert len(ranking) > 0
        assert ranking.index.tolist() == ranking.rows.tolist()
    keyed = dict.fromkeys(f"row {number}" for number in range(150))  # it has no key 0
    ranking = ranked(X, y, NINE, ids=keyed, top=5)
    assert ranking.index.tolist() == [f"row {number}" for number in ranking.rows]
    with pytest.raises(ValueError, match="`ids` has 3 values, but X has 150 rows"):
        resvm_cli.rank(X, y, ids=["a", "b", "c"])


def test_outcomes_and_reasons_use_the_index(rows):
    pandas = pytest.importorskip("pandas")
    X, y = rows
    frame = pandas.DataFrame(X, index=[f"gene-{number}" for number in range(150)])
    tested = dict.fromkeys(frame.index[y == 0][:20], 1)
    ranking = ranked(frame, y, NINE, tested=tested, why=2)
    assert [one.id for one in ranking.reasons] == ranking.index[:2].tolist()
    assert {one.name for one in ranking.reasons[0].positives} <= set(frame.index[y == 1])
    assert {one.name for one in ranking.reasons[0].unlabeled} <= set(frame.index[y == 0])
    with pytest.raises(ValueError, match="'gene-x' is not the id of a row of U"):
        ranked(frame, y, NINE, tested={"gene-x": 1})
    same = pandas.DataFrame(X, index=["same"] * 150)
    with pytest.raises(ValueError, match="'same' is the id of several rows of U"):
        ranked(same, y, NINE, tested={"same": 1})


def test_outcomes_of_tested_rows_are_given_by_id():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 3)), np.repeat([1, 0], [30, 70])
    model = fitted(X, y, n_models=5)
    assert np.isnan(resvm_cli.rank(X, y, model=model).columns["probability"]).all()
    names = [f"row-{number}" for number in range(100)]
    tested = {f"row-{number}": int(number % 2) for number in range(30, 60)}
    precision = resvm_cli.rank(X, y, model=model, ids=names, tested=tested).columns["precision"]
    assert 0.2 < precision[-1] < 0.8
    by_number = {number: number % 2 == 1 for number in range(30, 60)}
    again = resvm_cli.rank(X, y, model=model, tested=by_number).columns["precision"]
    np.testing.assert_array_equal(again, precision)
    for bad, said in (({"row-31": 2}, "row-31"), ({"row-0": 1}, "of U"), ({"nobody": 1}, "nobody")):
        with pytest.raises(DataError, match=said):
            resvm_cli.rank(X, y, model=model, ids=names, tested=bad)


def test_known_negatives_calibrate_a_list_of_noise_although_members_are_trained_on_them():
    small = []
    for seed in range(3):
        rows = np.random.default_rng(seed).standard_normal((160, 10))
        y = np.repeat([1, 0, -1], [40, 60, 60])
        training = {"n_models": 5, "seed": seed}
        ranking = ranked(rows, y, training, negative_label=-1, fdr=0.99)
        assert ranking.fdr_estimate.n_negatives == 60
        small.append(np.sum(ranking.columns["p_value"] <= 0.2) / 60)
    assert 0.05 < np.mean(small) < 0.3  # more than 0.9 if members score the rows of their own bags


def test_a_ranking_can_be_pickled_and_is_shown_in_a_line(rows):
    pandas = pytest.importorskip("pandas")
    X, y = rows
    ranking = ranked(pandas.DataFrame(X), y, NINE)
    assert pickle.loads(pickle.dumps(ranking)).to_frame().equals(ranking.to_frame())
    first = ", ".join(map(str, ranking.index[:3]))
    assert repr(ranking) == f"<ranking of {len(ranking):,} rows: {first}, ...>"
    shown = repr(ranked(X, y, NINE, ids=[f"<b>&\n{'x' * 60}{number}" for number in range(150)]))
    assert "\n" not in shown
    assert len(shown) < 200


def test_parameters_that_contradict_each_other_or_do_not_exist_are_refused(labeled):
    with pytest.raises(ValueError, match="`fdr` and `top` both set the length of the list"):
        resvm_cli.rank(labeled.X, labeled.y, fdr=0.1, top=5)
    for function in (resvm_cli.tune, resvm_cli.rank):
        with pytest.raises(TypeError, match="unexpected keyword argument 'n_model'"):
            function(labeled.X, labeled.y, n_model=3)


def test_progress_is_reported_and_notes_are_kept(rows):
    seen: list[tuple[str, int, int | None]] = []
    X, y = rows
    ranking = resvm_cli.rank(X, y, auto=False, progress=lambda *one: seen.append(one))
    assert ("training", 50, 50) in seen
    assert ranking.notes == ()
    noted = resvm_cli.rank(X * [1, 1, 1, 1000.0], y, auto=False).notes
    assert any("`scale='auto'`" in note for note in noted)  # worded for Python


def test_rank_needs_neither_scikit_learn_nor_pandas_nor_the_command_line():
    script = """if True:
        import sys, resvm_cli
        assert "numpy" not in sys.modules
        assert "rank" in dir(resvm_cli)
        assert not hasattr(resvm_cli, "nothing")
        import numpy as np
        y = np.arange(60) % 3 == 0
        X = np.random.default_rng(0).standard_normal((60, 2)) + 2 * y[:, None]
        ranking = resvm_cli.rank(X, y, auto=False)
        resvm_cli.tune(X, y, trials=2, n_models=2)
        assert not {"sklearn", "typer", "rich", "pandas"} & set(sys.modules)
        sys.modules["sklearn"] = sys.modules["pandas"] = None
        for call in (lambda: ranking.model, lambda: resvm_cli.RESVMClassifier, ranking.to_frame):
            try:
                call()
            except ModuleNotFoundError as error:
                print(error)
    """
    ran = run(script_command(script))
    assert ran.code == 0, ran.err
    needs = "the estimators of resvm_cli need scikit-learn, which is not installed: pip install"
    assert ran.out.decode().count(needs + " 'resvm-cli[sklearn]'") == 2
    assert "to_frame needs pandas, which is not installed: pip install pandas" in ran.out.decode()
