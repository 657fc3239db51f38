"""A question's path: the utility and cost of stopping after each of its retrievals.

Invariant: `stops[t]` is the result of stopping after t retrievals; the last one is the workflow's
own end. A policy that refuses one retrieval ends the loop of `ircot`, `iter_retgen`, `self_ask` and
`search_agent`, so its result is one of the stops. FLARE writes on and may ask again: there a stop
refuses all later searches, too, as `value` does.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pydantic import Field, model_validator

from hopscope.lab.budget.ends import own_tokens, seconds_of
from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.prompting import loading
from hopscope.runtime.types import Question, Record, Run
from hopscope.tracing.signals.gathering import STAGES, Stage, gather
from hopscope.tracing.wrappers.cached import CachedReader
from hopscope.tracing.wrappers.metered import MeteredReader
from hopscope.tracing.wrappers.prefix_counting import PrefixCountingReader

Utility = Callable[[Run], float]
"""The utility of a run's answer, in [0, 1]."""


class Stop(Record):
    """The result of stopping at one point."""

    utility: float
    tokens: float
    """Tokens of the whole run in this case, with its answer, without the cost of deciding; cached
    ones by their weight."""
    seconds: float | None = None
    """The same in seconds; None if they were not measured."""


class Path(Record):
    """One question."""

    question: Question
    kind: str = ""
    stops: tuple[Stop, ...] = Field(min_length=1)
    known: tuple[dict[str, float], ...]
    """The signals before each retrieval."""
    asked: tuple[dict[Stage, float], ...]
    """Tokens that the signals of each stage cost, given those of the stage before and the run's
    record."""

    @model_validator(mode="after")
    def _as_many(self) -> "Path":
        if not len(self.known) == len(self.asked) == len(self.stops) - 1:
            raise ValueError("a path has signals before each retrieval, and one more stop")
        return self

    def with_signals(self, more: Mapping[str, float]) -> "Path":
        """With more signals, the same before each retrieval."""
        return self.model_copy(update={"known": tuple({**each, **more} for each in self.known)})

    @property
    def retrievals(self) -> int:
        """The stop of the workflow itself."""
        return len(self.stops) - 1

    @property
    def best(self) -> int:
        """The fewest retrievals of highest utility."""
        values = [stop.utility for stop in self.stops]
        return values.index(max(values))


def distinct(paths: Sequence[Path]) -> list[Path]:
    """Each question once, by its first path: what is said twice is no more evidence."""
    first: dict[str, Path] = {}
    for path in paths:
        first.setdefault(path.question.text, path)
    return [*first.values()]


def moments(run: Run) -> list[Moment]:
    """The moments before each retrieval of a run, without a policy's decisions and drafts.

    Raises:
        UsageError: the run's prompts are no longer there.
    """
    found: list[Moment] = []
    prompts = loading.chosen(run.prompts or "")
    for index, step in enumerate(run.steps):
        if not step.retrieved:
            continue
        steps = run.steps[:index]
        evidence = steps[-1].evidence if steps else ()
        found.append(Moment(run.question, steps, evidence, run.seed, prompts))
    return found


def path(
    runs: Sequence[Run], reader: Reader, utility: Utility, kind: str = "", *, cached: float = 1.0
) -> Path:
    """From the runs with 0, 1, ... retrievals at most, the last of them without a limit.

    Args:
        runs: in that order; all on one question.
        reader: gives the signals; what it is asked is counted.
        cached: what a cached prompt token counts.

    Raises:
        ReaderError: the model failed.
    """
    *_, native = runs
    shared = CachedReader(reader)
    seen = [looked(moment, shared, cached=cached) for moment in moments(native)]
    stops = tuple(
        Stop(
            utility=utility(r),
            tokens=own_tokens(r.steps, cached=cached),
            seconds=seconds_of(r.steps),
        )
        for r in runs
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
    asked: dict[Stage, float]


def looked(moment: Moment, reader: Reader, *, cached: float = 1.0) -> Looked:
    """Compute all signals. Replies that the reader has kept count as requests, too.

    Raises:
        ReaderError: the model failed.
    """
    metered = MeteredReader(PrefixCountingReader(reader, moment.steps))
    remembering = CachedReader(metered)
    found = Looked({}, {})
    for stage in STAGES:
        found.known.update(gather(stage, moment, remembering))
        found.asked[stage] = metered.take().weighed(cached)
    return found


class Simulated(Record):
    """The stop that a policy would have chosen."""

    stop: int
    """Retrievals."""
    tokens: float
    """Tokens of the run, including the policy's decisions; cached ones by their weight."""
    utility: float


def simulate(
    policy: Policy,
    found: Path,
    at: Sequence[Moment],
    reader: Reader,
    *,
    cached: float = 1.0,
) -> Simulated:
    """The stop that a policy would have chosen on a path; its requests count.

    Args:
        at: the moments of the path's native run.
        cached: what a cached prompt token counts.
    """
    counting = PrefixCountingReader(reader)
    metered = MeteredReader(counting)
    remembering = CachedReader(metered)  # what a run has in its record
    stop, known = found.retrievals, 0
    for number, moment in enumerate(at):
        counting.recall(moment.steps[known:])
        known = len(moment.steps)
        if not policy.decide(moment, remembering).retrieve:
            stop = number
            break
    chosen, deciding = found.stops[stop], metered.take().weighed(cached)
    return Simulated(stop=stop, tokens=chosen.tokens + deciding, utility=chosen.utility)
