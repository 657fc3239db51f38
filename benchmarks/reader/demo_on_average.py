"""The credit of `hopscope demo`'s question, averaged over many unseen questions.

IRCoT with the embedded reader over the embedded corpus, on two-hop test questions. It prints ΔSePer
of the step that completes the chain, and Shapley shares of the gold steps and of the distractor
steps (those without a gold passage; also their absolute values, which keep the noise of sampling),
each as a mean with a 95 % bootstrap interval over questions: once over all questions, with 0 for a
gold passage that was never retrieved, and once over those whose two gold passages came from two
different retrievals.

    python benchmarks/reader/demo_on_average.py [--limit 100] [--seed 0] [--samples 10] [--json]
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from statistics import mean
from time import perf_counter
from typing import Any

import numpy as np

from hopscope.api import parts
from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.texts.answers import exact_match
from hopscope.runtime.types import Credit, Run
from hopscope.tracing.statistics.intervals import quantiles


def interval(values: Sequence[float], seed: int = 0) -> dict[str, float | int]:
    """Mean with a 95 % percentile bootstrap over questions."""
    draws = np.random.default_rng(seed).choice(np.array(values), size=(2000, len(values)))
    low, high = quantiles(draws.mean(axis=1))
    return {"value": mean(values), "low": low, "high": high, "n": len(values)}


def value(credits: Sequence[Credit], rule: str, step: int) -> float:
    found = next(
        c for c in credits if (c.meter, c.rule, c.step) == ("seper", rule, step)
    ).measurement
    assert found.value is not None, found.reason
    return found.value


WANTED = {
    "ΔSePer of the completing step": ">= .5",
    "Shapley of the first gold step": ">= .2",
    "Shapley of the second gold step": ">= .2",
    "Shapley of a distractor step": "within .05 of 0",
    "|Shapley| of a distractor step": "<= .05",
}


def measure(limit: int, seed: int, samples: int) -> dict[str, Any]:
    retriever = parts.corpus(parts.HOPLAND)
    reader, judge = parts.reader(parts.TINY), parts.entailment("lexical")
    workflow = parts.workflow("ircot", {})
    deps = Deps(reader=reader, retriever=retriever, seed=seed)
    rows: dict[str, list[float]] = defaultdict(list)
    chains = [q for q in hopland.questions("test") if q.kind == "chain" and q.hops == 2]
    for item in chains[:limit]:
        begun = perf_counter()
        result = run(workflow, item.question, deps)
        ran = perf_counter()
        measuring = Measuring(samples=samples, seed=seed)
        credits = Appraiser(reader, judge, measuring).appraise(result).credits
        rows["seconds to run"].append(ran - begun)
        rows["seconds to appraise"].append(perf_counter() - ran)
        right = exact_match(result.answer or "", item.question.answers)
        rows["answer exact match"].append(right)
        rows["total ΔSePer"].append(
            sum(value(credits, "trajectory", step.index) for step in result.steps)
        )
        for name, found in shares(result, credits, item.gold_passages).items():
            rows[f"{name}, all asked"].append(found)
        bringing = [step for step in result.steps if set(item.gold_passages) & set(step.new)]
        rows["found by two retrievals"].append(float(len(bringing) == 2))
        if len(bringing) == 2:
            for name, found in shares(result, credits, item.gold_passages).items():
                rows[name].append(found)
    return {name: interval(values) for name, values in rows.items()}


def shares(run: Run, credits: Sequence[Credit], gold: Sequence[str]) -> dict[str, float]:
    """The credits of the gold steps and of the other retrievals of one run."""
    by_passage = {key: step.index for step in run.steps for key in step.new}
    steps = [by_passage.get(key) for key in gold]
    complete = None if None in steps else max(step for step in steps if step is not None)
    others = [s for s in run.retrievals if s.new and s.index not in steps]
    found = {
        "ΔSePer of the completing step": _earned(credits, "trajectory", complete),
        "Shapley of the first gold step": _earned(credits, "shapley", steps[0]),
        "Shapley of the second gold step": _earned(credits, "shapley", steps[-1]),
    }
    if others:
        shares = [value(credits, "shapley", step.index) for step in others]
        found["Shapley of a distractor step"] = mean(shares)
        found["|Shapley| of a distractor step"] = mean(abs(share) for share in shares)
    return found


def _earned(credits: Sequence[Credit], rule: str, step: int | None) -> float:
    return 0.0 if step is None else value(credits, rule, step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=100, help="questions asked")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found = measure(arguments.limit, arguments.seed, arguments.samples)
    if arguments.json:
        json.dump(found, sys.stdout, ensure_ascii=False, indent=2)
        return
    for name, cell in found.items():
        between = f"[{cell['low']:.3f}, {cell['high']:.3f}]"
        print(f"{name:46} {cell['value']:6.3f}  {between}  n {cell['n']:4}  {WANTED.get(name, '')}")


if __name__ == "__main__":
    main()
