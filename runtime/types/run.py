"""A run: one question through one workflow, step by step."""

from datetime import datetime
from typing import Literal

from pydantic import Field, JsonValue

from hopscope.runtime.types.generation import Exchange
from hopscope.runtime.types.passage import Hit, Passage, Question
from hopscope.runtime.types.record import Record, Text, Texts
from hopscope.runtime.types.usage import Usage

StepKind = Literal["retrieve", "generate", "judge", "rank", "vote"]
StopReason = Literal[
    "answer_marker",
    "answered",
    "eos",
    "empty_generation",
    "max_steps",
    "max_tokens",
    "set_stable",
    "answer_stable",
    "parse_failure",
    "policy",
    "budget_tokens",
    "budget_calls",
    "budget_retrievals",
    "budget_seconds",
    "budget_cost",
]
RunStatus = Literal["ok", "failed", "interrupted"]


class Decision(Record):
    """The decision, before a retrieval, whether the retrieval is worth its cost."""

    policy: str
    """Name and settings of the policy; `limit:` and the stop reason where a limit decided."""
    retrieve: bool
    """The choice."""
    reason: Text
    """The reason in a few words."""
    retrieval: int = 0
    """Earlier retrievals; at 0 the choice is whether to retrieve at all."""
    stage: str | None = None
    """The last stage of signals that the policy computed, if it has stages."""
    signals: dict[str, float] = Field(default_factory=dict)
    """The signals by name, without those that could not be computed."""
    gain: float | None = None
    """Predicted utility of the best continuation minus that of stopping here."""
    low: float | None = None
    """95 % interval of `gain`."""
    high: float | None = None
    cost: float | None = None
    """Predicted tokens of that continuation."""
    price: float | None = None
    """The least utility that a token must bring."""
    usage: Usage = Usage()
    """The cost of the decision; part of the step's usage."""


class Step(Record):
    """One execution of one node of the workflow's graph."""

    index: int
    """Position in the run, from 0."""
    name: str
    """The node's name, as in the paper."""
    kind: StepKind
    query: Text | None = None
    """The query sent to the retriever; None without a retrieval."""
    ranked: tuple[Hit, ...] = ()
    """The retriever's hits, best first."""
    new: Texts = ()
    """Keys of passages that no earlier step had brought into the evidence."""
    shown: Texts = ()
    """Keys of the passages in this step's prompts, in order of first appearance."""
    evidence: tuple[Passage, ...] = ()
    """The evidence after this step."""
    exchanges: tuple[Exchange, ...] = ()
    output: Text | None = None
    """The text of the step: the thought, the answer, the selection."""
    parse_ok: bool | None = None
    """Whether the model's text had the required form; None when no form was required."""
    stop_reason: StopReason | None = None
    """Set on the step that ended the loop."""
    dangling: Texts = ()
    """Keys of `new` that stand in no prompt of this run."""
    decision: Decision | None = None
    """The decision of a policy or a limit, if there was one. If it was not to retrieve, the step
    did nothing."""
    usage: Usage = Usage()
    started: datetime
    seconds: float
    span_id: str = ""

    @property
    def retrieved(self) -> bool:
        """Whether the step is a retrieval: it sent a query to the retriever, whatever its kind. One
        that was declined, or that a limit ended before its query, is none."""
        return self.query is not None

    @property
    def declined(self) -> bool:
        """Whether a policy or a limit declined the step's retrieval, so that it did nothing."""
        return self.decision is not None and not self.decision.retrieve


class RunError(Record):
    """The error that ended a run."""

    type: Text
    message: Text


IMPORTED = "imported:"
"""Prefix of the workflow of a run that another program made: no command can run it again."""


def is_timed(workflow: str, seconds: float) -> bool:
    """Whether the seconds of a run were measured. The record of an imported run may tell none."""
    return seconds > 0 or not workflow.startswith(IMPORTED)


class Run(Record):
    """The complete record of one question through one workflow, even of a failed one."""

    id: Text
    question: Question
    workflow: str
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """The workflow's resolved options."""
    reader: Text = ""
    retriever: Text = ""
    seed: int = 0
    steps: tuple[Step, ...] = ()
    answer: Text | None = None
    status: RunStatus = "ok"
    stop_reason: StopReason | None = None
    error: RunError | None = None
    started: datetime
    seconds: float = 0.0
    trace_id: str = ""
    span_id: str = ""

    @property
    def usage(self) -> Usage:
        return sum((step.usage for step in self.steps), Usage())

    @property
    def evidence(self) -> tuple[Passage, ...]:
        return self.steps[-1].evidence if self.steps else ()

    @property
    def retrievals(self) -> tuple[Step, ...]:
        """The steps that retrieved, in order."""
        return tuple(step for step in self.steps if step.retrieved)

    @property
    def prompts(self) -> str | None:
        """The set of prompts that its options name, or its folder, with the hash of its files; None
        for the default prompts."""
        named = self.options.get("prompts")
        return str(named) if named else None

    @property
    def timed(self) -> bool:
        """Whether its seconds and those of its steps were measured."""
        return is_timed(self.workflow, self.seconds)
