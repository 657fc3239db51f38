"""`with hopscope.recording(...)`: one question through somebody else's program."""

import asyncio
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from hopscope.api import given
from hopscope.api.recording import attributes, places
from hopscope.api.recording.background import Measure
from hopscope.api.recording.keeping import Keeper, tell
from hopscope.api.recording.places import Place
from hopscope.api.recording.replies import Reply
from hopscope.api.recording.tape import OpenSpan, Tape
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.errors import UsageError
from hopscope.runtime.spans import keys
from hopscope.runtime.types import Question, Run
from hopscope.store.store import Store as RecordStore

STOPPED = (KeyboardInterrupt, asyncio.CancelledError)
"""Exceptions by which somebody stops a program that has not failed."""


class Recording:
    """A run that is going on; made by `hopscope.recording`."""

    def __init__(self, question: Question, keeper: Keeper, name: str) -> None:
        self.id = uuid4().hex
        """The id of the run."""
        self.question = question
        self.answer: str | None = None
        """The answer; set it. By default the last reply of a model."""
        self.record: Run | None = None
        """The run, once it has ended."""
        self.problems: list[str] = []
        """Reasons why the run is not stored, or not whole."""
        self._keeper = keeper
        self._tape = Tape(name)
        self._root: OpenSpan | None = None
        self._stack = ExitStack()

    def generation(
        self,
        reply: str,
        *,
        prompt: str = "",
        model: str = "",
        input_tokens: int | None = None,
        output_tokens: int | None = None,
    ) -> None:
        """Record the reply of a model; `@hopscope.generation` does so of a function.

        Args:
            prompt: the passages whose beginnings stand in it count as shown; without any prompt,
                each reply saw all that had been found.
            input_tokens, output_tokens: None where nobody counted them.
        """
        place = places.here()
        own = place is not None and place.tape is self._tape
        begun = attributes.asked(prompt, model)
        span = self._tape.begin("generation", begun, place.span if own and place else self._root)
        told = Reply(reply, input_tokens, output_tokens)
        self._tape.end(span, attributes.replied(told))

    def __enter__(self) -> Self:
        if self._root is not None:
            raise UsageError("a recording is made once: call hopscope.recording for each question")
        asked = {keys.INPUT_VALUE: attributes.said("question", self.question.text)}
        self._root = self._tape.begin(self._tape.name, asked)
        self._stack.enter_context(places.within(Place(self._tape, self._root)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
        if self._root is None:
            return
        told = (
            {}
            if self.answer is None
            else {keys.OUTPUT_VALUE: attributes.said("answer", str(self.answer))}
        )
        self._tape.end(self._root, told, error)
        self.record = self._run(error)
        if problem := self._keeper.keep(self.record):
            self.problems.append(problem)
        self._keeper.close()

    def _run(self, error: BaseException | None) -> Run:
        try:
            run = self._tape.run(self.id)
        except MalformedRecordError as unread:
            self.problems.append(tell(f"the steps of the run {self.id[:12]} are lost: {unread}"))
            run = self._tape.unread(self.id, self.question, str(unread))
        status = "interrupted" if isinstance(error, STOPPED) else run.status
        return run.model_copy(update={"question": self.question, "status": status})


def recording(
    question: str | Question,
    gold: str | Iterable[str] | None = None,
    *,
    store: "str | Path | RecordStore | None" = None,
    workflow: str = "python",
    experiment: str | None = None,
    measure: str | Measure | None = None,
) -> Recording:
    """Record what a program does with a question, as a run like any other.

        with hopscope.recording("Who founded it?", gold="Ada Example", store="runs.db") as run:
            run.answer = my_application("Who founded it?")
        print(run.id)

    The searches are the calls of functions under `@hopscope.retrieval`, the replies those under
    `@hopscope.generation` or told by `run.generation(...)`, and what `hopscope.HopscopeHandler`
    sees. An exception leaves a stored run with the status `failed`, and goes on.

    Args:
        question: the question that the program answers.
        gold: right answers (aliases).
        store: a file or URL, by default the database of the command line, or an open store.
        workflow: name of the program: the run's workflow is `recorded:NAME`.
        experiment: the run becomes part of it, so that tables compare it with others.
        measure: `sample:0.05` measures one run in twenty in the background, a `hopscope.Measure`
            with the reader and meters of your choice. `store` must be open then; `store.background`
            counts, and `store.close()` waits for what is in the queue.

    Raises:
        UsageError: the question or the gold answers are none, or the store is none.
        StoreError: the store cannot be opened.
    """
    asked = given.question(question, gold)
    if not asked.text.strip():
        raise UsageError("the question is empty: give the text of a question")
    return Recording(asked, Keeper(store, experiment=experiment, measure=measure), workflow)
