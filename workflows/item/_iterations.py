"""The stop rules of ITEM's iterations: an unchanged set, a similar answer, or their number."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from hopscope.runtime.texts.answers import rouge_l
from hopscope.runtime.types import Passage
from hopscope.workflows.selection.choosing import State, Update

Start = Literal["sentinel", "candidates"]


class Stop(NamedTuple):
    """The stop rules of a run."""

    m: int
    """The most iterations."""
    u0: Start
    """The set that the first choice is compared with: none, or all candidates."""
    rouge: float | None
    """Above this ROUGE-L two drafts are alike and stop the run, in place of an unchanged set."""
    rouge_equal: bool = False
    """Whether exactly this value stops, too, as in the authors' code."""

    def alike(self, state: State, text: str) -> bool:
        """Whether the draft `text` is similar to the one before."""
        if self.rouge is None or "reference" not in state:
            return False
        found = rouge_l(text, state["reference"])
        return found > self.rouge or (self.rouge_equal and found == self.rouge)

    def settle(self, state: State, update: Update) -> Update:
        """Count the iteration whose choice is in `update`; stop if the choice is unchanged or this
        was the last iteration."""
        t = state.get("t", 0) + 1
        start = state["candidates"] if self.u0 == "candidates" else None
        before = state.get("chosen", start)
        stays = before is not None and _keys(before) == _keys(update["chosen"])
        update["t"] = t
        # Without candidates no later choice can differ.
        if not state["candidates"] or (stays and self.rouge is None):
            update["stop_reason"] = "set_stable"
        elif t >= self.m:
            update["stop_reason"] = "max_steps"
        return update


def _keys(passages: Iterable[Passage]) -> set[str]:
    return {passage.key for passage in passages}
