"""Shapley credit by `gold_logprob` beside SePer with N = 10 samples: time and agreement.

The same runs, the same reader, which remembers nothing beforehand; each meter has it for itself.
Without --traces they are IRCoT runs on two-hop questions of Hopland; a file of other programs' runs
is imported, and those that retrieved something are measured. SePer's meanings are
compared by `--entailment nli`, a classifier of DeBERTa-base's size with random weights as in
benchmarks/credit.py (the paper's model is ten times as large), or by `lexical`, which costs next to
nothing. `--window` lets the embedded reader take longer contexts than it was trained on; what it
says there means nothing, what it costs is what such a reader costs.

Both meters read the same contexts. What SePer spends on that bounds the share from below; the
rest of its time goes into sampling and the comparison of meanings.

Ratios are of processor time, since others use the machine. Wanted: at most an eighth of SePer's.

    OMP_NUM_THREADS=1 python benchmarks/gold_logprob.py [--limit 40] [--json]
    OMP_NUM_THREADS=1 python benchmarks/gold_logprob.py --traces FILE --window 8192
"""

import argparse
import gc
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from credit_parts import padded_reader, random_nli
from credit_parts.bench import AREA
from credit_parts.prompted import Prompted
from credit_parts.straightforward import Clock

from hopscope.api import parts, stored
from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.generation.prefill import Pass, Prefill, UnreadSequence
from hopscope.runtime.generation.transformers_reader import TransformersReader
from hopscope.runtime.models.checkpoint import locate
from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.runtime.types import Credit, Generation, GenerationRequest, Run
from hopscope.store.importers.importing import import_runs
from hopscope.store.store import Store
from hopscope.tracing.entailments.nli import statement_texts
from hopscope.tracing.games.frozen import contributions
from hopscope.tracing.pairs.classifier import load

SEPER, GOLD = "seper", "gold_logprob"
N, SEED = 10, 0
WANTED = 1 / 8
"""The share of SePer's time."""


def main() -> None:
    gc.set_threshold(200_000)  # as the command line does
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--limit", type=int, help="runs; by default 40, or all of the file; of a file at random"
    )
    parser.add_argument("--traces", metavar="FILE", help="a file as `hopscope import` takes it")
    parser.add_argument("--reader", default=parts.TINY)
    parser.add_argument("--entailment", choices=("nli", "lexical"), default="nli")
    parser.add_argument("--layers", type=int, default=random_nli.LAYERS, help="of the NLI model")
    parser.add_argument("--width", type=int, default=random_nli.WIDTH, help="likewise, 64 or more")
    parser.add_argument("--window", type=int, metavar="TOKENS", help="of the embedded reader")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.limit is not None and given.limit < 1:
        parser.error("--limit of 1 or more is needed")
    if given.window is not None and given.reader != parts.TINY:
        parser.error("--window changes the embedded reader: leave --reader out")
    with tempfile.TemporaryDirectory() as folder:
        spec = given.reader
        if given.window is not None:
            wide = padded_reader.save(Path(folder) / "reader", window=given.window)
            spec = f"hf:{wide}"
        runs = (
            of_hopland(given.limit or 40)
            if given.traces is None
            else of_traces(given.traces, given.limit)
        )
        entailment = parts.entailment("lexical")
        if given.entailment == "nli":
            nli = random_nli.save(Path(folder) / "nli", layers=given.layers, width=given.width)
            entailment = Prompted(
                load(locate(str(nli)), texts=statement_texts, device="cpu", max_batch_tokens=AREA)
            )
        found = compared(runs, spec, entailment)
    if given.json:
        json.dump(found, sys.stdout, indent=2)
        return
    for name, value in found.items():
        print(f"{name:44}{value:>12.4g}" if isinstance(value, float) else f"{name:44}{value!s:>12}")


def of_hopland(limit: int) -> list[Run]:
    """IRCoT runs on two-hop questions."""
    chains = [q for q in hopland.questions("test") if q.kind == "chain" and q.hops == 2]
    deps = Deps(reader=parts.reader(parts.TINY), retriever=parts.corpus(parts.HOPLAND))
    workflow = parts.workflow("ircot", {})
    return [run(workflow, q.question, deps) for q in chains[:: len(chains) // limit][:limit]]


def of_traces(file: str, limit: int | None) -> list[Run]:
    """Runs of other programs that retrieved something, at most `limit`, in a random order."""
    with Store.open("sqlite://") as store:
        import_runs(file, name="traces", store=store)
        runs = [store.load(run_id) for run_id in stored.ids(store, ["traces"])]
    found = [each for each in runs if contributions(each)]
    return Random(SEED).sample(found, min(limit or len(found), len(found)))


class Parts:
    """Clocks of the parts of a meter's work."""

    def __init__(self) -> None:
        self.whole, self.reading, self.generating, self.comparing = (Clock() for _ in range(4))

    @property
    def sampling(self) -> float:
        """Processor seconds of generation after the contexts were read; 0 without generation."""
        return max(0.0, self.generating.processor - self.reading.processor)

    def __str__(self) -> str:
        return (
            f"{self.whole.processor:.1f} s (reading {self.reading.processor:.1f}, sampling "
            f"{self.sampling:.1f}, comparing {self.comparing.processor:.1f})"
        )

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure the parts within, wherever they are called."""
        read, more = Prefill.read, TransformersReader.more

        def timed_read(self_: Prefill, wanted: Sequence[UnreadSequence]) -> list[Pass]:
            with self.reading.running():
                return read(self_, wanted)

        def timed_more(
            self_: TransformersReader, requests: Sequence[GenerationRequest], *, first: int
        ) -> list[list[Generation]]:
            with self.generating.running():
                return more(self_, requests, first=first)

        with (
            patch.object(Prefill, "read", timed_read),
            patch.object(TransformersReader, "more", timed_more),
            self.whole.running(),
        ):
            yield


class TimedEntailment:
    """An entailment model and its clock."""

    def __init__(self, model: Entailment, clock: Clock) -> None:
        self.name = model.name
        self._model = model
        self._clock = clock

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        with self._clock.running():
            return self._model.classify(statements)


def compared(runs: Sequence[Run], spec: str, entailment: Entailment) -> dict[str, Any]:
    """Times of both meters, and how their shares of steps agree."""
    clocks = {meter: Parts() for meter in (SEPER, GOLD)}
    appraisers = {
        meter: Appraiser(
            parts.reader(spec),
            TimedEntailment(entailment, clock.comparing),
            Measuring(samples=N, seed=SEED, meters=(meter,), rules=("shapley",)),
        )
        for meter, clock in clocks.items()
    }
    shares: dict[str, dict[tuple[str, int], float | None]] = {meter: {} for meter in clocks}
    reasons: dict[str, str] = {}
    pairs_computed = 0
    for number, each in enumerate(runs, start=1):
        for meter, clock in clocks.items():
            with clock.timed():
                measured = appraisers[meter].appraise(each)
            pairs_computed += measured.appraisal.pairs.computed if measured.appraisal.pairs else 0
            shares[meter] |= of_steps(measured.credits, each)
            reasons |= {
                c.meter: c.measurement.reason for c in measured.credits if c.measurement.reason
            }
        so_far = "; ".join(f"{meter}: {clock}" for meter, clock in clocks.items())
        print(f"{number} of {len(runs)} runs: {so_far}", file=sys.stderr)
    pairs = [
        (one, other)
        for key, one in shares[SEPER].items()
        if one is not None and (other := shares[GOLD][key]) is not None
    ]
    slow, fast = clocks[SEPER], clocks[GOLD]
    found: dict[str, Any] = {
        "runs": len(runs),
        "steps with passages": len(shares[SEPER]),
        "of these measured by SePer": sum(v is not None for v in shares[SEPER].values()),
        "of these measured by gold_logprob": sum(v is not None for v in shares[GOLD].values()),
        f"SePer, N = {N}, processor seconds": slow.whole.processor,
        "- reading contexts": slow.reading.processor,
        "- sampling": slow.sampling,
        f"- comparing {pairs_computed} pairs": slow.comparing.processor,
        "gold_logprob, processor seconds": fast.whole.processor,
        "- reading contexts and golds": fast.reading.processor,
        "share of SePer's time": fast.whole.processor / slow.whole.processor,
        "wanted, at most": WANTED,
        "share of SePer's time for its contexts": slow.reading.processor / slow.whole.processor,
        "SePer, seconds by the clock": slow.whole.wall,
        "gold_logprob, seconds by the clock": fast.whole.wall,
        "same sign where SePer's share exceeds .05": agreeing(pairs),
    }
    return found | {f"not measured by {meter}": reason for meter, reason in reasons.items()}


def of_steps(credits: Sequence[Credit], of: Run) -> dict[tuple[str, int], float | None]:
    """The Shapley shares of the steps that brought passages."""
    brought = contributions(of)
    return {
        (of.id, credit.step): credit.measurement.value
        for credit in credits
        if credit.rule == "shapley" and credit.step in brought
    }


def agreeing(pairs: Sequence[tuple[float, float]]) -> str:
    """How many of the pairs have the same sign, where SePer's is not within .05 of 0."""
    clear = [(one, other) for one, other in pairs if abs(one) > 0.05]
    return f"{sum(one * other > 0 for one, other in clear)} of {len(clear)}"


if __name__ == "__main__":
    main()
