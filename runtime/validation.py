"""What pydantic refuses, in plain words: what to give instead."""

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_WORDS = {
    "bool_parsing": "give true or false",
    "decimal_parsing": "give a number",
    "extra_forbidden": "no such field is known; leave it out",
    "finite_number": "give a finite number",
    "float_parsing": "give a number",
    "float_type": "give a number",
    "greater_than": "give more than {gt}",
    "greater_than_equal": "give {ge} or more",
    "int_from_float": "give a whole number",
    "int_parsing": "give a whole number",
    "int_parsing_size": "give a smaller number",
    "int_type": "give a whole number",
    "less_than": "give less than {lt}",
    "less_than_equal": "give {le} or less",
    "literal_error": "choose {expected}",
    "missing": "it is missing",
    "value_error": "{error}",
}


def problem(detail: ErrorDetails) -> str:
    """One error of a `ValidationError`; pydantic's own words where we have none."""
    words = _WORDS.get(detail["type"])
    return words.format_map(detail.get("ctx", {})) if words else detail["msg"]


def first(error: ValidationError, *, whole: str) -> str:
    """The first error with its field, `a.0.b: choose 'x' or 'y'`, or with the name of the whole."""
    detail = error.errors()[0]
    return f"{'.'.join(map(str, detail['loc'])) or whole}: {problem(detail)}"
