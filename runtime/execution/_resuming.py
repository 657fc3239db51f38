"""The record that lets a run continue, and the check that it continues with the same settings."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from pydantic import JsonValue

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Question, Record, Step

KEY = "hopscope"
"""Key of the origin in the metadata of a checkpoint."""


class Origin(Record):
    """The settings a run began with; each of its checkpoints holds them."""

    question: Question
    workflow: str
    options: dict[str, JsonValue]
    reader: str
    retriever: str
    """Names the corpus with its fingerprint."""
    entailment: str | None
    seed: int
    started: datetime
    trace_id: str = ""
    """The trace of the first part, which later parts join; empty without tracing."""
    span_id: str = ""


CHECKED = ("question", "workflow", "options", "reader", "retriever", "entailment", "seed")


@dataclass(frozen=True)
class SavedRun:
    """The known part of a run when it begins or continues."""

    origin: Origin
    state: dict[str, Any] = field(default_factory=dict)
    """The state after the last step; empty before the first."""
    finished: bool = False

    @property
    def seconds(self) -> float:
        """Seconds of the steps so far."""
        steps: list[Step] = self.state.get("steps", [])
        return sum(step.seconds for step in steps)


def recall(
    graph: CompiledStateGraph[Any, Any, Any, Any], config: RunnableConfig, now: Origin
) -> SavedRun:
    """The run up to its last checkpoint, or its beginning without one.

    Raises:
        UsageError: the run began with another question, workflow, reader, corpus or seed.
    """
    snapshot = graph.get_state(config)
    if snapshot.created_at is None:
        return SavedRun(now)
    metadata: dict[str, Any] = {**(snapshot.metadata or {})}
    try:
        then = Origin.model_validate_json(metadata[KEY])
    except (KeyError, ValueError) as error:
        raise UsageError(f"the checkpoints are damaged: {error}; begin the run again") from error
    for name in CHECKED:
        before, after = (origin.model_dump(mode="json")[name] for origin in (then, now))
        if before != after:
            raise UsageError(
                f"the run began with the {name} {before!r} and cannot continue with {after!r}: "
                "give the former, or begin a new run"
            )
    if metadata["source"] == "input":
        # LangGraph has saved the question but not read it: resumed here, it would stop at once.
        return SavedRun(then)
    # Not `next`: it omits a node that ran and was killed before the state after it was saved.
    return SavedRun(then, dict(snapshot.values), finished=not snapshot.tasks)
