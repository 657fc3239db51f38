"""A question's path: the utility and cost of stopping after each of its retrievals.

Invariant: `stops[t]` is the result of stopping after t retrievals; the last one is the workflow's
own end. A policy that refuses one retrieval ends the loop of `ircot` and `iter_retgen`, so its
result is one of the stops.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pydantic import Field, model_validator

from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Question, Record, Run, Step
from hopscope.tracing.signals.gathering import STAGES, Stage, gather
from hopscope.tracing.wrappers.cached import CachedReader
from hopscope.tracing.wrappers.metered import MeteredReader

Utility = Callable[[Run], float]
"""The utility of a run's answer, in [0, 1]."""


class Stop(Record):
    """The result of stopping at one point."""

    utility: float
    tokens: int
    """Tokens of the whole run in this case, with its answer, without the cost of deciding."""
    seconds: float | None = None
    """The same in seconds; None if they were not measured."""


class Path(Record):
    """One question."""

    question: Question
    kind: str = ""
    stops: tuple[Stop, ...] = Field(min_length=1)
    known: tuple[dict[str, float], ...]
    """The signals before each retrieval."""
    asked: tuple[dict[Stage, int], ...]
    """Tokens that the signals of each stage cost, given those of the stage before and the run's
    record."""

    @model_validator(mode="after")
    def _as_many(self) -> "Path":
        if not len(self.known) == len(self.asked) == len(self.stops) - 1:
            raise ValueError("a path has signals before each retrieval, and one more stop")
        return self

    @property
    def retrievals(self) -> int:
        """The stop of the workflow itself."""
        return len(self.stops) - 1

    @property
    def best(self) -> int:
        """The fewest retrievals of highest utility."""
        values = [stop.utility for stop in self.stops]
        return values.index(max(values))


def moments(run: Run) -> list[Moment]:
    """The moments before each retrieval of a run, without a policy's decisions and drafts."""
    found: list[Moment] = []
    for index, step in enumerate(run.steps):
        if not step.retrieved:
            continue
        steps = run.steps[:index]
        evidence = steps[-1].evidence if steps else ()
        found.append(Moment(run.question, steps, evidence, run.seed))
    return found


def path(runs: Sequence[Run], reader: Reader, utility: Utility, kind: str = "") -> Path:
    """From the runs with 0, 1, ... retrievals at most, the last of them without a limit.

    Args:
        runs: in that order; all on one question.
        reader: gives the signals; what it is asked is counted.

    Raises:
        ReaderError: the model failed.
    """
    *_, native = runs
    shared = CachedReader(reader)
    seen = [looked(moment, shared) for moment in moments(native)]
    stops = tuple(
        Stop(utility=utility(r), tokens=_own(r), seconds=seconds_of(r.steps)) for r in runs
    )
    return Path(
        question=native.question,
        kind=kind,
        stops=stops,
        known=tuple(each.known for each in seen),
        asked=tuple(each.asked for each in seen),
    )


class Looked(NamedTuple):
    """The signals of one moment, and the tokens of each stage."""

    known: dict[str, float]
    asked: dict[Stage, int]


def looked(moment: Moment, reader: Reader) -> Looked:
    """Compute all signals. The reader's cached replies count as requests, too.

    Raises:
        ReaderError: the model failed.
    """
    metered = MeteredReader(reader)
    remembering = CachedReader(metered)
    found = Looked({}, {})
    for stage in STAGES:
        found.known.update(gather(stage, moment, remembering))
        found.asked[stage] = metered.take().tokens
    return found


def _own(run: Run) -> int:
    """Tokens of the workflow, without its policy."""
    return run.usage.tokens - sum(s.decision.usage.tokens for s in run.steps if s.decision)


def seconds_of(steps: Sequence[Step]) -> float:
    return sum(step.seconds for step in steps)


class Simulated(Record):
    """The stop that a policy would have chosen."""

    stop: int
    """Retrievals."""
    tokens: int
    """Tokens of the run, including the policy's decisions."""
    utility: float


def simulate(policy: Policy, found: Path, at: Sequence[Moment], reader: Reader) -> Simulated:
    """The stop that a policy would have chosen on a path; its requests count.

    Args:
        at: the moments of the path's native run.
    """
    metered = MeteredReader(reader)
    remembering = CachedReader(metered)  # what a run has in its record
    refused = (i for i, each in enumerate(at) if not policy.decide(each, remembering).retrieve)
    stop = next(refused, found.retrievals)
    chosen, deciding = found.stops[stop], metered.take().tokens
    return Simulated(stop=stop, tokens=chosen.tokens + deciding, utility=chosen.utility)
