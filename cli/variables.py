"""Environment variables that no command reads, which are likely misspelt."""

import os
import re
from difflib import get_close_matches
from typing import Any

PREFIX = "HOPSCOPE_"
ELSEWHERE = frozenset({"HOPSCOPE_API_KEY", "HOPSCOPE_TRACEBACK"})
"""Variables read outside options: by readers on a server, and at the end of the command."""
USUAL = "HOPSCOPE_DB"
"""Often set; known without loading all commands, which takes time."""
OF_TESTS = "HOPSCOPE_TEST_"


def unread() -> dict[str, str | None]:
    """The set variables beginning with `HOPSCOPE_` that nothing reads, each with the most similar
    known name."""
    begun = (name for name in sorted(os.environ) if name.startswith(PREFIX) and name != USUAL)
    given = [name for name in begun if name not in ELSEWHERE and not name.startswith(OF_TESTS)]
    if not given:
        return {}
    known = {name.removeprefix(PREFIX): name for name in sorted(names())}
    found: dict[str, str | None] = {}
    for name in given:
        own = name.removeprefix(PREFIX)
        if own not in known:
            similar = get_close_matches(own, known, n=1)
            found[name] = known[similar[0]] if similar else None
    return found


def names() -> frozenset[str]:
    """Every variable that a command reads."""
    from typer.main import get_command

    from hopscope.cli.commands import COMMANDS, mounted

    return ELSEWHERE | _of(get_command(mounted(COMMANDS)))


def _of(command: Any) -> set[str]:
    """The variables of a command's options; some that hold several lines are named only in the
    help."""
    found: set[str] = set()
    for parameter in command.params:
        envvar = parameter.envvar or ()
        found.update([envvar] if isinstance(envvar, str) else envvar)
        found.update(re.findall(r"HOPSCOPE_[A-Z0-9_]+", getattr(parameter, "help", None) or ""))
    for inner in getattr(command, "commands", {}).values():
        found |= _of(inner)
    return found
