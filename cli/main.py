"""The `hopscope` command: runs what is asked for, turns errors into messages and exit codes.

Data goes to stdout, progress and messages to stderr. Exit codes: 0 all right, 1 something
failed, 2 the command was used wrongly, 130 stopped by Ctrl-C. Nothing heavy is imported until
a command needs it, and of the commands themselves only the one that is asked for.
"""

import atexit
import gc
import sys


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code; our errors become one message on stderr."""
    # Imports make nothing that could be freed: looking for it as often as usual takes a fifth of
    # the time to start.
    gc.set_threshold(200_000)
    # Nor is there any use in looking through all that is left when the process ends, which takes a
    # quarter of the time of `ls`.
    atexit.register(gc.freeze)
    from hopscope.cli.commands import COMMANDS, mounted
    from hopscope.cli.encoding import prepare
    from hopscope.cli.variables import unread
    from hopscope.runtime.errors import HopscopeError, UsageError
    from hopscope.runtime.text import storable

    prepare()
    for name, similar in unread().items():
        meant = f": did you mean {similar}?" if similar else ""
        print(f"hopscope: the environment variable {name} is not known{meant}", file=sys.stderr)
    given = sys.argv[1:] if arguments is None else arguments
    for argument in given:
        if storable(argument) != argument:
            told = f"the argument {storable(argument)!a} is not UTF-8"
            print(f"hopscope: {told}; U+FFFD stands for each byte that is not", file=sys.stderr)
    named = [name for name in given[:1] if name in COMMANDS]
    try:
        mounted(named or COMMANDS)(given)
    except HopscopeError as error:
        print(f"hopscope: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except OSError as error:  # a name that is too long for a file, a disk that fails
        if error.filename is None:
            raise
        print(f"hopscope: {storable(str(error.filename))}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
