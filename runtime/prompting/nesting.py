"""Bounds lists within lists: a template that puts a list into another twice, again and again, makes
something small that no end of time can write or compare."""

from typing import Any, Final

from jinja2.exceptions import SecurityError
from jinja2.utils import Namespace

ITEMS: Final = 100_000
"""Lists within lists, each counted as often as it is reached."""
_NESTED = (list, tuple, dict, set, frozenset, Namespace)


def weigh(*values: Any) -> None:
    """Go through lists within lists, as whatever writes or compares them does.

    Raises:
        SecurityError: they are more than a prompt may take.
    """
    waiting: list[Any] = [each for each in values if isinstance(each, _NESTED)]
    count = 0
    while waiting:
        each = waiting.pop()
        if isinstance(each, Namespace):
            each = object.__getattribute__(each, "_Namespace__attrs")
        held = [*each, *each.values()] if isinstance(each, dict) else each
        inner = [one for one in held if isinstance(one, _NESTED)]
        count += len(inner)
        if count > ITEMS:
            raise SecurityError("a list of lists makes something too large for a prompt")
        waiting += inner
