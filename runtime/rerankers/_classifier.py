"""A loaded cross-encoder: pairs of texts in, one logit each out."""

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from hopscope.runtime.errors import ReaderError, UsageError, first_line
from hopscope.runtime.models import classifier
from hopscope.runtime.models.checkpoint import Checkpoint
from hopscope.runtime.models.classifier import Inputs
from hopscope.runtime.models.positions import longest
from hopscope.runtime.stages import Candidates, Reranking
from hopscope.runtime.types import Hit, Passage


class Pair(NamedTuple):
    """The model's input for a query and a passage."""

    inputs: Inputs
    cut: bool
    """Whether the end of the passage was cut off."""


class CrossEncoder:
    """Threads may share it; one computes at a time."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str,
        max_length: int,
        title: bool,
        max_batch_tokens: int,
    ) -> None:
        self.name = f"cross_encoder:{name}"
        self._model = model
        self._tokenizer = tokenizer
        self._max_length = min(max_length, longest(model.config, tokenizer))
        self._title = title
        self._max_batch_tokens = max_batch_tokens
        self._lock = threading.Lock()

    def rerank(self, asked: Sequence[Candidates]) -> list[Reranking]:
        """See the protocol. Pairs of all queries are computed together, in batches of similar
        length, and equal pairs once.

        Raises:
            ReaderError: the model failed.
        """
        with self._lock:
            try:
                pairs = [[self._encode(each.query, hit) for hit in each.hits] for each in asked]
                flat = [pair.inputs for row in pairs for pair in row]
                logits = classifier.logits(
                    self._model, self._tokenizer, flat, self._max_batch_tokens
                )
            except (RuntimeError, ValueError, IndexError) as error:
                raise ReaderError(f"{self.name}: {first_line(error)}") from error
        results = []
        scores = (row.item() for row in logits)
        for candidates, row in zip(asked, pairs, strict=True):
            hits = (hit.model_copy(update={"score": next(scores)}) for hit in candidates.hits)
            ranked = tuple(sorted(hits, key=lambda hit: -hit.score))
            results.append(Reranking(ranked, cut=sum(pair.cut for pair in row)))
        return results

    def _encode(self, query: str, hit: Hit) -> Pair:
        text = _passage_text(hit.passage, title=self._title)
        whole = self._tokenizer(query, text, verbose=False)
        if len(whole.input_ids) <= self._max_length:
            return Pair(Inputs.of(whole), cut=False)
        alone = {"add_special_tokens": False, "return_offsets_mapping": True, "verbose": False}
        ends = [end for _, end in self._tokenizer(query, **alone).offset_mapping]
        room = self._max_length - self._tokenizer.num_special_tokens_to_add(pair=True)
        if len(ends) > (most := room * 3 // 4):
            query = query[: ends[most - 1]]
        inputs = self._tokenizer(query, text, truncation="only_second", max_length=self._max_length)
        return Pair(Inputs.of(inputs), cut=True)


def load(
    checkpoint: Checkpoint, *, device: str, max_length: int, title: bool, max_batch_tokens: int
) -> CrossEncoder:
    """Load a checkpoint in single precision.

    Raises:
        UsageError: transformers cannot load it, or it does not give one score.
    """
    config = classifier.configuration(checkpoint)
    if config.num_labels != 1:
        raise UsageError(
            f"{checkpoint.name} has {config.num_labels} outputs; a cross-encoder that "
            "reranks has one, the score"
        )
    model, tokenizer = classifier.load(checkpoint, config, device=device, kind="reranker")
    if max_length < 16:
        raise UsageError(f"max_length={max_length}: a pair of texts needs 16 tokens or more")
    return CrossEncoder(
        model,
        tokenizer,
        name=checkpoint.name,
        max_length=max_length,
        title=title,
        max_batch_tokens=max_batch_tokens,
    )


def _passage_text(passage: Passage, *, title: bool) -> str:
    """The passage as the model reads it."""
    return f"{passage.title} {passage.text}" if title and passage.title else passage.text
