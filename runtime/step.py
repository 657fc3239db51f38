"""The one tracing seam: `@step` turns a plain function into an instrumented graph node.

A node is `(state, deps, **options) -> Update` and contains no tracing, timing or storage
code. The seam hands it recording ports, so whatever it asks of a reader or a retriever is in
the `Step`, and opens the spans. Calling the decorated function with its options gives the
node: `graph.add_node("retrieve", retrieve(k=4))`.

It is also where the budget is kept: the recording ports ask the ledger before each call, and a
node of kind `retrieve` is carried out only if the policy and the limits allow it. One that is
refused leaves the evidence as it is and says so in `State["declined"]`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import wraps
from time import perf_counter
from typing import Any, Concatenate, ParamSpec, Protocol

from langgraph.runtime import Runtime

from hopscope.runtime import spans
from hopscope.runtime.errors import BudgetExceeded, NoAnswer
from hopscope.runtime.ledger import QUERIES, Ledger
from hopscope.runtime.ports import Moment, Reader, Retriever
from hopscope.runtime.stages import Note, Noting
from hopscope.runtime.state import Deps
from hopscope.runtime.types import (
    Decision,
    Exchange,
    Generation,
    GenerationRequest,
    Hit,
    Scored,
    ScoreRequest,
    Step,
    StepKind,
    Usage,
)

P = ParamSpec("P")


class Node(Protocol):
    """What LangGraph calls: it passes its runtime, whose context is our `Deps`, by name."""

    def __call__(self, state: Any, *, runtime: Runtime[Deps]) -> dict[str, Any]: ...


@dataclass
class _Log:
    """What one node asked for."""

    exchanges: list[Exchange] = field(default_factory=list)
    scored: list[Usage] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    said: str | None = None
    """The last text that the node itself asked for, not a stage of its retriever."""

    @property
    def usage(self) -> Usage:
        spent = [g.usage for e in self.exchanges for g in e.generations]
        return sum([*spent, *self.scored], Usage())

    @property
    def shown(self) -> tuple[str, ...]:
        keys = (key for e in self.exchanges for key in e.request.prompt.shown)
        return tuple(dict.fromkeys(keys))

    @property
    def output(self) -> str | None:
        """What the node said, or else, as JSON, what the stages of its retriever did."""
        if self.said is None and self.notes:
            told = [note.model_dump(mode="json", exclude_none=True) for note in self.notes]
            return json.dumps(told, ensure_ascii=False)
        return self.said

    @property
    def parse_ok(self) -> bool | None:
        """Whether stages could read all replies; None where none had to."""
        told = [note.parse_ok for note in self.notes if note.parse_ok is not None]
        return all(told) if told else None


@dataclass(frozen=True)
class _Account:
    """The ledger as one step may use it."""

    ledger: Ledger
    last: bool
    """Whether the step writes the answer, and may use what is kept back for it."""

    @property
    def limited(self) -> bool:
        return bool(self.ledger.limits.given)

    def check(self) -> None:
        self.ledger.check_call(last=self.last)


@dataclass(frozen=True)
class _RecordingReader:
    inner: Reader
    log: _Log
    account: _Account
    capture: bool
    speaks: bool = True
    """Whether its text is what the node says."""

    @property
    def name(self) -> str:
        return self.inner.name

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        if self.account.limited and len(requests) > 1:
            # The limit may lie within the batch.
            return [reply for request in requests for reply in self.generate([request])]
        self.account.check()
        begun = perf_counter()
        with spans.generations(self.inner.name, requests, capture=self.capture) as finish:
            replies = self.inner.generate(requests)
            span_ids = finish(replies)
        share = (perf_counter() - begun) / max(1, len(requests))
        for request, generations, span_id in zip(requests, replies, span_ids, strict=True):
            self.log.exchanges.append(
                Exchange(
                    request=request,
                    generations=tuple(generations),
                    seconds=share,
                    span_id=span_id,
                )
            )
            self.account.ledger.called(sum((g.usage for g in generations), Usage()), share)
        for generation in (g for generations in replies for g in generations):
            if generation.unanswered:
                raise NoAnswer(f"{self.name}: {generation.unanswered}")
        if self.speaks and replies:
            self.log.said = replies[-1][-1].text
        return replies

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        if self.account.limited and len(requests) > 1:
            return [found for request in requests for found in self.score([request])]
        self.account.check()
        begun = perf_counter()
        scored = self.inner.score(requests)
        share = (perf_counter() - begun) / max(1, len(requests))
        for found in scored:
            self.log.scored.append(found.usage)
            self.account.ledger.called(found.usage, share)
        return scored


@dataclass(frozen=True)
class _RecordingRetriever:
    inner: Retriever
    log: _Log
    account: _Account
    capture: bool

    @property
    def name(self) -> str:
        return self.inner.name

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """Queries that no retrieval is left for find nothing."""
        allowed = self.account.ledger.allowed(len(queries))
        left_out = len(queries) - allowed
        queries = queries[:allowed]
        if not queries:
            return [[] for _ in range(left_out)]
        self.account.ledger.searched(len(queries))
        with spans.retrievals(self.inner.name, queries, k=k, capture=self.capture) as finish:
            rankings = self.inner.search(queries, k=k)
            finish(rankings)
        self.log.queries.extend(queries)
        self.log.hits.extend(hit for ranking in rankings for hit in ranking)
        return [*rankings, *([] for _ in range(left_out))]


def _noting(deps: Deps, log: _Log, account: _Account) -> Retriever:
    """The retriever; if it has stages, with what they ask and do in the log."""
    if not isinstance(deps.retriever, Noting):
        return deps.retriever

    def recording(reader: Reader) -> Reader:
        return _RecordingReader(reader, log, account, deps.capture_content, speaks=False)

    note = log.notes.append
    return deps.retriever.recorded(recording, note, capture=deps.capture_content)


def step(
    kind: StepKind,
) -> Callable[[Callable[Concatenate[Any, Deps, P], Mapping[str, Any]]], Callable[P, Node]]:
    """Make a graph node of a plain function; the step is named after the function.

    `kind` says what the node is for, in the words of the step record.
    """

    def decorate(
        function: Callable[Concatenate[Any, Deps, P], Mapping[str, Any]],
    ) -> Callable[P, Node]:
        @wraps(function)
        def bind(*args: P.args, **options: P.kwargs) -> Node:
            def node(state: Any, *, runtime: Runtime[Deps]) -> dict[str, Any]:
                return carry_out(
                    function.__name__,
                    kind,
                    lambda deps: function(state, deps, *args, **options),
                    state,
                    runtime.context,
                )

            return node

        return bind

    return decorate


def carry_out(
    name: str,
    kind: StepKind,
    call: Callable[[Deps], Mapping[str, Any]],
    state: Mapping[str, Any],
    deps: Deps,
    *,
    last: bool = False,
) -> dict[str, Any]:
    """Take one step: what it changes of the state, its record included.

    Raises:
        BudgetExceeded, NoAnswer: a limit was reached within it, or a reply ended within its
            thought; `step` is what it did until then.
    """
    past: list[Step] = state.get("steps", [])
    log = _Log()
    account = _Account(deps.ledger, last or name in deps.closing)
    reader = _RecordingReader(deps.reader, log, account, deps.capture_content)
    retriever = _noting(deps, log, account)
    recording = replace(
        deps,
        reader=reader,
        retriever=_RecordingRetriever(retriever, log, account, deps.capture_content),
    )
    decision: Decision | None = None
    broken_off: BudgetExceeded | NoAnswer | None = None
    update: dict[str, Any] = {}
    started, begun = datetime.now(UTC), perf_counter()
    with spans.step(name, kind, index=len(past), capture=deps.capture_content) as span:
        try:
            if kind == "retrieve":
                decision = _decide(state, deps, replace(reader, speaks=False), log)
            if decision is None or decision.retrieve:
                update = dict(call(recording))
            else:
                update = {"evidence": state.get("evidence", ()), "output": decision.reason}
        except BudgetExceeded as reached:
            broken_off = reached
        except NoAnswer as unanswered:
            broken_off = unanswered
            spans.fail(span, unanswered, capture=deps.capture_content)
        if decision is not None:
            update["declined"] = not decision.retrieve
        output = update.pop("output", None)
        evidence = update.get("evidence", state.get("evidence", ()))
        known = {key for step in past for key in step.new}
        taken = Step(
            index=len(past),
            name=name,
            kind=kind,
            query=QUERIES.join(log.queries) if log.queries else None,
            ranked=tuple(log.hits),
            new=tuple(p.key for p in evidence if p.key not in known),
            shown=log.shown,
            evidence=evidence,
            exchanges=tuple(log.exchanges),
            output=log.output if output is None else output,
            parse_ok=update.pop("parse_ok", log.parse_ok),
            stop_reason=update.get("stop_reason"),
            decision=decision,
            usage=log.usage,
            started=started,
            seconds=perf_counter() - begun,
            span_id=spans.span_id(span),
        )
        spans.describe_step(span, taken, capture=deps.capture_content)
    if broken_off is not None:
        broken_off.step = taken
        raise broken_off
    return {**update, "steps": [taken]}


def _decide(state: Mapping[str, Any], deps: Deps, reader: Reader, log: _Log) -> Decision | None:
    """What the limits and then the policy say of a retrieval; None where there is neither.

    Raises:
        BudgetExceeded: it was refused a moment before, and the workflow has nothing else to do.
    """
    steps: list[Step] = state.get("steps", [])
    moment = Moment(state["question"], tuple(steps), state.get("evidence", ()), deps.seed)
    if refusal := deps.ledger.refuses_retrieval():
        reason = str(refusal)
        decided = Decision(policy=f"{LIMIT}{refusal.stop_reason}", retrieve=False, reason=reason)
    elif deps.policy is None:
        return None
    else:
        decided = deps.policy.decide(moment, reader)
        refusal = BudgetExceeded("policy", decided.reason)
    before = steps[-1].decision if steps else None
    if before and not before.retrieve and not decided.retrieve:
        raise refusal
    return decided.model_copy(update={"retrieval": moment.retrievals, "usage": log.usage})


LIMIT = "limit:"
"""Begins the policy of a decision that a limit has made; the reason to stop follows."""
