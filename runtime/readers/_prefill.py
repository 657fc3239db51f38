"""Reading sequences of tokens, as far as their beginnings were not read before.

What sequences begin with alike is read once: of those that share much the longest goes first, the
others after it, from where they part. A pass is a rectangle: of every row it reads as many tokens
as of the row that has most to read, and so leaves no gap between what was at hand and what is new.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from hopscope.runtime.readers._forwarding import Forwarder
from hopscope.runtime.readers._prefixes import Layers, Match, PrefixTree, Tokens, common

PASS = 32
"""Tokens that cost about what a pass costs that has one more row or none: fewer are rather read
twice, or read in vain, than in a pass of their own."""


class Wanted(NamedTuple):
    """A sequence to read."""

    ids: Tokens
    logits: int = 1
    """At how many of its last positions the logits are wanted."""


class Pass(NamedTuple):
    """What came of a pass."""

    members: list[int]
    """Which of the sequences."""
    cache: Any
    """Keys and values of all their tokens, padded on the left."""
    mask: Tensor  # (row, position)
    logits: Tensor  # (row, position, token)


class Prefill:
    """Reads with a model and remembers in a tree."""

    def __init__(self, forwarder: Forwarder, limit: int) -> None:
        self._forwarder = forwarder
        self._config = forwarder.model.config
        # Other layers keep states that cannot be cut.
        kinds = {type(layer) for layer in DynamicCache(config=self._config).layers}
        self._cuttable = kinds <= {DynamicLayer, DynamicSlidingWindowLayer}
        self.tree = PrefixTree(limit if self._cuttable else 0)

    def read(self, wanted: Sequence[Wanted]) -> list[Pass]:
        """All sequences, each in one of the passes."""
        if not self.tree.limit:
            return [self._pass(wanted, list(range(len(wanted))), {})]
        passes: list[Pass] = []
        left = list(range(len(wanted)))
        while left:
            found = {i: self._match(wanted[i]) for i in left}
            first = self._leaders(wanted, left, found)
            left = [i for i in left if i not in first]
            for members in self._alike(wanted, first, found):
                made = self._pass(wanted, members, found)
                for row, i in enumerate(members):
                    ids = wanted[i].ids
                    self.tree.keep(ids, _Cut(made.cache, row, len(ids)))
                passes.append(made)
        return passes

    def cache(self, passes: Sequence[Pass], wanted: Sequence[Wanted]) -> tuple[Any, Tensor, Tensor]:
        """One cache of all sequences, in their order, its mask and the logits after each."""
        if len(passes) == 1 and passes[0].members == list(range(len(wanted))):
            return passes[0].cache, passes[0].mask, passes[0].logits[:, -1]
        place = {i: (made, row) for made in passes for row, i in enumerate(made.members)}
        order = [place[i] for i in range(len(wanted))]
        tokens = [len(each.ids) for each in wanted]
        rows = [
            [_Cut(made.cache, row, n).view()] for (made, row), n in zip(order, tokens, strict=True)
        ]
        _, mask = self._forwarder.rows([each.ids for each in wanted], 1)
        logits = torch.stack([made.logits[row, -1] for made, row in order])
        return joined(rows, tokens, max(tokens)), mask, logits

    def _match(self, wanted: Wanted) -> Match:
        """What is at hand of a sequence and need not be read."""
        found = self.tree.match(wanted.ids)
        return found._replace(tokens=min(found.tokens, len(wanted.ids) - wanted.logits))

    def _leaders(
        self, wanted: Sequence[Wanted], left: list[int], found: dict[int, Match]
    ) -> list[int]:
        """Those to read now: of each family that shares more than is at hand the longest."""
        ordered = sorted(left, key=lambda i: wanted[i].ids)
        families = [[ordered[0]]]
        for one, other in pairwise(ordered):
            shared = common(wanted[one].ids, wanted[other].ids)
            for i in (one, other):
                shared = min(shared, len(wanted[i].ids) - wanted[i].logits)
            if shared - min(found[one].tokens, found[other].tokens) > PASS:
                families[-1].append(other)
            else:
                families.append([other])
        return [max(family, key=lambda i: len(wanted[i].ids)) for family in families]

    def _alike(
        self, wanted: Sequence[Wanted], chosen: list[int], found: dict[int, Match]
    ) -> list[list[int]]:
        """Those with about as much to read, together."""
        unread = {i: len(wanted[i].ids) - found[i].tokens for i in chosen}
        groups: list[list[int]] = []
        waste = 0
        for i in sorted(chosen, key=lambda i: -unread[i]):
            if groups:
                waste += unread[groups[-1][0]] - unread[i]
            if not groups or waste > PASS:
                groups.append([])
                waste = 0
            groups[-1].append(i)
        return groups

    def _pass(self, wanted: Sequence[Wanted], members: list[int], found: dict[int, Match]) -> Pass:
        ids = [wanted[i].ids for i in members]
        at_hand = [found[i] if found else Match(0, ()) for i in members]
        columns = max(len(s) - match.tokens for s, match in zip(ids, at_hand, strict=True))
        new, mask = self._forwarder.rows(ids, columns)
        past = max(map(len, ids)) - columns
        tokens = [max(0, len(s) - columns) for s in ids]
        if past:
            cache = joined([match.runs for match in at_hand], tokens, past)
        else:
            cache = DynamicCache() if self._cuttable else DynamicCache(config=self._config)
        keep = max(wanted[i].logits for i in members)
        logits = self._forwarder.forward(new, mask, cache, keep=keep, reused=sum(tokens))
        return Pass(members, cache, mask, logits)


class _Cut:
    """The keys and values of one row of a cache, which ends in `tokens` tokens."""

    def __init__(self, cache: Any, row: int, tokens: int) -> None:
        self._cache = cache
        self._row = row
        self._tokens = tokens

    def view(self) -> Layers:
        return [
            (layer.keys[self._row, :, -self._tokens :], layer.values[self._row, :, -self._tokens :])
            for layer in self._cache.layers
        ]

    def __call__(self, start: int, stop: int) -> Layers:
        return [(k[:, start:stop].clone(), v[:, start:stop].clone()) for k, v in self.view()]


def joined(rows: Sequence[Iterable[Layers]], tokens: Sequence[int], width: int) -> Any:
    """A cache with the first `tokens` of each row's runs, padded on the left to `width`."""
    cache = DynamicCache()
    runs = [list(row) for row in rows]
    sample = next(row[0] for row in runs if row)
    for layer, (keys, values) in enumerate(sample):
        sides = []
        for side, like in enumerate((keys, values)):
            full = like.new_zeros(len(runs), like.shape[0], width, like.shape[2])
            for row, own in enumerate(runs):
                column = width - tokens[row]
                for run in own:
                    part = run[layer][side][:, : width - column]
                    full[row, :, column : column + part.shape[1]] = part
                    column += part.shape[1]
            sides.append(full)
        cache.update(sides[0], sides[1], layer)
    return cache
