"""What `hopscope demo` shows for one question, averaged over many unseen ones.

IRCoT with the embedded reader over the embedded corpus, on two-hop test questions whose two
gold passages are found by two different retrievals. Prints ΔSePer of the step that completes the
chain, Shapley shares of the gold steps and of the distractor steps (those that bring no gold
passage), each as a mean with a 95 % bootstrap interval over questions.

    python benchmarks/demo_on_average.py [--limit 100] [--seed 0] [--samples 10] [--json]
"""

import argparse
import json
import sys
from collections.abc import Sequence
from statistics import mean
from time import perf_counter
from typing import Any

import numpy as np

from hopscope.cli import wiring
from hopscope.cli.appraise import appraise
from hopscope.lab.hopland import data
from hopscope.runtime.answers import exact_match
from hopscope.runtime.run import run
from hopscope.runtime.state import Deps
from hopscope.runtime.types import Credit


def interval(values: Sequence[float], seed: int = 0) -> dict[str, float | int]:
    """Mean with a 95 % percentile bootstrap over questions."""
    draws = np.random.default_rng(seed).choice(np.array(values), size=(2000, len(values)))
    low, high = np.percentile(draws.mean(axis=1), [2.5, 97.5])
    return {"value": mean(values), "low": float(low), "high": float(high), "n": len(values)}


def value(credits: Sequence[Credit], rule: str, step: int) -> float:
    found = next(
        c for c in credits if (c.meter, c.rule, c.step) == ("seper", rule, step)
    ).measurement
    assert found.value is not None, found.reason
    return found.value


def measure(limit: int, seed: int, samples: int) -> dict[str, Any]:
    retriever = wiring.corpus(wiring.HOPLAND)
    reader, judge = wiring.reader(wiring.TINY), wiring.entailment("lexical")
    workflow = wiring.workflow("ircot", {})
    deps = Deps(reader=reader, retriever=retriever, seed=seed)
    rows: dict[str, list[float]] = {
        name: []
        for name in (
            "answer exact match",
            "ΔSePer of the completing step",
            "Shapley of the first gold step",
            "Shapley of the second gold step",
            "|Shapley| of a distractor step",
            "total ΔSePer",
            "seconds to run",
            "seconds to appraise",
        )
    }
    asked = chained = 0
    for item in data.questions("test"):
        if item.kind != "chain" or item.hops != 2 or chained == limit:
            continue
        asked += 1
        begun = perf_counter()
        result = run(workflow, item.question, deps)
        ran = perf_counter()
        credits = appraise(result, reader, judge, samples=samples, seed=seed)
        rows["seconds to run"].append(ran - begun)
        rows["seconds to appraise"].append(perf_counter() - ran)
        rows["answer exact match"].append(
            float(exact_match(result.answer or "", item.question.answers))
        )
        gold = set(item.gold_passages)
        bringing = [step for step in result.steps if gold & set(step.new)]
        if len(bringing) < 2:
            continue  # found in one retrieval, or not at all: no chain to share credit over
        chained += 1
        first, last = bringing[0].index, bringing[-1].index
        rows["ΔSePer of the completing step"].append(value(credits, "trajectory", last))
        rows["Shapley of the first gold step"].append(value(credits, "shapley", first))
        rows["Shapley of the second gold step"].append(value(credits, "shapley", last))
        others = [s for s in result.steps if s.kind == "retrieve" and s.new and s not in bringing]
        if others:
            rows["|Shapley| of a distractor step"].append(
                mean(abs(value(credits, "shapley", step.index)) for step in others)
            )
        rows["total ΔSePer"].append(
            sum(value(credits, "trajectory", step.index) for step in result.steps)
        )
    return {
        "asked": asked,
        "found by two retrievals": chained,
        **{name: interval(values) for name, values in rows.items() if values},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=100, help="questions found in two retrievals")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = measure(arguments.limit, arguments.seed, arguments.samples)
    if arguments.json:
        json.dump(found, sys.stdout, ensure_ascii=False, indent=2)
        return
    for name, cell in found.items():
        if isinstance(cell, dict):
            print(
                f"{name:34} {cell['value']:6.3f}  [{cell['low']:.3f}, {cell['high']:.3f}]"
                f"  n {cell['n']}"
            )
        else:
            print(f"{name:34} {cell}")


if __name__ == "__main__":
    main()
