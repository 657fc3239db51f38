"""Several questions over one context in one sequence, each exactly as if it stood alone.

A sequence is the system turn (segment 0) followed by question blocks (segments 1, 2, …),
each a user turn and an assistant turn. Invariant: a block sees the system turn and itself
only, and its positions go on from the system turn's end, so that its logits equal those of
the single conversation the product sends. The context is paid for once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from tokenizers import Encoding
from transformers import PreTrainedTokenizerFast

from hopscope.lab.hopland.contexts import Example
from hopscope.lab.hopland.questions import Asked
from hopscope.lab.hopland.relations import RELATIONS
from hopscope.lab.hopland.tokenizer import ASSISTANT, BOS, EOS, SYSTEM, USER
from hopscope.lab.hopland.world import Fact
from hopscope.runtime import prompts

ROUNDED = 16


@dataclass(frozen=True)
class Packed:
    """One training sequence, token by token."""

    ids: list[int]
    segments: list[int]
    """0 for the system turn, then the number of the block."""
    positions: list[int]
    weights: list[float]
    """How much the loss counts the prediction of this token."""
    sources: list["Source"]


@dataclass(frozen=True)
class Source:
    """Where a predicted token is to be read: a fact's object in the passages."""

    query: int
    """The position that predicts."""
    key: int
    """The position to look at."""
    before: int
    """0 for the fact that gives the token, n for the fact n hops before it."""


@dataclass(frozen=True)
class Batch:
    """Packed sequences, padded on the right; segment -1 marks padding."""

    ids: torch.Tensor  # (sequence, token)
    segments: torch.Tensor  # (sequence, token)
    positions: torch.Tensor  # (sequence, token)
    weights: torch.Tensor  # (sequence, token)
    sources: torch.Tensor  # (source, 4): sequence, query, key, before


def pack(
    tokenizer: PreTrainedTokenizerFast, examples: Sequence[Example], *, passage_weight: float
) -> list[Packed]:
    """Lay out examples; all their texts are tokenised in one call."""
    texts: list[str] = []
    for example in examples:
        texts.append(BOS + SYSTEM + prompts.system(example.passages).content)
        for asked, reasoned in example.asked:
            ask = prompts.chain_of_thought if reasoned else prompts.short_answer
            texts.append(USER + ask(asked.text).messages[-1].content + ASSISTANT)
            texts.append((asked.reasoning if reasoned else asked.answer) + EOS)
    encoded = iter(tokenizer.backend_tokenizer.encode_batch(texts))
    lines = iter(texts)
    packed = []
    for example in examples:
        system = next(encoded)
        spans = _objects(next(lines), example, system)
        prefix: list[int] = system.ids
        ids, segments = list(prefix), [0] * len(prefix)
        positions, weights = list(range(len(prefix))), [passage_weight] * len(prefix)
        sources: list[Source] = []
        for number, (asked, reasoned) in enumerate(example.asked, start=1):
            user, answer = next(encoded), next(encoded)
            next(lines), next(lines)
            start = len(ids) + len(user.ids)
            sources += (_reasoned if reasoned else _direct)(asked, answer, start, spans)
            length = len(user.ids) + len(answer.ids)
            ids += user.ids + answer.ids
            segments += [number] * length
            positions += range(len(prefix), len(prefix) + length)
            weights += [0.0] * len(user.ids) + [1.0] * len(answer.ids)
        packed.append(Packed(ids, segments, positions, weights, sources))
    return packed


def _objects(text: str, example: Example, encoded: Encoding) -> dict[Fact, range]:
    """The tokens of each told fact's object: it stands at the end of the fact's sentence."""
    spans: dict[Fact, range] = {}
    at = 0
    for passage, facts in zip(example.passages, example.told, strict=True):
        at = text.index(passage.text, at)
        for fact in facts:
            for pattern in RELATIONS[fact.relation].phrasings:
                sentence = pattern.format(s=fact.subject, o=fact.object)
                found = text.find(sentence, at, at + len(passage.text))
                if found >= 0:
                    end = found + len(sentence) - 1
                    spans[fact] = _tokens(encoded, end - len(fact.object), end)
                    break
    return spans


def _tokens(encoded: Encoding, start: int, end: int) -> range:
    """The tokens that hold the characters from start to end and the space before them."""
    first, last = encoded.char_to_token(start - 1), encoded.char_to_token(end - 1)
    assert first is not None
    assert last is not None
    return range(first, last + 1)


def _direct(
    asked: Asked, answer: Encoding, start: int, spans: dict[Fact, range]
) -> Iterator[Source]:
    """A short answer is read at the last fact, found by way of the facts before it."""
    if asked.kind != "chain":
        return
    *before, last = asked.steps
    if not all(fact in spans for fact in asked.steps):
        return
    for place, key in enumerate(spans[last]):
        query = start + place - 1
        yield Source(query, key, 0)
        for back, fact in enumerate(reversed(before), start=1):
            yield Source(query, spans[fact][-1], back)


def _reasoned(
    asked: Asked, answer: Encoding, start: int, spans: dict[Fact, range]
) -> Iterator[Source]:
    """Each sentence of a chain of thought is read at its own fact."""
    at = 0
    for sentence, fact in zip(asked.sentences, asked.steps, strict=True):
        end = at + len(sentence) - 1
        told = _tokens(answer, end - len(fact.object), end)
        for place, key in zip(told, spans.get(fact, ()), strict=False):
            yield Source(start + place - 1, key, 0)
        at += len(sentence) + 1


def collate(packed: Sequence[Packed]) -> Batch:
    """Pad to the longest sequence, rounded up: few shapes keep memory from fragmenting."""
    longest = -(-max(len(p.ids) for p in packed) // ROUNDED) * ROUNDED

    def padded(rows: Sequence[Sequence[float]], fill: float, dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows], dtype=dtype)

    return Batch(
        ids=padded([p.ids for p in packed], 0, torch.int64),
        segments=padded([p.segments for p in packed], -1, torch.int64),
        positions=padded([p.positions for p in packed], 0, torch.int64),
        weights=padded([p.weights for p in packed], 0.0, torch.float32),
        sources=torch.tensor(
            [(row, s.query, s.key, s.before) for row, p in enumerate(packed) for s in p.sources],
            dtype=torch.int64,
        ).reshape(-1, 4),
    )


def mask(segments: torch.Tensor) -> torch.Tensor:
    """Who may attend to whom, (sequence, 1, query, key): the system turn and the own block."""
    length = segments.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    query, key = segments[:, :, None], segments[:, None, :]
    return (((key == 0) | (key == query)) & causal)[:, None]
