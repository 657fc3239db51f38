"""Run one question through one workflow: the one place where failure becomes a record.

A bad run is data, not a crash: whatever a node raises ends up in `Run.error`, and the steps
taken before it are kept.
"""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from langgraph.errors import GraphRecursionError
from langgraph.graph import StateGraph
from pydantic import JsonValue

from hopscope.runtime import spans
from hopscope.runtime.errors import UsageError
from hopscope.runtime.state import Deps
from hopscope.runtime.types import Question, Run, RunError, RunStatus, Step

NODE_LIMIT = 1000
"""LangGraph's bound on node executions: a net under workflows, which stop by their own limits."""


@dataclass(frozen=True)
class Workflow:
    """A graph with the name and options it was built from."""

    name: str
    graph: StateGraph[Any, Deps, Any, Any]
    options: dict[str, JsonValue]


def run(workflow: Workflow, question: Question, deps: Deps) -> Run:
    """Answer `question`. Never raises for what happens inside the workflow.

    Ctrl-C ends the run with status `interrupted`; anything else that a node raises ends it
    with status `failed` and the error's type and message.

    Raises:
        UsageError: the question is empty.
    """
    if not question.text.strip():
        raise UsageError("the question is empty: give the text of a question")
    run_id = uuid.uuid4().hex
    graph = workflow.graph.compile()
    state: dict[str, Any] = {}
    status: RunStatus = "ok"
    error: RunError | None = None
    started, begun = datetime.now(UTC), perf_counter()
    with spans.workflow(
        run_id, workflow.name, question, workflow.options, capture=deps.capture_content
    ) as span:
        try:
            for values in graph.stream(
                {"question": question},
                context=deps,
                stream_mode="values",
                config={"recursion_limit": NODE_LIMIT},
            ):
                state = values
        except KeyboardInterrupt:
            status, error = "interrupted", RunError(type="KeyboardInterrupt", message="stopped")
        except GraphRecursionError:
            message = f"the workflow did not stop within {NODE_LIMIT} steps"
            status, error = "failed", RunError(type="GraphRecursionError", message=message)
        except Exception as exception:  # the one capture point; see the module's docstring
            status = "failed"
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
            stop_reason=state.get("stop_reason"),
            error=error,
            started=started,
            seconds=perf_counter() - begun,
            trace_id=spans.trace_id(span),
            span_id=spans.span_id(span),
        )
        spans.describe_run(span, result, capture=deps.capture_content)
    return result


def _with_dangling(steps: list[Step]) -> tuple[Step, ...]:
    """Mark what was retrieved but never shown: only the end of the run can tell."""
    shown = {key for step in steps for key in step.shown}
    return tuple(
        step.model_copy(update={"dangling": tuple(key for key in step.new if key not in shown)})
        for step in steps
    )
