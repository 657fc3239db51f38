"""Generated passages, queries and vectors of any number, from a seed.

Words are drawn by Zipf and Mandelbrot's law, p ~ 1 / (rank + 2.7), from 200,000 invented ones, so
that posting lists have the lengths of real text: a few contain most passages, most contain a few.
Of a query's eight words four are drawn likewise and four evenly from the first 20,000. Vectors have
length 1 and lie around 10,000 random centres, each coordinate off by a normal deviate of half the
size of the centre's; queries' vectors are drawn likewise.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hopscope.runtime.types import Passage

WORDS, RARER, SHIFT = 200_000, 20_000, 2.7
SHORTEST, LONGEST = 30, 90
"""Words of a passage; its title has two more."""
BLOCK = 1000
CENTRES = 10_000
DIMENSION = 384
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
Vectors = NDArray[np.float32]


def words() -> list[str]:
    """All words, the commonest first."""
    base = len(_SYLLABLES)
    return [
        "".join(_SYLLABLES[number // base**place % base] for place in range(3)) + "nm"[number % 2]
        for number in range(WORDS)
    ]


def passages(count: int, *, seed: int = 0) -> Iterator[Passage]:
    """`count` passages with the ids p0, p1, ..."""
    known, chances = np.array(words(), dtype=object), _chances()
    for start in range(0, count, BLOCK):
        draw = np.random.default_rng((seed, 1, start))
        lengths = draw.integers(SHORTEST, LONGEST + 1, BLOCK) + 2
        drawn = known[np.searchsorted(chances, draw.random(int(lengths.sum())))]
        ends = np.cumsum(lengths)
        for at in range(min(BLOCK, count - start)):
            mine = drawn[ends[at] - lengths[at] : ends[at]]
            title, text = " ".join(mine[:2]).title(), " ".join(mine[2:]).capitalize()
            yield Passage(id=f"p{start + at}", title=title, text=f"{text}.")


def queries(count: int, *, seed: int = 0) -> list[str]:
    """Questions of eight words."""
    known, chances = words(), _chances()
    draw = np.random.default_rng((seed, 2))
    common = np.searchsorted(chances, draw.random((count, 4)))
    rarer = draw.integers(0, RARER, (count, 4))
    rows = np.concatenate([common, rarer], axis=1)
    return [" ".join(known[number] for number in row) + "?" for row in rows]


def vectors(count: int, *, seed: int = 0) -> Iterator[Vectors]:
    """`count` vectors, in blocks of at most 1,000."""
    for start in range(0, count, BLOCK):
        yield _around(min(BLOCK, count - start), seed, (seed, 3, start))


def query_vectors(count: int, *, seed: int = 0) -> Vectors:
    """Vectors from about the same places."""
    return _around(count, seed, (seed, 4))


def _around(count: int, seed: int, key: tuple[int, ...]) -> Vectors:
    draw = np.random.default_rng(key)
    chosen = _centres(seed)[draw.integers(0, CENTRES, count)]
    moved = chosen + 0.5 * draw.standard_normal((count, DIMENSION), dtype=np.float32)
    unit: Vectors = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return unit


def _centres(seed: int) -> Vectors:
    draw = np.random.default_rng((seed, 5))
    return draw.standard_normal((CENTRES, DIMENSION), dtype=np.float32)


def _chances() -> NDArray[np.float64]:
    weights = 1 / (np.arange(WORDS) + 1 + SHIFT)
    total: NDArray[np.float64] = np.cumsum(weights / weights.sum())
    total[-1] = 1.0
    return total
