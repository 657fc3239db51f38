"""Run one question through one workflow: the one place where failure becomes a record.

A bad run is data, not a crash: `Run.error` holds the error of a node, and the record keeps the
steps before it. A spent budget is no failure: the run ends with an answer.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple, Protocol, get_args, runtime_checkable

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import JsonValue

from hopscope.runtime import spans
from hopscope.runtime.budget.ledger import Ledger
from hopscope.runtime.errors import BudgetExceededError, NoAnswerError, UsageError
from hopscope.runtime.execution._resuming import KEY, Origin, SavedRun, recall
from hopscope.runtime.execution.conclusion import end
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.execution.step import LIMIT
from hopscope.runtime.execution.untraced import untraced
from hopscope.runtime.prompting.prompt_set import PromptSet
from hopscope.runtime.types import Question, Run, RunError, RunStatus, Step, StopReason

NODE_LIMIT = 1000
"""LangGraph's limit on node executions: a safety net, since workflows stop by their own limits."""


@runtime_checkable
class Watched(Protocol):
    """A graph that was not written for Hopscope: it has a state of its own, and its steps are read
    from what its nodes write. See `runtime.adapters.workflow`."""

    @property
    def ports(self) -> bool:
        """Whether its nodes ask the run's reader and retriever, instead of their own."""
        ...

    def check(self, deps: Deps) -> None:
        """
        Raises:
            UsageError: the limits or the policy cannot hold in it.
        """
        ...

    def states(self, question: Question, deps: Deps, *, run_id: str) -> Iterator[dict[str, Any]]:
        """The run's state, as `State` has it, after each of its steps. Once a node has failed, its
        `error` is the `RunError` that names the node."""
        ...


@dataclass(frozen=True)
class Workflow:
    """A graph with the name and options it was built from."""

    name: str
    graph: StateGraph[Any, Deps, Any, Any] | Watched
    options: dict[str, JsonValue]
    prompts: PromptSet | None = None
    """Its own set of prompts, which its option `prompts` names; None takes that of `Deps`."""

    @cached_property
    def compiled(self) -> CompiledStateGraph[Any, Deps, Any, Any] | Watched:
        """The graph, compiled once for all runs; nodes that are added later are not in it."""
        return self.graph if isinstance(self.graph, Watched) else self.graph.compile()


class Exited(SystemExit):
    """A part of a run ended the program."""

    def __init__(self, run: Run, code: object) -> None:
        super().__init__(code)
        self.run = run
        """The failed run with the steps it took."""


def run(
    workflow: Workflow,
    question: Question,
    deps: Deps,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    run_id: str | None = None,
) -> Run:
    """Answer `question`. Errors inside the workflow are recorded, never raised.

    Ctrl-C ends the run with status `interrupted`; any other exception of a node ends it with
    status `failed` and the error's type and message.

    With a `checkpointer` (see `runtime.execution.checkpoints`) the state after each step is saved
    under `run_id`. A known `run_id` continues after its last step; a finished run returns its
    record without any call.

    LangChain's own tracing (LangSmith) is off during the run, whatever the environment says.

    The limits of `deps.ledger` hold for this run. A run that reaches a limit ends regularly, with
    an answer from the evidence so far and the limit as its stop reason.

    The record names no reader and no retriever if the workflow is a graph with its own.

    Raises:
        UsageError: the question is empty, the run began with other settings, or the workflow
            is a graph in which checkpoints, limits or the policy cannot hold.
        Exited: a part called `sys.exit`; the failed run is in it.
    """
    if not question.text.strip():
        raise UsageError("the question is empty: give the text of a question")
    run_id = run_id or uuid.uuid4().hex
    graph = _ready(workflow, deps, checkpointer)
    config: RunnableConfig = {"configurable": {"thread_id": run_id}}
    past = SavedRun(_origin(workflow, question, deps))
    if checkpointer is not None and not isinstance(graph, Watched):
        past = recall(graph, config, past.origin)
    ledger = Ledger(deps.ledger.limits, deps.ledger.price)
    ledger.recall(past.state.get("steps", []))
    deps = replace(
        deps, ledger=ledger, closing=closing(graph), prompts=workflow.prompts or deps.prompts
    )
    ports = _port_names(workflow, deps)
    state = past.state
    status: RunStatus = "ok"
    error: RunError | None = None
    exiting: SystemExit | None = None
    began = perf_counter()
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
            except BudgetExceededError as reached:
                state = end(state, deps, reached)
        except KeyboardInterrupt:
            status, error = "interrupted", RunError(type="KeyboardInterrupt", message="stopped")
        except SystemExit as exit:
            exiting = exit
            status = "failed"
            error = RunError(type="SystemExit", message=f"a part called sys.exit({exit.code!r})")
        except GraphRecursionError as reached:
            message = f"the workflow did not stop within {NODE_LIMIT} steps"
            if isinstance(graph, Watched):  # which may have a limit of its own
                message = str(reached).partition("\n")[0]
            status, error = "failed", RunError(type="GraphRecursionError", message=message)
        except Exception as exception:  # the one capture point; see the module's docstring
            status = "failed"
            if isinstance(exception, NoAnswerError) and exception.step is not None:
                state = {**state, "steps": [*state.get("steps", []), exception.step]}
            error = state.get("error") or RunError(
                type=type(exception).__name__, message=str(exception)
            )
            spans.fail(span, exception, capture=deps.capture_content)
        result = Run(
            id=run_id,
            question=question,
            workflow=workflow.name,
            options=workflow.options,
            reader=ports.reader,
            retriever=ports.retriever,
            seed=deps.seed,
            steps=_with_dangling(state.get("steps", [])),
            answer=state.get("answer"),
            status=status,
            stop_reason=_stop_reason(state),
            error=error,
            started=origin.started,
            seconds=past.seconds + perf_counter() - began,
            trace_id=trace_id,
            span_id=spans.span_id(span),
        )
        spans.describe_run(span, result, capture=deps.capture_content)
    if exiting is not None:
        raise Exited(result, exiting.code) from exiting
    return result


def _ready(
    workflow: Workflow, deps: Deps, checkpointer: BaseCheckpointSaver[Any] | None
) -> CompiledStateGraph[Any, Deps, Any, Any] | Watched:
    """
    Raises:
        UsageError: checkpoints, limits or a policy cannot hold in a graph that was not written
            for Hopscope.
    """
    graph = workflow.compiled
    if not isinstance(graph, Watched):
        if checkpointer is None:
            return graph
        return graph.copy({"checkpointer": checkpointer})
    if checkpointer is not None:
        raise UsageError(
            f"{workflow.name} cannot be resumed, because Hopscope does not know its state: leave "
            "out the checkpoints"
        )
    graph.check(deps)
    return graph


class _PortNames(NamedTuple):
    """Names of the reader and the retriever of a run."""

    reader: str
    retriever: str


def _port_names(workflow: Workflow, deps: Deps) -> _PortNames:
    if isinstance(workflow.graph, Watched) and not workflow.graph.ports:
        return _PortNames("", "")
    return _PortNames(deps.reader.name, deps.retriever.name)


def _states(
    graph: CompiledStateGraph[Any, Deps, Any, Any] | Watched,
    config: RunnableConfig,
    past: SavedRun,
    origin: Origin,
    deps: Deps,
) -> Iterator[dict[str, Any]]:
    """The state after each remaining step."""
    if past.finished:
        return
    if isinstance(graph, Watched):
        yield from graph.states(origin.question, deps, run_id=config["configurable"]["thread_id"])
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
        # A step counts only once it is on the disk.
        durability=None if graph.checkpointer is None else "sync",
    )


def _origin(workflow: Workflow, question: Question, deps: Deps) -> Origin:
    ports = _port_names(workflow, deps)
    return Origin(
        question=question,
        workflow=workflow.name,
        options=workflow.options,
        reader=ports.reader,
        retriever=ports.retriever,
        entailment=deps.entailment.name if deps.entailment else None,
        seed=deps.seed,
        started=datetime.now(UTC),
    )


def closing(graph: CompiledStateGraph[Any, Any, Any, Any] | Watched) -> frozenset[str]:
    """The nodes after which the graph can only end, where the graph tells them."""
    if isinstance(graph, Watched):
        return frozenset()
    builder = graph.builder
    going_on = {start for start, stop in builder.edges if stop != END} | set(builder.branches)
    return frozenset(builder.nodes.keys() - going_on)


def _stop_reason(state: dict[str, Any]) -> StopReason | None:
    """The workflow's own reason, unless a limit prevented the last retrieval. Without one, the
    policy's refusal."""
    own: StopReason | None = state.get("stop_reason")
    steps: list[Step] = state.get("steps", [])
    last = next((step.decision for step in reversed(steps) if step.decision), None)
    if last is None or last.retrieve:
        return own
    known: dict[str, StopReason] = {reason: reason for reason in get_args(StopReason)}
    return known.get(last.policy.removeprefix(LIMIT), own or "policy")


def _with_dangling(steps: list[Step]) -> tuple[Step, ...]:
    """Mark passages that were retrieved but never shown, which only the end of a run can tell."""
    shown = {key for step in steps for key in step.shown}
    return tuple(
        step.model_copy(update={"dangling": tuple(key for key in step.new if key not in shown)})
        for step in steps
    )
