"""2WikiMultiHopQA, as released: HotpotQA's fields with `evidences`, the triples that prove it.

Source: Ho et al. 2020, arXiv 2011.01060. A question has as many hops as it has supporting
paragraphs: four in bridge-comparisons, else two.
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


def matches(record: Fields) -> bool:
    return "evidences" in record and "answer" in record


def read(record: Fields) -> DatasetEntry:
    supporting = supporting_facts(record)
    return entry(
        record,
        texts(record, "answer"),
        id="_id" if "_id" in record else "id",
        kind=optional(record, "type"),
        hops=len(set(supporting)) or None,
        supporting=supporting,
    )


def passages(record: Fields) -> list[Judged]:
    return of_context(record)
