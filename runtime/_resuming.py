"""What a run leaves behind so that it can go on, and the check that it goes on with the same."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from pydantic import JsonValue

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Question, Record, Step

KEY = "hopscope"
"""Of the origin in the metadata of a checkpoint."""


class Origin(Record):
    """How a run was begun; stands in each of its checkpoints."""

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
    """Of the first part, which the later ones join; empty when it was not traced."""
    span_id: str = ""


CHECKED = ("question", "workflow", "options", "reader", "retriever", "entailment", "seed")


@dataclass(frozen=True)
class Past:
    """What is known of a run when it begins or goes on."""

    origin: Origin
    state: dict[str, Any] = field(default_factory=dict)
    """After its last step; empty when there was none."""
    finished: bool = False

    @property
    def seconds(self) -> float:
        """What the steps so far took."""
        steps: list[Step] = self.state.get("steps", [])
        return sum(step.seconds for step in steps)


def recall(
    graph: CompiledStateGraph[Any, Any, Any, Any], config: RunnableConfig, now: Origin
) -> Past:
    """Where the run stands, by its last checkpoint; at its beginning if there is none.

    Raises:
        UsageError: it was begun with another question, workflow, reader, corpus or seed.
    """
    snapshot = graph.get_state(config)
    if snapshot.created_at is None:
        return Past(now)
    metadata: dict[str, Any] = {**(snapshot.metadata or {})}
    try:
        then = Origin.model_validate_json(metadata[KEY])
    except (KeyError, ValueError) as error:
        raise UsageError(f"the checkpoints are damaged: {error}; begin the run again") from error
    for name in CHECKED:
        before, after = (origin.model_dump(mode="json")[name] for origin in (then, now))
        if before != after:
            raise UsageError(
                f"the run was begun with the {name} {before!r} and cannot go on with {after!r}: "
                "give the former, or begin a new run"
            )
    if metadata["source"] == "input":
        # LangGraph has written the question down and not yet read it: told to go on, it would
        # find nothing to do.
        return Past(then)
    # Not `next`: it leaves out a node that ran and was killed before the state after it was kept.
    return Past(then, dict(snapshot.values), finished=not snapshot.tasks)
