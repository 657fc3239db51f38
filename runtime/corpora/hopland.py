"""The shipped corpus and its questions, written by `hopscope.lab.hopland.make`.

The maker is a separate module, so that commands which only read the files start quickly.
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
    """Ids in reasoning order; a passage of two hops stands once."""
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
    packed = (
        files("hopscope.runtime.corpora").joinpath("hopland_data", "corpus.jsonl.gz").read_bytes()
    )
    with gzip.open(io.BytesIO(packed), "rt", encoding="utf-8") as lines:
        for line in lines:
            yield Passage(**json.loads(line))


def questions(split: DatasetSplit) -> list[HoplandQuestion]:
    """The shipped questions of a split: first the chains, by hop count, then the other kinds."""
    path = files("hopscope.runtime.corpora").joinpath("hopland_data", f"questions-{split}.jsonl")
    return [_read(json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def _read(row: dict[str, object]) -> HoplandQuestion:
    text, answers = row.pop("question"), row.pop("golden_answers")
    question = {"text": text, "answers": answers, "id": row.pop("id")}
    return HoplandQuestion.model_validate({**row, "question": question})
