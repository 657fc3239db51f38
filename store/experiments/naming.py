"""Names of experiments: one visible line, since tables and messages show them and commands take
them back."""

import unicodedata

from hopscope.runtime.errors import UsageError

HIDDEN = {"Cc", "Zl", "Zp"}
"""Unicode's categories of control characters and of separators of lines and paragraphs."""


def named(name: str) -> str:
    """The name.

    Raises:
        UsageError: it is blank, or has a line break or another control character.
    """
    if not name.strip():
        raise UsageError(f"the experiment's name {name!r} is blank: give one that can be seen")
    if any(unicodedata.category(character) in HIDDEN for character in name):
        raise UsageError(
            f"the experiment's name {name!r} has a line break or another control character: "
            "give one of a single line"
        )
    return name
