"""What happens in one recording, as the spans of a trace.

A recorded run is read by the rules of imported traces (`store.traces.foreign`): of searches within
each other the outermost counts, and a call of a tool if nothing was searched within it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Lock
from time import perf_counter_ns, time_ns
from typing import Any

from hopscope.api.recording import attributes
from hopscope.api.recording.replies import Reply
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.errors import UsageError
from hopscope.runtime.spans import keys
from hopscope.runtime.types import Decision, Question, Run, RunError
from hopscope.store.traces import values
from hopscope.store.traces.foreign import Reading
from hopscope.store.traces.span import Event, Span
from hopscope.store.traces.tree import Tree
from hopscope.store.trajectories.tools import SearchTools
from hopscope.store.trajectories.trajectory import Trajectory

RECORDED = "recorded:"
"""Prefix of the workflow of a recorded run: no command can run it again."""


@dataclass(eq=False)
class OpenSpan:
    """Something that happens in the program; its end is not known at first."""

    id: str
    parent: str
    """The id of what it happens in; empty for the recording itself."""
    name: str
    start: int
    """Nanoseconds since 1970; no two spans of a tape have the same."""
    attributes: dict[str, Any] = field(default_factory=dict)
    end: int | None = None
    error: BaseException | None = None

    def closed(self, at: int) -> Span:
        """The span; one that has not ended ends now."""
        error = self.error
        events: tuple[Event, ...] = ()
        if error is not None:
            events = (Event(keys.EXCEPTION_EVENT, {keys.EXCEPTION_TYPE: type(error).__name__}),)
        return Span(
            trace="",
            id=self.id,
            parent=self.parent,
            name=self.name,
            start=self.start,
            end=self.end or at,
            attributes=self.attributes,
            failed=error is not None,
            status="" if error is None else str(error) or type(error).__name__,
            events=events,
        )


class Tape:
    """The spans of one recording, from any thread."""

    def __init__(self, name: str, tools: frozenset[str] = frozenset()) -> None:
        """
        Args:
            name: of the program, for the workflow of the run.
            tools: names of the tools that search; empty for all.
        """
        self.name = name
        self.tools = tools
        self.decisions: dict[str, Decision] = {}
        """The decisions on its searches, by the ids of the calls, in order. Written by a guard."""
        self.closed = False
        """Whether the run is made, so that nothing more belongs to it."""
        self._lock = Lock()
        self._spans: list[OpenSpan] = []
        self._offset = time_ns() - perf_counter_ns()
        self._last = 0

    def begin(
        self, name: str, attributes: Mapping[str, Any], parent: OpenSpan | None = None
    ) -> OpenSpan:
        """Something begins."""
        with self._lock:
            id = f"{len(self._spans) + 1:016x}"
            span = OpenSpan(id, parent.id if parent else "", name, self._now(), dict(attributes))
            self._spans.append(span)
        return span

    def end(
        self,
        span: OpenSpan,
        attributes: Mapping[str, Any] | None = None,
        error: BaseException | None = None,
    ) -> None:
        """It ends, by an error or with what it brought."""
        with self._lock:
            span.attributes.update(attributes or {})
            span.error = error
            span.end = self._now()

    @property
    def workflow(self) -> str:
        """The workflow of its run."""
        return RECORDED + self.name

    @property
    def seconds(self) -> float:
        """Seconds since its beginning."""
        with self._lock:
            return (self._now() - self._spans[0].start) / 1e9

    def is_run(self) -> bool:
        """Whether a model answered in it, or it is a program that searched: a search alone answers
        no question."""
        root, tree = self._read()
        return root.meaning == "reply" or tree.holds(root, "reply", "search", "tool")

    def so_far(self) -> Trajectory:
        """The steps that have ended, with the question.

        Raises:
            UsageError: the recording does not tell its question.
        """
        root, tree = self._read(ended=True)
        try:
            return self._reading.steps(root, tree)
        except MalformedRecordError as error:
            raise UsageError(
                f"{error}: make the call within hopscope.recording(question)"
            ) from None

    def run(self, id: str) -> Run:
        """The run of the tape, under this id. If it tells an answer and no reply of a model, the
        answer is a step of its own that saw all that had been found, at an unknown cost.

        Raises:
            MalformedRecordError: the root does not tell its question.
        """
        root, tree = self._read()
        told = values.answer(root)
        if told is not None and not tree.holds(root, "reply") and root.meaning != "reply":
            answer = self.begin("answer", attributes.asked(""), self._spans[0])
            self.end(answer, attributes.replied(Reply(told)))
        self.closed = True
        root, tree = self._read()
        read = self._reading.run(root, tree)
        # The ids of these spans stand in no other trace.
        steps = tuple(step.model_copy(update={"span_id": ""}) for step in read.steps)
        changes = {"id": id, "workflow": self.workflow, "steps": steps, "span_id": ""}
        return read.model_copy(update=changes)

    def unread(self, id: str, question: Question, problem: str) -> Run:
        """A failed run without steps, where those that were recorded cannot be read."""
        self.closed = True
        begun = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
            microseconds=self._spans[0].start // 1000
        )
        return Run(
            id=id,
            question=question,
            workflow=self.workflow,
            status="failed",
            error=RunError(type="MalformedRecord", message=problem),
            started=begun,
        )

    @property
    def _reading(self) -> Reading:
        return Reading(self.name, SearchTools(self.tools))

    def _read(self, *, ended: bool = False) -> tuple[Span, Tree]:
        """The root and the tree of its spans.

        Args:
            ended: leave out searches, replies and calls that are going on.
        """
        with self._lock:
            now = self._now()
            spans = [
                closed
                for span in self._spans
                if (closed := span.closed(now)).meaning == "other" or span.end or not ended
            ]
        return spans[0], Tree(spans)

    def _now(self) -> int:
        self._last = max(self._last + 1, perf_counter_ns() + self._offset)
        return self._last
