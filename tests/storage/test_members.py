"""Members as LIBSVM model text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resvm_cli.ensemble.ensemble import Ensemble, Member, Predictor, Section
from resvm_cli.errors import ModelError
from resvm_cli.rows import Rows
from resvm_cli.storage import members
from resvm_cli.storage.members import format_members, parse_members
from resvm_cli.svm.kernels import Kernel
from tests.ensemble.test_ensemble import KERNELS, ensemble, ensemble_of, mixed_ensemble, weighted
from tests.libsvm_oracle import predict_values

LINEAR = Section(Kernel("linear"), range(1))


def texts(machine: Ensemble) -> list[bytes]:
    return list(format_members(machine))


def named(machine: Ensemble) -> list[tuple[str, bytes]]:
    return [(f"{i:05d}.model", text) for i, text in enumerate(texts(machine))]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_model_read_back_predicts_the_same_bits(kernel):
    machine = ensemble(kernel)
    again = parse_members(named(machine), machine.sections, single=False)
    rows = Rows.from_dense(np.random.default_rng(0).standard_normal((200, 11)))
    first, second = Predictor(machine), Predictor(again)
    assert first.member_values(rows).tobytes() == second.member_values(rows).tobytes()
    assert first.decisions(rows).values.tobytes() == second.decisions(rows).values.tobytes()
    assert texts(again) == texts(machine)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_libsvms_own_loader_reads_it_to_the_same_values(kernel, tmp_path):
    machine = ensemble(kernel)
    rows = Rows.from_dense(np.random.default_rng(1).standard_normal((50, 11)))
    values = Predictor(machine).member_values(rows)
    for number, text in enumerate(texts(machine)):
        path = tmp_path / f"{number}.model"
        path.write_bytes(text)
        assert values[:, number] == pytest.approx(predict_values(path, rows), rel=1e-11, abs=1e-11)


def test_a_mixed_model_read_back_predicts_the_same_bits():
    machine = mixed_ensemble()
    again = parse_members(named(machine), machine.sections, single=False)
    again = replace(again, scalings=machine.scalings)
    rows = Rows.from_dense(np.random.default_rng(0).standard_normal((200, 11)))
    values = [Predictor(each).member_values(rows).tobytes() for each in (machine, again)]
    assert values[0] == values[1]
    assert texts(again) == texts(machine)


@pytest.mark.parametrize("kernel", KERNELS[1:], ids=lambda kernel: kernel.name)
def test_libsvm_reads_a_weighted_member_without_its_first_line(kernel, tmp_path):
    machine = weighted(ensemble(kernel))
    rows = Rows.from_dense(np.random.default_rng(1).standard_normal((50, 11)))
    values = Predictor(machine).member_values(rows)
    for number, text in enumerate(texts(machine)):
        first, rest = text.split(b"\n", 1)
        word, *pairs = first.decode().split(" ")
        assert word == "multiply_features_by"
        factors = np.zeros(11)
        for pair in pairs:
            index, factor = pair.split(":")
            factors[int(index) - 1] = float(factor)
        path = tmp_path / f"{number}.model"
        path.write_bytes(rest)
        expected = predict_values(path, rows.times(Rows.from_dense([factors])))
        assert values[:, number] == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_libsvms_loader_refuses_a_weighted_member_as_it_is(tmp_path, capfd):
    path = tmp_path / "0.model"
    path.write_bytes(texts(weighted(ensemble(KERNELS[2])))[0])
    with pytest.raises(AssertionError):
        predict_values(path, Rows.from_dense([[1.0]]))
    assert "multiply_features_by" in capfd.readouterr().err


def test_a_weighted_member_is_written_to_the_byte():
    factors = Rows.from_dense([[0.1, 0.0, 2.0]])
    pool = Rows.from_dense([[0.5, 0.0, 4.0], [0.0, 0.0, 0.0]])
    member = Member(np.array([0, 1]), np.array([0.5, -1.0]), 0.25, 1, factors)
    machine = ensemble_of(Kernel("rbf", gamma=0.2), pool, [member], False)
    text = b"multiply_features_by 1:0.1 3:2\nsvm_type c_svc\nkernel_type rbf\ngamma 0.2\n"
    text += b"nr_class 2\ntotal_sv 2\nrho 0.25\nlabel 1 -1\nnr_sv 1 1\nSV\n0.5 1:0.5 3:4\n-1.0\n"
    assert texts(machine) == [text]
    assert members.member_entry(text)["support_vectors"] == 2


@pytest.mark.parametrize(
    "line",
    [
        b"multiply_features_by 1:0.1 3:2",  # no newline: the next line is part of it
        b"multiply_features_by 1:0.1 3:-2\n",
        b"multiply_features_by 1:0.1 3:nan\n",
        b"multiply_features_by 1:0.1 3:inf\n",
        b"multiply_features_by 1:0.1 3:0\n",
        b"multiply_features_by 1:0.1 1:2\n",
        b"multiply_features_by 3:0.1 1:2\n",
        b"multiply_features_by -1:0.1\n",
        b"multiply_features_by 1:0.1 3:x\n",
        b"multiply_features_by 1:0.1 3:2 # comment\n",
        b"multiply_features_by qid:1 1:0.1\n",
        b"multiply_features_by  1:0.1\n",
        b"multiply_features_by 1\n",
        b"multiply_features_by \n",
        b"multiply_features_by\n",
        b"multiply_features_by5 1:0.1\n",
        b"multiply_features_by 1:0.1\nmultiply_features_by 1:0.1\n",
        b"multiply 1:0.1\n",
        b"\n",
    ],
)
def test_damaged_feature_weights_are_refused_by_name(line):
    machine = weighted(ensemble(KERNELS[2]))
    written = named(machine)
    name, text = written[1]
    written[1] = (name, line + text.split(b"\n", 1)[1])
    with pytest.raises(ModelError, match=r"00001\.model: not a member of this model"):
        parse_members(written, machine.sections, single=False)
    written[1] = (name, text.split(b"\n")[0])  # nothing follows
    with pytest.raises(ModelError, match=r"00001\.model: not a member of this model"):
        parse_members(written, machine.sections, single=False)


def test_all_members_of_a_setting_weigh_features_or_none_does():
    machine = weighted(ensemble(KERNELS[2]))
    written = named(machine)
    name, text = written[1]
    written[1] = (name, text.split(b"\n", 1)[1])
    with pytest.raises(ModelError, match="unexpected or missing feature weights"):
        parse_members(written, machine.sections, single=False)
    linear = ensemble(KERNELS[0], n_models=1)
    ((name, text),) = named(linear)
    with pytest.raises(ModelError, match="unexpected or missing feature weights"):
        parse_members([(name, b"multiply_features_by 1:2\n" + text)], linear.sections, single=False)


def test_a_member_is_written_to_the_byte_and_a_shared_row_formatted_once(monkeypatch):
    pool = Rows.from_dense([[0.1, 2.0], [0.0, 0.0], [1e-7, 0.0]])
    first = Member(np.array([0, 1]), np.array([0.5, -1.0]), 0.25, 1)
    second = Member(np.array([1, 2, 0]), np.array([1.0, -1e22, 1 / 3]), -0.0, 2)
    formatted = []
    format_all = members.format_rows

    def counted(rows):
        formatted.append(len(rows))
        return format_all(rows)

    monkeypatch.setattr(members, "format_rows", counted)
    machine = ensemble_of(Kernel("rbf", gamma=0.2), pool, [first, second, first], False)
    head = b"svm_type c_svc\nkernel_type rbf\ngamma 0.2\nnr_class 2\n"
    one = head + b"total_sv 2\nrho 0.25\nlabel 1 -1\nnr_sv 1 1\nSV\n0.5 1:0.1 2:2\n-1.0\n"
    other = head + b"total_sv 3\nrho -0.0\nlabel 1 -1\nnr_sv 2 1\nSV\n"
    other += b"1.0\n-1e+22 1:1e-07\n0.3333333333333333 1:0.1 2:2\n"
    assert texts(machine) == [one, other, one]
    assert formatted == [3]
    # too many to keep the text of all of them: two members at a time, then one
    monkeypatch.setattr(members, "MAX_ENTRIES", 5)
    machine = ensemble_of(
        Kernel("rbf", gamma=0.2), Rows.concatenate([pool, pool]), [first, second, first], False
    )
    assert texts(machine) == [one, other, one]
    assert formatted == [3, 3, 2]


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            finite,
            st.dictionaries(st.integers(0, 2**31 - 2), finite.filter(bool), max_size=5),
        ),
        min_size=1,
        max_size=6,
    ),
    finite,
    st.integers(0, 6),
)
def test_every_number_survives(vectors, rho, n_positive):
    rows = [sorted(row.items()) for _, row in vectors]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    pool = Rows(
        indptr,
        np.array([index for row in rows for index, _ in row], np.int32),
        np.array([value for row in rows for _, value in row], np.float64),
    )
    member = Member(
        np.arange(len(rows)),
        np.array([coefficient for coefficient, _ in vectors]),
        rho,
        min(n_positive, len(rows)),
    )
    kernel = Kernel("rbf", gamma=0.1)
    machine = ensemble_of(kernel, pool, [member], True)
    again = parse_members(named(machine), machine.sections, True)
    (found,) = again.members
    restored = again.pool.take(found.support)
    assert restored.indptr.tolist() == pool.indptr.tolist()
    assert restored.indices.tolist() == pool.indices.tolist()
    assert restored.values.tobytes() == pool.values.tobytes()
    assert found.coefficients.tobytes() == member.coefficients.tobytes()
    assert found.rho == rho
    assert found.n_positive == member.n_positive


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"svm_type c_svc", b"svm_type nu_svc"),
        (b"kernel_type rbf", b"kernel_type linear"),
        (b"gamma 0.2", b"gamma 0.3"),
        (b"nr_class 2", b"nr_class 3"),
        (b"total_sv 8", b"total_sv 7"),
        (b"total_sv 8", b"total_sv 99999999999999999999"),
        (b"total_sv 8", b"total_sv x"),
        (b"total_sv 8", b"total_sv +8"),
        (b"rho ", b"rho  "),
        (b"label 1 -1", b"label -1 1"),
        (b"nr_sv 4 4", b"nr_sv 4 5"),
        (b"nr_sv 4 4", b"nr_sv 8"),
        (b"nr_sv 4 4", b"nr_sv -04 4"),
        (b"\nSV\n", b"\nSW\n"),
        (b"\nSV\n", b"\nSV\nnan 1:1\n"),
        (b"\nSV\n", b"\n"),
    ],
)
def test_text_that_is_not_the_manifests_member_is_refused_by_name(old, new):
    texts = named(ensemble(KERNELS[2]))
    name, text = texts[1]
    assert text.count(old) == 1
    texts[1] = (name, text.replace(old, new))
    with pytest.raises(ModelError, match=r"00001\.model: not a member of this model"):
        parse_members(texts, [Section(KERNELS[2], range(len(texts)))], single=False)


@pytest.mark.parametrize(
    "vector",
    [b"1 1:x", b"1 1", b"x 1:1", b"1 2:1 1:1", b"1 1:1 # hidden", b"1 qid:1 1:1", b"inf 1:1"],
)
def test_a_support_vector_that_is_no_vector_is_refused(vector):
    text = b"svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0\n"
    text += b"label 1 -1\nnr_sv 1 0\nSV\n"
    assert parse_members([("m", text + b"1 1:1\n")], [LINEAR], True).members
    with pytest.raises(ModelError):
        parse_members([("m", text + vector + b"\n")], [LINEAR], True)


@pytest.mark.parametrize("rho", [b"1e999", b"-1e999"])
def test_a_constant_that_is_not_finite_is_refused(rho):
    text = b"svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho %s\n" % rho
    text += b"label 1 -1\nnr_sv 1 0\nSV\n1 1:1\n"
    with pytest.raises(ModelError):
        parse_members([("m", text)], [LINEAR], True)
