"""A measurement of a run: its credits, and the record of when and at what cost."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hopscope.runtime.types import Appraisal, Credit, GameValues


class Appraised(NamedTuple):
    """What was measured, and when and at what cost."""

    credits: "list[Credit]"
    appraisal: "Appraisal"
    games: "Sequence[GameValues]" = ()
    """The values of the coalitions that were measured."""
