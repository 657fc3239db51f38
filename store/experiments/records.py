"""Records of experiments."""

from datetime import datetime
from textwrap import shorten
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

LONGEST = 200
"""Characters of a setting in a message; a whole table of prices would hide the rest."""

ItemStatus = Literal["pending", "running", "ok", "failed"]
"""`running`: claimed by a worker session; if that was killed, the item counts as pending. `failed`:
has an error of its run, which may be stored all the same, or of its appraisal."""


class DatasetEntry(Record):
    """A question of a dataset with its kind, hops and supporting passages."""

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
        """Hash of all fields; the store finds the question by it."""
        question = self.question
        hops = "" if self.hops is None else str(self.hops)
        answers = str(len(question.answers))
        return digest(
            question.id,
            question.text,
            self.kind,
            hops,
            answers,
            *question.answers,
            *self.supporting,
        )


class Arm(Record):
    """One of the systems that an experiment compares: a workflow with its settings."""

    label: str
    """Name in tables, unique in the experiment: `ircot`, or `ircot:k=3`."""
    workflow: str
    settings: dict[str, JsonValue]
    """All settings that distinguish it from other arms of the workflow, in groups. `options` holds
    all of the workflow's own options, resolved."""

    def check(self, requested: "Arm") -> None:
        """Check that this stored arm can continue with the requested settings.

        Raises:
            UsageError: they differ; the message names the settings.
        """
        if requested == self:
            return
        then, now = _flat(self), _flat(requested)
        changed = [name for name in {**then, **now} if then.get(name) != now.get(name)]
        before = {name: _apart(then.get(name), now.get(name)) for name in changed}
        after = {name: _apart(now.get(name), then.get(name)) for name in changed}
        raise UsageError(
            f"{self.label} began with {_listed(before)} and cannot continue with "
            f"{_listed(after)}: give the former, another name (--name), or a label of its "
            f"own, as in {self.workflow}:OPTION=VALUE"
        )


def _flat(arm: Arm) -> dict[str, JsonValue]:
    """Settings by name, without their groups."""
    groups = [each for each in arm.settings.values() if isinstance(each, dict)]
    return {"workflow": arm.workflow} | {k: v for group in groups for k, v in group.items()}


def _apart(value: JsonValue, other: JsonValue) -> JsonValue:
    """Of an object, the entries that are there and differ from those of the other."""
    if not isinstance(value, dict):
        return value
    beside = other if isinstance(other, dict) else {}
    return {
        key: _apart(each, beside.get(key))
        for key, each in value.items()
        if each is not None and each != beside.get(key)
    }


def _listed(values: dict[str, JsonValue]) -> str:
    return ", ".join(
        f"no {name}" if value is None else f"{name} {shorten(repr(value), LONGEST)}"
        for name, value in values.items()
    )


class WorkerSession(Record):
    """The work of one command on an experiment, until it ends or is killed."""

    owner: str
    """The process: `HOST/PID/START`."""
    environment: dict[str, JsonValue]
    """Versions of packages, hardware, number of workers."""
    started: datetime
    seen: datetime
    """Its last sign of life."""
    ended: datetime | None = None
    """None while it runs, and if it was killed."""


class Experiment(Record):
    """A dataset, answered by one or more arms."""

    name: str
    """Unique in the store."""
    settings: dict[str, JsonValue]
    """Resolved settings: all that `hopscope eval --from` needs to repeat it."""
    reader: str
    """Name and revision of the reader's model."""
    retriever: str
    """Kind and fingerprint of the corpus."""
    entailment: str
    seed: int
    fingerprint: str
    """Hash of all that every item's result depends on besides its question and arm. Work that
    continues the experiment must have the same."""
    created: datetime
    arms: tuple[Arm, ...] = ()
    """In the order in which tables show them."""


class Outcome(Record):
    """A summary of an item's run, without its steps."""

    run_id: str
    """For `Store.load`, `.credits` and `.appraisals`."""
    answer: str | None
    status: RunStatus
    stop_reason: StopReason | None
    started: datetime
    seconds: float
    """Of the run; its appraisals hold the time of measuring it."""
    steps: int
    retrievals: int
    """Steps that sent a query to the retriever."""
    usage: Usage
    """Of the run, without measuring it."""


class Item(Record):
    """A question for an arm: one row of the experiment, whatever its status."""

    entry: DatasetEntry
    arm: str
    """Its label."""
    workflow: str
    position: int
    """In the plan, from 0; arms that were planned together are ordered question by question."""
    status: ItemStatus
    attempts: int = 0
    """How often it was claimed."""
    error: RunError | None = None
    """Set if and only if `status` is `failed`."""
    outcome: Outcome | None = None
    """Set when it is `ok`; when it failed, a summary of its run if there is one."""

    @property
    def question(self) -> Question:
        return self.entry.question


class Progress(Record):
    """Number of items of an experiment by status."""

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


class Version(Record):
    """What differs once an experiment has other results than before."""

    created: datetime
    """Of the experiment: another may have its name after it was deleted."""
    progress: Progress
    appraisals: int
    """Of its runs."""
    measured: datetime | None
    """Time of the latest appraisal; None without one."""


class ClaimedItem(Record):
    """An item that a worker session has claimed."""

    entry: DatasetEntry
    arm: Arm
    position: int
