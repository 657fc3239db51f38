"""When ITEM's iterations stop: on an unchanged set, a like answer, or their number."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from hopscope.runtime.texts.answers import rouge_l
from hopscope.runtime.types import Passage
from hopscope.workflows.selection.choosing import State, Update

Start = Literal["sentinel", "candidates"]


class Stop(NamedTuple):
    """When the iterations end."""

    m: int
    """Iterations at most."""
    u0: Start
    """What the first set is compared with: nothing, or all candidates."""
    rouge: float | None
    """ROUGE-L of two answers above which they are alike, which then stops instead of a like set."""
    rouge_equal: bool = False
    """Whether they are alike at exactly that, too, as in the authors' code."""

    def alike(self, state: State, text: str) -> bool:
        """Whether the answer `text` is like the one before."""
        if self.rouge is None or "reference" not in state:
            return False
        found = rouge_l(text, state["reference"])
        return found > self.rouge or (self.rouge_equal and found == self.rouge)

    def settle(self, state: State, update: Update) -> Update:
        """Count the iteration whose choice is in `update`; stop if it changed nothing or was the
        last."""
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
