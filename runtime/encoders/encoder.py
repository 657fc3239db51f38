"""Encodes texts as vectors: in batches of similar length, equal texts once, with a count of texts
that are too long."""

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hopscope.runtime.encoders._loading import LoadedEncoder
from hopscope.runtime.encoders.naming import EncoderSpec
from hopscope.runtime.errors import RetrieverError, UsageError, first_line
from hopscope.runtime.models.batches import in_batches
from hopscope.runtime.models.devices import Device
from hopscope.runtime.models.loading import quiet
from hopscope.runtime.models.positions import longest
from hopscope.runtime.types import Passage

BATCH_TOKENS = 16_384
"""Texts times tokens computed together on a GPU."""
BATCH_TOKENS_CPU = 2048
"""Texts times tokens computed together on a processor, limited by its caches: all-MiniLM-L6-v2
takes 50 ms for a passage of 190 tokens, and 70 ms with 16,384."""
Vectors = NDArray[np.float32]
Tokens = tuple[int, ...]


class Encoded(NamedTuple):
    """Vectors of some texts."""

    vectors: Vectors  # (text, unit)
    over: tuple[bool, ...]  # (text)
    """Whether a text is longer than the encoder's input, so that its end was cut off."""

    @property
    def cut(self) -> int:
        """Number of texts whose end was cut off."""
        return sum(self.over)


class Encoder:
    """Queries and passages as vectors. Threads may share it; one computes at a time."""

    def __init__(self, spec: EncoderSpec, *, device: Device, batch_tokens: int | None) -> None:
        self.spec = spec
        self._batch_tokens = batch_tokens
        self._lock = threading.Lock()
        self._device = device
        self._sides: dict[bool, LoadedEncoder] = {}

    @property
    def name(self) -> str:
        """Rules and models."""
        return self.spec.name

    def queries(self, texts: Sequence[str]) -> Encoded:
        """Vectors of queries.

        Raises:
            RetrieverError: the model failed.
        """
        rules = self.spec.convention
        written: list[tuple[str, str | None]] = [(rules.write_query(text), None) for text in texts]
        return self._encode(written, limit=rules.query_tokens, query=True)

    def passages(self, passages: Sequence[Passage]) -> Encoded:
        """Vectors of passages.

        Raises:
            RetrieverError: as `queries`.
        """
        rules = self.spec.convention
        written = [rules.write_passage(passage) for passage in passages]
        return self._encode(written, limit=rules.passage_tokens, query=False)

    def too_long(self, passages: Sequence[Passage]) -> int:
        """Number of passages whose end would be cut off, without encoding them."""
        rules = self.spec.convention
        written = [rules.write_passage(passage) for passage in passages]
        with self._lock:
            return sum(_tokens(self._side(query=False), written, rules.passage_tokens)[1])

    def _side(self, *, query: bool) -> LoadedEncoder:
        same = self.spec.queries == self.spec.passages
        key = query and not same
        if key not in self._sides:
            model = self.spec.queries if key else self.spec.passages
            rules = self.spec.convention
            self._sides[key] = LoadedEncoder(model, rules, device=self._device, query=key)
        return self._sides[key]

    def _encode(
        self, texts: Sequence[tuple[str, str | None]], *, limit: int, query: bool
    ) -> Encoded:
        with self._lock:
            side = self._side(query=query)
            rows, over = _tokens(side, texts, limit)
            usual = BATCH_TOKENS_CPU if side.device == "cpu" else BATCH_TOKENS
            vectors: list[Vectors] = in_batches(
                rows,
                lambda batch: self._compute(side, batch),
                width=len,
                area=self._batch_tokens or usual,
            )
        return Encoded(np.array(vectors, dtype=np.float32), over)

    def _compute(self, side: LoadedEncoder, rows: Sequence[Tokens]) -> Vectors:
        longest = max(map(len, rows))
        pad = side.tokenizer.pad_token_id
        ids = torch.tensor([[*row] + [pad] * (longest - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        with torch.inference_mode():
            try:
                pooled = side.network(ids.to(side.device), mask.to(side.device)).float()
            except (RuntimeError, ValueError, IndexError) as error:
                raise RetrieverError(f"{self.name}: {first_line(error)}") from error
            if self.spec.convention.unit:
                pooled = torch.nn.functional.normalize(pooled, dim=-1)
        vectors: Vectors = pooled.cpu().numpy()
        return vectors


def load(spec: EncoderSpec, *, device: Device = "auto", batch_tokens: int | None = None) -> Encoder:
    """An encoder; its models are loaded at the first use.

    Args:
        spec: the models and their rules, as `naming.parse` reads them.
        device: `auto` takes CUDA, then Apple's GPU, then the processor.
        batch_tokens: texts times tokens computed together, which limits the memory; the default
            depends on the device.

    Raises:
        UsageError: `batch_tokens` is not positive.
    """
    if batch_tokens is not None and batch_tokens < 1:
        raise UsageError(f"batch_tokens={batch_tokens}: at least 1 is needed")
    return Encoder(spec, device=device, batch_tokens=batch_tokens)


def _tokens(
    side: LoadedEncoder, texts: Sequence[tuple[str, str | None]], limit: int
) -> tuple[list[Tokens], tuple[bool, ...]]:
    """Token numbers of each text within the limit, and which texts were over it."""
    most = min(limit, longest(side.config, side.tokenizer, otherwise=limit))
    rows: list[Tokens] = []
    over: list[bool] = []
    with quiet():
        for first, second in texts:
            row = side.tokenizer(first, second)["input_ids"]
            over.append(len(row) > most)
            if over[-1]:
                row = side.tokenizer(first, second, truncation=True, max_length=most)["input_ids"]
            rows.append(tuple(row))
    return rows, tuple(over)
