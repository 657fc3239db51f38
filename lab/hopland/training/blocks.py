"""Several questions over one context in one sequence, each exactly as if it stood alone.

A sequence is the system turn (segment 0) followed by question blocks (segments 1, 2, …),
each a user turn and an assistant turn. Invariant: a block sees the system turn and itself
only, and its positions continue from the system turn's end, so that its logits equal those of
the single conversation of the product. The context is computed once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from tokenizers import Encoding
from transformers import PreTrainedTokenizerFast

from hopscope.lab.hopland.contexts import Example
from hopscope.lab.hopland.relations import RELATIONS
from hopscope.lab.hopland.training.tokenizer import ASSISTANT, BOS, EOS, USER
from hopscope.lab.hopland.turns import Cue, Turn
from hopscope.lab.hopland.world import Fact
from hopscope.runtime.judgments import item_prompts as item
from hopscope.runtime.types import Message

ROUNDED = 16
FAINT = 0.25
"""The loss weight of a token in the tail of a list, relative to the others of its turn."""
MARKED = 2
"""A fact's object learns its passage's number in the layer this far before the last."""


@dataclass(frozen=True)
class Packed:
    """One training sequence, token by token."""

    ids: list[int]
    segments: list[int]
    """0 for the opening, then the number of the block."""
    positions: list[int]
    weights: list[float]
    """The loss weight of the prediction of this token."""
    sources: list["Source"]


@dataclass(frozen=True)
class Source:
    """The source of a predicted token: a fact's object in the passages."""

    query: int
    """The position that predicts."""
    key: int
    """The position to look at."""
    before: int
    """0 for the fact that gives the token, n for the fact n hops before it."""
    head: int = 0
    """0 of the heads reads facts, 1 tells a fact which passage it stands in."""


@dataclass(frozen=True)
class Batch:
    """Packed sequences, padded on the right; segment -1 marks padding."""

    ids: torch.Tensor  # (sequence, token)
    segments: torch.Tensor  # (sequence, token)
    positions: torch.Tensor  # (sequence, token)
    weights: torch.Tensor  # (sequence, token)
    sources: torch.Tensor  # (source, 5): sequence, query, key, before, head
    shown: torch.Tensor  # (sequence, place): whether the opening is that long
    own: torch.Tensor  # (sequence, line, place): tokens of blocks side by side, or -1
    home: torch.Tensor  # (sequence, token): its place in the opening, or behind it in the lines


def pack(
    tokenizer: PreTrainedTokenizerFast, examples: Sequence[Example], *, passage_weight: float
) -> list[Packed]:
    """Lay out examples; all their texts are tokenised in one call."""
    texts: list[str] = []
    for example in examples:
        texts.append(BOS + "".join(map(_spoken, example.opening)))
        for turn in example.turns:
            texts.append(USER + turn.user + ASSISTANT)
            texts.append(turn.begun + turn.said + EOS)
    encoded = iter(tokenizer.backend_tokenizer.encode_batch(texts))
    lines = iter(texts)
    packed = []
    for example in examples:
        opening = next(encoded)
        shown = _Shown(next(lines), example, opening)
        prefix: list[int] = opening.ids
        ids, segments = list(prefix), [0] * len(prefix)
        positions, weights = list(range(len(prefix))), [passage_weight] * len(prefix)
        sources = list(shown.marks)
        for number, turn in enumerate(example.turns, start=1):
            user, written = next(encoded), next(encoded)
            next(lines), next(lines)
            start = len(ids) + len(user.ids)
            for cue in turn.cues:
                sources += shown.sources(cue, written, start)
            length = len(user.ids) + len(written.ids)
            ids += user.ids + written.ids
            segments += [number] * length
            positions += range(len(prefix), len(prefix) + length)
            weights += [0.0] * len(user.ids) + _weights(turn, written)
        packed.append(Packed(ids, segments, positions, weights, sources))
    return packed


def _spoken(message: Message) -> str:
    """A message as the chat template writes it."""
    end = EOS if message.role == "assistant" else ""
    return f"<|{message.role}|>{message.content}{end}"


def _weights(turn: Turn, written: Encoding) -> list[float]:
    """The loss weights of a turn: the begun part is given, not learned; a list's tail has a low
    weight."""
    first = written.char_to_token(len(turn.begun)) or 0
    count = len(written.ids)
    faint = count if turn.faint is None else written.char_to_token(len(turn.begun) + turn.faint)
    assert faint is not None
    full = [turn.weight] * (faint - first)
    return [0.0] * first + full + [turn.weight * FAINT] * (count - faint)


class _Shown:
    """Positions of the facts in the opening of an example."""

    def __init__(self, text: str, example: Example, encoded: Encoding) -> None:
        self.facts = _objects(text, example, encoded)
        self.marks: list[Source] = []
        for number, (passage, facts) in enumerate(
            zip(example.passages, example.told, strict=True), start=1
        ):
            [shown] = item.shortened([passage])
            titled = f"({shown.title}) " if shown.title else ""
            headed = f"[{number}] {titled}{shown.text}"
            at = text.find(headed)
            if at >= 0:
                key = _tokens(encoded, at + 1, at + 1 + len(str(number)))[-1]
                told = [self.facts[fact][0] for fact in facts if fact in self.facts]
                self.marks += [Source(place, key, MARKED, 1) for place in told if place > key]

    def sources(self, cue: Cue, written: Encoding, start: int) -> Iterator[Source]:
        """The source of each token of a part of the target.

        The source of a passage's number is its fact, which also marks the passage.
        """
        if not cue.facts or any(fact not in self.facts for fact in cue.facts):
            return
        keys: Sequence[int] = self.facts[cue.facts[-1]]
        if cue.number:
            places = _tokens(written, cue.start, cue.end)
            keys = [keys[0]] * len(places)
        else:
            places = _tokens(written, max(0, cue.start - 1), cue.end)  # with the space before
        for place, key in zip(places, keys, strict=False):
            yield Source(start + place - 1, key, 0)
            for back, fact in enumerate(reversed(cue.facts[:-1]), start=1):
                yield Source(start + place - 1, self.facts[fact][-1], back)


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
                    spans[fact] = _tokens(encoded, end - len(fact.object) - 1, end)
                    break
    return spans


def _tokens(encoded: Encoding, start: int, end: int) -> range:
    """The tokens that hold the characters from start to end."""
    first, last = encoded.char_to_token(start), encoded.char_to_token(end - 1)
    assert first is not None
    assert last is not None
    return range(first, last + 1)


def collate(packed: Sequence[Packed]) -> Batch:
    """Pad to the longest sequence, rounded up: few shapes keep memory from fragmenting."""
    longest = -(-max(len(p.ids) for p in packed) // ROUNDED) * ROUNDED

    def padded(rows: Sequence[Sequence[float]], fill: float, dtype: torch.dtype) -> torch.Tensor:
        return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in rows], dtype=dtype)

    openings = [p.segments.count(0) for p in packed]
    opening = -(-max(openings) // ROUNDED) * ROUNDED
    parts = [_parts(p.segments) for p in packed]
    width = max((len(part) for row in parts for part in row), default=0)
    width = -(-width // ROUNDED) * ROUNDED
    lines = [_lines(row, width) for row in parts]
    own = torch.full((len(packed), max(map(len, lines)), width), -1)
    home = torch.zeros(len(packed), longest, dtype=torch.int64)
    for row, (before, filled) in enumerate(zip(openings, lines, strict=True)):
        home[row, :before] = torch.arange(before)
        for number, line in enumerate(filled):
            own[row, number, : len(line)] = torch.tensor(line)
            home[row, line] = torch.arange(len(line)) + (opening + number * width)
    return Batch(
        ids=padded([p.ids for p in packed], 0, torch.int64),
        segments=padded([p.segments for p in packed], -1, torch.int64),
        positions=padded([p.positions for p in packed], 0, torch.int64),
        weights=padded([p.weights for p in packed], 0.0, torch.float32),
        sources=torch.tensor(
            [
                (row, s.query, s.key, s.before, s.head)
                for row, p in enumerate(packed)
                for s in p.sources
            ],
            dtype=torch.int64,
        ).reshape(-1, 5),
        shown=torch.arange(opening) < torch.tensor(openings)[:, None],
        own=own,
        home=home,
    )


def _parts(segments: Sequence[int]) -> list[list[int]]:
    """The places of each block's tokens."""
    places: dict[int, list[int]] = {}
    for at, number in enumerate(segments):
        if number:
            places.setdefault(number, []).append(at)
    return list(places.values())


def _lines(parts: Sequence[list[int]], width: int) -> list[list[int]]:
    """Parts laid side by side in lines of a width, each where it fits first."""
    lines: list[list[int]] = []
    for part in sorted(parts, key=len, reverse=True):
        fits = (line for line in lines if len(line) + len(part) <= width)
        if (line := next(fits, None)) is None:
            lines.append(list(part))
        else:
            line += part
    return lines


def seen(segments: torch.Tensor, row: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Which keys each query may attend to, (query, key): the opening and the own block."""
    keys = segments[row]
    causal = torch.arange(segments.shape[1]) <= query[:, None]
    return ((keys == 0) | (keys == segments[row, query][:, None])) & causal
