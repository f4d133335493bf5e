"""Files that do not belong together: every other quick case; make hostile tries all."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from tests.conftest import ROOT
from tests.hostile import relations
from tests.hostile.relations import Case, Command, Result, wrong
from tests.programs import Ran, run, script_command

SCRIPT = """
import sys
from pathlib import Path
from tests.hostile import forked, relations
from tests.hostile.harm import harms
forked.warm_up()
folder = Path(sys.argv[1])
files = folder / "files"
relations.make_more_files(files)
cases = [case for case in relations.all_cases(files) if case.relation in relations.QUICK][::2]
tried = list(relations.strikes(files, folder / "related", cases))
print(len(tried), *harms, sep="\\n")
"""
SOUND = Result(Ran(0, b"1\n", ""), {"stdout": b"1\n"}, frozenset(), True)
COMMAND = Command("any", "any {P} -o {out}", {"P": "p"}, {"out": "o"})
ENCODED = Case(COMMAND, "gzip", "P", "", relations._repeat)
ONTO = Case(COMMAND, "is", "out", "P", relations._repeat, True)


def test_no_output_is_an_input_and_no_row_is_missed(sound_files, tmp_path):
    shutil.copytree(sound_files, tmp_path / "files")
    ran = run(script_command(SCRIPT, tmp_path), cwd=ROOT)
    assert ran.code == 0, ran.err
    tried, *harms = ran.out.decode().splitlines()
    assert not harms
    assert int(tried) >= 30


@pytest.mark.parametrize(
    ("case", "changed", "fault"),
    [
        (ENCODED, {}, None),
        (ENCODED, {"written": {"stdout": b"2\n"}}, "another result without a note"),
        (ENCODED, {"written": {}, "told": frozenset({"note  so"})}, None),
        (ENCODED, {"ran": Ran(3, b"", "resvm: error: no"), "written": {}}, None),
        (ENCODED, {"ran": Ran(3, b"", "")}, "refused without a word"),
        (ENCODED, {"ran": Ran(1, b"", "a bug")}, "exit 1: a bug"),
        (ENCODED, {"inputs_kept": False}, "an input was changed"),
        (ONTO, {"ran": Ran(2, b"", "resvm: error: no")}, None),
        (ONTO, {}, "exit 0 instead of 2: "),
    ],
)
def test_a_wrong_answer_is_noticed(case, changed, fault):
    assert wrong(case, SOUND, replace(SOUND, **changed)) == fault
