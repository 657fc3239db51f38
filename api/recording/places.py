"""The recording that the present code belongs to, and what of it is going on.

Tasks and threads are kept apart by context variables. A task has the context of the code that made
it; a thread gets it by `contextvars.copy_context().run`, as `asyncio.to_thread` and LangChain do.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol, runtime_checkable
from uuid import UUID

from hopscope.api.recording.tape import OpenSpan, Tape


class Place(NamedTuple):
    """A span that is going on."""

    tape: Tape
    span: OpenSpan


@runtime_checkable
class Following(Protocol):
    """A handler of callbacks that knows which spans its framework's calls are."""

    def place(self, run_id: UUID | None) -> Place | None:
        """The span of a call that goes on."""
        ...


_INNERMOST: ContextVar[Place | None] = ContextVar("hopscope_recording", default=None)


def here() -> Place | None:
    """The innermost span that the present code is in; None outside any recording."""
    return innermost(_INNERMOST.get(), _of_langchain())


def innermost(*around: Place | None) -> Place | None:
    """Of spans that are all around the present code, the one that began last."""
    going_on = [place for place in around if place is not None and not place.tape.closed]
    return max(going_on, key=lambda place: place.span.start, default=None)


@contextmanager
def within(place: Place) -> Iterator[None]:
    """The code is in this span."""
    token = _INNERMOST.set(place)
    try:
        yield
    finally:
        _INNERMOST.reset(token)


def _of_langchain() -> Place | None:
    """The call of LangChain that the present code is in, where our handler follows it."""
    config = sys.modules.get("langchain_core.runnables.config")
    if config is None:
        return None
    callbacks = (config.var_child_runnable_config.get() or {}).get("callbacks")
    handlers = getattr(callbacks, "handlers", ())
    following = next((each for each in handlers if isinstance(each, Following)), None)
    if following is None:
        return None
    return following.place(getattr(callbacks, "parent_run_id", None))
