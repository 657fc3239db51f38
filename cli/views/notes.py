"""The library's log on the terminal: warnings as notes, information as progress."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Generic, TypeVar

from hopscope.api.views import render

Opened = TypeVar("Opened")


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        shown = render.note if record.levelno >= logging.WARNING else render.progress
        shown(render.plain(record.getMessage()))


def attach() -> None:
    """Print the library's log from now on; once per process."""
    log = logging.getLogger("hopscope")
    if not any(isinstance(handler, _Notes) for handler in log.handlers):
        log.addHandler(_Notes(logging.INFO))
        log.setLevel(logging.INFO)


@dataclass(frozen=True)
class Noted(Generic[Opened]):
    """A worker's opening that prints the library's log in the worker's process, too."""

    opening: Callable[[], AbstractContextManager[Opened]]

    def __call__(self) -> AbstractContextManager[Opened]:
        attach()
        return self.opening()
