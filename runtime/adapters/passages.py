"""Passages of other libraries: texts, dicts, documents, records, with or without a score.

Invariants: a ranking has each passage once and none without a text; every passage has an id, its
own or a hash of its title and text, as in a corpus.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, SupportsFloat

from pydantic import BaseModel

from hopscope.runtime.corpora.layouts import beir, flashrag, passages
from hopscope.runtime.corpora.records.fields import body, identity, keys, string
from hopscope.runtime.corpora.records.reading import MalformedRecordError, PassageDraft
from hopscope.runtime.types import Hit, Passage, digest

TEXTS = ("text", "contents", "page_content", "content")
"""Fields that hold a text; the first present one counts."""
SCORES = ("score", "_score", "relevance_score", "similarity")
"""Fields that hold a score; the first present one counts."""
ABOUT = ("title", "id", "_id", "docid", *SCORES)
"""Fields that may stand in a passage's metadata as well."""
ACCEPTED = (
    "give texts, dicts with 'text' (and 'title', 'id', 'score'), Passage, Hit or Document objects, "
    "or pairs (passage, score)"
)


def ranking(found: Any, *, source: str, k: int | None = None) -> list[Hit]:
    """The first k different passages of a search's result, or all; `source` is their default
    source.

    The order counts: if a score is missing, or scores rise down the ranking, as distances do, all
    scores are 1, 1/2, 1/3, ... by place.

    Raises:
        MalformedRecordError: the result contains something else than passages, or is none.
    """
    kept: dict[str, tuple[Passage, float | None]] = {}
    for passage, score in _read_all(found) if k != 0 else ():
        first, _ = kept.setdefault(passage.id, (passage, score))
        if first.content_hash != passage.content_hash:
            raise MalformedRecordError(
                f"two different passages have the id {passage.id!r}: give each its own, or none"
            )
        if len(kept) == k:
            break
    told = [score for _, score in kept.values()]
    known = [score for score in told if score is not None]
    falling = len(known) == len(told) and known == sorted(known, reverse=True)
    scores = known if falling else [1 / place for place in range(1, len(told) + 1)]
    return [
        Hit(passage=passage.model_copy(update={"source": passage.source or source}), score=score)
        for (passage, _), score in zip(kept.values(), scores, strict=True)
    ]


def _read_all(found: Any) -> Iterator[tuple[Passage, float | None]]:
    """Passages with their scores, without those that lack a text.

    Raises:
        MalformedRecordError: as `ranking`.
    """
    if not isinstance(found, Iterable) or _is_one(found):
        raise MalformedRecordError(f"{_kind(found)} is no list of passages: {ACCEPTED}")
    if hasattr(found, "columns"):
        raise MalformedRecordError(
            f"{_kind(found)} is a table: give its rows, as table.to_dict('records')"
        )
    for place, item in enumerate(found, start=1):
        try:
            read = _read(item)
        except MalformedRecordError as problem:
            raise MalformedRecordError(f"passage {place}: {problem}") from None
        if read is not None:
            passage, score = read
            id = passage.id or digest("", passage.title, passage.text)[:16]
            yield passage.model_copy(update={"id": id}), score


def _is_one(found: Iterable[Any]) -> bool:
    """Whether the value is one passage, or another iterable that is not a list of passages."""
    return isinstance(found, str | bytes | Mapping | BaseModel) or hasattr(found, "page_content")


def _read(item: Any) -> tuple[Passage, float | None] | None:
    """A passage and its score; None without a text.

    Raises:
        MalformedRecordError: the value is no passage.
    """
    if isinstance(item, tuple) and len(item) == 2 and _is_number(item[1]):
        read = _read(item[0])
        return read and (read[0], _number(item[1]))
    if isinstance(item, Hit):
        return (item.passage, item.score) if item.passage.text.strip() else None
    if isinstance(item, Passage):
        return (item, None) if item.text.strip() else None
    if isinstance(item, str):
        item = {"text": item}
    fields = _fields(item)
    text = next((fields[name] for name in TEXTS if name in fields), None)
    if isinstance(text, str) and not text.strip():
        return None
    draft = _draft(fields)
    scores = (_number(fields[name]) for name in SCORES if name in fields)
    return Passage(id=draft.id, title=draft.title, text=draft.text), next(scores, None)


def _fields(item: Any) -> dict[str, Any]:
    """The fields of a dict or an object and of its metadata, without None.

    Raises:
        MalformedRecordError: it is neither.
    """
    if not isinstance(item, Mapping):
        names = (*ABOUT, *TEXTS, "metadata")
        there = {name: getattr(item, name) for name in names if hasattr(item, name)}
        if not there:
            raise MalformedRecordError(f"{_kind(item)} is no passage: {ACCEPTED}")
        item = there
    told = item.get("metadata")
    about = (
        {name: told[name] for name in ABOUT if name in told} if isinstance(told, Mapping) else {}
    )
    return {name: each for name, each in {**about, **item}.items() if each is not None}


def _draft(fields: Mapping[str, Any]) -> PassageDraft:
    """
    Raises:
        MalformedRecordError: there is no text, or a field is no string.
    """
    for layout in (beir, flashrag, passages):
        if layout.matches(fields):
            draft: PassageDraft = next(layout.read(fields))
            return draft
    name = next((name for name in TEXTS if name in fields), None)
    if name is None:
        raise MalformedRecordError(f"no 'text' among the fields {keys(fields)}: {ACCEPTED}")
    return PassageDraft(
        body(fields, name), string(fields, "title"), identity(fields, "id", "_id", "docid")
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, SupportsFloat) and not isinstance(value, bool)


def _number(value: Any) -> float:
    """
    Raises:
        MalformedRecordError: it is none, or not finite.
    """
    try:
        number = float(value) if _is_number(value) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise MalformedRecordError(f"the score {value!r} is no finite number; leave it out")
    return number


def _kind(value: Any) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"
