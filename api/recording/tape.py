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
from hopscope.runtime.spans import keys
from hopscope.runtime.types import Question, Run, RunError
from hopscope.store.traces import values
from hopscope.store.traces.foreign import Reading
from hopscope.store.traces.span import Event, Span
from hopscope.store.traces.tree import Tree

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

    def is_run(self, root: OpenSpan) -> bool:
        """Whether a model answered in it, or it is a program that searched: a search alone answers
        no question."""
        spans = self._all()
        tree = Tree(spans)
        own = next(span for span in spans if span.id == root.id)
        return own.meaning == "reply" or tree.holds(own, "reply", "search", "tool")

    def run(self, root: OpenSpan, id: str) -> Run:
        """The run of the tape, under this id. If it tells an answer and no reply of a model, the
        answer is a step of its own that saw all that had been found, at an unknown cost.

        Raises:
            MalformedRecordError: the root does not tell its question.
        """
        told = values.answer(root.closed(root.start))
        if told is not None and all(span.meaning != "reply" for span in self._all()):
            self.end(
                self.begin("answer", attributes.asked(""), root), attributes.replied(Reply(told))
            )
        self.closed = True
        spans = self._all()
        own = next(span for span in spans if span.id == root.id)
        read = Reading(self.name, self.tools).run(own, Tree(spans))
        # The ids of these spans stand in no other trace.
        steps = tuple(step.model_copy(update={"span_id": ""}) for step in read.steps)
        changes = {"id": id, "workflow": RECORDED + self.name, "steps": steps, "span_id": ""}
        return read.model_copy(update=changes)

    def unread(self, root: OpenSpan, id: str, question: Question, problem: str) -> Run:
        """A failed run without steps, where those that were recorded cannot be read."""
        self.closed = True
        begun = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=root.start // 1000)
        return Run(
            id=id,
            question=question,
            workflow=RECORDED + self.name,
            status="failed",
            error=RunError(type="MalformedRecord", message=problem),
            started=begun,
        )

    def _all(self) -> list[Span]:
        with self._lock:
            now = self._now()
            return [span.closed(now) for span in self._spans]

    def _now(self) -> int:
        self._last = max(self._last + 1, perf_counter_ns() + self._offset)
        return self._last
