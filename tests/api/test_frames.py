"""Data frames as input and output, rankings in notebooks, and scikit-learn's parameter names."""

from __future__ import annotations

import json
import pickle
import re

import numpy as np
import pytest

import resvm_cli
from resvm_cli.errors import DataError
from resvm_cli.sklearn import RESVMClassifier
from tests.api.test_functions import snapshot
from tests.conftest import write_svm
from tests.programs import run, script_command

pandas = pytest.importorskip("pandas")

SMALL = {"n_models": 6}


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = (rng.random(120) < 0.25).astype(int)
    centre = np.where((y == 1) | (rng.random(120) < 0.1), 1.0, -1.0)
    return rng.standard_normal((120, 3)) + centre[:, None], y


@pytest.fixture(scope="module")
def frame(rows):
    index = pandas.Index([f"gene-{number * 7 % 120}" for number in range(120)], name="gene")
    return pandas.DataFrame(rows[0], index=index, columns=["a", "b", "c"])


def page_data(path):
    text = re.search(r'id="data">(.*?)</script>', path.read_text(), re.S)
    return json.loads(text[1])


def test_the_index_of_a_frame_is_the_ids_of_a_ranking(rows, frame):
    ranking = resvm_cli.rank(frame, rows[1], **SMALL)
    assert ranking.ids == frame.index[ranking.rows].tolist()
    assert ranking.index.equals(frame.index[ranking.rows])
    plain = resvm_cli.rank(*rows, **SMALL)
    np.testing.assert_array_equal(ranking.rows, plain.rows)
    by_ids = resvm_cli.rank(frame, rows[1], ids=range(1000, 1120), **SMALL)
    assert by_ids.ids == [str(1000 + row) for row in by_ids.rows]  # ids override the index


def test_ids_are_row_numbers_from_0_like_rows(rows):
    for keywords in ({}, {"audit": True}, {"with_known": True}, {"fdr": 0.5}):
        ranking = resvm_cli.rank(*rows, **keywords, **SMALL)
        assert len(ranking) > 0
        assert ranking.ids == [str(row) for row in ranking.rows]
        assert ranking.to_frame().index.tolist() == ranking.rows.tolist()


def test_a_ranking_joins_the_frame_it_came_from(rows, frame):
    ranking = resvm_cli.rank(frame, rows[1], with_known=True, **SMALL)
    table = ranking.to_frame()
    assert table.index.name == "gene"
    assert list(table.columns) == [name for name in ranking.columns if name != "id"]
    np.testing.assert_array_equal(table["decision_value"], ranking.decision_values)
    np.testing.assert_array_equal(table["known"], ranking.known)
    assert table["rank"].tolist() == list(range(1, 121))
    assert table["known"].dtype == bool
    assert {kind.kind for kind in table.dtypes} <= set("bif")  # no objects
    joined = frame.join(table)
    assert joined.loc[ranking.ids[0], "rank"] == 1
    assert joined["known"].sum() == rows[1].sum()


@pytest.mark.parametrize(
    "index",
    [
        pandas.Index(np.arange(120) * 3),
        pandas.MultiIndex.from_product([["x", "y"], range(60)], names=["arm", "number"]),
        pandas.date_range("2026-01-01", periods=120),
        pandas.Index(["same"] * 120),
    ],
    ids=["numbers", "levels", "dates", "equal"],
)
def test_an_index_of_any_kind_is_kept(rows, index):
    X, y = rows
    ranking = resvm_cli.rank(pandas.DataFrame(X, index=index), y, intervals=False, **SMALL)
    table = ranking.to_frame()
    assert table.index.equals(index[ranking.rows])
    assert table.index.dtype == index.dtype
    assert table["rank_low"].isna().all()


def test_labels_in_another_order_than_the_rows_are_refused(rows, frame):
    pandas = pytest.importorskip("pandas")
    _, y = rows
    series = pandas.Series(y, index=frame.index)
    shuffled = series.iloc[::-1]
    settings = {"n_models": 3, "seed": 0}
    expected = resvm_cli.fit(frame, y, **settings).decision_values(frame)
    for given in (series, series.set_axis(range(len(y))), shuffled.loc[frame.index]):
        found = resvm_cli.fit(frame, given, **settings).decision_values(frame)
        assert np.array_equal(found, expected)
    for call in (resvm_cli.fit, resvm_cli.rank, resvm_cli.tune, RESVMClassifier().fit):
        with pytest.raises(DataError, match="same labels in different orders") as caught:
            call(frame, shuffled)
        assert "y.loc[X.index]" in str(caught.value.hint)


def test_a_frame_needs_pandas_and_says_so():
    script = """if True:
        import sys
        import numpy as np, resvm_cli
        sys.modules["pandas"] = None
        y = np.arange(60) % 3 == 0
        X = np.random.default_rng(0).standard_normal((60, 2)) + y[:, None]
        resvm_cli.rank(X, y, n_models=5).to_frame()
    """
    ran = run(script_command(script))
    assert ran.code == 1
    assert "to_frame needs pandas, which is not installed: pip install pandas" in ran.err


def test_outcomes_and_reasons_use_the_index(rows, frame):
    X, y = rows
    known = frame.index[y == 1]
    tested = dict.fromkeys(frame.index[y == 0][:20], 1)
    ranking = resvm_cli.rank(frame, y, tested=tested, why=2, **SMALL)
    assert [one.id for one in ranking.reasons] == ranking.ids[:2]
    assert {one.name for one in ranking.reasons[0].positives} <= set(known)
    assert {one.name for one in ranking.reasons[0].unlabeled} <= set(frame.index[y == 0])
    with pytest.raises(ValueError, match="'gene-x' is not the id of a row of U"):
        resvm_cli.rank(frame, y, tested={"gene-x": 1}, **SMALL)
    same = pandas.DataFrame(X, index=["same"] * 120)
    with pytest.raises(ValueError, match="'same' is the id of several rows of U"):
        resvm_cli.rank(same, y, tested={"same": 1}, **SMALL)


def test_the_page_is_that_of_the_command(rows, frame, resvm, tmp_path):
    _, y = rows
    path = tmp_path / "data.csv"
    frame.assign(known=y).to_csv(path)
    for number, (keywords, options) in enumerate(
        [({}, []), ({"audit": True, "why": 3}, ["--audit", "--why", 3])]
    ):
        ran = resvm(
            *("rank", "--data", path, "--id-column", "gene", "--label-column", "known"),
            *("--positive-label", 1, "--n-models", 6, *options, "-q"),
            *("--html", tmp_path / "cli.html"),
        )
        assert ran.code == 0, ran.err
        target = tmp_path / f"{number}.html"
        resvm_cli.rank(frame, y, importance=True, **keywords, **SMALL).save_html(target)
        expected, found = page_data(tmp_path / "cli.html"), page_data(target)
        for files in ("heading", "command"):  # the names of files
            assert expected.pop(files) != found.pop(files)
        assert expected["importance"]
        assert found == expected
        target.write_text("old")
        resvm_cli.rank(frame, y, **keywords, **SMALL).save_html(str(target))
        assert page_data(target)["list"] == expected["list"]


def test_a_ranking_keeps_its_model(rows, frame, resvm, tmp_path):
    X, y = rows
    path = write_svm(tmp_path / "data.svm", X, y.astype(float))
    ran = resvm(
        *("rank", "--data", path, "--positive-label", 1, "--n-models", 6, "-q"),
        *("-o", tmp_path / "cli"),
    )
    assert ran.code == 0, ran.err
    resvm_cli.rank(X, y, **SMALL).model.save(tmp_path / "python")
    assert snapshot(tmp_path / "python") == snapshot(tmp_path / "cli")
    ranking = resvm_cli.rank(frame, y, **SMALL)
    with pytest.raises(ValueError, match="the columns of X differ from the training columns"):
        ranking.model.predict(frame[["b", "a", "c"]])
    again = resvm_cli.rank(frame, y, model=ranking.model)
    assert again.model is ranking.model
    assert again.text() == ranking.text()
    loaded = resvm_cli.rank(frame, y, model=tmp_path / "python").model
    assert (loaded.votes(X) == ranking.model.votes(X)).all()


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_features_are_named_like_columns(rows, frame, kernel):
    X, y = rows
    for matrix, names in ((frame, ["a", "b", "c"]), (X, ["0", "1", "2"])):
        ranking = resvm_cli.rank(matrix, y, why=1, importance=True, kernel=kernel, **SMALL)
        found = ranking.model.importance(matrix, y)
        assert found == ranking.importance
        assert sorted((one.feature, one.name) for one in found) == [*enumerate(names)]
        reasons = ranking.reasons[0]
        named = {names[one.feature]: one.name for one in reasons.effects}
        assert all(name == own for name, own in named.items())
        assert (named and not reasons.features) if kernel == "rbf" else not named
        assert {one.name for one in (*reasons.features, *reasons.effects)} <= set(names)
        assert ranking.baselines[0].feature in names


def test_importance_is_computed_with_known_negatives(rows):
    X, y = rows
    labels = y.copy()
    labels[np.flatnonzero(y == 0)[:10]] = -1
    ranking = resvm_cli.rank(X, labels, negative_label=-1, importance=True, n_models=20)
    assert ranking.model.importance(X, labels, negative_label=-1) == ranking.importance
    with pytest.raises(resvm_cli.errors.ModelError, match="known_negatives"):
        ranking.model.importance(X, labels, positive_label=1)


def test_notes_on_the_page_are_worded_for_python(rows, tmp_path):
    X, y = rows
    with pytest.warns(resvm_cli.ResultWarning, match='scale="standard"'):
        ranking = resvm_cli.rank(X * [1, 1, 1000.0], y, **SMALL)
    ranking.save_html(tmp_path / "page.html")
    assert 'scale="standard"' in page_data(tmp_path / "page.html")["notes"][0]


def test_saving_a_page_loads_neither_typer_nor_rich(tmp_path):
    script = f"""if True:
        import sys
        import numpy as np, resvm_cli
        y = np.arange(60) % 3 == 0
        X = np.random.default_rng(0).standard_normal((60, 2)) + 2 * y[:, None]
        ranking = resvm_cli.rank(X, y, n_models=5)
        ranking.save_html({str(tmp_path / "page.html")!r})
        ranking._repr_html_()
        assert not {{"typer", "rich", "pandas", "sklearn"}} & set(sys.modules), sys.modules
    """
    ran = run(script_command(script))
    assert ran.code == 0, ran.err


def test_a_ranking_is_shown_in_a_line_and_in_a_short_table(rows):
    X, y = rows
    ids = [f"<b>&\n{'x' * 60}{number}" for number in range(120)]
    ranking = resvm_cli.rank(X, y, ids=ids, **SMALL)
    assert "\n" not in repr(ranking)
    assert len(repr(ranking)) < 200
    table = ranking._repr_html_()
    assert "<b>" not in table
    assert table.count("&lt;b&gt;&amp;") == 10
    assert table.count("<tr>") == 11
    assert f"{len(ranking) - 10} more rows" in table
    short = resvm_cli.rank(X, y, top=3, **SMALL)._repr_html_()
    assert short.count("<tr>") == 4
    assert "more rows" not in short
    names = re.findall("<th>(.*?)</th>", short)
    assert names == ["rank", "id", "known", "decision_value", "precision", "probability"]
    unknown = resvm_cli.rank(X, y, top=3, method="bagging", **SMALL)._repr_html_()
    assert "precision" not in unknown


def test_a_ranking_can_be_pickled(rows, frame, tmp_path):
    ranking = resvm_cli.rank(frame, rows[1], **SMALL)
    again = pickle.loads(pickle.dumps(ranking))
    assert again.text() == ranking.text()
    again.save_html(tmp_path / "again.html")
    ranking.save_html(tmp_path / "first.html")
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "first.html").read_bytes()


def test_polars_frames_are_matrices(rows):
    polars = pytest.importorskip("polars")
    X, y = rows
    frame = polars.DataFrame(X, schema=["a", "b", "c"])
    ranking = resvm_cli.rank(frame, polars.Series(y), **SMALL)
    assert ranking.text() == resvm_cli.rank(X, y, **SMALL).text()
    fitted = RESVMClassifier(**SMALL).fit(frame, polars.Series(y))
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]


def test_n_jobs_and_random_state_are_jobs_and_seed(rows, tmp_path):
    X, y = rows
    resvm_cli.fit(X, y, jobs=2, seed=5, **SMALL).save(tmp_path / "ours")
    resvm_cli.fit(X, y, n_jobs=2, random_state=5, **SMALL).save(tmp_path / "theirs")
    assert snapshot(tmp_path / "ours") == snapshot(tmp_path / "theirs")
    assert resvm_cli.fit(X, y, jobs=2, n_jobs=2, seed=5, random_state=5, **SMALL).jobs == 2
    assert resvm_cli.fit(X, y, n_jobs=-1, **SMALL).jobs >= 1
    assert resvm_cli.rank(X, y, random_state=5, **SMALL).text() == (
        resvm_cli.rank(X, y, seed=5, n_jobs=2, **SMALL).text()
    )
    tuned = [resvm_cli.tune(X, y, trials=3, **SMALL, **one) for one in ({"seed": 5}, {})]
    again = resvm_cli.tune(X, y, trials=3, **SMALL, random_state=5, n_jobs=1)
    assert again.trials == tuned[0].trials != tuned[1].trials


def test_generators_of_numpy_give_a_seed(rows):
    X, y = rows
    for generator in (np.random.RandomState, np.random.default_rng):
        models = [resvm_cli.fit(X, y, random_state=generator(n), **SMALL) for n in (5, 5, 6)]
        seeds = [model.manifest["seed"] for model in models]
        assert seeds[0] == seeds[1] != seeds[2]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"jobs": 1, "n_jobs": 2}, "^jobs is 1, but n_jobs is 2; both mean the same thing"),
        ({"seed": 1, "random_state": 2}, "^seed is 1, but random_state is 2; both mean"),
        ({"n_jobs": 0}, "^n_jobs must not be 0"),
        ({"n_jobs": 1.5}, "^n_jobs must be an integer"),
        ({"jobs": -1}, "^jobs must be at least 1, got -1"),
        ({"random_state": -1}, "^random_state must be at least 0, got -1"),
        ({"random_state": "x"}, "^random_state must be an integer or a numpy random generator"),
    ],
    ids=str,
)
def test_two_names_for_one_thing_must_agree(rows, keywords, message):
    for function in (resvm_cli.fit, resvm_cli.rank, resvm_cli.tune):
        with pytest.raises(ValueError, match=message):
            function(*rows, **keywords)
    if "seed" not in keywords:
        with pytest.raises(ValueError, match=message):
            RESVMClassifier(**keywords).fit(*rows)


def test_estimators_take_n_jobs(rows):
    X, y = rows
    values = RESVMClassifier(n_jobs=2, **SMALL).fit(X, y).score_samples(X)
    np.testing.assert_array_equal(
        RESVMClassifier(jobs=1, **SMALL).fit(X, y).score_samples(X), values
    )
    assert RESVMClassifier(n_jobs=2, **SMALL).fit(X, y).model_.jobs == 2


def test_a_loaded_model_of_a_table_knows_its_columns(resvm, tmp_path):
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.standard_normal((60, 3)), columns=["a", "b", "c"])
    frame.loc[:19, "a"] += 3
    frame.assign(known=[1] * 15 + [0] * 45).to_csv(tmp_path / "t.csv", index=False)
    labels = ("--label-column", "known", "--positive-label", 1, "--n-models", 5, "-q")
    ran = resvm("train", "--data", tmp_path / "t.csv", *labels, "-o", tmp_path / "m")
    assert ran.code == 0, ran.err
    model = resvm_cli.load(tmp_path / "m")
    assert len(model.decision_values(frame)) == len(model.decision_values(frame.to_numpy())) == 60
    with pytest.raises(ValueError, match="columns of X differ from the training columns"):
        model.decision_values(frame[["c", "b", "a"]])


@pytest.mark.parametrize("by_estimator", [False, True])
def test_a_saved_model_knows_the_columns_of_its_frame(by_estimator, rows, frame, resvm, tmp_path):
    _, y = rows
    if by_estimator:
        RESVMClassifier(n_models=6, random_state=0).fit(frame, y).save(tmp_path / "m")
    else:
        resvm_cli.fit(frame, y, n_models=6).save(tmp_path / "m")
    model = resvm_cli.load(tmp_path / "m")
    with pytest.raises(DataError, match="the columns of X differ from the training columns"):
        model.predict(frame[["b", "a", "c"]])
    frame[["c", "a", "b"]].to_csv(tmp_path / "rows.csv", index=False)
    ran = resvm("predict", tmp_path / "m", tmp_path / "rows.csv", "--format", "tsv")
    values = [float(line.split(b"\t")[1]) for line in ran.out.splitlines()[1:]]
    assert values == model.decision_values(frame).tolist()
    numbered = frame.set_axis([0, 1, 2], axis=1)
    assert resvm_cli.fit(numbered, y, n_models=6).stored.encoding is None
