"""The verbs: what the runtime asks of the outside world, each in one or two methods.

All are batched, because credit asks about many contexts at once. Adapters need not inherit;
having the methods is enough.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from hopscope.runtime.types import (
    Decision,
    Generation,
    GenerationRequest,
    Hit,
    Measurement,
    Passage,
    Question,
    Scored,
    ScoreRequest,
    Step,
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


class MoreSamples(Protocol):
    """A reader whose samples can be drawn in several goes."""

    def more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        """Samples `first` to `first + n - 1` of each request, as `generate` would have given them
        had it been asked for `first + n`.

        Raises:
            ReaderError: as `generate`.
        """
        ...


class BranchRequest(NamedTuple):
    """In what ways can a reply to `request` go on that begins with `token_ids`?"""

    request: GenerationRequest
    """Says what ends a reply; `n`, `temperature` and `seed` do not matter."""
    token_ids: tuple[int, ...] = ()
    least: float = 0.0
    """Next tokens of less probability are left out."""


class Branch(NamedTuple):
    """A reply that is one token longer."""

    token_id: int
    logprob: float
    """ln p of the token under the raw distribution."""
    text: str | None
    """The whole reply, if it ends here: by an end token, a stop string or its length."""


class BranchingReader(Protocol):
    """A reader that tells the probability of every next token, so that its replies can be
    enumerated instead of sampled."""

    def branch(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
        """All ways to go on, the likeliest first; with `least` 0 they have probability 1 together.

        Raises:
            ReaderError: as `generate`; also when a reply has ended before.
        """
        ...


class AnswerCache(Protocol):
    """Keeps answers under hashes of all they depend on, as many as it has room for."""

    def get(self, keys: Sequence[str]) -> dict[str, str]:
        """The answers that are there, by key."""
        ...

    def put(self, answers: Mapping[str, str]) -> None:
        """Keep answers; one that is there already stays."""
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


class Moment(NamedTuple):
    """What is known before a retrieval: no gold, and nothing of what comes after."""

    question: Question
    steps: tuple[Step, ...] = ()
    """All so far."""
    evidence: tuple[Passage, ...] = ()
    """What the reader would answer from."""
    seed: int = 0

    @property
    def retrievals(self) -> int:
        """Steps that sent a query."""
        return sum(step.query is not None for step in self.steps)


class Policy(Protocol):
    """Decides before each retrieval whether it is worth it."""

    @property
    def name(self) -> str:
        """Kind and settings."""
        ...

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        """Whether to retrieve now. What it asks of the reader counts as the run's.

        Raises:
            ReaderError: the model failed, or does not tell what the policy goes by.
        """
        ...
