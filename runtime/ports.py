"""The verbs: what the runtime asks of the outside world, each in one or two methods.

All are batched, because credit asks about many contexts at once. Adapters need not inherit;
having the methods is enough.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Hit,
    Measurement,
    Passage,
    Question,
    Scored,
    ScoreRequest,
)


class Reader(Protocol):
    """A language model that reads evidence and writes text."""

    @property
    def name(self) -> str:
        """Model and revision, enough to tell whether two scores are comparable."""
        ...

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        """Continuations of each request, in order; `requests[i].n` of them.

        Raises:
            ReaderError: the model failed or a prompt does not fit its context.
        """
        ...

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Teacher-forced likelihoods of given continuations.

        Raises:
            ReaderError: as `generate`.
        """
        ...


class Retriever(Protocol):
    """Finds passages for queries."""

    @property
    def name(self) -> str:
        """Kind and index fingerprint."""
        ...

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """At most `k` hits for each query, best first.

        Raises:
            RetrieverError: the index or service failed.
        """
        ...


class Statement(NamedTuple):
    """Does answering `question` with `premise` entail answering it with `hypothesis`?"""

    question: str
    premise: str
    hypothesis: str


class Probabilities(NamedTuple):
    """A distribution over the three relations of natural language inference; sums to 1."""

    entailment: float
    neutral: float
    contradiction: float


class Entailment(Protocol):
    """Judges whether one answer implies another."""

    @property
    def name(self) -> str: ...

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement, in order."""
        ...


class UtilityMeter(Protocol):
    """Tells what a set of evidence is worth to a reader for a question."""

    @property
    def name(self) -> str: ...

    def measure(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Measurement]:
        """The utility of each evidence set, in order. The empty set is the baseline."""
        ...
