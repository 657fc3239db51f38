"""Whether a search of somebody else's agent is worth it, decided from what was recorded so far.

The limits decide first, then the policy, as in Hopscope's own runs. A decision is part of the
recording, and a search that was declined is a step that did nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from hopscope.api import given, parts
from hopscope.api.given import PolicyPart, ReaderPart
from hopscope.api.recording import places
from hopscope.api.recording.places import Place
from hopscope.runtime.budget.ledger import Ledger, Limits
from hopscope.runtime.errors import ReaderError, UsageError
from hopscope.runtime.execution.step import LIMIT
from hopscope.runtime.ports import Moment
from hopscope.runtime.prompting import loading
from hopscope.runtime.spans import keys
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import (
    Decision,
    Generation,
    GenerationRequest,
    Scored,
    ScoreRequest,
    Step,
)
from hopscope.tracing.wrappers.metered import MeteredReader

if TYPE_CHECKING:
    from hopscope.runtime.ports import Reader

NATIVE = "native"


class Guard:
    """A policy and limits for the searches of agents. Threads may share it."""

    def __init__(
        self,
        policy: PolicyPart = NATIVE,
        limits: Limits | None = None,
        *,
        reader: "ReaderPart | None" = None,
        prompts: str | Path | None = None,
        seed: int = 0,
    ) -> None:
        """A policy that was learned from runs with other prompts is warned of.

        Args:
            reader: whom the policy asks; policies that only count need none.
            prompts: the set of prompts that it is asked in, by default the reader's, or the default
                one.

        Raises:
            UsageError: there is no such policy, reader or set of prompts, or a limit of cost is
                given.
        """
        if not isinstance(limits, Limits | None):
            raise UsageError(f"limits: give hopscope.Limits(...), not {limits!r}")
        self.limits = limits or Limits()
        if self.limits.cost is not None:
            raise UsageError("a limit of cost needs the prices of your models: limit the tokens")
        self._reader: Reader = _NoReader() if reader is None else given.reader(reader)
        chosen = parts.prompts_of(reader) if prompts is None else str(prompts)
        self._prompts = loading.chosen(chosen or "")
        if reader is None and isinstance(policy, str) and _asks(policy):
            raise UsageError(
                f"the policy {policy} asks a reader: give one, such as reader='openai:URL#MODEL'"
            )
        # Whoever guards an application says which workflow it resembles by the choice of the file.
        self._policy = given.policy(
            given.named(policy),
            workflow=None,
            reader_name=self._reader.name,
            prompts=self._prompts.name,
        )
        self._seed = seed
        self._lock = Lock()

    def decide(self, call: str, others: Sequence[str] = ()) -> Decision:
        """The decision on a search.

        Args:
            call: its id; it is decided on once.
            others: ids of searches that were asked for at once, in order, `call` among them: they
                are decided on in this order, whichever begins first.

        Raises:
            UsageError: nothing is recorded here, or the recording does not tell its question.
            ReaderError: the policy's reader failed.
        """
        place = self._place()
        with self._lock:
            for each in others or (call,):
                if each not in place.tape.decisions:
                    place.tape.decisions[each] = self._decide(place)
            return place.tape.decisions[call]

    @contextmanager
    def within(self, name: str, decision: Decision) -> Iterator[None]:
        """What is searched here belongs to the decision."""
        place = self._place()
        told = {keys.DECISION: decision.model_dump_json()}
        span = place.tape.begin(name, told, place.span)
        try:
            with places.within(Place(place.tape, span)):
                yield
        finally:
            place.tape.end(span)

    def _place(self) -> Place:
        place = places.here()
        if place is None:
            raise UsageError(
                "decisions need a recording: give the call a HopscopeHandler "
                '(config={"callbacks": [handler]}), or make it within hopscope.recording(...)'
            )
        return place

    def _decide(self, place: Place) -> Decision:
        so_far = place.tape.so_far()
        allowed = [each for each in place.tape.decisions.values() if each.retrieve]
        searched = [step for step in so_far.steps if step.retrieved]
        going_on = _going_on(len(so_far.steps), len(allowed) - len(searched))
        steps = (*so_far.steps, *going_on)
        moment = Moment(so_far.question, steps, so_far.evidence, self._seed, self._prompts)
        decided = self._by_limits(steps, place.tape.seconds) or self._by_policy(moment, place)
        return decided.model_copy(update={"retrieval": moment.retrievals})

    def _by_limits(self, steps: Sequence[Step], seconds: float) -> Decision | None:
        ledger = Ledger(self.limits)
        ledger.recall(steps)
        ledger.before = seconds
        if self.limits.tokens is not None and ledger.usage.uncounted:
            raise UsageError(
                "the limit of tokens cannot hold, since the model does not tell how many a request "
                "took: limit the retrievals or the calls"
            )
        refusal = ledger.refuses_retrieval()
        if refusal is None:
            return None
        policy = f"{LIMIT}{refusal.stop_reason}"
        return Decision(policy=policy, retrieve=False, reason=str(refusal))

    def _by_policy(self, moment: Moment, place: Place) -> Decision:
        if self._policy is None:
            return Decision(policy=NATIVE, retrieve=True, reason="no limit is reached")
        metered = MeteredReader(self._reader)
        decided = self._policy.decide(moment, metered)
        return decided.model_copy(update={"usage": metered.take()})


def _asks(policy: str) -> bool:
    """Whether a policy always asks a reader; those that were learned may do without."""
    from hopscope.runtime import components
    from hopscope.tracing import policies

    name = Spec.parse(given.named(policy)).name
    return bool(getattr(components.load(policies, name), "ASKS", False))


class _NoReader:
    """Stands for the reader of policies that ask none."""

    name = "none"

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        raise ReaderError("this policy asks a reader: give one, reader='openai:URL#MODEL'")

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        raise ReaderError("this policy asks a reader: give one, reader='hf:MODEL'")


def _going_on(first: int, count: int) -> Iterable[Step]:
    """Searches that were allowed and have not ended yet."""
    now = datetime.now(UTC)
    return (
        Step(index=first + place, name="search", kind="retrieve", query="", started=now, seconds=0)
        for place in range(count)
    )
