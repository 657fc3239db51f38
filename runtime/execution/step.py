"""The one tracing seam: `@step` turns a plain function into an instrumented graph node.

A node is `(state, deps, **options) -> Update` and contains no tracing, timing or storage
code. The seam opens the spans and gives it recording ports, so that the `Step` holds all calls of
the reader and the retriever. Calling the decorated function with its options gives the
node: `graph.add_node("retrieve", retrieve(k=4))`.

The seam also enforces the budget: the recording ports check the ledger before each call, and a
node of kind `retrieve` runs only if the policy and the limits allow it. A refused one leaves the
evidence unchanged and sets `State["declined"]`.
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
from hopscope.runtime.budget.ledger import QUERIES, Ledger
from hopscope.runtime.errors import BudgetExceededError, NoAnswerError
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Moment, Reader, Retriever
from hopscope.runtime.stages import RecordableRetriever, StageNote
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
    """A node as LangGraph calls it, with its runtime by name; the runtime's context is `Deps`."""

    def __call__(self, state: Any, *, runtime: Runtime[Deps]) -> dict[str, Any]: ...


@dataclass
class Log:
    """The calls of one node to its ports."""

    exchanges: list[Exchange] = field(default_factory=list)
    scored: list[Usage] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)
    notes: list[StageNote] = field(default_factory=list)
    reply: str | None = None
    """The last reply to the node itself, not to a stage of its retriever."""

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
        """The last reply to the node; without one, the notes of its retriever's stages as JSON."""
        if self.reply is None and self.notes:
            notes = [note.model_dump(mode="json", exclude_none=True) for note in self.notes]
            return json.dumps(notes, ensure_ascii=False)
        return self.reply

    @property
    def parse_ok(self) -> bool | None:
        """Whether the stages could parse all replies; None if they had none to parse."""
        parsed = [note.parse_ok for note in self.notes if note.parse_ok is not None]
        return all(parsed) if parsed else None


@dataclass(frozen=True)
class _Account:
    """One step's view of the ledger."""

    ledger: Ledger
    last: bool
    """Whether the step writes the answer and may use the budget reserved for it."""

    @property
    def limited(self) -> bool:
        return bool(self.ledger.limits.given)

    def check(self) -> None:
        self.ledger.check_call(last=self.last)


@dataclass(frozen=True)
class _RecordingReader:
    inner: Reader
    log: Log
    account: _Account
    capture: bool
    speaks: bool = True
    """Whether its replies are the node's output."""

    @property
    def name(self) -> str:
        return self.inner.name

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        if self.account.limited and len(requests) > 1:
            # The limit may lie within the batch.
            return [reply for request in requests for reply in self.generate([request])]
        self.account.check()
        began = perf_counter()
        with spans.generations(self.inner.name, requests, capture=self.capture) as finish:
            replies = self.inner.generate(requests)
            replies = self.account.ledger.prefixes.counted(self.inner, requests, replies)
            span_ids = finish(replies)
        share = (perf_counter() - began) / max(1, len(requests))
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
                raise NoAnswerError(f"{self.name}: {generation.unanswered}")
        if self.speaks and replies:
            self.log.reply = replies[-1][-1].text
        return replies

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        if self.account.limited and len(requests) > 1:
            return [scored_one for request in requests for scored_one in self.score([request])]
        self.account.check()
        began = perf_counter()
        scored = self.inner.score(requests)
        share = (perf_counter() - began) / max(1, len(requests))
        for scored_one in scored:
            self.log.scored.append(scored_one.usage)
            self.account.ledger.called(scored_one.usage, share)
        return scored


@dataclass(frozen=True)
class _RecordingRetriever:
    inner: Retriever
    log: Log
    account: _Account
    capture: bool

    @property
    def name(self) -> str:
        return self.inner.name

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """Queries beyond the limit of retrievals get no hits."""
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


def recorded(deps: Deps, log: Log, *, last: bool) -> Deps:
    """The ports with their calls recorded in the log and the ledger.

    Args:
        last: whether the node writes the answer and may use the budget reserved for it.
    """
    account = _Account(deps.ledger, last)
    reader = _RecordingReader(deps.reader, log, account, deps.capture_content, speaks=True)
    retriever = _noting(deps, log, account)
    recording = _RecordingRetriever(retriever, log, account, deps.capture_content)
    return replace(deps, reader=reader, retriever=recording)


def _silent_reader(deps: Deps, log: Log, *, last: bool) -> Reader:
    """The reader with its calls recorded; its replies are not the node's output."""
    account = _Account(deps.ledger, last)
    return _RecordingReader(deps.reader, log, account, deps.capture_content, speaks=False)


def _noting(deps: Deps, log: Log, account: _Account) -> Retriever:
    """The retriever; if it has stages, their calls and notes are recorded in the log."""
    if not isinstance(deps.retriever, RecordableRetriever):
        return deps.retriever

    def recording(reader: Reader) -> Reader:
        return _RecordingReader(reader, log, account, deps.capture_content, speaks=False)

    note = log.notes.append
    return deps.retriever.recorded(
        recording, note, capture=deps.capture_content, prompts=deps.prompts
    )


def step(
    kind: StepKind,
) -> Callable[[Callable[Concatenate[Any, Deps, P], Mapping[str, Any]]], Callable[P, Node]]:
    """Make a graph node of a plain function; the step is named after the function.

    `kind` is the kind of the step in its record.
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
    """Run one step; returns its changes of the state, with its record.

    Raises:
        BudgetExceededError, NoAnswerError: the step reached a limit, or a reply ended within its
            thought; `step` is the record so far.
    """
    past: list[Step] = state.get("steps", [])
    log = Log()
    last = last or name in deps.closing
    recording = recorded(deps, log, last=last)
    decision: Decision | None = None
    interruption: BudgetExceededError | NoAnswerError | None = None
    update: dict[str, Any] = {}
    started, began = datetime.now(UTC), perf_counter()
    with spans.step(name, kind, index=len(past), capture=deps.capture_content) as span:
        try:
            if kind == "retrieve":
                decision = _decide(state, deps, _silent_reader(deps, log, last=last), log)
            if decision is None or decision.retrieve:
                update = dict(call(recording))
            else:
                update = {"evidence": state.get("evidence", ()), "output": decision.reason}
        except BudgetExceededError as reached:
            interruption = reached
        except NoAnswerError as unanswered:
            interruption = unanswered
            spans.fail(span, unanswered, capture=deps.capture_content)
        if decision is not None:
            update["declined"] = not decision.retrieve
        output = update.pop("output", None)
        evidence = update.get("evidence", state.get("evidence", ()))
        known = {key for step in past for key in step.new}
        done = Step(
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
            seconds=perf_counter() - began,
            span_id=spans.span_id(span),
        )
        spans.describe_step(span, done, capture=deps.capture_content)
    if interruption is not None:
        interruption.step = done
        raise interruption
    return {**update, "steps": [done]}


def _decide(state: Mapping[str, Any], deps: Deps, reader: Reader, log: Log) -> Decision | None:
    """The decision of the limits, then of the policy, on a retrieval; None without either.

    Raises:
        BudgetExceededError: the same step was just refused, and the workflow has no other step.
    """
    steps: list[Step] = state.get("steps", [])
    evidence = state.get("evidence", ())
    moment = Moment(state["question"], tuple(steps), evidence, deps.seed, deps.prompts)
    if refusal := deps.ledger.refuses_retrieval():
        reason = str(refusal)
        decided = Decision(policy=f"{LIMIT}{refusal.stop_reason}", retrieve=False, reason=reason)
    elif deps.policy is None:
        return None
    else:
        decided = deps.policy.decide(moment, reader)
        refusal = BudgetExceededError("policy", decided.reason)
    if steps and steps[-1].declined and not decided.retrieve:
        raise refusal
    return decided.model_copy(update={"retrieval": moment.retrievals, "usage": log.usage})


LIMIT = "limit:"
"""Prefix of the policy's name where a limit decided; the stop reason follows."""
