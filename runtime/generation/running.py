"""Rows that are decoded together. Others join between two passes; one that ends makes room.

A model that joins parts of any size in a pass reads prompts in the pass that draws the next tokens.
For other models reading is a pass of its own, for which the running rows wait. So prompts wait
until they have together missed as many passes as there are running rows: until then the reading
costs more turns than it fills, and from then on waiting does. With equal replies of length T,
arriving one after the other, this reads every sqrt(2 T) passes, which is the optimum.
"""

from bisect import insort
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import torch

from hopscope.runtime.generation.by_prompt import ByPrompt
from hopscope.runtime.generation.forwarding import Forwarder
from hopscope.runtime.generation.prefill import Pass, Prefill, UnreadSequence, after
from hopscope.runtime.generation.rows import Drawn, Row, draw_next
from hopscope.runtime.generation.side_by_side import SideBySide
from hopscope.runtime.models.parts import Part


class Held(Protocol):
    """Running rows with their keys and values; those of a row's last token are not there yet."""

    @property
    def rows(self) -> Sequence[Row]:
        """In the order of their logits."""
        ...

    def fitting(self, waiting: Iterable[Row]) -> list[Row]:
        """The first of the waiting rows, as far as there is memory for them beside the running
        ones; the last may lack some of its drafts."""
        ...

    def unread(self, row: Row) -> UnreadSequence:
        """What is to be read of a row."""
        ...

    def parts(self) -> list[Part]:
        """What a pass reads of the rows."""
        ...

    def keep(self, left: Drawn) -> list[Row]:
        """Go on with these rows after a pass; returns those for which there is no more memory."""
        ...

    def add(
        self, passes: Sequence[Pass], wanted: Sequence[UnreadSequence], new: Drawn
    ) -> list[Row]:
        """Let rows run that were read; returns those for which there is no memory."""
        ...


class _Waiting(NamedTuple):
    turn: int
    """Who has the lowest turn is read first."""
    row: Row


class RunningRows:
    """Decodes rows, any number of them in memory for `area` positions."""

    def __init__(self, forwarder: Forwarder, prefill: Prefill, *, area: int, remembers: bool):
        """`remembers`: a prompt that was read can be continued later, so its drafts may become
        more rows than fit; else each draft needs a row of its own from the start."""
        self._prefill = prefill
        self._joins = forwarder.joins
        self._held: Held = (
            ByPrompt(area)
            if forwarder.joins
            else SideBySide(forwarder, prefill, area=area, remembers=remembers)
        )
        # In half precision most draws would be close.
        self._alone = prefill.alone if forwarder.model.dtype == torch.float32 else None
        self._waiting: list[_Waiting] = []
        self._missed = 0
        """Passes that waiting rows missed although they fit, since rows were read last."""
        self._passes = 0

    @property
    def busy(self) -> bool:
        """Whether drafts are unfinished."""
        return bool(self._held.rows or self._waiting)

    def add(self, rows: Sequence[Row]) -> None:
        """Decode further rows. A row is read before those of later calls, but a large call does
        not delay small ones: each row comes after one more pass than the one before it."""
        for place, row in enumerate(rows):
            insort(self._waiting, _Waiting(self._passes + place, row), key=lambda each: each.turn)

    def step(self) -> None:
        """Draw a token for each draft, and read waiting rows if it is time."""
        chosen = self._due()
        if chosen and not (self._held.rows and self._joins):
            wanted = [self._held.unread(row) for row in chosen]
            self._let_in(chosen, wanted, self._prefill.read(wanted))
            chosen = []
        if self._held.rows:
            self._pass(chosen)

    def _due(self) -> list[Row]:
        """Waiting rows to read now."""
        if not self._waiting:
            return []
        if self._held.rows and not self._joins and self._missed < len(self._held.rows):
            return []
        chosen = self._fitting()
        taken, self._waiting = self._waiting[: len(chosen)], self._waiting[len(chosen) :]
        if chosen and (rest := taken[-1].row.drafts[len(chosen[-1].drafts) :]):
            self._waiting.insert(0, _Waiting(taken[-1].turn, Row(chosen[-1].ids, rest)))
        return chosen

    def _fitting(self) -> list[Row]:
        return self._held.fitting(row for _, row in self._waiting)

    def _let_in(
        self, chosen: Sequence[Row], wanted: Sequence[UnreadSequence], passes: Sequence[Pass]
    ) -> None:
        """Draw a token for rows that were read, and let them run."""
        self._missed = 0
        found = draw_next(chosen, after(passes), self._alone)
        self._put_off(self._held.add(passes, wanted, found))

    def _put_off(self, rows: Sequence[Row]) -> None:
        """Let rows wait before all others."""
        for row in rows:
            insort(self._waiting, _Waiting(-1, row), key=lambda each: each.turn)

    def _pass(self, chosen: Sequence[Row]) -> None:
        """Draw a token for each draft, and read rows beside. A finished draft leaves; rows that no
        longer fit wait."""
        wanted = [self._held.unread(row) for row in chosen]
        passes, logits = self._prefill.read_beside(wanted, self._held.parts())
        own = torch.cat([each.flatten(0, 1) for each in logits])
        found = draw_next(self._held.rows, own, self._alone)
        self._put_off(self._held.keep(found))
        self._passes += 1
        if chosen:
            self._let_in(chosen, wanted, passes)
        if not self._joins:
            self._missed += len(self._fitting())
