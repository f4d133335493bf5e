"""Logs that survive being killed."""

from __future__ import annotations

import json
import os

import pytest

from resvm_cli.data.json_files import RunDirectory
from resvm_cli.errors import FileError, ParameterError

SETTINGS = {"seed": 1, "space": {"c": "1..2"}}


def run(path, settings=SETTINGS, resume=True):
    return RunDirectory(str(path), "trials.jsonl", settings, resume=resume)


def filled(path, count=3):
    made = run(path, resume=False)
    with made.opened() as records:
        assert records == []
        for number in range(count):
            made.append("trials.jsonl", {"trial": number, "score": number / 3})
    return (path / "trials.jsonl").read_bytes()


def test_what_was_appended_is_there_again(tmp_path):
    filled(tmp_path / "t")
    with run(tmp_path / "t").opened() as records:
        assert [record["trial"] for record in records] == [0, 1, 2]
        assert records[1]["score"] == 1 / 3


def test_a_torn_last_line_is_cut_off_wherever_it_was_torn(tmp_path):
    text = filled(tmp_path / "t")
    first_two = text[: text.rfind(b"\n", 0, -1) + 1]
    for end in range(len(first_two), len(text)):
        (tmp_path / "t" / "trials.jsonl").write_bytes(text[:end])
        made = run(tmp_path / "t")
        with made.opened() as records:
            assert len(records) == 2
            made.append("trials.jsonl", {"trial": 2, "score": 2 / 3})
        assert (tmp_path / "t" / "trials.jsonl").read_bytes() == text


def test_damage_before_the_end_is_refused_by_line(tmp_path):
    text = filled(tmp_path / "t")
    (tmp_path / "t" / "trials.jsonl").write_bytes(text.replace(b'"trial": 1', b'"trial" 1'))
    with (
        pytest.raises(FileError, match=r"trials.jsonl:2: the line is damaged"),
        run(tmp_path / "t").opened(),
    ):
        pass


@pytest.mark.parametrize("text", ["", "[1]", '{"a": 1', "[" * 100_000], ids=len)
def test_a_damaged_file_of_an_earlier_run_is_refused(text, tmp_path):
    filled(tmp_path / "t")
    assert run(tmp_path / "t").read("best.json") is None
    (tmp_path / "t" / "best.json").write_text('{"a": 1}')
    assert run(tmp_path / "t").read("best.json") == {"a": 1}
    (tmp_path / "t" / "best.json").write_text(text)
    with pytest.raises(FileError, match=r"best.json: the file is damaged"):
        run(tmp_path / "t").read("best.json")


def test_an_existing_directory_needs_resume(tmp_path):
    filled(tmp_path / "t")
    with pytest.raises(ParameterError, match="already exists"):
        run(tmp_path / "t", resume=False)


def test_resuming_begins_where_there_is_nothing_yet(tmp_path):
    for prepare in (lambda path: None, lambda path: path.mkdir()):
        path = tmp_path / f"t{id(prepare)}"
        prepare(path)
        with run(path).opened() as records:
            assert records == []
        assert json.loads((path / "settings.json").read_bytes()) == SETTINGS


def test_other_settings_are_refused_by_name(tmp_path):
    filled(tmp_path / "t")
    for settings, name in ((SETTINGS | {"seed": 2}, "seed"), (SETTINGS | {"outer": 2}, "outer")):
        other = run(tmp_path / "t", settings)
        with pytest.raises(ParameterError, match=f"different settings: {name}"), other.opened():
            pass


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "thesis.tex").write_text("x")
    other = run(tmp_path / "t")
    with pytest.raises(ParameterError, match="not written by this command"), other.opened():
        pass
    assert [entry.name for entry in (tmp_path / "t").iterdir() if entry.name[0] != "."] == [
        "thesis.tex"
    ]


def test_two_processes_do_not_write_to_one_log(tmp_path):
    second = run(tmp_path / "t")
    with run(tmp_path / "t").opened():
        os.close(unused := os.dup(0))
        with pytest.raises(FileError, match="another process"), second.opened():
            pass
        os.close(next_unused := os.dup(0))
        assert next_unused <= unused  # no file was left open
    with run(tmp_path / "t").opened():
        pass


def test_a_missing_parent_is_told_with_a_command_to_copy(tmp_path):
    made = run(tmp_path / "a; b" / "c")
    with pytest.raises(FileError, match="parent directory") as caught, made.opened():
        pass
    assert caught.value.hint == f"mkdir -p '{tmp_path}/a; b'"


def test_a_log_without_its_settings_is_refused(tmp_path):
    filled(tmp_path / "t")
    (tmp_path / "t" / "settings.json").unlink()
    with (
        pytest.raises(FileError, match=r"t: settings\.json is missing"),
        run(tmp_path / "t").opened(),
    ):
        pass
