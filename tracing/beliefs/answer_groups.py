"""The answers behind a value, in the short form that is stored: sampled answers grouped by meaning,
and tokens with the reader's uncertainty.

Grouping classifies no pair that the value did not need. Answers that agree with a gold share a
group; so do others that are equal after SQuAD's normalisation, unless the meter has clusters of its
own. The grouping is ours.
"""

from collections.abc import Hashable, Iterable, Sequence

from hopscope.runtime.texts.answers import normalise
from hopscope.runtime.types import AnswerGroup, AnswerToken, MeasuredAnswers

MOST_GROUPS = 8
"""Groups kept, the heaviest; the mass of the others is 1 minus theirs."""
MOST_TOKENS = 256
LONGEST = 200
"""Characters of an answer; a longer one is cut with a mark."""
DIGITS = 4
"""Of masses, entropies and log-probabilities, after the point."""


def grouped(
    texts: Sequence[str],
    weights: Iterable[float],
    right: Sequence[bool],
    clusters: Sequence[Hashable] | None = None,
) -> MeasuredAnswers:
    """The sampled answers as groups.

    Args:
        weights: of the answers; those of the likelihood itself may sum to more than 1 and are then
            scaled.
        right: whether each agrees with a gold.
        clusters: the meaning of each; by default its normalised text.
    """
    plain = [text.strip() for text in texts]
    meanings: Sequence[Hashable] = [normalise(text) for text in plain]
    if clusters is not None:
        meanings = clusters
    found: dict[Hashable, list[tuple[float, str]]] = {}
    correct = {meaning for meaning, agrees in zip(meanings, right, strict=True) if agrees}
    for text, weight, meaning in zip(plain, weights, meanings, strict=True):
        key = (True, None) if meaning in correct else (False, meaning)
        found.setdefault(key, []).append((float(weight), text))
    scale = max(1.0, sum(weight for group in found.values() for weight, _ in group))
    groups = [
        AnswerGroup(
            answer=_cut(_heaviest(group)),
            mass=round(sum(weight for weight, _ in group) / scale, DIGITS),
            right=key == (True, None),
        )
        for key, group in found.items()
    ]
    groups.sort(key=lambda group: (-group.mass, group.answer))
    return MeasuredAnswers(groups=tuple(groups[:MOST_GROUPS]))


def told(
    tokens: Sequence[str],
    values: Sequence[float],
    without: Sequence[float] | None,
    keys: Iterable[int],
) -> MeasuredAnswers:
    """An answer as tokens, each with its value with and without documents."""
    key, closed = frozenset(keys), [None] * len(tokens) if without is None else without
    every = enumerate(zip(tokens, values, closed, strict=True))
    return MeasuredAnswers(
        tokens=tuple(
            AnswerToken(
                text=_cut(text),
                value=round(value, DIGITS),
                without=None if other is None else round(other, DIGITS),
                key=place in key,
            )
            for place, (text, value, other) in every
            if place < MOST_TOKENS
        )
    )


def _heaviest(group: Iterable[tuple[float, str]]) -> str:
    """The text with the largest total weight; of equal ones the first in the alphabet."""
    totals: dict[str, float] = {}
    for weight, text in group:
        totals[text] = totals.get(text, 0.0) + weight
    return min(totals, key=lambda text: (-totals[text], text))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
