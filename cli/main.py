"""The `hopscope` command: runs a command, and turns errors into messages and exit codes.

Data goes to stdout, progress and messages to stderr. Exit codes: 0 success, 1 failure, 2
wrong use, 130 stopped by Ctrl-C. Heavy modules are imported when a command needs them, and of the
commands only the one that runs.

Unexpected exceptions become messages, unless HOPSCOPE_TRACEBACK is set, as in the tests.
"""

import atexit
import gc
import os
import sys
from contextlib import suppress

STOPPED = 130
MARKED = "is not UTF-8; U+FFFD stands for each byte that is not"


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code; errors become one message on stderr."""
    _open_streams()
    try:
        _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # while modules are imported; commands handle their own
        print("hopscope: stopped", file=sys.stderr)
        sys.exit(STOPPED)
    except SystemExit as stop:
        # A command that does not handle Ctrl-C; typer ends it without a message.
        if stop.__context__ and isinstance(stop.__context__.__cause__, KeyboardInterrupt):
            print("hopscope: stopped", file=sys.stderr)
        raise
    finally:
        _write_out()


def _run(given: list[str]) -> None:
    # Imports make nothing that could be freed: looking for it as often as usual takes a fifth of
    # the time to start.
    gc.set_threshold(200_000)
    # Nor is there any use in looking through all that is left when the process ends, which takes a
    # quarter of the time of `ls`.
    atexit.register(gc.freeze)
    from hopscope.api.views.encoding import prepare
    from hopscope.cli.commands import COMMANDS, mounted
    from hopscope.cli.variables import unread
    from hopscope.cli.views.notes import attach
    from hopscope.runtime.errors import HopscopeError, UsageError
    from hopscope.runtime.texts.storable import storable

    prepare()
    attach()
    if os.environ.get("NO_COLOR"):
        from typer import rich_utils

        # Of help and of wrong use; rich would leave bold and dim.
        rich_utils.COLOR_SYSTEM = None
    for name, similar in unread().items():
        meant = f": did you mean {similar}?" if similar else ""
        _tell(f"the environment variable {name} is not known{meant}")
    for variable, value in os.environ.items():
        if variable.startswith("HOPSCOPE_") and storable(value) != value:
            _tell(f"the environment variable {variable} {MARKED}")  # its value may be a key
            os.environ[variable] = _marked(value)
    for argument in given:
        if storable(argument) != argument:
            _tell(f"the argument {storable(argument)!a} {MARKED}")
    given = [_marked(argument) for argument in given]
    named = [name for name in given[:1] if name in COMMANDS]
    try:
        mounted(named or COMMANDS)(given)
    except HopscopeError as error:
        _tell(str(error))
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except OSError as error:
        # A name that is too long for a file, a disk that is full.
        if error.filename is not None:
            _tell(f"{error.filename}: {error.strerror}")
            sys.exit(2)
        _tell(f"the output cannot be written: {error.strerror or error}; make room, then try again")
        _drop_output()
        sys.exit(1)
    except Exception as error:
        if os.environ.get("HOPSCOPE_TRACEBACK"):
            raise
        kind, said = type(error).__name__, str(error)
        _tell(
            f"unexpected {kind}{': ' if said else ''}{said}\n"
            "what was stored before is kept; HOPSCOPE_TRACEBACK=1 shows where it happened"
        )
        sys.exit(1)


def _marked(given: str) -> str:
    """An argument that can be stored and printed. One that names what is there, such as a file
    behind `hf:`, stays as it is."""
    from hopscope.runtime.texts.storable import storable

    marked = storable(given)
    if marked == given:
        return given
    pieces = given.replace("=", ",").replace(":", ",").split(",")
    there = (each for each in (given, *pieces) if storable(each) != each and os.path.lexists(each))
    return given if any(there) else marked


def _open_streams() -> None:
    """Redirect closed standard streams to the null device.

    A database would otherwise be opened under the number of stdout or stderr, and what libraries
    print there would be written into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # under the lowest free number, which is this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _tell(message: str) -> None:
    from hopscope.api.views.render import note
    from hopscope.runtime.code_files import shown
    from hopscope.runtime.texts.storable import bounded, storable

    note(bounded(shown(storable(message))))


def _write_out() -> None:
    """Flush stdout.

    Raises:
        SystemExit: it cannot be written.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        _drop_output()
        _tell(f"stdout: {error.strerror}")
        sys.exit(1)


def _drop_output() -> None:
    """Send what stdout still holds nowhere: Python would try to write it once more at the end."""
    with suppress(OSError):  # a stream in memory has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
