"""The number of replies that `max_tokens` cut off, written behind an estimator's name.

Values of one estimator are comparable whether or not replies were cut off: their intervals allow
for it. So the number follows the name and is not part of it.
"""

import re

_TOLD = re.compile(r" with (\d+ of \d+ replies) cut off\Z")


def told(estimator: str, cut: int, drawn: int) -> str:
    """The estimator with the number of replies cut off, if any."""
    return f"{estimator} with {cut} of {drawn} replies cut off" if cut else estimator


def untold(estimator: str) -> str:
    """The estimator without that number."""
    return _TOLD.sub("", estimator)


def replies(estimator: str) -> str | None:
    """The replies that were cut off, as "3 of 10 replies"; None for none."""
    match = _TOLD.search(estimator)
    return match.group(1) if match else None
