"""A cache of keys and values by prefix.

A radix tree: each node holds a run of tokens with their keys and values, and a common prefix is
stored once. Invariant: the keys and values of a token depend only on it and the tokens before it,
so the path from the root to a node serves every sequence with that prefix.

Source: RadixAttention (Zheng, Yin, Xie et al. 2024, arXiv 2312.07104, section 3).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from torch import Tensor

from hopscope.runtime.generation.caches.moving import Layers

Tokens = tuple[int, ...]


NEARLY_ALL = 1.125
"""The memory that a view may hold, in multiples of its own size."""


class Match(NamedTuple):
    """The cached part of a sequence."""

    tokens: int
    runs: tuple[Layers, ...]
    """Consecutive runs from the first token on; the last may extend beyond `tokens`."""


class _Node:
    """A run of tokens that follows those of its ancestors."""

    def __init__(self, ids: Tokens, layers: Layers, parent: "_Node | None") -> None:
        self.ids = ids
        self.layers = layers
        self.parent = parent
        self.children: dict[int, _Node] = {}
        self.used = 0

    @property
    def size(self) -> int:
        return sum(keys.nbytes + values.nbytes for keys, values in self.layers)


class PrefixTree:
    """The most recently used prefixes, at most `limit` bytes. Not shared between threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        """Bytes held."""
        self._root = _Node((), [], None)
        self._clock = 0

    def match(self, ids: Tokens) -> Match:
        """The longest cached prefix."""
        self._clock += 1
        tokens, runs = 0, []
        for node, shared in self._path(ids):
            node.used = self._clock
            runs.append(node.layers)
            tokens += shared
        return Match(tokens, tuple(runs))

    def keep(self, ids: Tokens, cut: Callable[[int, int], Layers]) -> None:
        """Cache a sequence. `cut` gives the keys and values from one token up to another, which
        nobody writes to any more. The least recently used prefixes make room."""
        if not self.limit:
            return
        self._clock += 1
        tokens, last = 0, self._root
        for node, shared in list(self._path(ids)):
            tokens, last = tokens + shared, node
            if shared < len(node.ids):
                last = self._split(node, shared)
            last.used = self._clock
        if tokens < len(ids):
            given = cut(tokens, len(ids))
            leaf = _Node(ids[tokens:], [(_held(k), _held(v)) for k, v in given], last)
            leaf.used = self._clock
            last.children[ids[tokens]] = leaf
            self.size += leaf.size
            self._shrink()

    def clear(self) -> None:
        """Empty the cache."""
        self._root = _Node((), [], None)
        self.size = 0

    def _path(self, ids: Tokens) -> Iterator[tuple[_Node, int]]:
        """The nodes on the path of a sequence, each with the number of its matching tokens."""
        node, tokens = self._root, 0
        while tokens < len(ids) and (child := node.children.get(ids[tokens])) is not None:
            shared = common(child.ids, ids[tokens : tokens + len(child.ids)])
            yield child, shared
            if shared < len(child.ids):
                return
            node, tokens = child, tokens + shared

    def _split(self, node: _Node, at: int) -> _Node:
        """Split a node in two; returns the first. Earlier matches stay valid."""
        assert node.parent is not None
        first = _Node(node.ids[:at], _cut(node.layers, 0, at), node.parent)
        node.parent.children[node.ids[0]] = first
        node.layers = _cut(node.layers, at, len(node.ids))
        node.ids, node.parent = node.ids[at:], first
        first.children[node.ids[0]] = node
        return first

    def _shrink(self) -> None:
        while self.size > self.limit:
            oldest = min(self._leaves(self._root), key=lambda leaf: leaf.used)
            assert oldest.parent is not None
            del oldest.parent.children[oldest.ids[0]]
            self.size -= oldest.size

    def _leaves(self, node: _Node) -> Iterator[_Node]:
        stack = list(node.children.values())
        while stack:
            child = stack.pop()
            if not child.children:
                yield child
            stack.extend(child.children.values())


def _cut(layers: Layers, start: int, stop: int) -> Layers:
    """A part. A view would hold the whole tensor in memory, so most parts are copies."""
    return [(_held(k[:, start:stop]), _held(v[:, start:stop])) for k, v in layers]


def _held(part: Tensor) -> Tensor:
    """The part, as a view if it is nearly all of its memory, else as a copy."""
    return part if part.untyped_storage().nbytes() <= NEARLY_ALL * part.nbytes else part.clone()


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of tokens in the common prefix of two sequences."""
    for place, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return place
    return min(len(one), len(other))
