"""JSON, TOML and whole numbers that somebody else wrote.

Python's own parsers end with a `RecursionError` where values are nested too deep, and with advice
to programmers where a number has thousands of digits. Here each refusal is a `ValueError` in words.
"""

import json
import sys
import tomllib
from typing import Any

_DECODER = json.JSONDecoder()
DIGITS = 18
"""Most digits of a whole number; so many fit into 64 bits, as all databases take."""


def json_value(text: str | bytes) -> Any:
    """The value of a text of JSON.

    Raises:
        ValueError: the text is no JSON (`json.JSONDecodeError`) or not UTF-8, is nested too deep,
            or has a number with too many digits.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _told(error, "JSON") from None


def json_at(text: str, start: int) -> tuple[Any, int]:
    """The JSON value that begins at a place of a text, and the place of its end.

    Raises:
        ValueError: as `json_value`.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        raise _told(error, "JSON") from None


def toml_table(text: str) -> dict[str, Any]:
    """The tables of a text of TOML.

    Raises:
        ValueError: as `json_value`, with `tomllib.TOMLDecodeError`.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise _told(error, "TOML") from None


def whole_number(text: str) -> int | None:
    """The number that a text spells by at most `DIGITS` digits, with or without a minus sign; None
    if it spells none."""
    digits = text.removeprefix("-")
    spelled = len(digits) <= DIGITS and digits.isascii() and digits.isdecimal()
    return int(text) if spelled else None


def _told(error: ValueError | RecursionError, form: str) -> ValueError:
    if isinstance(error, RecursionError):
        return ValueError(f"{form} that is nested too deep")
    if type(error) is ValueError:  # what is no JSON or TOML has a type of its own
        return ValueError(f"a number with more than {sys.get_int_max_str_digits():,} digits")
    return error
