"""What a run would have answered, and what it would have cost, if it had stopped searching earlier.

The workflow runs again with at most t retrievals. What it did up to the refusal is taken from the
run's record; only what it does after it is asked of the reader. So an end is the workflow's own:
IRCoT reads out its answer, Self-Ask and the search agent close their dialogue, FLARE writes on
without a search.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hopscope.runtime.budget.ledger import QUERIES
from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution.run import Workflow
from hopscope.runtime.execution.run import run as run_workflow
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Entailment, Reader
from hopscope.runtime.types import Generation, GenerationRequest, Hit, Run, Step
from hopscope.runtime.wrappers.forwarding_reader import ForwardingReader
from hopscope.tracing.policies import fixed


class End(NamedTuple):
    """The end of a run after some of its retrievals."""

    answer: str
    tokens: float
    """Of the whole run in this case, without the cost of deciding; cached ones by their weight."""
    seconds: float


class NotRepeatedError(UsageError):
    """The workflow does not do again what the record says, so its earlier ends are not known."""


def ends(
    run: Run,
    workflow: Workflow,
    reader: Reader,
    entailment: Entailment | None = None,
    *,
    cached: float = 1.0,
) -> tuple[End, ...]:
    """The ends after 0, 1, ... retrievals; the last is the run's own.

    Args:
        cached: what a cached prompt token counts.

    Raises:
        NotRepeatedError: the record does not fit the workflow, or an end failed.
        KeyboardInterrupt: Ctrl-C, which a run only records.
    """
    places = [step.index for step in run.steps if step.retrieved]
    again = [_again(run, workflow, reader, entailment, t, at) for t, at in enumerate(places)]
    found = [
        _joined(run.steps[:at], ended, ended.steps[at:], cached)
        for at, ended in zip(places, again, strict=True)
    ]
    return (*found, own_end(run, cached=cached))


def own_end(run: Run, *, cached: float = 1.0) -> End:
    """The end by the workflow's own rule."""
    return _joined(run.steps, run, (), cached)


def _joined(before: Sequence[Step], ended: Run, after: Sequence[Step], cached: float) -> End:
    """The answer of `ended`, with what both parts took."""
    steps = (*before, *after)
    return End(ended.answer or "", own_tokens(steps, cached=cached), seconds_of(steps))


def _again(
    run: Run,
    workflow: Workflow,
    reader: Reader,
    entailment: Entailment | None,
    retrievals: int,
    place: int,
) -> Run:
    """The run if the retrieval of the step at `place`, and all after it, are refused."""
    deps = Deps(
        reader=_RecordedReader(reader, run.steps),
        retriever=_RecordedRetriever(run.retriever, run.steps),
        seed=run.seed,
        capture_content=False,
        entailment=entailment,
        policy=fixed.build(k=retrievals),
    )
    try:
        again = run_workflow(workflow, run.question, deps)
    except UsageError as error:
        raise NotRepeatedError(str(error)) from None
    if again.status == "interrupted":
        raise KeyboardInterrupt
    if again.error is not None:
        raise NotRepeatedError(f"its end after {retrievals} retrievals: {again.error.message}")
    if [_did(step) for step in run.steps[:place]] != [_did(step) for step in again.steps[:place]]:
        raise NotRepeatedError("its workflow no longer does the same")
    return again


def own_tokens(steps: Sequence[Step], *, cached: float = 1.0) -> float:
    """Tokens of the workflow, without its policy; each cached one counts `cached`."""
    deciding = sum(step.decision.usage.weighed(cached) for step in steps if step.decision)
    return sum(step.usage.weighed(cached) for step in steps) - deciding


def seconds_of(steps: Sequence[Step]) -> float:
    return sum(step.seconds for step in steps)


def _did(step: Step) -> tuple[object, ...]:
    return step.name, step.query, tuple(passage.key for passage in step.evidence)


class _RecordedReader(ForwardingReader):
    """The reader; requests of the record get their replies from it."""

    def __init__(self, reader: Reader, steps: Sequence[Step]) -> None:
        super().__init__(reader)
        exchanges = (exchange for step in steps for exchange in step.exchanges)
        self._known = {each.request: list(each.generations) for each in exchanges}

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        new = [request for request in requests if request not in self._known]
        replies = iter(super().generate(new) if new else [])
        return [self._known.get(request) or next(replies) for request in requests]


@dataclass(frozen=True)
class _RecordedRetriever:
    """Finds what the steps of a run have found."""

    name: str
    steps: Sequence[Step]

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """
        Raises:
            NotRepeatedError: the run did not search for this, or its rankings cannot be told apart.
        """
        asked = QUERIES.join(queries)
        hits = next((step.ranked for step in self.steps if step.query == asked), None)
        if hits is None:
            raise NotRepeatedError(f"it did not search for {asked!r}")
        if len(queries) == 1:
            return [list(hits)]
        if len(hits) != k * len(queries):
            raise NotRepeatedError("a step of it has several queries with rankings of their own")
        return [list(hits[start : start + k]) for start in range(0, len(hits), k)]
