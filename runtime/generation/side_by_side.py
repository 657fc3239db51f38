"""Running rows in one cache, each as wide as the widest: what transformers' models take."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from hopscope.runtime.generation.caches.moving import Run
from hopscope.runtime.generation.caches.roomy import Room, RoomyCache, settled
from hopscope.runtime.generation.forwarding import Forwarder
from hopscope.runtime.generation.prefill import Pass, Prefill, UnreadSequence, runs
from hopscope.runtime.generation.rows import Drawn, Row
from hopscope.runtime.models.batches import Size
from hopscope.runtime.models.parts import Part

SPARE = 4
"""A new cache has columns for a fourth more tokens than its rows can reach: then rows that join
later seldom need another."""


class SideBySide:
    """Rows of one cache, in memory for `area` positions."""

    def __init__(self, forwarder: Forwarder, prefill: Prefill, *, area: int, remembers: bool):
        """`remembers`: as for `RunningRows`."""
        self.rows: list[Row] = []
        self._forwarder = forwarder
        self._prefill = prefill
        self._area = area
        self._remembers = remembers
        self._room = Room(prefill.tree.limit)
        self._cache: Any = None
        self._columns = 0
        """Columns of the cache that are shown."""
        self._slots = 0
        """Most rows at once so far."""

    def fitting(self, waiting: Iterable[Row]) -> list[Row]:
        """See `Held`."""
        if self.rows and not self._prefill.cuttable:
            return []  # a state cannot be joined to others
        chosen: list[Row] = []
        count = len(self.rows)
        width = max((row.width for row in self.rows), default=0)
        for row in waiting:
            width = max(width, row.width)
            count += 1 if self._remembers else len(row.drafts)
            if count * width > self._area and (self.rows or chosen):
                break
            chosen.append(row)
        return chosen

    def unread(self, row: Row) -> UnreadSequence:
        """All of it."""
        return UnreadSequence(row.ids)

    def parts(self) -> list[Part]:
        """One part with the last token of each row."""
        if isinstance(self._cache, RoomyCache):
            self._columns = max(len(row.ids) for row in self.rows) - 1
            if self._cache.has_room(len(self.rows), self._columns):
                self._cache.show_last(self._columns)
            else:
                self._renew()
        self._columns += 1
        mask = self._forwarder.mask([len(row.ids) for row in self.rows], self._columns)
        ids = torch.tensor([row.ids[-1:] for row in self.rows], device=mask.device)
        return [Part(ids, mask, self._cache)]

    def keep(self, left: Drawn) -> list[Row]:
        """See `Held`."""
        room = self._most(left.rows)
        parents, rows = left.parents[:room], left.rows[:room]
        if rows and parents != list(range(len(self.rows))):
            order = settled(parents)
            parents, rows = [parents[i] for i in order], [rows[i] for i in order]
            kept = torch.tensor(parents, device=self._forwarder.model.device)
            self._cache.reorder_cache(kept)
        self.rows = rows
        if not rows:
            self._cache = None
            self._room.shrink()
        return left.rows[room:]

    def add(
        self, passes: Sequence[Pass], wanted: Sequence[UnreadSequence], new: Drawn
    ) -> list[Row]:
        """See `Held`."""
        # The running rows may have become too many beside the new ones.
        room = max(0, self._most([*self.rows, *new.rows]) - len(self.rows))
        if added := new.rows[:room]:
            self._place(passes, wanted, Drawn(new.parents[:room], added))
        return new.rows[room:]

    def _most(self, rows: Sequence[Row]) -> int:
        """The most rows that fit."""
        return max(1, self._area // max((row.width for row in rows), default=1))

    def _place(self, passes: Sequence[Pass], wanted: Sequence[UnreadSequence], new: Drawn) -> None:
        """Give rows that were read a place in the cache."""
        tokens = max(len(wanted[place].ids) for place in new.parents)
        count = len(self.rows) + len(new.rows)
        cache = self._cache
        if self.rows and isinstance(cache, RoomyCache) and cache.has_room(count, tokens):
            added = runs(passes, wanted, new.parents)
            cache.join([run.layers() for run in added], [run.copies for run in added])
            self.rows += new.rows
        else:
            self._renew(passes, wanted, new)

    def _renew(
        self,
        passes: Sequence[Pass] = (),
        wanted: Sequence[UnreadSequence] = (),
        new: Drawn | None = None,
    ) -> None:
        """Make a cache with more room, of the running rows and the new ones."""
        others = [Run(self._cache, i, len(row.ids) - 1) for i, row in enumerate(self.rows)]
        rows = [*self.rows, *(new.rows if new else ())]
        self._cache = self._prefill.rows(
            passes, wanted, new.parents if new else [], self._size(rows), self._room, others
        )
        self.rows = rows
        self._columns = max(len(row.ids) for row in rows) - 1
        if not self._prefill.cuttable:
            self._columns = max(len(each.ids) for each in wanted)

    def _size(self, rows: Sequence[Row]) -> Size:
        """The room for these rows, for their drafts if they part, and for as many as there were
        before."""
        needed = max(row.width for row in rows)
        width = max(needed, min(needed + needed // SPARE, self._area // len(rows)))
        self._slots = max(self._slots, sum(len(row.drafts) for row in rows))
        return Size(width, max(len(rows), min(self._slots, self._area // width)))
