"""What somebody may have meant who named something that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(given: str, choices: Iterable[str]) -> str | None:
    """The choice most like what was given; None where none is like it."""
    return next(iter(get_close_matches(given, list(choices), n=1)), None)


def did_you_mean(given: str, choices: Iterable[str]) -> str:
    """A question for the end of a message, or nothing."""
    similar = nearest(given, choices)
    return f"; did you mean {similar}?" if similar else ""
