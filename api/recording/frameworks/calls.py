"""The calls that a framework tells of, as spans of tapes.

A call that no other one made is a run of its own, or a part of the recording around it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Self
from uuid import uuid4

from hopscope.api.recording import places
from hopscope.api.recording.background import Measure
from hopscope.api.recording.keeping import Keeper, tell
from hopscope.api.recording.places import Place
from hopscope.api.recording.tape import Tape
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.store.store import Store as RecordStore


class Calls:
    """The calls that go on, by the ids that a framework gives them. Threads may share it."""

    def __init__(
        self,
        store: "str | Path | RecordStore | None" = None,
        *,
        tools: Iterable[str] = (),
        workflow: str,
        experiment: str | None = None,
        measure: str | Measure | None = None,
    ) -> None:
        """
        Raises:
            UsageError: the store is none or, with `measure`, is not open.
            StoreError: it cannot be opened.
        """
        self.stored: list[str] = []
        """Ids of the runs that were stored, in order."""
        self.problems: list[str] = []
        """Why runs were not stored."""
        self._keeper = Keeper(store, experiment=experiment, measure=measure)
        self._tools = frozenset([tools] if isinstance(tools, str) else tools)
        self._workflow = workflow
        self._lock = Lock()
        self._going_on: dict[object, Place] = {}
        self._roots: set[object] = set()
        """Those of them that are runs of their own."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store, unless it was given open."""
        self._keeper.close()

    def begin_listening(self) -> None:
        """Hear what the framework tells from now on, where it is not told to a handler."""

    def place(self, id: object) -> Place | None:
        """The span of a call that goes on."""
        with self._lock:
            return None if id is None else self._going_on.get(id)

    def is_root(self, id: object) -> bool:
        """Whether the call goes on and is a run of its own."""
        with self._lock:
            return id in self._roots

    def begin(self, id: object, parent: object, name: str, told: Mapping[str, Any]) -> None:
        """A call begins."""
        around = places.innermost(self.place(parent), places.here())
        tape = around.tape if around else Tape(self._workflow, self._tools)
        span = tape.begin(name, told, around and around.span)
        with self._lock:
            self._going_on[id] = Place(tape, span)
            if around is None:
                self._roots.add(id)

    def tell(self, id: object, told: Mapping[str, Any]) -> None:
        """What is known of a call that goes on."""
        if (place := self.place(id)) is not None:
            place.span.attributes.update(told)

    def end(
        self,
        id: object,
        told: Mapping[str, Any] | None = None,
        error: BaseException | None = None,
    ) -> None:
        """A call ends. If it is a run of its own, the run is stored."""
        with self._lock:
            place = self._going_on.pop(id, None)
            root = id in self._roots
            self._roots.discard(id)
        if place is None:
            return
        place.tape.end(place.span, told, error)
        if root and place.tape.is_run():
            self._keep(place.tape, place.span.name)

    def _keep(self, tape: Tape, name: str) -> None:
        try:
            run = tape.run(uuid4().hex)
        except MalformedRecordError as error:
            self.problems.append(tell(f"a call of {name} is no run: {error}"))
            return
        if problem := self._keeper.keep(run):
            self.problems.append(problem)
        else:
            self.stored.append(run.id)
