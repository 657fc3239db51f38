"""Rows that are decoded together. Others join between two passes; one that ends makes room.

A model that joins parts of any size in a pass reads prompts in the pass that draws the next tokens.
For other models reading is a pass of its own, for which the running rows wait. So prompts wait
until they have together missed as many passes as there are running rows: until then the reading
costs more turns than it fills, and from then on waiting does. With equal replies of length T,
arriving one after the other, this reads every sqrt(2 T) passes, which is the optimum.
"""

from bisect import insort
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hopscope.runtime.errors import ReaderError
from hopscope.runtime.generation.caches.moving import Run
from hopscope.runtime.generation.caches.roomy import Room, RoomyCache, settled
from hopscope.runtime.generation.draft import Draft
from hopscope.runtime.generation.forwarding import Forwarder
from hopscope.runtime.generation.prefill import (
    Pass,
    Prefill,
    UnreadSequence,
    after,
    runs,
)
from hopscope.runtime.generation.prefixes import Tokens
from hopscope.runtime.generation.sampling import close_calls, distribution, draw, uniform
from hopscope.runtime.models.batches import Size
from hopscope.runtime.models.parts import Part

AHEAD = 32
"""Tokens that a running row has room for. A longer reply makes the rows wider on its way; those
that do not fit any more wait."""
SPARE = 4
"""A new cache has columns for a fourth more tokens than its rows can reach: then rows that join
later seldom need another."""


class Row(NamedTuple):
    """Drafts with equal tokens so far."""

    ids: Tokens
    """The prompt and the drafts' tokens."""
    drafts: list[Draft]

    @property
    def left(self) -> int:
        """Most tokens that the drafts may still add."""
        return max(draft.left for draft in self.drafts)

    @property
    def width(self) -> int:
        """Positions that are kept for it."""
        return len(self.ids) + min(self.left, AHEAD)


class Drawn(NamedTuple):
    """The rows that continue, each with the place of its row before."""

    parents: list[int]
    rows: list[Row]


class _Waiting(NamedTuple):
    turn: int
    """Who has the lowest turn is read first."""
    row: Row


class RunningRows:
    """Decodes rows, any number of them in memory for `area` positions."""

    def __init__(self, forwarder: Forwarder, prefill: Prefill, *, area: int, remembers: bool):
        """`remembers`: a prompt that was read can be continued later, so its drafts may become
        more rows than fit; else each draft needs a row of its own from the start."""
        self._forwarder = forwarder
        self._prefill = prefill
        self._area = area
        self._remembers = remembers
        self._room = Room(prefill.tree.limit)
        # In half precision most draws would be close.
        self._alone = prefill.alone if forwarder.model.dtype == torch.float32 else None
        self._waiting: list[_Waiting] = []
        self._missed = 0
        """Passes that waiting rows missed although they fit, since rows were read last."""
        self._passes = 0
        self._rows: list[Row] = []
        """The keys and values of their last tokens are not in the cache yet."""
        self._cache: Any = None
        self._columns = 0
        """Columns of the cache that are shown."""
        self._slots = 0
        """Most rows at once so far."""

    @property
    def busy(self) -> bool:
        """Whether drafts are unfinished."""
        return bool(self._rows or self._waiting)

    def add(self, rows: Sequence[Row]) -> None:
        """Decode further rows. A row is read before those of later calls, but a large call does
        not delay small ones: each row comes after one more pass than the one before it."""
        for place, row in enumerate(rows):
            insort(self._waiting, _Waiting(self._passes + place, row), key=lambda each: each.turn)

    def step(self) -> None:
        """Draw a token for each draft, and read waiting rows if it is time."""
        chosen = self._due()
        if chosen and not (self._rows and self._forwarder.joins):
            wanted = [UnreadSequence(row.ids) for row in chosen]
            self._let_in(chosen, wanted, self._prefill.read(wanted))
            chosen = []
        if self._rows:
            self._pass(chosen)

    def _due(self) -> list[Row]:
        """Waiting rows to read now."""
        if self._rows and not self._forwarder.joins and self._missed < len(self._rows):
            return []
        chosen = self._fitting()
        del self._waiting[: len(chosen)]
        return chosen

    def _let_in(
        self, chosen: Sequence[Row], wanted: Sequence[UnreadSequence], passes: Sequence[Pass]
    ) -> None:
        """Draw a token for rows that were read, and let them run."""
        self._missed = 0
        found = draw_next(chosen, after(passes), self._alone)
        # The running rows may have become too many beside the new ones.
        room = max(0, self._most([*self._rows, *found.rows]) - len(self._rows))
        self._put_off(found.rows[room:])
        if added := found.rows[:room]:
            self._place(passes, wanted, Drawn(found.parents[:room], added))

    def _fitting(self) -> list[Row]:
        """The next rows, as far as there is memory for them beside the running ones."""
        if self._rows and not self._prefill.cuttable:
            return []  # a state cannot be joined to others
        chosen: list[Row] = []
        count = len(self._rows)
        width = max((row.width for row in self._rows), default=0)
        for _, row in self._waiting:
            width = max(width, row.width)
            count += 1 if self._remembers else len(row.drafts)
            if count * width > self._area and (self._rows or chosen):
                break
            chosen.append(row)
        return chosen

    def _most(self, rows: Sequence[Row]) -> int:
        """The most rows that fit."""
        return max(1, self._area // max((row.width for row in rows), default=1))

    def _put_off(self, rows: Sequence[Row]) -> None:
        """Let rows wait before all others."""
        for row in rows:
            insort(self._waiting, _Waiting(-1, row), key=lambda each: each.turn)

    def _place(self, passes: Sequence[Pass], wanted: Sequence[UnreadSequence], new: Drawn) -> None:
        """Give rows that were read a place in the cache."""
        tokens = max(len(wanted[place].ids) for place in new.parents)
        count = len(self._rows) + len(new.rows)
        cache = self._cache
        if self._rows and isinstance(cache, RoomyCache) and cache.has_room(count, tokens):
            added = runs(passes, wanted, new.parents)
            cache.join([run.layers() for run in added], [run.copies for run in added])
            self._rows += new.rows
        else:
            self._renew(passes, wanted, new)

    def _renew(
        self,
        passes: Sequence[Pass] = (),
        wanted: Sequence[UnreadSequence] = (),
        new: Drawn | None = None,
    ) -> None:
        """Make a cache with more room, of the running rows and the new ones."""
        others = [Run(self._cache, i, len(row.ids) - 1) for i, row in enumerate(self._rows)]
        rows = [*self._rows, *(new.rows if new else ())]
        self._cache = self._prefill.rows(
            passes, wanted, new.parents if new else [], self._size(rows), self._room, others
        )
        self._rows = rows
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

    def _pass(self, chosen: Sequence[Row]) -> None:
        """Draw a token for each draft, and read rows beside. A finished draft leaves; rows that no
        longer fit wait."""
        if isinstance(self._cache, RoomyCache):
            self._columns = max(len(row.ids) for row in self._rows) - 1
            if self._cache.has_room(len(self._rows), self._columns):
                self._cache.show_last(self._columns)
            else:
                self._renew()
        self._columns += 1
        mask = self._forwarder.mask([len(row.ids) for row in self._rows], self._columns)
        ids = torch.tensor([row.ids[-1:] for row in self._rows], device=mask.device)
        wanted = [UnreadSequence(row.ids) for row in chosen]
        passes, [logits] = self._prefill.read_beside(wanted, [Part(ids, mask, self._cache)])
        found = draw_next(self._rows, logits[:, -1], self._alone)
        room = self._most(found.rows)
        self._put_off(found.rows[room:])
        self._keep(Drawn(found.parents[:room], found.rows[:room]))
        self._passes += 1
        if chosen:
            self._let_in(chosen, wanted, passes)
        self._missed += len(self._fitting())

    def _keep(self, left: Drawn) -> None:
        """Go on with these rows."""
        if left.rows and left.parents != list(range(len(self._rows))):
            order = settled(left.parents)
            left = Drawn([left.parents[i] for i in order], [left.rows[i] for i in order])
            kept = torch.tensor(left.parents, device=self._forwarder.model.device)
            self._cache.reorder_cache(kept)
        self._rows = left.rows
        if not left.rows:
            self._cache = None
            self._room.shrink()


def draw_next(
    rows: Sequence[Row], logits: Tensor, alone: Callable[[Tokens], Tensor] | None = None
) -> Drawn:
    """Draw each draft's next token from the logits after its row, (row, token). Drafts that
    continue with equal tokens share a row.

    Args:
        alone: the logits after a sequence without company, (1, token), which decide close calls.
    """
    drafts = [(place, draft) for place, row in enumerate(rows) for draft in row.drafts]
    steps = _steps(
        [draft for _, draft in drafts], [place for place, _ in drafts], logits, alone is not None
    )
    again = {drafts[number][0] for number, step in enumerate(steps) if step.close}
    if alone is not None:
        for place in sorted(again):
            close = [n for n, step in enumerate(steps) if step.close and drafts[n][0] == place]
            decided = _steps(
                [drafts[n][1] for n in close], [0] * len(close), alone(rows[place].ids), False
            )
            for number, step in zip(close, decided, strict=True):
                steps[number] = step
    going_on: dict[tuple[int, int], list[Draft]] = {}
    for (place, draft), step in zip(drafts, steps, strict=True):
        continued = draft.add(step.token, step.logprob, step.entropy)
        if draft.finished is None:
            going_on.setdefault((place, continued), []).append(draft)
    children = [Row((*rows[place].ids, token), own) for (place, token), own in going_on.items()]
    return Drawn([place for place, _ in going_on], children)


class _Step(NamedTuple):
    token: int
    logprob: float
    entropy: float
    close: bool
    """Whether rounding may have decided it."""


def _steps(
    drafts: Sequence[Draft], places: Sequence[int], logits: Tensor, judging: bool
) -> list[_Step]:
    """The next token of each draft, from the logits at its place; with `judging`, whether it is
    close."""
    logprobs, entropies = distribution(logits)
    check_finite(entropies)
    own = logprobs[torch.tensor(places, device=logits.device)]
    temperatures = [draft.temperature for draft in drafts]
    uniforms = [uniform(draft.stream, draft.steps) for draft in drafts]
    drawn = draw(own, temperatures, uniforms)
    close = set(close_calls(own, temperatures, uniforms, drawn)) if judging else set()
    for number, draft in enumerate(drafts):
        if draft.given:
            drawn[number] = draft.given[0]
            close.discard(number)
    chosen = own.gather(-1, drawn[:, None]).squeeze(-1).tolist()
    entropy = entropies.tolist()
    return [
        _Step(token, logprob, entropy[place], number in close)
        for number, (token, logprob, place) in enumerate(
            zip(drawn.tolist(), chosen, places, strict=True)
        )
    ]


def check_finite(numbers: Tensor) -> None:
    """Refuse numbers that cannot be recorded: overflow, or a given token of probability 0.

    Raises:
        ReaderError: a number is not finite.
    """
    if not bool(torch.isfinite(numbers).all()):
        raise ReaderError(
            "the model's probabilities are not finite: it overflowed (try dtype float32) "
            "or gives a required token probability 0"
        )
