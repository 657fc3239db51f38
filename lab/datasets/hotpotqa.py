"""HotpotQA, as released: `{_id, question, answer, type, level, supporting_facts, context}`.

Source: Yang et al. 2018, arXiv 1809.09600. The `datasets` library calls the id `id`. Test sets have
no answers, so their questions have no gold.
"""

from hopscope.lab.datasets import Judged
from hopscope.lab.datasets._fields import (
    Fields,
    entry,
    of_context,
    optional,
    supporting_facts,
    texts,
)
from hopscope.store.experiments.records import DatasetEntry

HOPS = 2
"""The authors wrote every question from two paragraphs."""


def matches(record: Fields) -> bool:
    return (
        ("supporting_facts" in record or "context" in record)
        and "evidences" not in record
        and "golden_answers" not in record
    )


def read(record: Fields) -> DatasetEntry:
    return entry(
        record,
        texts(record, "answer"),
        id="_id" if "_id" in record else "id",
        kind=optional(record, "type"),
        hops=HOPS,
        supporting=supporting_facts(record),
    )


def passages(record: Fields) -> list[Judged]:
    return of_context(record)
