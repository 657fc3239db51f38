"""Makes the steps of a run from the writes of a foreign graph's nodes.

LangGraph reports the start of a node with its input, the end with its writes, and then the state
after all parallel nodes. `workflow.of_graph` has the rules that turn this into steps.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.config import get_config

from hopscope.runtime import key_lists, spans
from hopscope.runtime.adapters import _tasks
from hopscope.runtime.adapters._keys import MESSAGES, Keys
from hopscope.runtime.adapters._ports import routed
from hopscope.runtime.adapters._tasks import Task
from hopscope.runtime.adapters.passages import ranking
from hopscope.runtime.budget.ledger import QUERIES
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.errors import ReaderError, RetrieverError, UsageError
from hopscope.runtime.execution.state import Deps, merge
from hopscope.runtime.execution.step import recorded
from hopscope.runtime.texts.literals import json_value
from hopscope.runtime.types import (
    Hit,
    Passage,
    Question,
    RunError,
    Step,
    StepKind,
    Usage,
)


@dataclass(frozen=True)
class Rules:
    """The rules of reading a graph's state."""

    name: str
    """The graph's name, for errors and as the source of its passages."""
    keys: Keys
    ports: bool
    """Whether its nodes call the run's ports, which record the calls."""
    retrieves: frozenset[str] | None
    """Nodes and tools that retrieve; None detects them from their writes."""
    closing: frozenset[str]
    """Nodes after which it ends."""

    @property
    def documents(self) -> str | None:
        """The key of the documents, unless tools give them by messages."""
        return None if self.keys.documents == MESSAGES else self.keys.documents


class Watch:
    """Follows one run of a graph."""

    def __init__(self, rules: Rules, question: Question, deps: Deps) -> None:
        self.question = question
        self._rules = rules
        self._deps = deps
        self._values: dict[str, Any] = {}
        self._begun = 0
        """Nodes that have begun."""
        self._running: dict[str, Task] = {}
        self._done: list[Task] = []
        self._failed: list[tuple[Exception, Task]] = []
        self._steps: list[Step] = []
        self._evidence: tuple[Passage, ...] = ()
        self._retrieving = set(rules.retrieves or ())
        self._calls: dict[str, str] = {}
        """Queries, by the ids of the calls of tools that hold them."""

    @property
    def state(self) -> dict[str, Any]:
        """As `State` has it."""
        held = {"question": self.question, "evidence": self._evidence, "steps": [*self._steps]}
        answer = self._answer()
        return held if answer is None else {**held, "answer": answer}

    def note(self, mode: str, event: Any) -> bool:
        """Process the next event of the stream. True if there are new steps.

        Raises:
            UsageError: the graph waits for a person.
            RetrieverError: the documents' key has other values.
        """
        if mode == "values":
            self._values = event
            return self.settle()
        if "triggers" in event:
            added = self.settle()  # where nothing was written there were no values
            span = spans.begin_step(event["name"])
            self._running[event["id"]] = Task(event["name"], event["input"], span, self._begun)
            self._begun += 1
            return added
        task = self._running.pop(event["id"])
        task.end(event["result"])
        if event["error"] is not None:
            spans.fail(task.span, event["error"], capture=self._deps.capture_content)
            self._failed.append((event["error"], task))
        if event["error"] is None or task.log.exchanges or task.log.queries:
            self._done.append(task)
        else:
            task.span.end()
        if event["interrupts"]:
            raise UsageError(
                f"{self._rules.name} waits for a person at its node {task.name!r}: give a graph "
                "without interrupts"
            )
        return False

    def settle(self) -> bool:
        """Make steps of the finished nodes. True if there were any.

        Parallel nodes are in the order of the graph, as their writes in its state are, whichever
        ends first.

        Raises:
            RetrieverError: the documents' key has other values.
        """
        done, self._done = sorted(self._done, key=lambda task: task.number), []
        last = next((task for task in reversed(done) if self._written(task)), None)
        for task in done:
            self._steps.append(self._step(task, settled=task is last))
        return bool(done)

    def finished(self) -> dict[str, Any]:
        """The state at the end.

        Raises:
            UsageError: there is no answer.
        """
        state = self.state
        if "answer" not in state:
            raise UsageError(
                f"{self._rules.name} ended without an answer in {self._rules.keys.answer!r}: name "
                "the key that holds it, answer=KEY"
            )
        return {**state, "stop_reason": "answered" if state["answer"] else "empty_generation"}

    def failed(self, error: Exception) -> dict[str, Any]:
        """The state after an error, with the node that raised it, if one did."""
        for raised, task in self._failed:
            if raised is error:
                told = RunError(type=type(error).__name__, message=f"node {task.name!r}: {error}")
                return {**self.state, "error": told}
        return self.state

    def close(self) -> None:
        """End the spans of nodes that did not end."""
        for task in self._running.values():
            task.span.end()

    def ports(self) -> Deps:
        """The run's ports, which record the requests of each node."""
        return routed(self._deps, self._asking)

    @contextmanager
    def _asking(self) -> Iterator[Deps]:
        """The ports of the calling node.

        Raises:
            ReaderError: the calling node is unknown.
        """
        try:
            # Of the outermost graph first: "node:task|node:task".
            where: str = get_config()["metadata"]["langgraph_checkpoint_ns"]
            task = self._running[where.partition("|")[0].rpartition(":")[2]]
        except (RuntimeError, KeyError):  # from a thread that the node has made
            if len(self._running) != 1:
                raise ReaderError(
                    f"{self._rules.name}: a thread that a node has started asks a model or an "
                    "index while other nodes run, so that it cannot be told who asks; hand the "
                    "context on by contextvars.copy_context()"
                ) from None
            [task] = self._running.values()
        with spans.below(task.span):
            yield recorded(self._deps, task.log, last=task.name in self._rules.closing)

    def _step(self, task: Task, *, settled: bool) -> Step:
        documents = self._rules.documents
        hits, queries = self._found(task)
        self._evidence = self._held(task, hits, settled=settled)
        known = {key for step in self._steps for key in step.new}
        new = [passage.key for passage in self._evidence if passage.key not in known]
        answered = self._answers(task)
        kind = self._kind(task, found=bool(queries), new=bool(new), answered=answered)
        speaks = answered or (kind != "retrieve" and task.says(without=documents))
        step = Step(
            index=len(self._steps),
            name=task.name,
            kind=kind,
            query=QUERIES.join(queries) if kind == "retrieve" else None,
            ranked=tuple(hits) if kind == "retrieve" else (),
            new=tuple(new),
            shown=self._shown(task, assumed=answered or (kind == "generate" and speaks)),
            evidence=self._evidence,
            exchanges=tuple(task.log.exchanges),
            output=self._output(task, kind, answered=answered),
            usage=self._usage(task, speaks=speaks),
            started=task.started,
            seconds=task.seconds,
            span_id=spans.span_id(task.span),
        )
        spans.end_step(task.span, step, capture=self._deps.capture_content)
        return step

    def _written(self, task: Task) -> list[Any]:
        """The documents that the node wrote. A node that has retrieved before may repeat some."""
        if self._rules.documents is None:
            return []
        if task.name in self._retrieving:
            return task.added(self._rules.documents)
        return task.own(self._rules.documents)

    def _found(self, task: Task) -> tuple[list[Hit], list[str]]:
        """The documents that the node wrote, and its query."""
        if task.log.queries:
            return task.log.hits, task.log.queries
        if self._rules.keys.documents == MESSAGES:
            return self._by_tools(task)
        written = self._written(task)
        hits = [hit for each in written for hit in self._read(task.name, each)]
        return hits, self._queries(task) if written else []

    def _by_tools(self, task: Task) -> tuple[list[Hit], list[str]]:
        hits: list[Hit] = []
        queries: list[str] = []
        chosen = self._rules.retrieves
        for message in task.messages:
            if isinstance(message, AIMessage):
                for call in message.tool_calls:
                    self._calls[str(call["id"])] = _tasks.searched(call["args"])
            if not isinstance(message, ToolMessage) or message.status == "error":
                continue
            if chosen is None or {task.name, message.name} & chosen:
                hits += self._told(task.name, message)
                queries.append(self._calls.get(message.tool_call_id, self.question.text))
        return hits, queries

    def _told(self, node: str, message: ToolMessage) -> list[Hit]:
        """The passages of a tool's message."""
        if message.artifact is not None:
            return self._read(node, message.artifact)
        content = _tasks.text(message)
        try:
            listed = json_value(content)
            if isinstance(listed, list):
                return ranking(listed, source=self._rules.name)
        except ValueError:  # also of a list that holds no passages
            pass
        return self._read(node, [content])

    def _read(self, node: str, value: Any) -> list[Hit]:
        try:
            return ranking(value, source=self._rules.name)
        except MalformedRecordError as problem:
            raise RetrieverError(
                f"{self._rules.name}, node {node!r}: {self._rules.keys.documents!r} cannot be read "
                f"as documents: {problem}"
            ) from None

    def _queries(self, task: Task) -> list[str]:
        keys = self._rules.keys
        for key in filter(None, (keys.query, keys.question)):
            for value in (*task.writes.get(key, ()), task.given(key), self._values.get(key)):
                listed = value if isinstance(value, list) else [value]
                if found := [each for each in listed if isinstance(each, str) and each.strip()]:
                    return found
        return [self.question.text]

    def _held(self, task: Task, hits: Sequence[Hit], *, settled: bool) -> tuple[Passage, ...]:
        """The evidence after the node."""
        if not settled or self._rules.documents is None:
            return merge(self._evidence, hits)
        held = self._values.get(self._rules.documents)
        read = [] if held is None else self._read(task.name, held)
        return tuple(hit.passage for hit in read)

    def _kind(self, task: Task, *, found: bool, new: bool, answered: bool) -> StepKind:
        if task.log.queries or (found and self._rules.keys.documents == MESSAGES):
            return "retrieve"
        if new and self._rules.retrieves is None:
            self._retrieving.add(task.name)
        if found and task.name in self._retrieving:
            return "retrieve"
        return "judge" if found and not answered else "generate"

    def _answers(self, task: Task) -> bool:
        key = self._rules.keys.answer
        if key == MESSAGES:
            return any(_tasks.answer(message) for message in task.messages)
        return any(_tasks.text(each) for each in task.own(key))

    def _answer(self) -> str | None:
        value = self._values.get(self._rules.keys.answer)
        if self._rules.keys.answer != MESSAGES:
            return None if value is None else _tasks.text(value)
        said = (_tasks.answer(message) for message in reversed(_tasks.messages(value)))
        return next((text for text in said if text is not None), None)

    def _shown(self, task: Task, *, assumed: bool) -> tuple[str, ...]:
        if self._rules.ports:
            return task.log.shown
        return tuple(passage.key for passage in self._evidence) if assumed else ()

    def _output(self, task: Task, kind: StepKind, *, answered: bool) -> str | None:
        told = task.texts(without=self._rules.documents)
        if kind == "retrieve" and not answered:
            return task.log.output
        if kind == "judge" and not told:
            return key_lists.write(self._evidence)
        if self._rules.keys.answer in told:
            return told[self._rules.keys.answer]
        if len(told) > 1:
            return _tasks.text(told)
        return next(iter(told.values()), task.log.output)

    def _usage(self, task: Task, *, speaks: bool) -> Usage:
        if self._rules.ports:
            return task.log.usage
        return task.counted or (Usage(calls=1, uncounted=1) if speaks else Usage())
