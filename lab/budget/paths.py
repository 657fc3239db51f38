"""A question's path: the utility and cost of stopping after each of its retrievals.

Invariant: `stops[t]` is the result of stopping after t retrievals; the last one is the workflow's
own end. A policy that refuses one retrieval ends the loop of `ircot` and `iter_retgen`, so what it
would have got is one of the stops.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pydantic import Field, model_validator

from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Question, Record, Run
from hopscope.tracing.signals.gathering import STAGES, Stage, gather
from hopscope.tracing.wrappers.cached import CachedReader
from hopscope.tracing.wrappers.metered import MeteredReader

Utility = Callable[[Run], float]
"""The utility of a run's answer, in [0, 1]."""


class Stop(Record):
    """The result of stopping at one point."""

    utility: float
    tokens: int
    """Of the whole run then, its answer included, without the cost of deciding."""


class Path(Record):
    """One question."""

    question: Question
    kind: str = ""
    stops: tuple[Stop, ...] = Field(min_length=1)
    known: tuple[dict[str, float], ...]
    """The signals before each retrieval."""
    asked: tuple[dict[Stage, int], ...]
    """Tokens that getting those of each stage takes, by whoever has those of the stage before and
    nothing from earlier moments but the run's record."""

    @model_validator(mode="after")
    def _as_many(self) -> "Path":
        if not len(self.known) == len(self.asked) == len(self.stops) - 1:
            raise ValueError("a path has signals before each retrieval, and one more stop")
        return self

    @property
    def retrievals(self) -> int:
        """Of the workflow by itself."""
        return len(self.stops) - 1

    @property
    def best(self) -> int:
        """The fewest retrievals of highest utility."""
        values = [stop.utility for stop in self.stops]
        return values.index(max(values))


def moments(run: Run) -> list[Moment]:
    """What was known before each retrieval of a run; decisions and drafts of a policy are not."""
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
    stops = tuple(Stop(utility=utility(r), tokens=_own(r)) for r in runs)
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
    """Look at all signals. What `reader` remembers counts as if it were asked.

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


class Simulated(Record):
    """The stop that a policy would have chosen."""

    stop: int
    """Retrievals."""
    tokens: int
    """Of the run, the policy's decisions included."""
    utility: float


def simulate(policy: Policy, found: Path, at: Sequence[Moment], reader: Reader) -> Simulated:
    """The stop that a policy would have chosen on a path; what it asks is counted.

    Args:
        at: the moments of the path's native run.
    """
    metered = MeteredReader(reader)
    remembering = CachedReader(metered)  # what a run has in its record
    refused = (i for i, each in enumerate(at) if not policy.decide(each, remembering).retrieve)
    stop = next(refused, found.retrievals)
    chosen, deciding = found.stops[stop], metered.take().tokens
    return Simulated(stop=stop, tokens=chosen.tokens + deciding, utility=chosen.utility)
