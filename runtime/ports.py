"""The verbs: ports to models, indexes and policies, with one or two methods each.

All are batched, because credit needs many contexts at once. An adapter needs the methods; it need
not inherit.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from hopscope.runtime.types import (
    Decision,
    Generation,
    GenerationRequest,
    Hit,
    MeasuredAnswers,
    Measurement,
    Passage,
    Prompt,
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
            CapabilityError: the prompt offers tools, and the model cannot call any. A reader that
                can writes the calls into the text of its reply, as `prompting.tool_calls.read`
                reads them.
        """
        ...

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        """Teacher-forced likelihoods of given continuations.

        Raises:
            ReaderError: as `generate`.
        """
        ...


@runtime_checkable
class MoreSamples(Protocol):
    """A capability of some readers: to draw further samples of an earlier request."""

    def more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        """Samples `first` to `first + n - 1` of each request, equal to those of `generate` with
        `first + n` samples.

        Raises:
            ReaderError: as `generate`.
        """
        ...


@runtime_checkable
class PrefixReader(Protocol):
    """A capability of some readers: to keep what they have read of a prompt for the next one."""

    def prompt_ids(self, request: GenerationRequest) -> tuple[int, ...]:
        """The tokens of the request's prompt.

        Raises:
            ReaderError: the prompt cannot be rendered.
        """
        ...

    def reusable(self, ids: tuple[int, ...], earlier: tuple[int, ...]) -> int:
        """The number of tokens of a prompt that need not be read again after an earlier one."""
        ...


class BranchRequest(NamedTuple):
    """A request for all continuations, by one token, of a reply that begins with `token_ids`."""

    request: GenerationRequest
    """The prompt, and the limits that end a reply; `n`, `temperature` and `seed` have no effect."""
    token_ids: tuple[int, ...] = ()
    least: float = 0.0
    """The smallest probability of a next token that is returned."""


class Branch(NamedTuple):
    """One continuation of a reply, by one token."""

    token_id: int
    logprob: float
    """ln p of the token under the raw distribution."""
    text: str | None
    """The whole reply, if it ends here: by an end token, a stop string or its length."""
    cut: bool = False
    """Whether only its length ends it."""


@runtime_checkable
class BranchingReader(Protocol):
    """A capability of some readers: to return the probability of every next token, so that replies
    can be enumerated instead of sampled."""

    def branch(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
        """The continuations of each request, likeliest first. With `least` 0 their probabilities
        sum to 1.

        Raises:
            ReaderError: as `generate`; also when a reply has already ended.
        """
        ...


class Prompts(Protocol):
    """A set of prompts. See `runtime.prompting.prompt_set`."""

    @property
    def option(self) -> str:
        """The set as the option `prompts` of a meter or a workflow; empty for the default set."""
        ...

    def render(self, name: str, passages: Sequence[Passage] = (), /, **values: Any) -> Prompt:
        """The prompt `name`, such as `ircot/reason`, which shows `passages`.

        Raises:
            UsageError: its template fails; the message names the file and the line.
        """
        ...


class OngoingGeneration(Protocol):
    """Generation that further calls may join at any time. For one thread."""

    @property
    def busy(self) -> int:
        """Number of calls that are not answered yet."""
        ...

    def join(self, requests: Sequence[GenerationRequest], *, first: int = 0) -> int:
        """Add a call of `more`, with `first` 0 of `generate`. Returns its number.

        Raises:
            ReaderError: as `generate`; the other calls go on.
        """
        ...

    def advance(self) -> dict[int, list[list[Generation]]]:
        """Compute a little; returns the replies of the calls that are complete now, by number.

        Raises:
            ReaderError: as `generate`; all calls are lost.
        """
        ...


@runtime_checkable
class ContinuousReader(Protocol):
    """A capability of some readers: calls join others that are being computed, instead of waiting
    for their longest reply."""

    def ongoing(self) -> OngoingGeneration:
        """A new one, without calls."""
        ...

    def rows_in(self, free_bytes: int | None, *, share: int) -> int | None:
        """Number of long prompts whose keys and values take one part of `share` of so much memory;
        by default, of the memory that is free on its device. None if that is unknown."""
        ...


class AnswerCache(Protocol):
    """A bounded cache of answers. The key of an answer is a hash of all it depends on."""

    def get(self, keys: Sequence[str]) -> dict[str, str]:
        """The cached answers by key; keys without an answer are absent."""
        ...

    def put(self, answers: Mapping[str, str]) -> None:
        """Store answers; an answer that is already stored stays."""
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


class Display(NamedTuple):
    """How tables and files show the values of a meter.

    A meter's module declares it as `DISPLAY = Display("Heading", ...)` with literal values: reports
    read it from the source, because to import a meter may take seconds. `tracing.reports.displays`
    finds it by the meter's name; a meter without one is shown under its name.
    """

    heading: str
    unit: str | None = None
    """Such as `nats` or `probability`."""
    digits: int = 2
    """After the point."""
    baseline: bool = True
    """Whether the value without evidence is one of the same kind as with it. Then a report shows
    the values before and after a step and the step's Shapley share. Otherwise each value is itself
    a gain over no evidence, as GroGU's."""
    gold: bool = False
    """Whether it needs gold answers."""
    full_bar: float | None = None
    """The change that fills the bar of a table; None draws no bar."""
    variant_of: str | None = None
    """The meter of which it is another form. Reports of runs leave it out where both were
    measured."""

    @property
    def delta(self) -> str:
        """The heading of a step's changes."""
        return f"Δ{self.heading}"

    @property
    def change(self) -> str:
        """The heading of what all evidence changed: of gains these themselves."""
        return self.delta if self.baseline else self.heading


class UtilityMeter(Protocol):
    """Measures the utility of a set of evidence for a question."""

    @property
    def name(self) -> str: ...

    def measure(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Measurement]:
        """The utility of each evidence set, in order. The empty set is the baseline."""
        ...


class Answered(NamedTuple):
    """A value, and the reader's answers that it is made of."""

    measurement: Measurement
    answers: MeasuredAnswers | None
    """None where nothing was measured."""


@runtime_checkable
class AnsweringMeter(Protocol):
    """A meter that tells the answers behind its values."""

    def measure_answered(
        self,
        question: Question,
        evidences: Sequence[tuple[Passage, ...]],
        allocation: "SampleAllocation | None" = None,
    ) -> list[Answered]:
        """As `measure`, or as `measure_by` with an allocation, which only a `SamplingMeter` is
        given."""
        ...


@runtime_checkable
class CuttingMeter(Protocol):
    """A meter that shows the reader only the beginning of long evidence."""

    def unseen(self, evidence: tuple[Passage, ...]) -> Sequence[str]:
        """Keys of the passages of which the reader sees nothing. A credit that needs one of them
        is unmeasured."""
        ...


@runtime_checkable
class ForetellingMeter(Protocol):
    """A meter that knows beforehand which replies it asks its reader for, so that several meters
    can ask for theirs in one call."""

    def requests(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[GenerationRequest]:
        """The requests with which `measure` begins; empty if what it asks is not known."""
        ...


class SampleAllocation(Protocol):
    """Decides, while a meter samples, which evidence sets get further replies."""

    @property
    def looks(self) -> int:
        """The most numbers of replies at which one evidence set's interval may be looked at."""
        ...

    def next(self, measured: Sequence[Measurement | None]) -> Mapping[int, int]:
        """The numbers of replies that some evidence sets shall have, by place; empty to stop.

        Args:
            measured: the values so far, None for evidence without any reply.
        """
        ...


@runtime_checkable
class DrawingMeter(Protocol):
    """A meter that samples replies."""

    @property
    def samples(self) -> int:
        """Replies to one evidence set, at most."""
        ...


@runtime_checkable
class SamplingMeter(DrawingMeter, Protocol):
    """A meter that samples replies, a few more at a time."""

    def measure_by(
        self,
        question: Question,
        evidences: Sequence[tuple[Passage, ...]],
        allocation: SampleAllocation,
    ) -> list[Measurement]:
        """The utility of each evidence set, in order. Evidence that the allocation never named is
        unmeasured."""
        ...


class Moment(NamedTuple):
    """The state of a run before a retrieval, without gold answers and later steps."""

    question: Question
    steps: tuple[Step, ...] = ()
    """All steps so far."""
    evidence: tuple[Passage, ...] = ()
    """The passages that the reader would answer from now."""
    seed: int = 0
    prompts: Prompts | None = None
    """The prompts of the run, in which a policy asks the reader; None for the default ones."""

    @property
    def retrievals(self) -> int:
        """Steps that sent a query."""
        return sum(step.retrieved for step in self.steps)


class Policy(Protocol):
    """Decides before each retrieval whether it is worth it."""

    @property
    def name(self) -> str:
        """Kind and settings."""
        ...

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        """Whether to retrieve now. Its calls of the reader count towards the run.

        Raises:
            ReaderError: the model failed, or does not return a signal that the policy needs.
        """
        ...
