"""Known negatives come from a file of their own, or from a label or ids in one file."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from resvm_cli.data.encoding import ColumnRoles
from resvm_cli.data.pu_input import TrainingInput
from resvm_cli.data.pudata import MemoryData
from resvm_cli.data.pufiles import PUFiles
from resvm_cli.ensemble.oob import OutOfBagSample, OutOfBagSummary
from resvm_cli.ensemble.plan import Plan
from resvm_cli.errors import DataError, ModelError, ParameterError
from resvm_cli.parameters import Params
from resvm_cli.rows import Rows
from resvm_cli.run import Run, Share
from resvm_cli.storage.model import load_model
from resvm_cli.tuning.learn import learn, merge, require_same_data, train, train_share
from tests.fitting import train_part

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2)).round(3)
LABELS = np.repeat([1, 0, -1], [15, 30, 15])
SHUFFLED = np.random.default_rng(2).permutation(60)


def line(number):
    values = " ".join(f"{index}:{value}" for index, value in enumerate(X[number].tolist(), 1))
    return f"{LABELS[number]} qid:{number % 7} {values} # r{number}\n"


@pytest.fixture
def files(tmp_path):
    for name, label in (("pos", 1), ("unl", 0), ("neg", -1)):
        numbers = [number for number in SHUFFLED if LABELS[number] == label]
        (tmp_path / f"{name}.svm").write_text("".join(map(line, numbers)))
        (tmp_path / f"{name}.txt").write_text("".join(f"r{number}\n" for number in numbers))
    (tmp_path / "all.svm").write_text("".join(map(line, SHUFFLED)))
    words = {1: "active", 0: "", -1: "inactive"}
    cells = [f"r{n},{X[n, 0]},{X[n, 1]},{words[int(LABELS[n])]}\n" for n in SHUFFLED]
    (tmp_path / "all.csv").write_text("name,a,b,outcome\n" + "".join(cells))
    return tmp_path


def three(files, **more):
    names = {"positives": "pos.svm", "unlabeled": "unl.svm", "known_negatives": "neg.svm"}
    return TrainingInput(**{name: str(files / file) for name, file in names.items()}, **more)


def opened(source):
    return PUFiles(source, Run(jobs=1))


def one_file(files, how):
    if how == "label":
        return TrainingInput(data=str(files / "all.svm"), positive_label=1, negative_label=-1)
    if how == "ids":
        ids = {"positive_ids": str(files / "pos.txt"), "known_negatives": str(files / "neg.txt")}
        return TrainingInput(data=str(files / "all.svm"), **ids)
    if how == "label and ids":
        ids = {"known_negatives": str(files / "neg.txt")}
        return TrainingInput(data=str(files / "all.svm"), positive_label=1, **ids)
    roles = ColumnRoles(
        label="outcome", positive_labels=("active",), negative_labels=("inactive",), row_id="name"
    )
    return TrainingInput(data=str(files / "all.csv"), table=roles)


@pytest.mark.parametrize("how", ["label", "ids", "label and ids", "table"])
def test_one_file_gives_the_same_sets_as_three(files, how):
    with (
        opened(three(files, keep_ids=True, groups="qid" if how != "table" else None)) as split,
        opened(replace(one_file(files, how), keep_ids=True)) as whole,
    ):
        assert len(whole.negatives) == 15
        assert whole.n_unlabeled == 30
        assert whole.description()["negative"] == split.description()["negative"]
        assert whole.description()["unlabeled"] == split.description()["unlabeled"]
        assert whole.ids() == split.ids()
        numbers = np.array([0, 5, 29, 30, 44])
        for rows in (whole, split):
            found = rows.fetch(numbers)
            ids = [int(rows.ids()[15 + number][1:]) for number in numbers]
            assert found.values.tolist() == X[ids].ravel().tolist()
        if how != "table":
            groups = split.groups()
            qids = np.array([int(name[1:]) % 7 for name in split.ids()])
            assert len(set(zip(groups.tolist(), qids.tolist(), strict=True))) == 7


def test_a_large_u_is_read_again_without_known_negatives(files, monkeypatch):
    monkeypatch.setattr("resvm_cli.data.pufiles.KEPT_NONZEROS", 0)
    with opened(one_file(files, "label")) as data:
        assert data.n_kept == 0
        assert sum(len(rows) for rows in data.unlabeled()) == 30
        numbers = np.array([2, 7, 31])
        ids = [n for n in SHUFFLED if LABELS[n] == 0], [n for n in SHUFFLED if LABELS[n] == -1]
        expected = X[[ids[0][2], ids[0][7], ids[1][1]]]
        assert data.fetch(numbers).values.tolist() == expected.ravel().tolist()


def test_rows_of_u_that_were_tested_are_noted(files):
    both = (files / "unl.svm").read_text() + (files / "neg.svm").read_text()
    (files / "unl.svm").write_text(both)
    with opened(three(files)) as data:
        assert any("15 rows of U have the id" in str(note) for note in data.notes)
        assert data.n_unlabeled == 45
    for name in ("pos", "unl", "neg"):
        text = (files / f"{name}.svm").read_text()
        (files / f"{name}.svm").write_text("\n".join(t.split("#")[0] for t in text.split("\n")))
    with opened(three(files)) as data:
        assert any(
            "15 rows of U are identical to a known negative" in str(note) for note in data.notes
        )


def test_a_negative_that_is_also_positive_is_refused_by_name(files):
    with (files / "neg.svm").open("a") as file:
        file.write(line(3))
    with pytest.raises(DataError, match=r"neg\.svm:16: this known negative is also in P, as 'r3'"):
        opened(three(files))
    text = (files / "neg.svm").read_text().replace("# r3\n", "\n")
    (files / "neg.svm").write_text(text)
    said = r"neg\.svm:16: this known negative is also in P, as row \d+"
    with pytest.raises(DataError, match=said):
        opened(three(files))


def test_different_rows_with_equal_features_may_have_different_outcomes(files):
    with (files / "neg.svm").open("a") as file:
        file.write(line(3).replace("# r3", "# another molecule"))
    with opened(three(files)) as data:
        assert len(data.negatives) == 16


def test_ids_that_are_listed_twice_are_refused_and_unknown_ones_named(files):
    with (files / "neg.txt").open("a") as file:
        file.write("r2\n")
    with pytest.raises(DataError, match=r"neg\.txt:16: 'r2' is also listed in .*pos\.txt"):
        opened(one_file(files, "ids"))
    with pytest.raises(DataError, match=r"all\.svm:\d+: this row of P is listed in .*neg\.txt"):
        opened(one_file(files, "label and ids"))
    (files / "neg.txt").write_text("r50\nr99\n")
    with opened(one_file(files, "ids")) as data:
        assert len(data.negatives) == 1
        assert re.search(r"1 of the 2 ids in .*neg\.txt are not in .*: r99", str(data.notes))


def test_contradictory_inputs_are_refused(files):
    with pytest.raises(ParameterError, match="`known_negatives='label=LABEL'` requires `data`"):
        three(files, negative_label=-1.0).check()
    with pytest.raises(ParameterError, match="are the same label"):
        TrainingInput(data="all.svm", positive_label=1.0, negative_label=1.0).check()


def test_a_file_of_rows_is_not_a_list_of_ids(files):
    with pytest.raises(DataError, match=r"neg\.svm:1: an svmlight row; expected one id") as caught:
        opened(replace(one_file(files, "ids"), known_negatives=str(files / "neg.svm")))
    assert "a file of rows requires `positives` and `unlabeled`" in str(caught.value.hint)


def test_a_label_that_no_row_has_is_refused_by_name(files):
    source = TrainingInput(data=str(files / "all.svm"), positive_label=1, negative_label=-3)
    with pytest.raises(DataError, match="no row has -3, the label of known negatives"):
        opened(source)
    (files / "empty.svm").write_text("")
    with pytest.raises(DataError, match=r"empty\.svm"):
        opened(replace(three(files), known_negatives=str(files / "empty.svm")))


def test_a_model_remembers_its_known_negatives(files):
    choice = Params(n_models=4, auto=False)
    run = Run(jobs=1)
    with opened(three(files)) as data:
        _, model = learn(data, choice, run)
        require_same_data(model, "m", data)
    with (
        opened(replace(three(files), known_negatives=None)) as data,
        pytest.raises(ModelError, match="m: was trained with `known_negatives`"),
    ):
        require_same_data(model, "m", data)
    with (files / "neg.svm").open("a") as file:
        file.write("-1 1:9 2:9 # more\n")
    with (
        opened(three(files)) as data,
        pytest.raises(ModelError, match="m: was trained with different `known_negatives`"),
    ):
        require_same_data(model, "m", data)


def in_memory(hard=0.0):
    """Return 20 positives, 50 rows of U and 20 known negatives, some similar to positives."""
    rng = np.random.default_rng(4)
    positive, unlabeled, negative = np.split(rng.normal(size=(90, 3)), [20, 70])
    positive += 1
    n_hard = int(20 * hard)
    negative[:n_hard] = positive[:n_hard] + 0.05
    return MemoryData(*(Rows.from_dense(each) for each in (positive, unlabeled, negative)))


@pytest.mark.parametrize("rule", ["votes", "mean"])
def test_thresholds_of_a_model_count_its_known_negatives(rule):
    rows = in_memory(hard=0.5)
    plan = Plan.resolve(Params(n_models=15), rows)
    part = train_part(plan, range(15), rows, Run(jobs=1))
    sample = OutOfBagSample.from_plan(plan)
    summary = OutOfBagSummary.from_values(replace(plan, rule=rule), sample, part.values)
    table = summary.table
    assert table.negative.sum() == 20
    threshold = summary.decision.thresholds[rule]
    unlabeled, known = table.by(rule)[1], table.negatives_by(rule)
    n_above = (unlabeled > threshold.value).sum() + (known > threshold.value).sum()
    assert len(unlabeled) == 50
    assert threshold.fraction_positive == pytest.approx(n_above / 70)
    assert (known > threshold.value).any()


def test_groups_of_members_are_standardized_by_u_alone():
    rows = in_memory()
    settings = tuple(Params(n_models=8, gamma=gamma) for gamma in (0.1, 2.0))
    plan = Plan.resolve(Params(settings=settings), rows)
    part = train_part(plan, range(16), rows, Run(jobs=1))
    sample = OutOfBagSample.from_plan(plan)
    other = part.values.copy()
    other[:, -20:] += 5
    found = [
        OutOfBagSummary.from_values(replace(plan, rule="mean"), sample, values).sections
        for values in (part.values, other)
    ]
    assert found[0][0].spread != 1
    assert found[0] == found[1]


def read_all(path):
    return {file.name: file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def test_parts_growth_and_threads_give_the_bytes_of_one_run(files):
    source = three(files)
    choice = Params(n_models=6, w_neg=2.0, auto=False)
    train(source, choice, str(files / "whole"), Run(jobs=1))
    expected = read_all(files / "whole")
    train(source, choice, str(files / "threads"), Run(jobs=2))
    assert read_all(files / "threads") == expected
    train(source, choice, str(files / "resumed"), Run(jobs=1), resume=True)
    assert read_all(files / "resumed") == expected
    for number in (1, 2):
        train_share(source, choice, Share(number, 2), str(files / f"p{number}"), Run(jobs=1))
    merge([str(files / "p2"), str(files / "p1")], str(files / "merged"), Run(jobs=1))
    assert read_all(files / "merged") == expected
    assert load_model(str(files / "whole")).plan.rows_neg == 15


def test_other_negatives_are_refused_by_merge(files):
    choice = Params(n_models=4, auto=False)
    train_share(three(files), choice, Share(1, 2), str(files / "p1"), Run(jobs=1))
    with (files / "neg.svm").open("a") as file:
        file.write("-1 1:9 2:9 # more\n")
    train_share(three(files), choice, Share(2, 2), str(files / "p2"), Run(jobs=1))
    with pytest.raises(ModelError, match=r"belong to different models: .*data\.negative"):
        merge([str(files / "p1"), str(files / "p2")], str(files / "merged"), Run(jobs=1))


def test_a_label_of_negatives_needs_one_of_positives():
    with pytest.raises(ParameterError, match=r"`known_negatives=.* needs .*`positive_label`"):
        TrainingInput(data="x.svm", positive_ids="ids", negative_label=-1.0).check()
