"""Cost and accuracy of enumerated replies against sampled ones, on Hopland.

For chain questions of one and two hops, it measures the embedded reader's belief in the gold with
the gold passages and without any. The truth is the limit of uniform sampling, enumerated to a small
uncovered mass; contexts with a wider truth are counted but not compared. Samples come from one pool
for each context, divided into repetitions, through the meter itself.

    python benchmarks/estimation/estimators.py [--limit 40] [--pool 1000] [--seed 0] [--json]
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from math import sqrt
from statistics import mean, pvariance
from typing import Any

from hopscope.api import parts
from hopscope.runtime.corpora import hopland
from hopscope.runtime.ports import Branch, BranchRequest
from hopscope.runtime.types import Generation, GenerationRequest, Measurement, Passage, Question
from hopscope.tracing.meters.seper import SePer
from hopscope.tracing.wrappers.cached import CachedEntailment

BOUND = 0.01
"""The default tolerance of the compared enumeration; its budget is the default, too."""
TRUTH = {"bound": 0.001, "budget": 10_000}
WIDEST = 0.01
"""A truth wider than this is not compared."""
HOPELESS = 0.05
"""If the default budget leaves more than this uncovered, a larger one is not tried."""
SIZES = (10, 100)


class Counted:
    """The reader, counting the next-token distributions that a search reads."""

    def __init__(self, reader: Any) -> None:
        self.name = reader.name
        self.generate, self.score = reader.generate, reader.score
        self._branch = reader.branch
        self.tokens = 0

    def branch(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
        self.tokens += len(requests)
        found: list[list[Branch]] = self._branch(requests)
        return found


class Pool:
    """Returns samples drawn before: a request with seed r gets the r-th n of them."""

    def __init__(self, reader: Any, seed: int, size: int) -> None:
        self.name = reader.name
        self.score = reader.score
        self._reader, self._seed, self._size = reader, seed, size
        self._samples: dict[str, list[Generation]] = {}
        self.tokens = 0.0

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        [request] = requests
        key = request.prompt.text
        if key not in self._samples:
            whole = request.model_copy(update={"n": self._size, "seed": self._seed})
            [self._samples[key]] = self._reader.generate([whole])
        samples = self._samples[key]
        self.tokens = mean(sample.usage.output_tokens for sample in samples)
        return [samples[request.seed * request.n : (request.seed + 1) * request.n]]


def measure(limit: int, size: int, seed: int) -> dict[str, Any]:
    reader: Any = parts.reader(parts.TINY)
    passages = {passage.id: passage for passage in hopland.corpus()}
    chains = [q for q in hopland.questions("test") if q.kind == "chain" and q.hops in (1, 2)]
    found: dict[str, Any] = {}
    for context in ("gold passages", "closed book"):
        rows = []
        for item in chains[:: max(1, len(chains) // limit)][:limit]:
            gold = tuple(passages[key] for key in item.gold_passages)
            shown = gold if context == "gold passages" else ()
            rows.append(compare(reader, item.question, shown, size=size, seed=seed))
        found[context] = summary(rows)
    return found


def compare(
    reader: Any, question: Question, shown: tuple[Passage, ...], *, size: int, seed: int
) -> dict[str, Any]:
    """One context by all estimators: values, tokens, and the width of the truth."""
    counted, judge = Counted(reader), CachedEntailment(parts.entailment("lexical"))
    row: dict[str, Any] = {}

    def value(meter: SePer) -> Measurement:
        [measured] = meter.measure(question, [shown])
        assert measured.value is not None, measured.reason
        return measured

    [enumerated] = SePer(counted, judge, method="enumerate", bound=BOUND).measure(question, [shown])
    row["tokens of enumerate"] = counted.tokens
    if enumerated.value is None:  # within its budget no reply ended: nothing is covered
        return {**row, "width of enumerate": 1.0, "truth width": 1.0}
    row["enumerate"] = [enumerated.value]
    row["width of enumerate"] = width(enumerated)
    truth = enumerated
    if width(enumerated) <= HOPELESS:
        truth = value(SePer(reader, judge, method="enumerate", **TRUTH))  # type: ignore[arg-type]
    assert truth.value is not None
    row["truth"], row["truth width"] = truth.value + width(truth) / 2, width(truth)
    if row["truth width"] > WIDEST:
        return row
    pool = Pool(reader, seed, size)
    for weight in ("uniform", "lennorm"):
        for n in (*SIZES, size):
            row[f"{weight} N={n}"] = [
                value(SePer(pool, judge, samples=n, weight=weight, seed=r)).value
                for r in range(size // n)
            ]
            row[f"tokens of {weight} N={n}"] = n * pool.tokens
    return row


def width(measured: Measurement) -> float:
    assert measured.low is not None
    assert measured.high is not None
    return measured.high - measured.low


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means of values and tokens over the contexts with a known truth."""
    known = [row for row in rows if row["truth width"] <= WIDEST]
    table: dict[str, dict[str, float]] = defaultdict(dict)
    methods = [name for name, each in known[0].items() if isinstance(each, list)] if known else []
    for name in methods:
        errors = [mean(row[name]) - row["truth"] for row in known]
        variances = [pvariance(row[name]) for row in known]
        table[name] = {
            "bias": mean(errors),
            "worst bias": max(errors, key=abs),
            "sd": sqrt(mean(variances)),
            "rmse": sqrt(mean(e * e + v for e, v in zip(errors, variances, strict=True))),
            "tokens": mean(row[f"tokens of {name}"] for row in known),
        }
    return {
        "contexts": len(rows),
        "truth known": len(known),
        "enumerate within its bound": sum(row["width of enumerate"] <= BOUND for row in rows),
        "mean width of enumerate": mean(row["width of enumerate"] for row in rows),
        "mean tokens of enumerate": mean(row["tokens of enumerate"] for row in rows),
        "estimators": dict(table),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=40, help="questions")
    parser.add_argument("--pool", type=int, default=1000, help="samples drawn for each context")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.limit < 1 or given.pool < max(SIZES):
        parser.error(f"--limit of 1 or more and --pool of {max(SIZES)} or more are needed")
    found = measure(given.limit, given.pool, given.seed)
    if given.json:
        json.dump(found, sys.stdout, ensure_ascii=False, indent=2)
        return
    for context, cell in found.items():
        n = cell["contexts"]
        print(
            f"{context}: truth known for {cell['truth known']}/{n}; enumerate within its bound for "
            f"{cell['enumerate within its bound']}/{n}, over all {n} "
            f"mean width {cell['mean width of enumerate']:.3f}, "
            f"{cell['mean tokens of enumerate']:.0f} tokens\n"
        )
        print("| estimator | bias | worst bias | sd | rmse | tokens |")
        print("|---|---|---|---|---|---|")
        for name, row in cell["estimators"].items():
            numbers = [f"{row[key]:+.4f}" for key in ("bias", "worst bias")]
            numbers += [f"{row['sd']:.4f}", f"{row['rmse']:.4f}", f"{row['tokens']:.0f}"]
            print(f"| {name} | {' | '.join(numbers)} |")
        print()


if __name__ == "__main__":
    main()
