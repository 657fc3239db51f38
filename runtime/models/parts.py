"""What a forward pass computes: parts, each of rows with a cache of their own."""

from typing import NamedTuple, Protocol

from torch import Tensor


class KeysAndValues(Protocol):
    """The cache of all layers."""

    @property
    def tokens(self) -> int:
        """Tokens that it holds, padding included."""
        ...

    def update(self, keys: Tensor, values: Tensor, layer: int, /) -> tuple[Tensor, Tensor]:
        """Append to a layer; returns all of its keys and values, (row, head, token,
        coordinate)."""
        ...


class Part(NamedTuple):
    """Rows that a pass continues by equally many tokens."""

    ids: Tensor
    """(row, position), the new tokens."""
    mask: Tensor | None
    """(row, position), 1 for a token in the cache or a new one, 0 for padding; or which of these
    each new token sees, (row, new token, position). None: each sees itself and all before it."""
    cache: KeysAndValues
    """Receives the keys and values of the new tokens."""
    keep: int = 1
    """Number of last positions whose logits are computed."""
