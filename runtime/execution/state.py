"""The state and the dependencies of a running workflow.

`State` is plain data that a checkpoint can hold; `Deps` are the live objects that nodes call,
passed to LangGraph as its context and never stored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import add
from typing import Annotated, Required, TypedDict

from langgraph.graph import StateGraph

from hopscope.runtime.budget.ledger import Ledger
from hopscope.runtime.ports import Entailment, Policy, Reader, Retriever
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS, PromptSet
from hopscope.runtime.types import Hit, Passage, Question, Step, StopReason


class State(TypedDict, total=False):
    """The state every workflow shares; a workflow that needs more extends it."""

    question: Required[Question]
    evidence: tuple[Passage, ...]
    """The passages the reader sees next. Replaced, not merged, so that a grader can drop some."""
    thoughts: tuple[str, ...]
    """Reasoning sentences so far."""
    answer: str
    stop_reason: StopReason
    declined: bool
    """Whether the policy or a limit declined the last retrieval. Written by the step seam only."""
    steps: Annotated[list[Step], add]
    """Written by the step seam only."""


class Update(State, total=False):
    """The return value of a node: its changes of the state, and two facts about its own step."""

    question: Question  # type: ignore[misc]  # required in the state, optional in a change of it
    output: str
    """The step's output, where it is not simply the model's last text."""
    parse_ok: bool
    """Whether the model's text had the required form."""


@dataclass(frozen=True)
class Deps:
    """The ports a workflow may use."""

    reader: Reader
    retriever: Retriever
    seed: int = 0
    capture_content: bool = True
    """Whether spans carry prompts, passages and answers."""
    prompts: PromptSet = DEFAULT_PROMPTS
    """A workflow's own set of prompts precedes it."""
    entailment: Entailment | None = None
    """The entailment of workflows that check their answers; None when the user chose none."""
    policy: Policy | None = None
    """Decides before each retrieval; None leaves it to the workflow."""
    ledger: Ledger = field(default_factory=Ledger)
    """Limits and prices. Each run takes them from here and keeps an account of its own."""
    closing: frozenset[str] = frozenset()
    """Names of the nodes after which a workflow ends. Set by the run."""


Graph = StateGraph[State, Deps, State, State]
"""The type of a workflow that needs no state beyond the shared one."""


def declined(state: State) -> bool:
    """Whether the last retrieval was declined, so that the graph goes on to the answer."""
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
