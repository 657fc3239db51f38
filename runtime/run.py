"""Run one question through one workflow: the one place where failure becomes a record.

A bad run is data, not a crash: whatever a node raises ends up in `Run.error`, and the steps
taken before it are kept. A spent budget is no failure: the run ends with an answer.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, get_args

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import JsonValue

from hopscope.runtime import spans
from hopscope.runtime._resuming import KEY, Origin, Past, recall
from hopscope.runtime._untraced import untraced
from hopscope.runtime.conclusion import end
from hopscope.runtime.errors import BudgetExceeded, NoAnswer, UsageError
from hopscope.runtime.ledger import Ledger
from hopscope.runtime.state import Deps
from hopscope.runtime.step import LIMIT
from hopscope.runtime.types import Question, Run, RunError, RunStatus, Step, StopReason

NODE_LIMIT = 1000
"""LangGraph's bound on node executions: a net under workflows, which stop by their own limits."""


@dataclass(frozen=True)
class Workflow:
    """A graph with the name and options it was built from."""

    name: str
    graph: StateGraph[Any, Deps, Any, Any]
    options: dict[str, JsonValue]


def run(
    workflow: Workflow,
    question: Question,
    deps: Deps,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    run_id: str | None = None,
) -> Run:
    """Answer `question`. Never raises for what happens inside the workflow.

    Ctrl-C ends the run with status `interrupted`; anything else that a node raises ends it
    with status `failed` and the error's type and message.

    With a `checkpointer` (see `runtime.checkpoints`) the state after each step is kept under
    `run_id`. A run that is known there goes on after its last step; of one that was finished the
    record is made again and nothing is asked.

    LangChain's own tracing (LangSmith) is off during the run, whatever the environment says.

    The limits of `deps.ledger` hold for this run. One that reaches a limit ends regularly, with an
    answer from what it has and the limit as its reason to stop.

    Raises:
        UsageError: the question is empty, or the run was begun with other settings.
    """
    if not question.text.strip():
        raise UsageError("the question is empty: give the text of a question")
    run_id = run_id or uuid.uuid4().hex
    graph = workflow.graph.compile(checkpointer=checkpointer)
    config: RunnableConfig = {"configurable": {"thread_id": run_id}}
    past = Past(_origin(workflow, question, deps))
    if checkpointer is not None:
        past = recall(graph, config, past.origin)
    ledger = Ledger(deps.ledger.limits, deps.ledger.price)
    ledger.recall(past.state.get("steps", []))
    deps = replace(deps, ledger=ledger, closing=_closing(graph))
    state = past.state
    status: RunStatus = "ok"
    error: RunError | None = None
    begun = perf_counter()
    with (
        spans.joining(past.origin.trace_id, past.origin.span_id),
        spans.workflow(
            run_id, workflow.name, question, workflow.options, capture=deps.capture_content
        ) as span,
        untraced(),
    ):
        trace_id = past.origin.trace_id or spans.trace_id(span)
        first = {"trace_id": trace_id, "span_id": past.origin.span_id or spans.span_id(span)}
        origin = past.origin.model_copy(update=first)
        try:
            try:
                for values in _states(graph, config, past, origin, deps):
                    state = values
            except BudgetExceeded as reached:
                state = end(state, deps, reached)
        except KeyboardInterrupt:
            status, error = "interrupted", RunError(type="KeyboardInterrupt", message="stopped")
        except GraphRecursionError:
            message = f"the workflow did not stop within {NODE_LIMIT} steps"
            status, error = "failed", RunError(type="GraphRecursionError", message=message)
        except Exception as exception:  # the one capture point; see the module's docstring
            status = "failed"
            if isinstance(exception, NoAnswer) and exception.step is not None:
                state = {**state, "steps": [*state.get("steps", []), exception.step]}
            error = RunError(type=type(exception).__name__, message=str(exception))
            spans.fail(span, exception, capture=deps.capture_content)
        result = Run(
            id=run_id,
            question=question,
            workflow=workflow.name,
            options=workflow.options,
            reader=deps.reader.name,
            retriever=deps.retriever.name,
            seed=deps.seed,
            steps=_with_dangling(state.get("steps", [])),
            answer=state.get("answer"),
            status=status,
            stop_reason=_stop_reason(state),
            error=error,
            started=origin.started,
            seconds=past.seconds + perf_counter() - begun,
            trace_id=trace_id,
            span_id=spans.span_id(span),
        )
        spans.describe_run(span, result, capture=deps.capture_content)
    return result


def _states(
    graph: CompiledStateGraph[Any, Deps, Any, Any],
    config: RunnableConfig,
    past: Past,
    origin: Origin,
    deps: Deps,
) -> Iterator[dict[str, Any]]:
    """The state after each step that is left to take."""
    if past.finished:
        return
    yield from graph.stream(
        None if past.state else {"question": origin.question},
        context=deps,
        stream_mode="values",
        config={
            **config,
            "metadata": {KEY: origin.model_dump_json()},
            "recursion_limit": max(1, NODE_LIMIT - len(past.state.get("steps", []))),
        },
        # A step counts as taken only once it is on the disk.
        durability=None if graph.checkpointer is None else "sync",
    )


def _origin(workflow: Workflow, question: Question, deps: Deps) -> Origin:
    return Origin(
        question=question,
        workflow=workflow.name,
        options=workflow.options,
        reader=deps.reader.name,
        retriever=deps.retriever.name,
        entailment=deps.entailment.name if deps.entailment else None,
        seed=deps.seed,
        started=datetime.now(UTC),
    )


def _closing(graph: CompiledStateGraph[Any, Deps, Any, Any]) -> frozenset[str]:
    """The nodes from which the graph only ends."""
    builder = graph.builder
    going_on = {start for start, stop in builder.edges if stop != END} | set(builder.branches)
    return frozenset(builder.nodes.keys() - going_on)


def _stop_reason(state: dict[str, Any]) -> StopReason | None:
    """The workflow's own, unless it is a limit that left the last retrieval out; a policy's
    refusal, where the workflow has none."""
    own: StopReason | None = state.get("stop_reason")
    steps: list[Step] = state.get("steps", [])
    last = next((step.decision for step in reversed(steps) if step.decision), None)
    if last is None or last.retrieve:
        return own
    known: dict[str, StopReason] = {reason: reason for reason in get_args(StopReason)}
    return known.get(last.policy.removeprefix(LIMIT), own or "policy")


def _with_dangling(steps: list[Step]) -> tuple[Step, ...]:
    """Mark what was retrieved but never shown: only the end of the run can tell."""
    shown = {key for step in steps for key in step.shown}
    return tuple(
        step.model_copy(update={"dangling": tuple(key for key in step.new if key not in shown)})
        for step in steps
    )
