"""Reads the fields of records and checks their types."""

from collections.abc import Mapping, Sequence
from typing import Any

from hopscope.runtime.corpora.records.reading import MalformedRecordError


def string(value: Mapping[str, Any], key: str) -> str:
    """A string; empty if the field is missing."""
    content = value.get(key)
    if content is None:
        return ""
    if not isinstance(content, str):
        raise MalformedRecordError(f"{key!r} must be a string, not {type(content).__name__}")
    return content


def body(value: Mapping[str, Any], key: str) -> str:
    """The text of a passage; an empty one is refused."""
    text = string(value, key)
    if not text.strip():
        problem = (
            f"{key!r} is empty" if key in value else f"no {key!r} among the keys {keys(value)}"
        )
        raise MalformedRecordError(
            f"{problem}; every passage needs a text: fill it in or drop the record"
        )
    return text


def identity(value: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is present, as text; empty if none is."""
    for name in names:
        content = value.get(name)
        if content is None:
            continue
        if isinstance(content, int) and not isinstance(content, bool):
            return str(content)
        if isinstance(content, str) and content.strip():
            return content
        raise MalformedRecordError(
            f"{name!r} must be a non-empty string or an integer; otherwise leave it out"
        )
    return ""


def objects(value: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    """A list of objects."""
    content = value.get(key)
    if not isinstance(content, list) or not all(isinstance(each, Mapping) for each in content):
        raise MalformedRecordError(f"{key!r} must be a list of objects")
    return content


def strings(content: object, where: str) -> Sequence[str]:
    """A list of strings."""
    if not isinstance(content, list) or not all(isinstance(each, str) for each in content):
        raise MalformedRecordError(f"{where} must hold lists of strings")
    return content


def keys(value: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, value)) or "(none)"
