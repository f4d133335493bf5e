"""The command line: register commands, and turn signals and errors into exit codes."""

from __future__ import annotations

import atexit
import errno
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.main import get_command

from resvm_cli import __version__
from resvm_cli import threads as parallel
from resvm_cli.cli import terminal
from resvm_cli.cli.option_groups import (
    add_config,
    arrange,
    forbid_overwriting_inputs,
    shorten_help,
)
from resvm_cli.data.atomic import remove_unfinished
from resvm_cli.data.streams import guard_stdout
from resvm_cli.errors import (
    SIGNALS,
    ClosedPipe,
    CommandLineError,
    Interrupted,
    MachineError,
    ResvmError,
)
from resvm_cli.run import signal_arrived

EVERYDAY = ("rank", "train", "predict", "score", "inspect")
COMMANDS = (*EVERYDAY, "tune", "check", "convert", "merge", "simulate")  # in the order of --help
DEBUG = "--debug"

# Typer bundles its own Click without exporting UsageError, the parent of BadParameter.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

# LIBSVM's options and their equivalents in resvm.
OF_LIBSVM = {
    "-s": "all members are C-SVMs; --method chooses resvm, bagging or cwsvm",
    "-w": "--w-pos replaces -w1 as the weight of P, and -c is the penalty for U",
    "-b": "resvm predict --probability adds the probability that a row is positive",
    "-v": "resvm tune -v N scores by cross-validation",
    "-l": "for svm-scale, use resvm train --scale minmax; for grid.py, resvm tune -c 0.03..32768",
}
FILES = (  # instead of svm-train train.svm model
    "files are options: -P pos.svm -U unl.svm -o model, or --data train.svm --positive-label 1"
)


def _show_version(wanted: bool) -> None:
    if wanted:
        terminal.print_data(f"resvm {__version__}\n")
        raise typer.Exit


def resvm(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
    debug: Annotated[
        bool, typer.Option(DEBUG, help="Show a traceback if resvm crashes (or set RESVM_DEBUG=1).")
    ] = False,
) -> None:
    """Learn from positive and unlabeled data with robust ensembles of SVMs.

    P is a set of rows known to be positive, U all other rows. What you do not say is searched, in
    seconds; what you say is fixed. Only data goes to stdout; progress and errors go to stderr.

    Exit codes: 0 success, 1 a bug in resvm, 2 invalid command line, 3 invalid input data, 4 invalid
    model, 5 reading or writing failed, 130/143 interrupted.

    To get started:

    - `resvm rank -P pos.svm -U unl.svm --html ranking.html > ranking.tsv`
    - `resvm train -P pos.svm -U unl.svm -o model`
    - `resvm predict model new.svm > new.pred`
    """
    if debug:
        os.environ["RESVM_DEBUG"] = "1"


def app_of(names: Sequence[str]) -> typer.Typer:
    """Return the application with only these commands, because importing all of them is slow."""
    app = typer.Typer(
        name="resvm",
        rich_markup_mode="markdown",  # joins the lines of a paragraph
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(resvm)
    for name in names:
        panel = "Everyday commands" if name in EVERYDAY else "Other commands"
        command = getattr(import_module(f"resvm_cli.commands.{name}"), name)
        app.command(rich_help_panel=panel)(command)
    return app


def command_line(names: Sequence[str]) -> Any:
    """Return the program with these commands, including path checks and sorted help."""
    program: Any = get_command(app_of(names))
    for name, command in program.commands.items():
        add_config(command, name, COMMANDS)
        shorten_help(command)
        arrange(command.params)
        forbid_overwriting_inputs(command)
    return program


def _commands_to_import(arguments: Sequence[str]) -> Sequence[str]:
    """Return the commands that must be imported to parse these arguments."""
    if arguments[:1] == [DEBUG]:
        return _commands_to_import(arguments[1:])
    if arguments[:1] == ["--version"]:
        return ()
    return arguments[:1] if arguments[:1] and arguments[0] in COMMANDS else COMMANDS


def _with_help(arguments: list[str]) -> list[str]:
    """Read ``help``, ``help COMMAND`` and ``version`` as the options of these names."""
    if arguments in ([], ["help"]):
        return ["--help"]
    if arguments[0] == "help":
        return [*arguments[1:], "--help"]
    return ["--version"] if arguments == ["version"] else arguments


def _interrupt(number: int, frame: FrameType | None) -> None:
    del frame
    signal_arrived(number)


def main() -> NoReturn:
    """Run resvm and exit with its exit code."""
    parallel.limit_blas_threads()
    guard_stdout()
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored in background jobs
            signal.signal(number, _interrupt)
    arguments = _with_help(sys.argv[1:])
    try:
        # set the program name, even for python -m resvm_cli
        code = command_line(_commands_to_import(arguments))(
            arguments, prog_name="resvm", standalone_mode=False
        )
    except UsageError as error:
        _fail(explain_usage_error(error, arguments))
    except ResvmError as error:
        _fail(error)
    except ClosedPipe:
        sys.exit(0)
    except (MemoryError, SystemError):  # the second if a library does not say why its C code failed
        _fail(MachineError("out of memory", "use fewer or smaller bags, or -j 1"))
    except ImportError as error:  # loading a library fails if address space is limited
        hint = "is memory limited (ulimit -v)?"
        _fail(MachineError(f"cannot load a library: {error}", hint))
    except Interrupted as error:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # cleanup must not be interrupted
        remove_unfinished()
        terminal.say("resvm: interrupted")
        os._exit(error.exit_code)  # a solver may still be running, and a C call cannot be canceled
    except Exception as error:  # noqa: BLE001 - any other exception is a bug, reported here
        if isinstance(error, OSError) and error.errno == errno.EMFILE:  # while loading a library
            _fail(MachineError("too many open files", "raise the limit (ulimit -n), or use -j 1"))
        _report_bug(error)
        sys.exit(1)
    sys.exit(code or 0)


def explain_usage_error(error: Any, arguments: Sequence[str]) -> CommandLineError:
    """Return Click's error with a hint for those who expect LIBSVM's options or arguments."""
    words = ["resvm", *(word for word in arguments[:1] if word in COMMANDS)]
    command = " ".join(words) if error.ctx is None else error.ctx.command_path
    message = error.format_message()
    hint = OF_LIBSVM.get(getattr(error, "option_name", ""))
    if hint is None and "unexpected" in message and words[-1] in ("train", "tune", "rank"):
        hint = FILES
    shown = f"`{command} --help{'-all' * (' ' in command)}` lists all options"
    return CommandLineError(message, hint or shown)


def _fail(error: ResvmError) -> NoReturn:
    terminal.show_error(error)
    sys.exit(error.exit_code)


def _report_bug(error: Exception) -> None:
    """Report a bug in one line, with a traceback only if RESVM_DEBUG is set."""
    if os.environ.get("RESVM_DEBUG", "0") not in ("", "0"):
        import traceback

        for line in "".join(traceback.format_exception(error)).splitlines():
            terminal.say(line)
    kind = type(error).__name__
    terminal.say(f"resvm: this is a bug in resvm {__version__}: {kind}: {error}")
    terminal.say(f"  hint: please report it with the output of `resvm {DEBUG} ...`")


def program() -> NoReturn:
    """Run resvm and skip the interpreter's shutdown, which takes longer than some commands."""
    try:
        main()
    except SystemExit as done:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):  # closed, or its reader is gone
                stream.flush()
        os._exit(done.code if isinstance(done.code, int) else 0 if done.code is None else 1)
    except MemoryError:  # while an error was being reported
        os.write(2, b"resvm: error: out of memory\n")
        os._exit(MachineError.exit_code)
