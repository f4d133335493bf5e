"""The program before its modules are imported."""

from __future__ import annotations

import pytest

from tests.programs import (
    run,
    script_command,
)


@pytest.mark.parametrize("module", ["typer", "numpy"])
def test_an_interrupt_while_modules_are_imported_is_no_traceback(module, model, resvm, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # as in a terminal
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            sys.meta_path.remove(self)\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
    )
    ran = resvm("inspect", model, env={"PYTHONPATH": str(tmp_path)})
    assert ran.code == 130, ran.err
    assert "Traceback" not in ran.err


def test_a_library_that_cannot_be_loaded_is_exit_5():
    script = "import sys; sys.modules['typer'] = None; from resvm_cli import __main__ as main"
    ran = run(script_command(f"{script}; main.program()"))
    assert (ran.code, ran.out) == (5, b"")
    assert ran.err.startswith("resvm: error: cannot load a library: import of typer halted")
    assert ran.err.endswith("\n  hint: are memory or open files limited (ulimit -v -n)?\n")
