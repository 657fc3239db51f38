"""What the command line keeps with the checkpoints of a run, so that to go on needs no more."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hopscope.cli.spending import Spending
from hopscope.runtime.types import Question, Record

if TYPE_CHECKING:
    from hopscope.runtime.checkpoints import Checkpoints


class Settings(Record):
    """A run as it was asked for: names and texts, from which all is built again."""

    question: Question
    workflow: str
    options: dict[str, str]
    corpus: str
    reader: str
    entailment: str
    samples: int
    seed: int
    spend: Spending = Spending()


@contextmanager
def opened(path: Path | None) -> "Iterator[Checkpoints | None]":
    """The checkpoints in a file; None without one."""
    if path is None:
        yield None
        return
    from hopscope.runtime.checkpoints import Checkpoints

    with Checkpoints.open(path) as checkpoints:
        yield checkpoints
