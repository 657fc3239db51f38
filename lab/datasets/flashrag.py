"""FlashRAG's form for every dataset: `{id, question, golden_answers, metadata}`.

Source: Jin et al. 2024, arXiv 2405.13576. The metadata contains the dataset's other fields, such as
`type` and `supporting_facts` of HotpotQA and 2WikiMultiHopQA. `kind`, `hops` and `gold_titles`, as
in Hopland's questions, are optional.
"""

from hopscope.lab.datasets import Judged, Malformed
from hopscope.lab.datasets._fields import (
    Fields,
    entry,
    of_context,
    optional,
    supporting_facts,
    texts,
    whole,
)
from hopscope.store.experiments.records import DatasetEntry


def matches(record: Fields) -> bool:
    return "golden_answers" in record


def read(record: Fields) -> DatasetEntry:
    metadata = record.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise Malformed("'metadata' must be an object")
    return entry(
        record,
        texts(record, "golden_answers"),
        kind=optional(record, "kind") or optional(metadata, "type"),
        hops=whole(record, "hops"),
        supporting=texts(record, "gold_titles") or supporting_facts(metadata),
    )


def passages(record: Fields) -> list[Judged]:
    return of_context(record.get("metadata") or {})
