"""Names of experiments: one visible line, since tables and messages show them and commands take
them back."""

from hopscope.runtime.errors import UsageError


def named(name: str) -> str:
    """The name.

    Raises:
        UsageError: it is blank, or has a line break, a control character, a mark of direction or
            another character that no output shows as it is.
    """
    if not name.strip():
        raise UsageError(f"the experiment's name {name!r} is blank: give one that can be seen")
    if not name.isprintable():
        odd = next(character for character in name if not character.isprintable())
        raise UsageError(
            f"the experiment's name {name!r} has a line break, a control character or another that "
            f"output drops, {odd!r}: give one of a single line, without it"
        )
    return name
