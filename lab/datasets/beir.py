"""BEIR's queries.jsonl: `{_id, text, metadata}`; the judgments are a separate file.

Source: Thakur et al. 2021, arXiv 2104.08663. Queries have no gold answers, but
`answers`, a list, is read where somebody has added it.
"""

from hopscope.lab.datasets import Judged
from hopscope.lab.datasets._fields import Fields, entry, texts
from hopscope.store.experiments.records import DatasetEntry


def matches(record: Fields) -> bool:
    return "_id" in record and "text" in record and "question" not in record


def read(record: Fields) -> DatasetEntry:
    return entry(record, texts(record, "answers"), id="_id", key="text")


def passages(record: Fields) -> list[Judged]:
    return []
