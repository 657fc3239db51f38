"""Reads sequences of tokens, except beginnings whose keys and values are cached.

A common prefix is read once: of sequences that share much, the longest goes first; the others
follow from the point where they differ. A part of a pass is a rectangle: it reads as many tokens of
every row as of the row with most unread tokens, and so leaves no gap between cached and new tokens.
A model that joins parts takes a row in each, and all in one pass; for others each part is a pass.
"""

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hopscope.runtime.generation.caches import caches_of
from hopscope.runtime.generation.caches.moving import Run, joined, moved
from hopscope.runtime.generation.caches.roomy import Room
from hopscope.runtime.generation.forwarding import Forwarder
from hopscope.runtime.generation.prefixes import Match, PrefixTree, Tokens, common
from hopscope.runtime.models.batches import Size, must_be_alone
from hopscope.runtime.models.parts import Part

PASS = 32
"""The fixed cost of a pass in tokens: fewer tokens are cheaper to read twice, or in vain, than in a
separate pass."""
MOST = 4096
"""Most unread tokens of a pass over several sequences, padding included: a larger one needs more
memory for what it computes, and the fixed cost hardly counts any more."""


class UnreadSequence(NamedTuple):
    """A sequence to read."""

    ids: Tokens
    logits: int = 1
    """Number of last positions whose logits are needed."""
    ahead: int = 0
    """Tokens to follow, which the cache has room for."""


class Pass(NamedTuple):
    """The result of a pass."""

    members: list[int]
    """Indices of its sequences."""
    cache: Any
    """Keys and values of all their tokens, padded on the left."""
    logits: Tensor  # (row, position, token)


class Prefill:
    """Reads with a model and caches keys and values in a tree of prefixes."""

    def __init__(self, forwarder: Forwarder, limit: int) -> None:
        self._forwarder = forwarder
        self._caches = caches_of(forwarder.model)
        self.cuttable = self._caches.cuttable
        self.tree = PrefixTree(limit if self.cuttable else 0)

    def read(self, wanted: Sequence[UnreadSequence]) -> list[Pass]:
        """Read all sequences, each in one of the passes. A sequence that must be alone has a
        separate pass from its first token."""
        if must_be_alone():
            return [self._pass(wanted, [i]) for i in range(len(wanted))]
        return self.read_beside(wanted)[0]

    def read_beside(
        self, wanted: Sequence[UnreadSequence], beside: Sequence[Part] = ()
    ) -> tuple[list[Pass], list[Tensor]]:
        """Read all sequences, and compute other parts by the way; the logits of these."""
        if not self.tree.limit:
            every = list(range(len(wanted)))
            whole = [every] if every else []
            groups = [[i] for i in every] if self._forwarder.joins else whole
            return self._passed(wanted, groups, {}, beside)
        passes: list[Pass] = []
        logits: list[Tensor] = []
        left = list(range(len(wanted)))
        while left or beside:
            matches = {i: self._match(wanted[i]) for i in left}
            groups = self._next(wanted, left, matches) if left else []
            left = [i for i in left if not any(i in members for members in groups)]
            read, others = self._passed(wanted, groups, matches, beside)
            beside = ()
            for made in read:
                for row, i in enumerate(made.members):
                    ids = wanted[i].ids
                    self.tree.keep(ids, Run(made.cache, row, len(ids)).cut)
            passes += read
            logits += others
        return passes, logits

    def reusable(self, ids: Tokens, earlier: Tokens) -> int:
        """The tokens of a sequence that need not be read again after an earlier one, whose keys and
        values are cached."""
        if not self.tree.limit:
            return 0
        return _worth(common(ids, earlier), UnreadSequence(ids))

    def rows(
        self,
        passes: Sequence[Pass],
        wanted: Sequence[UnreadSequence],
        parents: list[int],
        size: Size,
        room: Room | None = None,
        others: Sequence[Run] = (),
    ) -> Any:
        """A cache. Its rows are `others`, then the sequences at the places `parents`, which may
        repeat. It has room for `size`, and is valid until `room` is used again. The caches of the
        passes and of `others` are emptied on the way."""
        if not self.cuttable:
            [made] = passes
            made.cache.reorder_cache(torch.tensor(parents, device=made.logits.device))
            return made.cache
        cache = self._caches.empty()
        used = [made.cache for made in passes]
        rows = [*others, *runs(passes, wanted, parents)]
        moved(rows, used, cache=cache, room=room or Room(0), size=size)
        return cache

    def alone(self, ids: Tokens) -> Tensor:
        """The logits after a sequence, (1, token), by one pass from its first token: they depend on
        nothing else."""
        return self._pass([UnreadSequence(ids)], [0]).logits[:, -1]

    def _match(self, wanted: UnreadSequence) -> Match:
        """The cached part of a sequence, which need not be read."""
        match = self.tree.match(wanted.ids)
        tokens = _worth(match.tokens, wanted)
        return Match(tokens, match.runs) if tokens else Match(0, ())

    def _next(
        self, wanted: Sequence[UnreadSequence], left: list[int], matches: dict[int, Match]
    ) -> list[list[int]]:
        """The sequences to read now, grouped by pass: the longest of each family that shares more
        than is cached. Requests that no other depends on wait for a later batch."""
        families = self._families(wanted, left, matches)
        first = [max(family, key=lambda i: len(wanted[i].ids)) for family in families]
        groups = self._alike(wanted, first, matches)
        awaited = {i for i, family in zip(first, families, strict=True) if len(family) > 1}
        return [members for members in groups if awaited & set(members)] or groups

    def _families(
        self, wanted: Sequence[UnreadSequence], left: list[int], matches: dict[int, Match]
    ) -> list[list[int]]:
        """Groups of sequences that share more than is cached."""
        ordered = sorted(left, key=lambda i: wanted[i].ids)
        families = [[ordered[0]]]
        for one, other in pairwise(ordered):
            shared = common(wanted[one].ids, wanted[other].ids)
            for i in (one, other):
                shared = min(shared, len(wanted[i].ids) - wanted[i].logits)
            if shared - min(matches[one].tokens, matches[other].tokens) > PASS:
                families[-1].append(other)
            else:
                families.append([other])
        return families

    def _alike(
        self, wanted: Sequence[UnreadSequence], chosen: list[int], matches: dict[int, Match]
    ) -> list[list[int]]:
        """Groups of sequences with about equal numbers of unread tokens, each for a pass or for a
        part of one."""
        if self._forwarder.joins:
            return [[i] for i in chosen]
        unread = {i: len(wanted[i].ids) - matches[i].tokens for i in chosen}
        groups: list[list[int]] = []
        waste = most = 0
        for i in sorted(chosen, key=lambda i: -unread[i]):
            if groups:
                waste += unread[groups[-1][0]] - unread[i]
            if not groups or waste > PASS or (len(groups[-1]) + 1) * most > MOST:
                groups.append([])
                most = unread[i]
                waste = 0
            groups[-1].append(i)
        return groups

    def _pass(self, wanted: Sequence[UnreadSequence], members: list[int]) -> Pass:
        """A pass from the first token on."""
        [made], _ = self._passed(wanted, [members], {})
        return made

    def _passed(
        self,
        wanted: Sequence[UnreadSequence],
        groups: Sequence[list[int]],
        matches: dict[int, Match],
        beside: Sequence[Part] = (),
    ) -> tuple[list[Pass], list[Tensor]]:
        """Compute the groups, and other parts; the logits of these."""
        read = [self._part(wanted, members, matches) for members in groups]
        parts = [part for part, _ in read]
        logits = self._forwarder.together(
            [*parts, *beside], reused=sum(reused for _, reused in read)
        )
        passes = [
            Pass(members, part.cache, own)
            for members, part, own in zip(groups, parts, logits, strict=False)
        ]
        return passes, logits[len(parts) :]

    def _part(
        self, wanted: Sequence[UnreadSequence], members: list[int], matches: dict[int, Match]
    ) -> tuple[Part, int]:
        """A group, and the number of its tokens that are not read again."""
        ids = [wanted[i].ids for i in members]
        at_hand = [matches[i] if matches else Match(0, ()) for i in members]
        columns = max(len(s) - match.tokens for s, match in zip(ids, at_hand, strict=True))
        past = max(map(len, ids)) - columns
        tokens = [max(0, len(s) - columns) for s in ids]
        ahead = max(wanted[i].ahead for i in members)
        cache = self._caches.empty(ahead)
        if past:
            runs = [match.runs for match in at_hand]
            size = Size(past + columns + ahead, len(members))
            joined(runs, tokens, cache=cache, size=size)
        keep = max(wanted[i].logits for i in members)
        # A part of one row has no padding.
        mask = None if self._forwarder.joins else self._forwarder.mask(list(map(len, ids)))
        return Part(self._forwarder.rows(ids, columns), mask, cache, keep), sum(tokens)


def _worth(cached: int, wanted: UnreadSequence) -> int:
    """How many of the cached tokens at the beginning of a sequence are not read again.

    A few are: a pass that begins at the first token needs no mask, so that attention computes only
    the half of its square below the diagonal.
    """
    tokens = min(cached, len(wanted.ids) - wanted.logits)
    return tokens if tokens > PASS else 0


def runs(passes: Sequence[Pass], wanted: Sequence[UnreadSequence], parents: list[int]) -> list[Run]:
    """The sequences at the places `parents`; repetitions side by side are copies of one."""
    sources = {i: (made, row) for made in passes for row, i in enumerate(made.members)}
    found = []
    for place, same in groupby(parents):
        made, row = sources[place]
        found.append(Run(made.cache, row, len(wanted[place].ids), len(list(same))))
    return found


def after(passes: Sequence[Pass]) -> Tensor:
    """The logits after each sequence, (sequence, token), in their order."""
    logits = {i: made.logits[row, -1] for made in passes for row, i in enumerate(made.members)}
    return torch.stack([logits[i] for i in range(len(logits))])
