"""The shipped corpus and its questions, as `hopscope.lab.hopland.make` wrote them.

Kept apart from what makes them, so that commands which only read them start quickly.
"""

import gzip
import io
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Literal

from hopscope.runtime.types import Passage, Question, Record

DatasetSplit = Literal["dev", "test"]
Shape = Literal["chain", "known", "comparison", "yesno"]


class HoplandQuestion(Record):
    """A question about the shipped corpus with its gold evidence and reasoning."""

    question: Question
    hops: int
    """Facts that the answer needs; 2 for comparisons and yes/no questions."""
    kind: Shape
    """`known`: a chain that ends in a fixed fact, which the reader knows without a passage."""
    gold_passages: tuple[str, ...]
    """Ids, in reasoning order; a passage that serves two hops stands once."""
    gold_titles: tuple[str, ...]
    """Titles of `gold_passages`."""
    reasoning: str
    """The chain of thought that ends in the answer."""

    @property
    def id(self) -> str:
        """The question's id."""
        return self.question.id


def corpus() -> Iterator[Passage]:
    """The shipped passages, in file order."""
    packed = files("hopscope.lab.hopland").joinpath("data", "corpus.jsonl.gz").read_bytes()
    with gzip.open(io.BytesIO(packed), "rt", encoding="utf-8") as lines:
        for line in lines:
            yield Passage(**json.loads(line))


def questions(split: DatasetSplit) -> list[HoplandQuestion]:
    """The shipped questions of a split: first the chains, by hop count, then the other kinds."""
    path = files("hopscope.lab.hopland").joinpath("data", f"questions-{split}.jsonl")
    return [_read(json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def _read(row: dict[str, object]) -> HoplandQuestion:
    text, answers = row.pop("question"), row.pop("golden_answers")
    asked = {"text": text, "answers": answers, "id": row.pop("id")}
    return HoplandQuestion.model_validate({**row, "question": asked})
