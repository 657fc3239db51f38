"""Environment variables that no command reads, which are likely misspelt."""

import os
from typing import Any

from hopscope.cli.options.configuration import variables
from hopscope.runtime.choices import nearest

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
            similar = nearest(own, known)
            found[name] = known[similar] if similar else None
    return found


def names() -> frozenset[str]:
    """Every variable that a command reads."""
    from typer.main import get_command

    from hopscope.cli.commands import COMMANDS, mounted

    return ELSEWHERE | _of(get_command(mounted(COMMANDS)))


def _of(command: Any) -> set[str]:
    """The variables of a command and those below it."""
    found: set[str] = set()
    for parameter in command.params:
        found.update(variables(parameter))
    for inner in getattr(command, "commands", {}).values():
        found |= _of(inner)
    return found
