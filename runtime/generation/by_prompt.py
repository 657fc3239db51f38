"""Running rows that share their prompt's keys and values.

What is drawn after a prompt follows it in one sequence, in the order of drawing; a token sees the
prompt and its own reply. So nothing is copied when samples part, come or go, nothing is padded, and
a pass reads the prompt's keys once for all samples.

Source: token tree attention (Miao, Oliaro, Zhang et al. 2024, SpecInfer, arXiv 2305.09781,
section 4.2).
"""

import copy
from collections.abc import Iterable, Sequence
from itertools import groupby

import torch
from torch import Tensor

from hopscope.runtime.generation.caches.roomy import RoomyCache
from hopscope.runtime.generation.draft import Draft
from hopscope.runtime.generation.prefill import Pass, UnreadSequence
from hopscope.runtime.generation.rows import Drawn, Row
from hopscope.runtime.models.parts import Part

SHARING = 16
"""Most samples in a sequence: attention is computed to the tokens of all, in vain to the others'.
More samples share a copy."""
SPARE = 16
"""Tokens for which a sequence has room at first; then it grows by a fourth or more."""


class ByPrompt:
    """Rows in sequences with a cache each, in memory for `area` positions."""

    def __init__(self, area: int) -> None:
        self._area = area
        self._sequences: list[_Sequence] = []

    @property
    def rows(self) -> list[Row]:
        """Those of the first sequence, then of the next."""
        return [row for each in self._sequences for row in each.rows]

    @property
    def positions(self) -> int:
        """Those in memory, or kept for what the drafts add."""
        return sum(each.positions(each.rows) for each in self._sequences)

    def fitting(self, waiting: Iterable[Row]) -> list[Row]:
        """See `Held`."""
        chosen: list[Row] = []
        left = self._area - self.positions
        for row in waiting:
            drafts: list[Draft] = []
            for first in range(0, len(row.drafts), SHARING):
                own = row.drafts[first : first + SHARING]
                left -= len(row.ids) + Row(row.ids, own).ahead
                if left < 0 and (self._sequences or chosen or drafts):
                    break
                drafts += own
            if drafts:
                chosen.append(Row(row.ids, drafts))
            if len(drafts) < len(row.drafts):
                break
        return chosen

    def unread(self, row: Row) -> UnreadSequence:
        """All of it, with room for some tokens to follow."""
        return UnreadSequence(row.ids, ahead=min(SPARE, row.ahead))

    def parts(self) -> list[Part]:
        """A part for each sequence."""
        return [each.part() for each in self._sequences]

    def keep(self, left: Drawn) -> list[Row]:
        """See `Held`."""
        places = [at for at, each in enumerate(self._sequences) for _ in each.rows]
        firsts = [first for each in self._sequences for first in range(len(each.rows))]
        going = zip(left.parents, left.rows, strict=True)
        kept = []
        for at, members in groupby(going, key=lambda each: places[each[0]]):
            parents, rows = zip(*members, strict=True)
            self._sequences[at].keep([firsts[parent] for parent in parents], list(rows))
            kept.append(self._sequences[at])
        self._sequences = kept
        return self._surplus()

    def add(
        self, passes: Sequence[Pass], wanted: Sequence[UnreadSequence], new: Drawn
    ) -> list[Row]:
        """See `Held`. Each of the passes is of one sequence."""
        caches = {place: made.cache for made in passes for place in made.members}
        going = zip(new.parents, new.rows, strict=True)
        for place, members in groupby(going, key=lambda each: each[0]):
            shares = _shares([row for _, row in members])
            # Copied before anything is added to it.
            copies = [caches[place], *(copy.deepcopy(caches[place]) for _ in shares[1:])]
            self._sequences += map(_Sequence, copies, shares)
        return self._surplus()

    def _surplus(self) -> list[Row]:
        """Remove the last rows as far as there is no memory for them."""
        if self.positions <= self._area:
            return []
        left = self._area
        kept: list[_Sequence] = []
        surplus: list[Row] = []
        for each in self._sequences:
            count = len(each.rows)
            least = 0 if kept else 1
            while count > least and each.positions(each.rows[:count]) > left:
                count -= 1
            surplus += each.rows[count:]
            if count:
                each.keep(list(range(count)), each.rows[:count])
                left -= each.positions(each.rows)
                kept.append(each)
        self._sequences = kept
        return surplus


class _Sequence:
    """A prompt and all tokens drawn after it."""

    def __init__(self, cache: RoomyCache, rows: list[Row]) -> None:
        """`cache` holds the prompt."""
        self.rows = rows
        self._cache = cache
        self._sees: Tensor | None = None
        """The tokens of each row, (row, token); None: all."""
        if len(rows) > 1:
            self._sees = self._all().expand(len(rows), -1)

    def positions(self, rows: Sequence[Row]) -> int:
        """Those in memory, or kept for what the drafts of these rows add."""
        return max(self._cache.columns, self._cache.tokens + sum(row.ahead for row in rows))

    def part(self) -> Part:
        """The last tokens of the rows."""
        count, held = len(self.rows), self._cache.tokens
        if held + count > self._cache.columns:
            grown = max(held + count, held + max(SPARE, held // 4))
            self._cache.widen(min(grown, self.positions(self.rows)))
        ids = torch.tensor([[row.ids[-1] for row in self.rows]], device=self._cache.device)
        if self._sees is not None:
            own = torch.eye(count, dtype=torch.bool, device=ids.device)
            self._sees = torch.cat([self._sees, own], dim=1)
        sees = None if self._sees is None else self._sees[None]
        return Part(ids, sees, self._cache, keep=count)

    def keep(self, parents: list[int], rows: list[Row]) -> None:
        """Go on with these rows; each continues that at the place `parents`."""
        if parents != list(range(len(self.rows))):
            sees = self._all() if self._sees is None else self._sees
            self._sees = sees[parents]
        self.rows = rows

    def _all(self) -> Tensor:
        return torch.ones(1, self._cache.tokens, dtype=torch.bool, device=self._cache.device)


def _shares(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each sequence: of all drafts `SHARING` each."""
    shares: list[list[Row]] = [[]]
    left = SHARING
    for row in rows:
        drafts: list[Draft] = row.drafts
        while drafts:
            if not left:
                shares.append([])
                left = SHARING
            shares[-1].append(Row(row.ids, drafts[:left]))
            drafts, left = drafts[left:], left - len(drafts[:left])
    return shares
