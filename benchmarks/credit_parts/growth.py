"""Time, tokens and memory of credit as runs, contexts and samples grow."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import log

from credit_parts.bench import SEED, Benchmark, N, Row
from credit_parts.memory import Memory
from credit_parts.runs import deep
from credit_parts.straightforward import Clock
from hopscope.api import parts
from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.runtime.types import Run

SIZES = (1, 2, 4, 8)
"""The sizes of each dimension."""


def measure(bench: Benchmark) -> Row:
    """Each dimension alone, the others at their smallest; an exponent of 1 is linear."""
    retriever = parts.corpus(parts.HOPLAND)
    questions = bench.questions(max(1, bench.limit // 10))

    def runs(*, steps: int = 2, k: int = 2, words: int = 0) -> list[Run]:
        return [deep(q, retriever, steps=steps, k=k, words=words) for q in questions]

    crowd = [deep(q, retriever, steps=2, k=2) for q in bench.questions(max(SIZES))]
    measured(bench, runs())  # once for what is only done once
    varied: dict[str, tuple[Sequence[int], Callable[[int], Row]]] = {
        "T, steps": (SIZES, lambda n: measured(bench, runs(steps=n))),
        "k, passages a step": (SIZES, lambda n: measured(bench, runs(k=n))),
        "N, samples": (
            [N * size for size in SIZES],
            lambda n: measured(bench, runs(), samples=n),
        ),
        "words added to a passage": (
            [20 * size for size in SIZES],
            lambda n: measured(bench, runs(words=n)),
        ),
        "runs at once": (SIZES, lambda n: measured(bench, crowd[:n], at_once=n)),
    }
    found: Row = {}
    for name, (sizes, act) in varied.items():
        rows = {size: act(size) for size in sizes}
        found[name] = {
            "exponent of seconds": _exponent({s: r["seconds"] for s, r in rows.items()}),
            "exponent of tokens": _exponent({s: r["tokens"] for s, r in rows.items()}),
            **{str(size): row for size, row in rows.items()},
        }
    return found


def measured(bench: Benchmark, runs: Sequence[Run], *, samples: int = N, at_once: int = 1) -> Row:
    """SePer-S and trajectory credit of some runs; the lexical entailment adds little."""
    reader = bench.reader()
    measuring = Measuring(
        samples=samples,
        seed=SEED,
        meters=("seper",),
        rules=("trajectory",),
        options={"seper.context_words": "0"},
    )

    def work(some: Sequence[Run]) -> None:
        appraiser = Appraiser(reader, parts.entailment("lexical"), measuring)
        for found in some:
            appraiser.appraise(found)

    memory, clock = Memory(), Clock()
    with memory.watched(), clock.running(), ThreadPoolExecutor(at_once) as pool:
        list(pool.map(work, [runs[i::at_once] for i in range(at_once)]))
    return {
        "seconds": bench.seconds(clock),
        "tokens": reader.forwarded.tokens,
        "bytes": memory.bytes,
    }


def _exponent(values: dict[int, float]) -> float:
    """The slope of log value over log size, by least squares."""
    xs = [log(size) for size in values]
    ys = [log(max(value, 1e-9)) for value in values.values()]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    top = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return top / sum((x - mean_x) ** 2 for x in xs)
