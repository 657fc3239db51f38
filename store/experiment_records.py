"""What the store tells of experiments: the nouns of `store.experiments`."""

from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import (
    Question,
    Record,
    RunError,
    RunStatus,
    StopReason,
    Text,
    Texts,
    Usage,
    digest,
)

ItemStatus = Literal["pending", "running", "ok", "failed"]
"""`running` is claimed by a sitting; if that was killed, the item is as good as pending. `failed`
has an error: of the run, which may be there none the less, or of its appraisal."""


class Entry(Record):
    """A question of a dataset and what the dataset tells about it besides its answers."""

    question: Question
    kind: Text = ""
    """The dataset's own kind of question, such as `bridge` or `comparison`; empty when unknown."""
    hops: int | None = None
    """Passages that must be combined to answer; None when unknown."""
    supporting: Texts = ()
    """Titles (or ids, where there are no titles) of the passages that support the answer, in the
    dataset's order, each once; empty when unknown."""

    @property
    def hash(self) -> str:
        """Of all it holds: what the store keeps it under."""
        asked = self.question
        hops = "" if self.hops is None else str(self.hops)
        answers = str(len(asked.answers))
        return digest(
            asked.id, asked.text, self.kind, hops, answers, *asked.answers, *self.supporting
        )


class Arm(Record):
    """One of the systems that an experiment compares: a workflow with its settings."""

    label: str
    """What tables call it, unique in the experiment: `ircot`, or `ircot:k=3`."""
    workflow: str
    settings: dict[str, JsonValue]
    """All that tells it from others of the workflow, in groups. `options` are the workflow's own,
    all of them, resolved."""

    def check(self, asked: "Arm") -> None:
        """Whether it can go on as the arm of the same label that is asked for now.

        Raises:
            UsageError: it was begun otherwise; the message says in what.
        """
        if asked == self:
            return
        then, now = _flat(self), _flat(asked)
        changed = [name for name in {**then, **now} if then.get(name) != now.get(name)]
        raise UsageError(
            f"{self.label} was begun with {_told(then, changed)} and cannot go on with "
            f"{_told(now, changed)}: give the former, another --name, or a label of its own, as in "
            f"{self.workflow}:OPTION=VALUE"
        )


def _flat(arm: Arm) -> dict[str, JsonValue]:
    """Settings by name, without their groups."""
    groups = [each for each in arm.settings.values() if isinstance(each, dict)]
    return {"workflow": arm.workflow} | {k: v for group in groups for k, v in group.items()}


def _told(values: dict[str, JsonValue], names: list[str]) -> str:
    return ", ".join(
        f"no {name}" if values.get(name) is None else f"{name} {values[name]!r}" for name in names
    )


class Sitting(Record):
    """One go at an experiment: a command from its beginning to its end, or to its death."""

    owner: str
    """The process: `HOST/PID/START`."""
    environment: dict[str, JsonValue]
    """Versions of packages, hardware, number of workers."""
    started: datetime
    seen: datetime
    """Its last sign of life."""
    ended: datetime | None = None
    """None while it works, and when it was killed."""


class Experiment(Record):
    """A dataset by one or more arms."""

    name: str
    """Unique in the store."""
    settings: dict[str, JsonValue]
    """As they were resolved: all that `hopscope eval --from` needs to do it again."""
    reader: str
    """Name and revision of the model that reads."""
    retriever: str
    """Kind and fingerprint of the corpus."""
    entailment: str
    seed: int
    fingerprint: str
    """Hash of all that every item's result depends on besides its question and arm. What goes on
    with the experiment must have the same."""
    created: datetime
    arms: tuple[Arm, ...] = ()
    """In the order in which tables show them."""


class Outcome(Record):
    """The figures of an item's run, without its steps."""

    run_id: str
    """For `Store.load`, `.credits` and `.appraisals`."""
    answer: str | None
    status: RunStatus
    stop_reason: StopReason | None
    started: datetime
    seconds: float
    """Of the run; what measuring it took stands in its appraisals."""
    steps: int
    retrievals: int
    """Steps that sent a query to the retriever."""
    usage: Usage
    """Of the run; likewise."""


class Item(Record):
    """A question by an arm: one row of the experiment, whatever becomes of it."""

    entry: Entry
    arm: str
    """Its label."""
    workflow: str
    position: int
    """In the plan, from 0; arms that were planned together stand together, question by question."""
    status: ItemStatus
    attempts: int = 0
    """How often it has been begun."""
    error: RunError | None = None
    """Set exactly when `status` is `failed`."""
    outcome: Outcome | None = None
    """Set when it is `ok`; when it failed, as far as its run came."""

    @property
    def question(self) -> Question:
        return self.entry.question


class Progress(Record):
    """How many items of an experiment are where."""

    pending: int = 0
    running: int = 0
    ok: int = 0
    failed: int = 0

    @property
    def total(self) -> int:
        return self.pending + self.running + self.ok + self.failed

    @property
    def done(self) -> int:
        """With a result or an error."""
        return self.ok + self.failed


class Claimed(Record):
    """An item that a sitting is to do."""

    entry: Entry
    arm: Arm
    position: int
