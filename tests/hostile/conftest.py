"""Sound files of every kind, made once for all tests of attacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.programs import run, script_command

SCRIPT = """
import sys
from pathlib import Path
from tests.hostile import forked, seeds
forked.warm_up()
seeds.make_files(Path(sys.argv[1]))
"""


@pytest.fixture(scope="session")
def sound_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound") / "files"
    ran = run(script_command(SCRIPT, folder), cwd=ROOT)
    assert ran.code == 0, ran.err
    return folder
