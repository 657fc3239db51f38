"""The options that select questions of a file."""

from enum import StrEnum
from typing import TYPE_CHECKING

from hopscope.api.views import render
from hopscope.runtime.texts.counting import counted

if TYPE_CHECKING:
    from hopscope.lab.dataset.ordering import Sample


class Order(StrEnum):
    """`hopscope.lab.dataset.ordering.Order`."""

    stratified = "stratified"
    file = "file"


def tell(taken: "Sample | None") -> None:
    """Print which questions the limit selects."""
    if taken is not None and taken.limit < taken.of:
        way = "the first of the file" if taken.order == "file" else "drawn at random"
        render.note(
            f"{taken.limit:,} of {counted(taken.of, 'question')}, {way} (--order {taken.order})"
        )
