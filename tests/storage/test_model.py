"""The model directory: whole or absent, intact or refused."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from resvm_cli.data import atomic
from resvm_cli.ensemble.decisions import DecisionRule, OutOfBag
from resvm_cli.ensemble.ensemble import Ensemble, Predictor
from resvm_cli.errors import FileError, ModelError, ParameterError
from resvm_cli.rows import Rows
from resvm_cli.storage import members
from resvm_cli.storage import model as directory
from resvm_cli.storage.members import format_members
from tests.ensemble.test_ensemble import KERNELS, ensemble

GROUP = {
    "members": 3,
    "weight": 1.0,
    "shift": 0.0,
    "scale": 1.0,
    "kernel": {"name": "rbf", "gamma": 0.2},
    "parameters": {
        "c_pos": 1.0,
        "c_unl": 1.0,
        "w_pos": 0.7,
        "n_models": 3,
        "n_pos": 5,
        "n_unl": 10,
        "tolerance": 0.001,
    },
    "solver": "libsvm",
    "scaling": None,
}
HUGE = {"value": 10**400, "recall": None, "fraction_unlabeled": None}
DESCRIPTION = {
    "method": "resvm",
    "seed": 0,
    "bags": "pcg64-1",
    "groups": [GROUP],
    "decision": DecisionRule.plain().description(),
    "n_features": 9,
    "zero_based": False,
    "labels": {"trained_on": 1.0},
    "scalings": [],
    "encoding": None,
    "data": {
        name: {"rows": 30, "nonzeros": 270, "sha256": "0" * 64}
        for name in ("positive", "unlabeled")
    },
    "unconverged": 0,
    "versions": {"resvm": "0", "numpy": "0"},
    "numeric_fingerprint": "0",
}


def save(path: str, machine: Ensemble, **more) -> None:
    n_models = len(machine.members)
    parameters = GROUP["parameters"] | {"n_models": n_models}
    groups = [GROUP | {"members": n_models, "parameters": parameters}]
    description = DESCRIPTION | {"groups": groups}
    directory.save_model(path, format_members(machine), description, **more)


@pytest.fixture
def stored(tmp_path) -> Path:
    path = tmp_path / "model"
    save(str(path), ensemble(KERNELS[2], n_models=3), force=False)
    return path


def files(path: Path) -> list[Path]:
    return sorted(found for found in path.rglob("*") if found.is_file())


def snapshot(path: Path) -> dict[str, bytes]:
    return {str(found.relative_to(path)): found.read_bytes() for found in files(path)}


def rewrite(path: Path, **changes) -> None:
    """Edit a manifest as a forger would, its own digest made right again."""
    manifest = json.loads((path / "manifest.json").read_text()) | changes
    manifest["manifest_sha256"] = directory._own_digest(manifest)
    (path / "manifest.json").write_bytes(directory._render(manifest))


def test_what_was_saved_is_loaded(stored):
    machine = ensemble(KERNELS[2], n_models=3)
    rows = Rows.from_dense(np.random.default_rng(0).standard_normal((20, 9)))
    again = directory.load_model(str(stored)).ensemble
    assert (
        Predictor(again).decisions(rows).values.tobytes()
        == Predictor(machine).decisions(rows).values.tobytes()
    )


@pytest.mark.thorough
def test_any_changed_byte_of_any_file_is_refused(stored):
    rng = np.random.default_rng(0)
    for path in files(stored):
        whole = path.read_bytes()
        for position in {0, len(whole) - 1, *rng.integers(0, len(whole), 60).tolist()}:
            for change in (whole[position] ^ 1, ord(" "), ord("\n"), 0, 0xFF):
                if change == whole[position]:
                    continue
                path.write_bytes(whole[:position] + bytes([change]) + whole[position + 1 :])
                with pytest.raises(ModelError):
                    directory.load_model(str(stored))
        for edited in (
            whole[:-1],
            whole + b"\n",
            whole + whole,
            b"",
            whole.replace(b"\n", b"\r\n"),
        ):
            path.write_bytes(edited)
            with pytest.raises(ModelError):
                directory.load_model(str(stored))
        path.write_bytes(whole)
    directory.load_model(str(stored))


def test_a_removed_line_and_a_removed_file_are_reported_by_name(stored):
    path = stored / "members" / "00001.model"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(ModelError, match=r"members/00001\.model: changed since it was written"):
        directory.load_model(str(stored))
    path.unlink()
    with pytest.raises(ModelError, match=r"members/00001\.model: cannot read"):
        directory.load_model(str(stored))


def test_a_consistent_forgery_is_parsed_with_care(stored):
    path = stored / "members" / "00001.model"
    entries = json.loads((stored / "manifest.json").read_text())["members"]
    lines = path.read_bytes().splitlines(keepends=True)
    text = b"".join(lines[:-1])
    path.write_bytes(text)
    entries[1] |= {"sha256": hashlib.sha256(text).hexdigest(), "bytes": len(text)}
    rewrite(stored, members=entries)
    with pytest.raises(ModelError, match=r"00001\.model: .* expected 8 support vectors"):
        directory.load_model(str(stored))


@pytest.mark.parametrize(
    "changes",
    [
        {"groups": [GROUP | {"kernel": {"name": "fourier"}}]},
        {"groups": [GROUP | {"kernel": None}]},
        {"groups": [GROUP | {"kernel": {"name": "rbf", "gamma": "x"}}]},
        {"groups": [GROUP | {"kernel": {"name": "rbf", "gamma": -0.2}}]},
        {"groups": [GROUP | {"kernel": {"name": "rbf", "gamma": 10**400}}]},
        {"groups": [GROUP | {"kernel": {"name": "rbf", "gamma": 0.2, "degree": -3}}]},
        {"groups": [GROUP | {"kernel": {"name": "rbf", "gamma": 0.2, "more": 1}}]},
        {"groups": [GROUP | {"kernel": {"name": "poly", "gamma": 1, "coef0": 0, "degree": 2.5}}]},
        {"groups": [GROUP | {"members": 2}]},
        {"groups": [GROUP | {"weight": 0.0}]},
        {"groups": [GROUP | {"weight": "1"}]},
        {"groups": [GROUP | {"scale": -1.0}]},
        {"groups": [GROUP | {"shift": 10**400}]},
        {"groups": [GROUP | {"solver": "other"}]},
        {"groups": [GROUP | {"parameters": GROUP["parameters"] | {"c_pos": "x"}}]},
        {"groups": [GROUP | {"parameters": GROUP["parameters"] | {"n_pos": 10**12}}]},
        {"groups": [GROUP | {"parameters": {}}]},
        {"groups": []},
        {"groups": None},
        {"groups": [None]},
        {"seed": -1},
        {"scalings": [{"kind": "minmax"}]},
        {"groups": [{name: GROUP[name] for name in GROUP if name != "scaling"}]},
        {"encoding": []},
        {"decision": {}},
        {"decision": {"rule": "other", "thresholds": {}}},
        {"decision": {"rule": "mean", "thresholds": {"votes": {}, "mean": {}}}},
        {
            "decision": {
                "rule": "mean",
                "thresholds": {"votes": HUGE, "mean": HUGE},
            }
        },
        {"method": "forest"},
        {"members": []},
        {"members": [{}]},
        {"members": 3},
        {"zero_based": []},
        {"zero_based": 0},
        {"data": None},
        {"data": {"positive": {"rows": 3, "sha256": "x"}}},
        {"data": DESCRIPTION["data"] | {"unlabeled": {"rows": 3, "nonzeros": [], "sha256": "x"}}},
        {"candidates": [3]},
        {"numeric_fingerprint": []},
        {"data": DESCRIPTION["data"] | {"groups": {"count": 3}}},
        {"members": [{"file": "a", "sha256": "b", "bytes": -1, "support_vectors": 1}]},
        {"members": [{"file": "a", "sha256": "b", "bytes": "1", "support_vectors": 1}]},
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(stored, changes):
    rewrite(stored, **changes)
    with pytest.raises(ModelError, match=r"manifest\.json"):
        directory.load_model(str(stored))


QUANTILES = {"kind": "quantile", "features": [1], "starts": [0, 1], "knots": [0], "heights": [0]}
SCALED = GROUP | {"scaling": "quantile"}


def rewrite_scaled(path: Path, **changes) -> None:
    rewrite(path, **{"scalings": [QUANTILES], "groups": [SCALED]} | changes)


def with_parameters(**changes):
    return SCALED | {"parameters": GROUP["parameters"] | changes}


def test_a_group_names_one_of_the_scalings(stored):
    rewrite_scaled(stored)
    ensemble = directory.load_model(str(stored)).ensemble
    assert list(ensemble.scalings) == ["quantile"]
    assert [group.scaling for group in ensemble.sections] == ["quantile"]
    rewrite_scaled(stored, groups=[with_parameters(relevance_power=2)])
    assert directory.load_model(str(stored)).plan.settings[0].feature_weights == "relevance:2"


@pytest.mark.parametrize(
    "changes",
    [
        {"scalings": []},  # the group's is missing
        {"scalings": None},
        {"scalings": {}},
        {"scalings": [None]},
        {"scalings": [{}]},
        {"scalings": [QUANTILES, QUANTILES]},
        {"scalings": [QUANTILES | {"kind": "other"}]},
        {"scalings": [QUANTILES | {"starts": [0, 2]}]},
        {"scalings": [QUANTILES | {"knots": 3}]},
        {"scalings": [QUANTILES | {"knots": [10**400]}]},
        {"scalings": [QUANTILES | {"features": "1"}]},
        {"groups": [GROUP | {"scaling": "standard"}]},
        {"groups": [GROUP | {"scaling": "log"}]},
        {"groups": [GROUP | {"scaling": ["quantile"]}]},
        {"groups": [GROUP | {"scaling": 0}]},
        {"groups": [with_parameters(relevance_power=0)]},
        {"groups": [with_parameters(relevance_power=-1.0)]},
        {"groups": [with_parameters(relevance_power="1")]},
        {"groups": [with_parameters(relevance_power=True)]},
        {"groups": [with_parameters(relevance_power=10**400)]},
    ],
    ids=str,
)
def test_scalings_and_powers_that_make_no_sense_are_refused(stored, changes):
    rewrite_scaled(stored, **changes)
    with pytest.raises(ModelError, match=r"manifest\.json"):
        directory.load_model(str(stored))


def test_kernels_of_different_rows_are_not_mixed(stored):
    smaller = {"members": 1, "parameters": GROUP["parameters"] | {"n_models": 1}}
    larger = {"members": 2, "parameters": GROUP["parameters"] | {"n_models": 2}}
    for kernel in ("tanimoto", "minmax", "precomputed"):
        groups = [GROUP | larger, GROUP | smaller | {"kernel": {"name": kernel}}]
        rewrite_scaled(stored, groups=groups)
        with pytest.raises(ModelError, match=r"manifest\.json: incomplete or inconsistent"):
            directory.load_model(str(stored))


@pytest.mark.parametrize("size", [10**15, 10**30])
def test_a_claimed_size_is_not_believed(stored, size):
    entries = json.loads((stored / "manifest.json").read_text())["members"]
    entries[0]["bytes"] = size
    rewrite(stored, members=entries)
    with pytest.raises(ModelError, match=r"00000\.model: changed"):
        directory.load_model(str(stored))


def test_another_format_number_is_refused_with_advice(stored):
    rewrite(stored, format=True)
    with pytest.raises(ModelError, match="format True"):
        directory.load_model(str(stored))
    rewrite(stored, format=2)
    with pytest.raises(ModelError, match="format 2; this version reads 1") as caught:
        directory.load_model(str(stored))
    assert "install" in str(caught.value.hint)


@pytest.mark.parametrize(
    "text", [b"[]", b"{}", b'{"kind": "other"}', b"not json", b"\xff", b"[" * 9999]
)
def test_a_foreign_manifest_is_refused(stored, text):
    (stored / "manifest.json").write_bytes(text)
    with pytest.raises(ModelError, match=r"manifest\.json"):
        directory.load_model(str(stored))


def test_no_model_there_is_said_plainly(tmp_path):
    with pytest.raises(ModelError, match="no such model directory"):
        directory.load_model(str(tmp_path / "nowhere"))
    with pytest.raises(ModelError, match=r"it has no manifest\.json"):
        directory.load_model(str(tmp_path))


def test_links_are_not_followed_and_pipes_not_opened(stored, tmp_path):
    member = stored / "members" / "00001.model"
    outside = tmp_path / "outside"
    shutil.move(member, outside)
    member.symlink_to(outside)
    with pytest.raises(ModelError, match=r"00001\.model: cannot read"):
        directory.load_model(str(stored))
    member.unlink()
    os.mkfifo(member)
    with pytest.raises(ModelError, match="not a regular file"):
        directory.load_model(str(stored))
    member.unlink()
    shutil.move(outside, member)
    directory.load_model(str(stored))
    shutil.move(stored / "members", tmp_path / "elsewhere")
    (stored / "members").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match="link"):
        directory.load_model(str(stored))


def test_a_target_is_refused_before_any_work(stored, tmp_path):
    with pytest.raises(ParameterError, match="a model already exists there"):
        directory.check_model_target(str(stored), force=False)
    directory.check_model_target(str(stored), force=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "file").write_text("precious")
    for other in ("mine", "file"):
        for force in (False, True):
            with pytest.raises(ParameterError, match="not a resvm model"):
                directory.check_model_target(str(tmp_path / other), force=force)
    with pytest.raises(ParameterError, match="parent directory does not exist") as caught:
        directory.check_model_target(str(tmp_path / "a b" / "c"), force=False)
    assert str(caught.value.hint) == f"mkdir -p '{tmp_path}/a b'"
    for name in ("", "-", "x" * 201):
        with pytest.raises(ParameterError, match=r"path` is|too long"):
            directory.check_model_target(name, force=True)
    directory.check_model_target(str(tmp_path / "new"), force=False)
    directory.check_model_target(str(tmp_path / ("x" * 200)), force=False)
    (stored / "notes.txt").write_text("precious")
    with pytest.raises(ParameterError, match="contains other files"):
        directory.check_model_target(str(stored), force=True)


def test_force_replaces_a_model_and_leaves_nothing_beside_it(stored):
    before = snapshot(stored)
    save(str(stored), ensemble(KERNELS[2], n_models=2), force=True)
    after = snapshot(stored)
    assert len(after) == 3
    assert after["members/00000.model"] != before["members/00002.model"]
    assert os.listdir(stored.parent) == ["model"]


def test_what_an_earlier_interruption_left_aside_is_no_obstacle(stored):
    shutil.copytree(stored, stored.parent / ".model.resvm-old")
    save(str(stored), ensemble(KERNELS[2], n_models=2), force=True)
    assert len(snapshot(stored)) == 3
    assert os.listdir(stored.parent) == ["model"]


def test_a_failed_replacement_leaves_the_old_model(stored, monkeypatch):
    before = snapshot(stored)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(FileError, match="No space left") as caught:
        save(str(stored), ensemble(KERNELS[2]), force=True)
    assert caught.value.exit_code == 5
    assert snapshot(stored) == before
    assert os.listdir(stored.parent) == ["model"]


def test_what_cannot_be_moved_from_aside_is_an_error_and_no_endless_wait(stored, monkeypatch):
    shutil.copytree(stored, stored.parent / ".model.resvm-old")
    before, real = snapshot(stored), os.rename

    def rename(source, target):
        if str(source).endswith(".resvm-old"):
            raise PermissionError(1, "Operation not permitted")
        real(source, target)

    monkeypatch.setattr(atomic.os, "rename", rename)
    with pytest.raises(FileError, match="cannot write: Operation not permitted"):
        save(str(stored), ensemble(KERNELS[2], n_models=2), force=True)
    assert snapshot(stored) == before


@pytest.mark.parametrize("step", ["aside", "in"])
def test_an_interrupted_replacement_is_recovered_by_the_next_reader(stored, monkeypatch, step):
    before = snapshot(stored)
    real = os.rename

    calls = []

    def rename(source, target):
        calls.append(target)
        if len(calls) == (1 if step == "aside" else 2):
            raise KeyboardInterrupt  # as if killed just before this rename
        real(source, target)

    monkeypatch.setattr(atomic.os, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        save(str(stored), ensemble(KERNELS[2], n_models=2), force=True)
    monkeypatch.undo()
    if step == "in":
        assert not stored.exists()
    directory.load_model(str(stored))
    assert snapshot(stored) == before


def test_not_even_force_overwrites_a_directory_that_is_no_model(stored, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("precious")
    with pytest.raises(FileError, match="was created during the run"):
        save(str(other), ensemble(KERNELS[2], n_models=2), force=True)
    assert (other / "notes.txt").read_text() == "precious"


def test_many_writers_and_readers_of_one_model_get_along(stored):
    machine = ensemble(KERNELS[2], n_models=2)
    faults: list[BaseException] = []

    def write_often() -> None:
        try:
            for _ in range(15):
                save(str(stored), machine, force=True)
        except BaseException as error:  # noqa: BLE001 - shown below
            faults.append(error)

    threads = [threading.Thread(target=write_often) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        atomic.recover(str(stored))
    assert faults == []
    directory.load_model(str(stored))
    assert os.listdir(stored.parent) == ["model"]


def test_saving_does_not_overwrite_what_appeared_meanwhile(stored):
    before = snapshot(stored)
    with pytest.raises(FileError, match="was created during the run"):
        save(str(stored), ensemble(KERNELS[2], n_models=2), force=False)
    assert snapshot(stored) == before


def test_a_link_to_a_model_is_kept_when_the_model_is_replaced(stored, tmp_path):
    link = tmp_path / "current"
    link.symlink_to(stored)
    save(str(link), ensemble(KERNELS[2], n_models=2), force=True)
    assert link.is_symlink()
    assert len(snapshot(stored)) == 3


def with_out_of_bag(path: Path) -> OutOfBag:
    table = OutOfBag(
        np.array([True, True, False]),
        np.array([1, 4, 2]),
        np.array([0.25, -3.5, -7.0]),
        np.array([0.1, -0.5, -1.0]),
        np.array([7, 9, 8]),
        np.zeros(3, bool),
    )
    machine = ensemble(KERNELS[2], n_models=3)
    save(str(path), machine, force=True, out_of_bag=table)
    return table


def test_out_of_bag_values_are_stored_and_read_only_when_asked_for(stored):
    table = with_out_of_bag(stored)
    manifest = directory.load_model(str(stored)).manifest
    assert manifest["out_of_bag"]["positives"] == 2
    assert manifest["out_of_bag"]["unlabeled"] == 1
    found = directory.load_out_of_bag(str(stored), manifest)
    assert found.values.tolist() == table.values.tolist()
    (stored / "out_of_bag.tsv").write_text("other")
    directory.load_model(str(stored))
    with pytest.raises(ModelError, match=r"out_of_bag\.tsv: changed since it was written"):
        directory.load_out_of_bag(str(stored), manifest)
    sound = table.format()
    (stored / "out_of_bag.tsv").write_bytes(sound[:-2] + bytes([sound[-2] ^ 1]) + sound[-1:])
    with pytest.raises(ModelError, match=r"out_of_bag\.tsv: changed since it was written"):
        directory.load_out_of_bag(str(stored), manifest)
    (stored / "out_of_bag.tsv").unlink()
    with pytest.raises(ModelError, match=r"out_of_bag\.tsv: cannot read"):
        directory.load_out_of_bag(str(stored), manifest)


def test_a_model_with_out_of_bag_values_is_still_only_a_model(stored):
    with_out_of_bag(stored)
    with_out_of_bag(stored)  # replaces itself
    directory.check_model_target(str(stored), force=True)


def test_a_model_without_out_of_bag_values_says_why(stored):
    manifest = directory.load_model(str(stored)).manifest
    for method in ("bagging", "cwsvm"):
        with pytest.raises(ModelError, match=f"{method} trains every member on all of P"):
            directory.load_out_of_bag(str(stored), manifest | {"method": method})
    del manifest["out_of_bag"]
    with pytest.raises(ModelError, match="no out-of-bag values"):
        directory.load_out_of_bag(str(stored), manifest)


def test_a_forged_table_of_out_of_bag_values_is_parsed_with_care(stored):
    with_out_of_bag(stored)
    for text in (b"nonsense\n", b"row\tdecision_value\tmembers\n"):
        (stored / "out_of_bag.tsv").write_bytes(text)
        digest = hashlib.sha256(text).hexdigest()
        entry = {"file": "x", "sha256": digest, "bytes": len(text), "positives": 2, "unlabeled": 1}
        rewrite(stored, out_of_bag=entry)
        with pytest.raises(ModelError, match=r"damaged|none is out of bag"):
            directory.load_out_of_bag(str(stored), directory.read_manifest(str(stored)))
    rewrite(stored, out_of_bag={"bytes": -1})
    with pytest.raises(ModelError, match="inconsistent"):
        directory.read_manifest(str(stored))


def test_members_are_written_in_order(tmp_path):
    machine = ensemble(KERNELS[2], n_models=9)
    save(str(tmp_path / "model"), machine, force=False)
    manifest = json.loads((tmp_path / "model" / directory.MANIFEST).read_text())
    for number, (text, entry) in enumerate(
        zip(format_members(machine), manifest["members"], strict=True)
    ):
        assert entry["file"] == members.member_name(number)
        assert entry["sha256"] == hashlib.sha256(text).hexdigest()
        assert (tmp_path / "model" / entry["file"]).read_bytes() == text


def test_nothing_is_left_if_a_member_cannot_be_made_or_written(tmp_path, monkeypatch):
    target = str(tmp_path / "model")

    def broken():
        yield from format_members(ensemble(KERNELS[2], n_models=3))
        raise ModelError("no more members")

    with pytest.raises(ModelError, match="no more members"):
        directory.save_model(target, broken(), DESCRIPTION, force=False)

    def no_room(path=None, text=None):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", no_room)
    with pytest.raises(FileError, match="No space left"):
        save(str(tmp_path / "model"), ensemble(KERNELS[2], n_models=3), force=False)
    assert list(tmp_path.iterdir()) == []
