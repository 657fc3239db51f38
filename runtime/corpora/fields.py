"""Fields of records, checked."""

from collections.abc import Mapping, Sequence
from typing import Any

from hopscope.runtime.corpora.reading import Malformed


def string(value: Mapping[str, Any], key: str) -> str:
    """A string, or empty if there is none."""
    found = value.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise Malformed(f"{key!r} must be a string, not {type(found).__name__}")
    return found


def body(value: Mapping[str, Any], key: str) -> str:
    """The text of a passage, which is not empty."""
    found = string(value, key)
    if not found.strip():
        problem = (
            f"{key!r} is empty" if key in value else f"no {key!r} among the keys {keys(value)}"
        )
        raise Malformed(f"{problem}; every passage needs a text: fill it in or drop the record")
    return found


def identity(value: Mapping[str, Any], *names: str) -> str:
    """The first id there is, as text; empty if there is none."""
    for name in names:
        found = value.get(name)
        if found is None:
            continue
        if isinstance(found, int) and not isinstance(found, bool):
            return str(found)
        if isinstance(found, str) and found.strip():
            return found
        raise Malformed(f"{name!r} must be a non-empty string or an integer; leave it out else")
    return ""


def objects(value: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    """A list of objects."""
    found = value.get(key)
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise Malformed(f"{key!r} must be a list of objects")
    return found


def strings(found: object, where: str) -> Sequence[str]:
    """A list of strings."""
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise Malformed(f"{where} must hold lists of strings")
    return found


def keys(value: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, value)) or "(none)"
