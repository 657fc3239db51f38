"""How many replies `max_tokens` cut off, as the name of an estimator tells it.

Values of one estimator are compared whether or not replies were cut off: their intervals allow for
it. So the number stands behind the estimator and is no part of it.
"""

import re

_TOLD = re.compile(r" with (\d+ of \d+ replies) cut off\Z")


def told(estimator: str, cut: int, drawn: int) -> str:
    """The estimator, with how many of the replies drawn were cut off, if any."""
    return f"{estimator} with {cut} of {drawn} replies cut off" if cut else estimator


def untold(estimator: str) -> str:
    """The estimator alone."""
    return _TOLD.sub("", estimator)


def replies(estimator: str) -> str | None:
    """Which replies were cut off, as "3 of 10 replies"; None where none were."""
    found = _TOLD.search(estimator)
    return found.group(1) if found else None
