"""What is in flight while a workflow runs.

`State` is plain data that a checkpoint can hold; `Deps` are the live objects that nodes talk
to, handed to LangGraph as its context and never stored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import add
from typing import Annotated, Required, TypedDict

from langgraph.graph import StateGraph

from hopscope.runtime.ledger import Ledger
from hopscope.runtime.ports import Entailment, Policy, Reader, Retriever
from hopscope.runtime.types import Hit, Passage, Question, Step, StopReason


class State(TypedDict, total=False):
    """The state every workflow shares; a workflow that needs more extends it."""

    question: Required[Question]
    evidence: tuple[Passage, ...]
    """What the reader sees next. Replaced, not merged: a grader must be able to drop passages."""
    thoughts: tuple[str, ...]
    """Reasoning sentences so far."""
    answer: str
    stop_reason: StopReason
    declined: bool
    """Whether the last retrieval was found not to be worth it, and left out. Written by the step
    seam only."""
    steps: Annotated[list[Step], add]
    """Written by the step seam only."""


class Update(State, total=False):
    """What a node returns: the state it changes, and two facts about its own step."""

    question: Question  # type: ignore[misc]  # required in the state, optional in a change of it
    output: str
    """What the step produced, where that is not simply the model's last text."""
    parse_ok: bool
    """Whether the model's text had the form asked for."""


@dataclass(frozen=True)
class Deps:
    """The ports a workflow may use."""

    reader: Reader
    retriever: Retriever
    seed: int = 0
    capture_content: bool = True
    """Whether spans carry prompts, passages and answers."""
    entailment: Entailment | None = None
    """For workflows that check their answers; None when the user chose none."""
    policy: Policy | None = None
    """Asked before each retrieval; None retrieves as the workflow will."""
    ledger: Ledger = field(default_factory=Ledger)
    """What may be spent. A run takes limits and price from it and keeps an account of its own."""
    closing: frozenset[str] = frozenset()
    """Names of the nodes after which a workflow ends. Set by the run."""


Graph = StateGraph[State, Deps, State, State]
"""The type of a workflow that needs no state beyond the shared one."""


def declined(state: State) -> bool:
    """Whether the last retrieval was left out: an edge to where the answer is written."""
    return state.get("declined", False)


def merge(
    evidence: Sequence[Passage], hits: Iterable[Hit], *, cap: int | None = None
) -> tuple[Passage, ...]:
    """Evidence followed by the passages of `hits` that are not in it yet, `cap` at most.

    First come, first kept: a passage retrieved again stays where it was.
    """
    merged = {passage.key: passage for passage in evidence}
    for hit in hits:
        if cap is not None and len(merged) >= cap:
            break
        merged.setdefault(hit.passage.key, hit.passage)
    return tuple(merged.values())
