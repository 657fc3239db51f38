"""The port of services that show traces, experiments and annotations to people.

A service is a module of `api/services` with a `build(*, to, project, ...)`. It sends what it is
given and asks nothing of the store: `api.sharing.collecting` collects, and `api.pushing` remembers
what was sent.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

from pydantic import Field, JsonValue

from hopscope.runtime.errors import HopscopeError
from hopscope.runtime.types import Record, Text, Texts, digest
from hopscope.store.exporters.otlp import Trace

Kind = Literal["CODE", "LLM", "HUMAN"]


class ServiceError(HopscopeError):
    """A service failed or refused something."""

    def __init__(self, message: str, *, down: bool = False, status: int = 0) -> None:
        super().__init__(message)
        self.down = down
        """Whether it cannot be reached, so that trying anything else would be in vain."""
        self.status = status
        """Of its answer; 0 without one."""


class Note(Record):
    """A score of a run, of a step, or of a document that a step's retriever found."""

    run_id: str
    trace: str
    """The run's trace, 32 hex digits."""
    started: datetime
    """When the run began."""
    span: str
    """The span that is judged, 16 hex digits: the run's, a step's, or a retriever's."""
    place: int | None = None
    """The place, from 0, of the document in the retriever's span; None for the whole span."""
    whole: bool = False
    """Whether it speaks of the whole run."""
    name: Text
    """Such as `seper.shapley` or `exact_match`."""
    value: float | None
    label: Text | None = None
    explanation: Text | None = None
    """Why there is no value."""
    kind: Kind = "CODE"
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    """n, seed, estimator, low, high, and the hash of the settings."""
    identifier: Text = ""
    """Of the settings: the same judgment by other settings is another note."""

    @property
    def key(self) -> str:
        """Hash of what it is, whatever it says."""
        place = "" if self.place is None else str(self.place)
        return digest(self.run_id, self.span, place, self.name, self.identifier)

    @property
    def content(self) -> str:
        """Hash of what it says."""
        return digest(self.model_dump_json(include={"value", "label", "explanation", "metadata"}))


class Example(Record):
    """A question of a dataset."""

    id: str
    """Hash of its content."""
    name: Text
    """The dataset's own id, or empty."""
    question: Text | None
    """None where texts are not sent."""
    answers: Texts = ()
    """Right answers; empty where texts are not sent."""
    kind: Text = ""
    hops: int | None = None


class Plan(Record):
    """An experiment: a workflow that answered the questions of a dataset."""

    name: Text
    """Of the experiment and, where it has several, the arm."""
    dataset: Text
    """Name of the dataset: that of the experiment of Hopscope."""
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    """Workflow, options, reader, retriever and seed."""
    examples: tuple[Example, ...]

    @property
    def content(self) -> str:
        """Hash of its examples."""
        return digest(*(each.id for each in self.examples))


class Result(Record):
    """The run of an example in an experiment, with its scores."""

    example: str
    """The example's id."""
    run_id: str
    trace: str
    root: str
    """The run's span."""
    answer: Text | None
    """None if there is none, or where texts are not sent."""
    error: Text | None = None
    started: datetime
    ended: datetime
    evaluations: tuple[Note, ...] = ()
    """Scores of the whole run."""

    @property
    def content(self) -> str:
        """Hash of what it says."""
        return digest(self.run_id, *(f"{each.key}{each.content}" for each in self.evaluations))


class Within(Record):
    """The experiment that a trace belongs to."""

    experiment: str
    """What `begin` returned."""
    plan: Plan
    example: Example


class Found(Record):
    """A person's judgment that a service holds."""

    trace: str
    span: str = ""
    """Empty if it speaks of the whole trace."""
    place: int | None = None
    """The place of the document in the span, from 0."""
    name: Text
    score: float | None = None
    label: Text | None = None
    note: Text | None = None
    author: Text = ""
    """Empty if unknown."""
    remote: Text = ""
    """Its id there."""
    made: datetime


@runtime_checkable
class HoldsTraces(Protocol):
    """A service that may hold the trace of a run already, sent while the run was made."""

    def retrievers(self, trace: Trace) -> dict[int, str] | None:
        """The RETRIEVER span of each step in the trace there; None if it is not there."""
        ...


@runtime_checkable
class Keyed(Protocol):
    """A service that takes nothing without keys."""

    @property
    def missing(self) -> Sequence[str]:
        """The environment variables that lack a key."""
        ...


class Service(Protocol):
    """A service at an address.

    Every method may raise ServiceError, and UsageError where the user's settings are wrong: those
    end the push. All that is sent can be sent again without harm.
    """

    @property
    def name(self) -> str: ...

    @property
    def address(self) -> str:
        """URL without login."""
        ...

    @property
    def project(self) -> str:
        """The project, or whatever the service calls it; empty where the key decides."""
        ...

    @property
    def batch(self) -> int:
        """The most notes that `send_notes` takes at once."""
        ...

    def requests(self, what: Trace | Plan | Result | Sequence[Note]) -> int:
        """The number of requests that sending this takes."""
        ...

    def check(self) -> None:
        """Find out whether the service is there and takes the key."""
        ...

    def send_trace(self, trace: Trace, within: Within | None) -> str:
        """Send a trace; returns its id there."""
        ...

    def send_notes(self, notes: Sequence[Note]) -> Sequence[str]:
        """Send notes, either on spans or on documents, not both; returns their ids there, or
        nothing. Their traces have been sent."""
        ...

    def begin(self, plan: Plan, remote: str) -> str:
        """Make an experiment with its dataset, or add the examples that are new; returns a text
        by which the service finds both again.

        Args:
            remote: what it returned for the same plan before; empty the first time.
        """
        ...

    def send_result(self, experiment: str, result: Result, remote: str) -> str:
        """Send a result with its evaluations; returns its id there.

        Args:
            experiment: what `begin` returned.
            remote: what it returned for the same example before; empty the first time.
        """
        ...

    def labels(self, traces: Iterable[Trace]) -> Iterator[Found]:
        """What people said about these traces."""
        ...
