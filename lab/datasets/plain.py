"""Hopscope's own form: `{id, question, answers, kind, hops, supporting}`; only the question is
required.

`answers` are all right answers, `supporting` titles of gold passages. The kind may be called
`type`; the titles may be called `supporting_titles` or stand in `passages` with `is_supporting`.
"""

from hopscope.lab.datasets import Judged
from hopscope.lab.datasets._fields import (
    Fields,
    entry,
    judged,
    objects,
    optional,
    texts,
    whole,
)
from hopscope.store.experiments.records import DatasetEntry

_OTHER_FORMS = frozenset({"supporting_facts", "context", "paragraphs", "golden_answers"})
"""Fields that only records of other forms have."""


def matches(record: Fields) -> bool:
    two_wiki = "evidences" in record and "answer" in record
    return "question" in record and not two_wiki and not (_OTHER_FORMS & record.keys())


def read(record: Fields) -> DatasetEntry:
    passages = [p for p in objects(record, "passages") if p.get("is_supporting")]
    return entry(
        record,
        texts(record, "answers") or texts(record, "answer"),
        kind=optional(record, "kind", "type"),
        hops=whole(record, "hops"),
        supporting=texts(record, "supporting")
        or texts(record, "supporting_titles")
        or [optional(passage, "title") for passage in passages],
    )


def passages(record: Fields) -> list[Judged]:
    titles = texts(record, "supporting") or texts(record, "supporting_titles")
    return judged(record, "passages", titles=titles)
