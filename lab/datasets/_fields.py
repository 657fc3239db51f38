"""Fields of JSON records, checked."""

from collections.abc import Mapping, Sequence
from typing import Any

from hopscope.lab.datasets import Judged, Malformed
from hopscope.runtime.corpora.layouts import hotpotqa
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.texts.storable import brief
from hopscope.runtime.types import Passage, Question
from hopscope.store.experiments.records import DatasetEntry

Fields = Mapping[str, Any]
NAMED = 60
"""Characters of a wrong value that an error repeats."""
LARGEST = 1000
"""Of whole numbers, which count hops; databases have bounds, too."""


def entry(
    record: Fields,
    answers: Sequence[str],
    *,
    key: str = "question",
    id: str = "id",
    kind: str = "",
    hops: int | None = None,
    supporting: Sequence[str] = (),
) -> DatasetEntry:
    """The fields of every form: a text under `key`, and an optional id under the key `id`."""
    asked = Question(text=text(record, key), answers=_distinct(answers), id=identity(record, id))
    return DatasetEntry(question=asked, kind=kind, hops=hops, supporting=_distinct(supporting))


def text(record: Fields, key: str) -> str:
    """A non-empty text."""
    value = record.get(key)
    if not isinstance(value, str) or not value.strip():
        got = "is missing" if value is None else f"is {_named(value)}"
        raise Malformed(f"{key!r} {got}; it must be a non-empty text")
    return value


def optional(record: Fields, *keys: str) -> str:
    """The text under the first of the keys that has one, else an empty text."""
    for key in keys:
        if record.get(key) is not None:
            if not isinstance(record[key], str):
                raise Malformed(f"{key!r} is {_named(record[key])}; it must be a text")
            found: str = record[key]
            return found
    return ""


def identity(record: Fields, key: str) -> str:
    """A text or a whole number, as text; empty if missing."""
    value = record.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return optional(record, key)


def whole(record: Fields, key: str) -> int | None:
    """A whole number from 1 to `LARGEST`, or None."""
    value = record.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST:
        raise Malformed(
            f"{key!r} is {_named(value)}; it must be a whole number from 1 to {LARGEST:,}"
        )
    return value


def texts(record: Fields, key: str) -> list[str]:
    """A list of texts; a single text is a list of one, a missing field the empty list."""
    value = record.get(key)
    if value is None:
        return []
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list):
        raise Malformed(f"{key!r} is {_named(value)}; it must be a text or a list of texts")
    for each in found:
        if not isinstance(each, str):
            raise Malformed(
                f"{key!r} is a list with {_named(each)}; it must be a text or a list of texts"
            )
    return found


def objects(record: Fields, key: str) -> list[Fields]:
    """A list of objects; empty if missing."""
    value = record.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise Malformed(f"{key!r} is {_named(value)}; it must be a list of objects")
    for each in value:
        if not isinstance(each, dict):
            raise Malformed(f"{key!r} is a list with {_named(each)}; it must be a list of objects")
    return value


def supporting_facts(record: Fields) -> list[str]:
    """Titles of HotpotQA's supporting facts: `[[title, sentence], ...]`, or
    `{"title": [...], "sent_id": [...]}` as the `datasets` library gives them."""
    value = record.get("supporting_facts")
    if value is None:
        return []
    if isinstance(value, dict):
        return texts(value, "title")
    if isinstance(value, list) and all(
        isinstance(fact, list) and fact and isinstance(fact[0], str) for fact in value
    ):
        return [fact[0] for fact in value]
    raise Malformed("'supporting_facts' is neither a list of [title, sentence] nor of titles")


def judged(
    record: Fields, key: str, *, body: str = "text", titles: Sequence[str] = ()
) -> list[Judged]:
    """Passages under `key`, with their text under `body`. Those without `is_supporting` support the
    answer if their title is among `titles`."""
    return [
        Judged(
            Passage(id=identity(each, "id"), title=optional(each, "title"), text=text(each, body)),
            bool(each.get("is_supporting", optional(each, "title") in titles)),
        )
        for each in objects(record, key)
    ]


def of_context(record: Fields) -> list[Judged]:
    """HotpotQA's passages in `context`; those that its supporting facts name are supporting."""
    if record.get("context") is None:
        return []
    named = supporting_facts(record)
    try:
        drafts = list(hotpotqa.read(record))
    except MalformedRecordError as error:
        raise Malformed(str(error)) from None
    return [Judged(Passage(title=d.title, text=d.text), d.title in named) for d in drafts]


def _distinct(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value.strip()))


def _named(value: object) -> str:
    if isinstance(value, str) and not value.strip():
        return "an empty text"
    names = {str: "a text", dict: "an object", list: "a list", bool: "true or false"}
    return names.get(type(value), brief(repr(value), NAMED))
