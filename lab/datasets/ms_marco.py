"""MS MARCO's questions with answers: `{query, query_id, query_type, answers, passages}`.

A passage has `passage_text` and `is_selected`; the `datasets` library gives the passages as one
object of lists. "No Answer Present." is no answer. Queries alone, in lines of an id, a tab and a
text, are read by `lab.dataset.topics`.

Source: Bajaj et al. 2016, arXiv 1611.09268, version 2.1.
"""

from collections.abc import Sequence
from typing import Any

from hopscope.lab.datasets import Judged, Malformed
from hopscope.lab.datasets._fields import Fields, entry, objects, optional, text, texts
from hopscope.runtime.types import Passage
from hopscope.store.experiments.records import DatasetEntry

UNANSWERED = "No Answer Present."


def matches(record: Fields) -> bool:
    return "query" in record and ("query_id" in record or "passages" in record)


def read(record: Fields) -> DatasetEntry:
    answers = [answer for answer in texts(record, "answers") if answer != UNANSWERED]
    return entry(
        record, answers, id="query_id", key="query", kind=optional(record, "query_type").lower()
    )


def passages(record: Fields) -> list[Judged]:
    return [
        Judged(
            Passage(title=optional(each, "title"), text=text(each, "passage_text")),
            bool(each.get("is_selected")),
        )
        for each in _listed(record)
    ]


def _listed(record: Fields) -> Sequence[Fields]:
    given = record.get("passages")
    if not isinstance(given, dict):
        return objects(record, "passages")
    columns: dict[str, list[Any]] = dict(given)
    if not all(isinstance(each, list) for each in columns.values()) or (
        len({len(each) for each in columns.values()}) > 1
    ):
        raise Malformed("'passages' is neither a list of objects nor an object of equal lists")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
