"""MuSiQue, as released: `{id, question, answer, answer_aliases, answerable, paragraphs,
question_decomposition}`.

Source: Trivedi et al. 2022, arXiv 2108.00573. The id begins with the shape of the question, such as
`2hop` or `4hop3`. Questions that their paragraphs do not answer have no gold.
"""

import re

from hopscope.lab.datasets import Judged
from hopscope.lab.datasets._fields import (
    Fields,
    entry,
    identity,
    judged,
    objects,
    optional,
    texts,
)
from hopscope.store.experiments.records import DatasetEntry

_SHAPE = re.compile(r"([1-9][0-9]?)hop[0-9]?")


def matches(record: Fields) -> bool:
    return "paragraphs" in record


def read(record: Fields) -> DatasetEntry:
    golds = [*texts(record, "answer"), *texts(record, "answer_aliases")]
    shape = _SHAPE.match(identity(record, "id"))
    return entry(
        record,
        golds if record.get("answerable", True) else [],
        kind=shape.group() if shape else "",
        hops=int(shape.group(1)) if shape else None,
        supporting=[
            optional(paragraph, "title")
            for paragraph in objects(record, "paragraphs")
            if paragraph.get("is_supporting")
        ],
    )


def passages(record: Fields) -> list[Judged]:
    return judged(record, "paragraphs", body="paragraph_text")
