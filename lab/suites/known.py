"""Questions whose helpful passages are known, and where suites take them from.

A source is the generated world of `lab.suites.worlds` or a file of questions, as `lab.suites.files`
reads it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Protocol

from hopscope.lab.hopland.world import Fact
from hopscope.runtime.ports import Retriever
from hopscope.runtime.texts.answers import contains
from hopscope.runtime.types import Passage, Question

CLOSED = frozenset({"yes", "no"})
"""Answers that a passage does not give by holding the word."""


class Need(StrEnum):
    """What a suite needs of its questions; a suite lists its own in `NEEDS`."""

    ANSWERS = "gold answers"
    GOLD = "gold passages"
    PASSAGES = "the passages of the corpus"
    CHAINS = "questions with two gold passages or more"
    WORLD = "the facts of Hopland"


@dataclass(frozen=True)
class KnownQuestion:
    """A question with its gold passages."""

    question: Question
    gold: tuple[Passage, ...]
    """In reasoning order where that is known; all different."""
    facts: tuple[Fact, ...] = ()
    """One for each gold passage; the object of the last is the answer. Empty outside Hopland."""
    candidates: tuple[Passage, ...] = ()
    """The passages that the data or a ranking give for this question, in their order."""
    grades: Mapping[str, int] = field(default_factory=dict)
    """The grades of judged passages by key, from 1 on; empty where nobody judged by grades."""
    ranked: bool = False
    """Whether the candidates are a given ranking, to be judged as it is."""

    @property
    def hops(self) -> int:
        """The number of gold passages."""
        return len(self.gold) or len(self.facts)

    @property
    def answer(self) -> str:
        """The first gold answer."""
        return self.question.answers[0]

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(key for passage in self.gold for key in (passage.key, content(passage)))

    def is_gold(self, passage: Passage) -> bool:
        """Whether this is a gold passage, by its key or its text: an index may have given the same
        text an id of its own."""
        return passage.key in self._keys or content(passage) in self._keys

    def holds(self, passages: Sequence[Passage]) -> float:
        """The share of the gold passages among these: k/n."""
        shown = {key for passage in passages for key in (passage.key, content(passage))}
        held = sum(p.key in shown or content(p) in shown for p in self.gold)
        return held / len(self.gold)

    def tells(self, passage: Passage) -> bool:
        """Whether a passage names an answer; "yes" and "no" are no names."""
        text = f"{passage.title} {passage.text}"
        named = (a for a in self.question.answers if a.strip().lower() not in CLOSED)
        return any(contains(text, answer) for answer in named)


class KnownSource(Protocol):
    """Questions with known gold passages, and a corpus."""

    @property
    def name(self) -> str: ...

    @property
    def retriever(self) -> Retriever:
        """Searches the corpus."""
        ...

    @property
    def passages(self) -> Sequence[Passage]:
        """All passages of the corpus, in the index's order; none where they cannot be listed."""
        ...

    @property
    def hops(self) -> tuple[int, ...]:
        """The numbers of gold passages that questions have, ascending."""
        ...

    @property
    def lacks(self) -> dict[Need, str]:
        """What the source does not have, with the remedy."""
        ...

    def questions(self, hops: int, n: int) -> list[KnownQuestion]:
        """The first `n` questions with so many gold passages; a file may hold fewer."""
        ...

    def mixed(self, n: int) -> list[KnownQuestion]:
        """The first `n` questions of different hops."""
        ...


def content(passage: Passage) -> str:
    """The key of a passage's text, whatever its id."""
    return passage.model_copy(update={"id": ""}).key if passage.id else passage.key


def useless(item: KnownQuestion, passage: Passage) -> bool:
    """Whether a passage is not gold and does not name an answer."""
    return not item.is_gold(passage) and not item.tells(passage)
