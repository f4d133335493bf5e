"""Parts of a model: continued where they stopped, and refused if they differ or are damaged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from resvm_cli.data.json_files import read_sealed, write_with_digest
from resvm_cli.errors import ModelError, ParameterError, ResvmError
from resvm_cli.parameters import Params
from resvm_cli.run import Run
from resvm_cli.tuning.learn import merge
from tests.commands.test_merge import parts_of
from tests.conftest import assert_exit, setting
from tests.programs import run_resvm
from tests.tuning.test_learn import FEATURES, data, files, train_members


def test_a_part_is_continued_where_it_stopped(tmp_path):
    params = Params(n_models=10, n_unl=20)
    path = tmp_path / "part"
    assert train_members(data(), [setting(params)], range(10), str(path), Run()) == 10
    finished = files(path)
    for number in (2, 3, 9):
        (path / f"members/{number:05d}.json").unlink()
    (path / "members/00003.model").write_bytes(b"half")
    assert train_members(data(), [setting(params)], range(10), str(path), Run()) == 3
    assert files(path) == finished
    assert train_members(data(), [setting(params)], range(10), str(path), Run()) == 0


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ({"seed": 1}, "seed"),
        ({"n_unl": 21}, "groups"),
        ({"kernel": "linear"}, "groups"),
        ({"features": FEATURES * 2}, "data"),
        ({"scale": "maxabs"}, "groups, scalings"),
        ({"groups": np.arange(len(FEATURES)) // 2}, r"data\.groups"),
        ({"scale": "quantile"}, "groups"),
        ({"feature_weights": "relevance"}, "groups"),
    ],
)
def test_parts_of_different_models_are_not_joined(other, word, tmp_path):
    settings = {name: other.pop(name) for name in ("features", "scale", "groups") if name in other}
    asked = {"n_models": 4, "n_unl": 20} | other
    plain, changed = (setting(Params(**one)) for one in ({"n_models": 4, "n_unl": 20}, asked))
    train_members(data(), [plain], range(2), str(tmp_path / "a"), Run())
    train_members(data(**settings), [changed], range(2, 4), str(tmp_path / "b"), Run())
    with pytest.raises(ModelError, match=f"different models: .*{word}"):
        merge([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "m"), Run())
    assert not (tmp_path / "m").exists()


def test_gaps_and_overlaps_are_named(tmp_path):
    params = Params(n_models=12, n_unl=20)
    for name, members in (("a", range(3)), ("b", range(4, 8)), ("c", range(6, 9))):
        train_members(data(), [setting(params)], members, str(tmp_path / name), Run())
    a, b, c = (str(tmp_path / name) for name in "abc")
    with pytest.raises(ModelError, match=r"5 of 12 members are missing: 3,8-11"):
        merge([a, b], str(tmp_path / "m"), Run())
    with pytest.raises(ModelError, match="at member 6, but another part has members up to 7"):
        merge([a, b, c], str(tmp_path / "m"), Run())


def test_another_machine_is_noted_and_joined(tmp_path):
    params = Params(n_models=4, n_unl=20)
    for name, members in (("a", range(2)), ("b", range(2, 4))):
        train_members(data(), [setting(params)], members, str(tmp_path / name), Run())
    _edit(
        tmp_path / "b/part.json",
        lambda header: header["description"].update(numeric_fingerprint="0123456789abcdef"),
    )
    notes: list[str] = []
    merge(
        [str(tmp_path / "a"), str(tmp_path / "b")],
        str(tmp_path / "m"),
        Run(on_message=lambda kind, text: notes.append(text)),
    )
    assert "numeric_fingerprint" in notes[0]


@pytest.mark.parametrize("name", ["part.json", "members/00001.json", "members/00001.model"])
@pytest.mark.parametrize("change", ["flip", "cut", "append", "gone"])
def test_a_damaged_part_is_refused_by_name(name, change, tmp_path):
    params = Params(n_models=2, n_unl=20)
    train_members(data(), [setting(params)], range(2), str(tmp_path / "a"), Run())
    path = tmp_path / "a" / name
    content = path.read_bytes()
    if change == "gone":
        path.unlink()
    else:
        flipped = content[:40] + bytes([content[40] ^ 1]) + content[41:]
        path.write_bytes({"flip": flipped, "cut": content[:-9], "append": content + b" "}[change])
    expected = "members are missing" if (change, name[-5:]) == ("gone", ".json") else name
    if (change, name) == ("gone", "part.json"):
        expected = "part.json"
    with pytest.raises(ModelError, match=expected):
        merge([str(tmp_path / "a")], str(tmp_path / "m"), Run())
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("encoding", [{}, {"columns": 3}, {"features": ["a", "a"]}])
def test_a_part_with_a_damaged_encoding_is_refused(encoding, tmp_path):
    params = Params(n_models=2, n_unl=20)
    train_members(data(), [setting(params)], range(2), str(tmp_path / "a"), Run())
    _edit(tmp_path / "a/part.json", lambda header: header["description"].update(encoding=encoding))
    with pytest.raises(ModelError, match=r"part\.json"):
        merge([str(tmp_path / "a")], str(tmp_path / "m"), Run())


def test_a_member_with_another_number_is_refused_and_trained_again(tmp_path):
    settings, path = [setting(Params(n_models=2, n_unl=20))], tmp_path / "a"
    train_members(data(), settings, range(2), str(path), Run())
    finished, member = files(path), path / "members/00001.model"
    text = member.read_bytes()
    at = text.rindex(b"1")
    member.write_bytes(text[:at] + b"2" + text[at + 1 :])  # still undamaged
    with pytest.raises(ModelError, match=r"00001\.model: changed"):
        merge([str(path)], str(tmp_path / "m"), Run())
    assert train_members(data(), settings, range(2), str(path), Run()) == 1
    assert files(path) == finished


def test_parts_that_scored_other_rows_out_of_bag_are_not_joined(tmp_path):
    params = Params(n_models=4, n_unl=20)
    for name, members in (("a", range(2)), ("b", range(2, 4))):
        train_members(data(), [setting(params)], members, str(tmp_path / name), Run())
    _edit(tmp_path / "b/part.json", lambda header: header["judged"][1].reverse())
    with pytest.raises(ModelError, match="different models: out-of-bag rows differ"):
        merge([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "m"), Run())


@pytest.mark.parametrize("number", [-1, 2**53, 1.0, True, None])
def test_judged_rows_that_are_no_row_numbers_are_refused(number, tmp_path):
    params = Params(n_models=2, n_unl=20)
    train_members(data(), [setting(params)], range(2), str(tmp_path / "a"), Run())
    _edit(tmp_path / "a/part.json", lambda header: header["judged"][1].append(number))
    with pytest.raises(ModelError, match=r"part\.json"):
        merge([str(tmp_path / "a")], str(tmp_path / "m"), Run())


def test_another_part_is_not_written_over(tmp_path):
    params = Params(n_models=4, n_unl=20)
    train_members(data(), [setting(params)], range(2), str(tmp_path / "a"), Run())
    with pytest.raises(ParameterError, match="part of another model"):
        train_members(data(), [setting(params)], range(3), str(tmp_path / "a"), Run())


def _edit(path: Path, change) -> None:
    import hashlib

    header = json.loads(path.read_bytes().split(b"\n")[0])
    change(header)
    body = json.dumps(header)
    path.write_text(f"{body}\n{hashlib.sha256(body.encode()).hexdigest()}\n")


STRANGE = (10**400, -1, 10**12, 0.5, 1e300, "x", None, [], {}, True, "missing")


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: str(value)[:8])
def test_no_part_is_a_bug_even_with_a_digest(value, problem, tmp_path):
    (part,) = parts_of(problem, 1, tmp_path, "--n-models", 2, "-q")
    for name in ("part.json", "members/00000.json"):
        whole = (part / name).read_bytes()
        for path in places(read_sealed(str(part / name))):
            content = read_sealed(str(part / name))
            holder = content
            for key in path[:-1]:
                holder = holder[key]
            if value == "missing":
                del holder[path[-1]]
            else:
                holder[path[-1]] = value
            write_with_digest(str(part / name), content)
            with suppress(ResvmError):
                merge([str(part)], str(tmp_path / "m"), Run(), force=True)
            (part / name).write_bytes(whole)


def places(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Yield the path to every value inside a file; only the first two entries of a list."""
    entries = list(value.items()) if isinstance(value, dict) else []
    if isinstance(value, list):
        entries = list(enumerate(value))[:2]
    for key, entry in entries:
        yield (*path, key)
        yield from places(entry, (*path, key))


def test_numbers_that_no_double_holds_are_damage(problem, tmp_path):
    (part,) = parts_of(problem, 1, tmp_path, "--n-models", 2, "-q")
    for body in (b'{"kind": 1e400}', b"[" * 100_000, b'{"kind": NaN}', b'{"a": 1, "a": 1}'):
        digest = hashlib.sha256(body).hexdigest().encode()
        (part / "part.json").write_bytes(body + b"\n" + digest + b"\n")
        ran = run_resvm("merge", part, "-o", tmp_path / "m")
        assert (ran.code, "part.json: damaged or edited" in ran.err) == (4, True), ran.err


def test_a_part_with_a_damaged_member_is_not_merged(problem, resvm, tmp_path):
    parts = parts_of(problem, 2, tmp_path, "--n-models", 5)
    members = parts[0] / "members"
    text = (members / "00000.model").read_bytes().replace(b"nr_class 2", b"nr_class 3")
    (members / "00000.model").write_bytes(text)
    record = read_sealed(str(members / "00000.json"))
    record |= {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    write_with_digest(str(members / "00000.json"), record)
    assert_exit(resvm("merge", *parts, "-q", "-o", tmp_path / "m"), 4, "00000.model")
    assert sorted(tmp_path.iterdir()) == parts
