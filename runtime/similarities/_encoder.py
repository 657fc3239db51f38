"""A loaded encoder that gives unit vectors of a text's tokens; and BERTScore over it."""

import threading
from collections import Counter
from collections.abc import Sequence
from math import log
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers import AutoModel

from hopscope.runtime.distinct import each_once
from hopscope.runtime.errors import ReaderError, UsageError, first_line
from hopscope.runtime.models.checkpoint import Checkpoint
from hopscope.runtime.models.devices import choose_device
from hopscope.runtime.models.loading import configuration, tokenizer_of, weights
from hopscope.runtime.models.positions import longest


class EncodedText(NamedTuple):
    """A text without its special tokens."""

    ids: tuple[int, ...]
    vectors: Tensor  # (token, unit), in single precision


class TokenEncoder:
    """Threads may share it; one computes at a time."""

    def __init__(self, model: Any, tokenizer: Any, *, name: str, layer: int) -> None:
        self.name = name
        self._model = model
        self._tokenizer = tokenizer
        self._layer = layer
        self._limit = longest(model.config, tokenizer)
        self._lock = threading.Lock()

    def encode(self, text: str) -> EncodedText:
        """Encode a text alone, so that padding has no effect; answers are few and short. A text
        longer than the model's context is cut at the end.

        Raises:
            ReaderError: the model failed.
        """
        tokens = self._tokenizer(
            text,
            truncation=True,
            max_length=self._limit,
            return_special_tokens_mask=True,
            return_tensors="pt",
        )
        kept = tokens.pop("special_tokens_mask")[0] == 0
        ids = tuple(tokens["input_ids"][0][kept].tolist())
        with self._lock, torch.inference_mode():
            try:
                tokens = tokens.to(self._model.device)
                states = self._model(**tokens, output_hidden_states=True).hidden_states
            except (RuntimeError, ValueError, IndexError) as error:
                raise ReaderError(f"{self.name}: {first_line(error)}") from error
        vectors = states[self._layer][0].float().cpu()[kept]
        return EncodedText(ids, torch.nn.functional.normalize(vectors, dim=-1))


class BERTScore:
    """Greedy matching by cosine, F1."""

    def __init__(self, encoder: TokenEncoder, *, idf: bool) -> None:
        self.name = f"bertscore:{encoder.name}" + (",idf" if idf else "")
        self._encoder = encoder
        self._idf = idf

    def compare(self, texts: Sequence[str]) -> list[list[float]]:
        """See the port; a text has similarity 1 with itself. Equal texts are encoded once, and each
        unordered pair is compared once.

        Raises:
            ReaderError: the model failed.
        """
        encoded = each_once([text.strip() and text for text in texts], self._encoded)
        weights = self._weights(encoded)
        # Texts of the same tokens are the same to an encoder.
        first = {each.ids: place for place, each in reversed(list(enumerate(encoded)))}
        places = [first[each.ids] for each in encoded]
        pairs = [(min(one, other), max(one, other)) for one in places for other in places]
        alike = each_once(
            pairs, lambda distinct: [self._f1(encoded, weights, *pair) for pair in distinct]
        )
        return [alike[start : start + len(texts)] for start in range(0, len(alike), len(texts))]

    def _encoded(self, texts: Sequence[str]) -> list[EncodedText]:
        absent = EncodedText((), torch.empty(0))
        return [self._encoder.encode(text) if text else absent for text in texts]

    def _weights(self, encoded: Sequence[EncodedText]) -> list[Tensor]:
        """The weights of each text's tokens, which sum to 1; by ln((n + 1) / (df + 1)) with idf."""
        frequency = Counter(id for text in encoded for id in set(text.ids))
        rows = []
        for text in encoded:
            row = torch.ones(len(text.ids))
            if self._idf:
                rarity = [log((len(encoded) + 1) / (frequency[id] + 1)) for id in text.ids]
                # If every token occurs in every text, all weights would be 0.
                row = torch.tensor(rarity) if any(rarity) else row
            rows.append(row / row.sum())
        return rows

    @staticmethod
    def _f1(
        encoded: Sequence[EncodedText], weights: Sequence[Tensor], one: int, other: int
    ) -> float:
        if not encoded[one].ids or not encoded[other].ids:
            return 0.0
        cosines = encoded[one].vectors @ encoded[other].vectors.T
        precision = float((cosines.max(dim=1).values * weights[one]).sum())
        recall = float((cosines.max(dim=0).values * weights[other]).sum())
        if precision <= 0 or recall <= 0:
            return 0.0
        return min(1.0, 2 * precision * recall / (precision + recall))


def load(checkpoint: Checkpoint, *, layer: int, device: str) -> TokenEncoder:
    """Load a checkpoint in single precision.

    Raises:
        UsageError: transformers cannot load it, or it has no such layer.
    """
    where = choose_device(device)
    place = checkpoint.folder, checkpoint.name
    config, tokenizer = configuration(*place), tokenizer_of(*place)
    model, _ = weights(AutoModel, *place, device=where, config=config)
    layers: int = config.num_hidden_layers
    if not -layers - 1 <= layer <= layers:
        raise UsageError(f"{checkpoint.name}: has no layer {layer}: choose one from 0 to {layers}")
    number = layer % (layers + 1)
    return TokenEncoder(model, tokenizer, name=f"{checkpoint.name},layer={number}", layer=number)
