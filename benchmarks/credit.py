"""What per-step credit costs: against the straightforward loop, against its floor, as it grows.

On IRCoT runs over Hopland with the embedded reader, N = 10 samples of each context, SePer-S and
SePer-H, and an entailment model of DeBERTa-base's size with random weights, as cost is what counts.
Random weights find that everything contradicts everything, which would spare the product too much:
nine tenths of what the model says are put in its mouth, by words.

    speed      the loop of benchmarks/straightforward.py does the same, with the same reader: ratios
               of time for the samples, for the entailment of ten distinct answers, for both with
               the answers as they come, and for Shapley credit of four steps; and whether samples
               and scores are the same
    floor      tokens that went through the reader over those that had to, time over that of the
               same forward passes without anything around them, with the reader's cache and with
               transformers', and the share of the machine's peak that they reach; each is the
               best of several times
    tracing    what spans and the database add to a workflow, without meters
    growth     time and memory with the steps T, passages a step k, samples N, length of passages,
               and runs at once

Ratios are of processor time, since others use the machine; `--clock wall` takes the clock's.

    OMP_NUM_THREADS=1 python benchmarks/credit.py [--limit 20] [--part NAME]... [--json]
"""

import argparse
import gc
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from math import log
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import random_nli
import torch
from straightforward import Clock, Game, Loop, Plain, shapley, trajectory
from transformers import DynamicCache

from hopscope.cli import wiring
from hopscope.cli.appraise import Appraiser, Measuring
from hopscope.lab.hopland import data
from hopscope.runtime import answers
from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.runtime.readers._checkpoint import locate
from hopscope.runtime.readers._roomy import RoomyCache
from hopscope.runtime.run import run
from hopscope.runtime.state import Deps
from hopscope.runtime.types import (
    Credit,
    Forwarded,
    Generation,
    GenerationRequest,
    Hit,
    Passage,
    Question,
    Run,
    Step,
)
from hopscope.store.store import Store
from hopscope.tracing.caching import CachedEntailment, CachedReader
from hopscope.tracing.entailments import lexical
from hopscope.tracing.entailments._classifier import load
from hopscope.tracing.games import over_steps
from hopscope.tracing.meters import _asking
from hopscope.tracing.meters._context import cut
from hopscope.tracing.telemetry import telemetry

N, SEED, MAX_TOKENS = 10, 0, 64
AREA = 16_384
"""Rows times positions that go through a model together."""
CONTEXT_WORDS = 512
REPLAYS, PEAKS, REPEATS = 3, 5, 5
SIZES = (1, 2, 4, 8)
"""Of what grows."""
DEEP = 4
"""Steps of a run whose Shapley credit is taken."""
PARTS = ("speed", "floor", "tracing", "growth")

Row = dict[str, Any]


class Recording:
    """The product's reader, which keeps what was drawn for comparison."""

    def __init__(self, reader: Any) -> None:
        self.name = reader.name
        self.reader = reader
        self.score, self.more = reader.score, reader.more
        self.samples: dict[GenerationRequest, list[Generation]] = {}

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        found: list[list[Generation]] = self.reader.generate(requests)
        self.samples.update(zip(requests, found, strict=True))
        return found


class Prompted:
    """An entailment model whose verdicts are those by words, at the model's cost. Its own share
    keeps probabilities away from 0 and 1, and shows whether batches change what it says."""

    def __init__(self, model: Entailment) -> None:
        self.name = f"{model.name}, prompted"
        self._model = model
        self._words = lexical.build()

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        by_words, own = self._words.classify(statements), self._model.classify(statements)
        return [
            Probabilities(*(0.9 * word + 0.1 * share for word, share in zip(*both, strict=True)))
            for both in zip(by_words, own, strict=True)
        ]


class Bench(NamedTuple):
    """What all parts work with."""

    spec: str
    """The reader, as on the command line."""
    device: str
    wall: bool
    limit: int
    nli: Path
    folder: Path
    """For files that are not kept."""

    def reader(self, *, bare: bool = False) -> Any:
        """The reader with nothing remembered yet, or that remembers nothing."""
        options = f"device={self.device}" + (",prefix_cache=0" if bare else "")
        return wiring.reader(f"{self.spec},{options}")

    def model(self) -> Entailment:
        """The entailment model without any memory."""
        return load(locate(str(self.nli)), device=self.device, max_batch_tokens=AREA)

    def plain_model(self) -> Entailment:
        """The same as transformers has it."""
        return Plain(self.nli, self.device)

    def seconds(self, clock: Clock) -> float:
        return clock.wall if self.wall else clock.processor

    def ratio(self, slow: Clock | float, fast: Clock) -> float:
        whole = self.seconds(slow) if isinstance(slow, Clock) else slow
        return whole / self.seconds(fast)

    def questions(self, limit: int | None = None) -> list[Question]:
        limit = limit or self.limit
        chains = [q for q in data.questions("test") if q.kind == "chain" and q.hops == 2]
        return [q.question for q in chains[:: max(1, len(chains) // limit)][:limit]]

    def deps(self, reader: Any) -> Deps:
        return Deps(reader=reader, retriever=wiring.corpus(wiring.HOPLAND))


def timed(act: Callable[[], object]) -> Clock:
    clock = Clock()
    with clock.running():
        act()
    return clock


def trajectories(bench: Bench) -> list[Run]:
    """The runs whose steps are to be measured, by a reader of their own."""
    deps = bench.deps(bench.reader())
    workflow = wiring.workflow("ircot", {})
    runs = [run(workflow, question, deps) for question in bench.questions()]
    if failed := [found.error for found in runs if found.status != "ok"]:
        raise SystemExit(f"{len(failed)} runs failed: {failed[0]}")
    return runs


def deep(question: Question, retriever: Any, *, steps: int, k: int, words: int = 0) -> Run:
    """A run of so many retrievals, each of k passages that no other brought; `words` of padding
    make passages longer."""
    hits: list[Hit] = retriever.search([question.text], k=steps * k)[0]
    now, held, taken = data_time(), (), []
    for t in range(steps):
        found = tuple(_padded(hit.passage, words) for hit in hits[t * k : (t + 1) * k])
        held = (*held, *found)
        taken.append(
            Step(
                index=t,
                name="retrieve",
                kind="retrieve",
                query=question.text,
                ranked=tuple(Hit(passage=p, score=1.0) for p in found),
                new=tuple(p.key for p in found),
                shown=tuple(p.key for p in held),
                evidence=held,
                started=now,
                seconds=0.0,
            )
        )
    return Run(
        id=f"deep-{question.text}",
        question=question,
        workflow="ircot",
        steps=tuple(taken),
        answer="",
        started=now,
    )


def data_time() -> Any:
    from datetime import UTC, datetime

    return datetime(2026, 1, 1, tzinfo=UTC)


def _padded(passage: Passage, words: int) -> Passage:
    more = (passage.text.split() * (1 + words // max(1, len(passage.text.split()))))[:words]
    return passage.model_copy(update={"text": " ".join([passage.text, *more])})


def contexts(found: Run, *, every: bool) -> dict[frozenset[int], GenerationRequest]:
    """What the reader is asked for each coalition: `every` one, or those along the trajectory."""
    game = over_steps(found)
    along = [frozenset(game.players[:t]) for t in range(len(game.players) + 1)]
    chosen = [
        frozenset(player for i, player in enumerate(game.players) if bits >> i & 1)
        for bits in range(1 << len(game.players))
    ]
    requests = {}
    for coalition in chosen if every else along:
        evidence = game.evidence(coalition)
        assert isinstance(evidence, tuple)
        [request] = _asking.requests(
            found.question.text,
            [cut(evidence, CONTEXT_WORDS).passages],
            n=N,
            temperature=1.0,
            max_tokens=MAX_TOKENS,
            seed=SEED,
        ).values()
        requests[coalition] = request
    return requests


def loop_credits(loop: Loop, found: Run, *, every: bool) -> dict[tuple[str, int], float]:
    """Credit of each player by both meters, computed by the loop."""
    golds = answers.distinct(found.question.answers)
    soft: Game = {}
    hard: Game = {}
    for coalition, request in contexts(found, every=every).items():
        soft[coalition], hard[coalition] = loop.score(found.question.text, golds, request)
    rule = shapley if every else trajectory
    return {
        (meter, player): credit
        for meter, worth in (("seper", soft), ("seper_hard", hard))
        for player, credit in rule(worth).items()
    }


class Product:
    """The product's own way, with models that remember nothing yet."""

    def __init__(self, bench: Bench, rule: str) -> None:
        self.reader = Recording(bench.reader())
        self.model = CachedEntailment(Prompted(bench.model()))
        self._rule = rule
        measuring = Measuring(samples=N, seed=SEED, meters=("seper", "seper_hard"), rules=(rule,))
        self._appraiser = Appraiser(self.reader, self.model, measuring)
        self.pairs = 0

    def credits(self, found: Run) -> dict[tuple[str, int], float]:
        measured = self._appraiser.appraise(found)
        self.pairs += measured.appraisal.pairs.computed if measured.appraisal.pairs else 0
        return {
            (credit.meter, credit.step): _value(credit)
            for credit in measured.credits
            if credit.rule == self._rule and credit.step is not None
        }


def _value(credit: Credit) -> float:
    if credit.measurement.value is None:
        raise SystemExit(f"a credit could not be measured: {credit.measurement.reason}")
    return credit.measurement.value


def compared(bench: Bench, runs: Sequence[Run], *, every: bool) -> Row:
    """End to end by both, and by the reader alone."""
    loop = Loop(bench.reader(bare=True), Prompted(bench.plain_model()))
    wanted = [loop_credits(loop, found, every=every) for found in runs]
    product = Product(bench, "shapley" if every else "trajectory")
    whole = Clock()
    worst = 0.0
    for found, credits in zip(runs, wanted, strict=True):
        with whole.running():
            given = product.credits(found)
        worst = max([worst, *(abs(given[key] - value) for key, value in credits.items())])
    drawn = [
        (one.token_ids, other.token_ids)
        for request, samples in loop.samples.items()
        for one, other in zip(samples, product.reader.samples[request], strict=True)
    ]
    reader = bench.reader()
    asked = [list(contexts(found, every=every).values()) for found in runs]
    generation = timed(lambda: [reader.generate(requests) for requests in asked])
    slow = bench.seconds(loop.generation) + bench.seconds(loop.entailment)
    return {
        "runs": len(runs),
        "contexts": sum(map(len, asked)),
        "samples": len(drawn),
        "equal samples": sum(one == other for one, other in drawn) / len(drawn),
        "largest difference of credit": worst,
        "pairs, loop": loop.pairs,
        "pairs, product": product.pairs,
        "seconds, loop": slow,
        "seconds, product": bench.seconds(whole),
        "generation, times faster": bench.ratio(loop.generation, generation),
        "end to end, times faster": bench.ratio(slow, whole),
    }


def entailment(bench: Bench, questions: Sequence[Question]) -> Row:
    """Ten distinct answers to each question: all pairs both ways, and each with the gold."""
    golds = list(dict.fromkeys(item.question.answers[0] for item in data.questions("test")))
    asked: list[list[Statement]] = []
    for question in questions:
        gold = question.answers[0]
        texts = [answer for answer in golds if answer != gold][:N]
        among = [(one, other) for one in texts for other in texts if one != other]
        pairs = [*among, *((t, gold) for t in texts), *((gold, t) for t in texts)]
        asked.append([Statement(question.text, *pair) for pair in pairs])
    plain, model = bench.plain_model(), bench.model()
    for one in (plain, model):
        one.classify(asked[0][:1])
    alone: list[Any] = []
    slow = timed(lambda: alone.extend(plain.classify([s])[0] for each in asked for s in each))
    together: list[Any] = []
    cached = CachedEntailment(model)
    fast = timed(lambda: [together.extend(cached.classify(each)) for each in asked])
    worst = max(
        abs(a - b)
        for one, other in zip(alone, together, strict=True)
        for a, b in zip(one, other, strict=True)
    )
    return {
        "pairs": len(alone),
        "largest difference of probability": worst,
        "milliseconds a pair, loop": 1000 * bench.seconds(slow) / len(alone),
        "milliseconds a pair, product": 1000 * bench.seconds(fast) / len(alone),
        "times faster": bench.ratio(slow, fast),
    }


def speed(bench: Bench) -> Row:
    questions = bench.questions()
    retriever = wiring.corpus(wiring.HOPLAND)
    few = questions[: max(1, bench.limit // 10)]
    deeper = [deep(question, retriever, steps=DEEP, k=2) for question in few]
    return {
        "trajectory": compared(bench, trajectories(bench), every=False),
        "ten distinct answers": entailment(bench, questions[: max(1, bench.limit // 4)]),
        f"Shapley, T = {DEEP}": compared(bench, deeper, every=True),
    }


class Pass(NamedTuple):
    """A forward pass, by its shape."""

    rows: int
    columns: int
    past: int
    keep: int


@contextmanager
def observed(model: Any) -> Iterator[list[Pass]]:
    """The forward passes of a model while it is used."""
    seen: list[Pass] = []

    def hook(_: object, __: object, given: dict[str, Any]) -> None:
        rows, columns = given["input_ids"].shape
        past = given["attention_mask"].shape[1] - columns
        seen.append(Pass(rows, columns, past, given.get("logits_to_keep", columns)))

    handle = model.register_forward_pre_hook(hook, with_kwargs=True)
    try:
        yield seen
    finally:
        handle.remove()


def weights_of(reader: Any) -> Any:
    """The torch module somewhere in a reader."""
    open_objects: list[Any] = [reader]
    while open_objects:
        for part in vars(open_objects.pop(0)).values():
            if isinstance(part, torch.nn.Module):
                return part
            if type(part).__module__.startswith("hopscope."):
                open_objects.append(part)
    raise SystemExit("the reader holds no torch model: name one of transformers")


def replayed(model: Any, passes: Sequence[Pass], *, roomy: bool) -> Clock:
    """The same forward passes with nothing around them, with the reader's cache or else with
    transformers' own."""
    config, device = model.config, model.device
    clock = Clock()
    heads, size = config.num_key_value_heads, config.head_dim
    with torch.inference_mode():
        for each in passes:
            cache = RoomyCache() if roomy else DynamicCache(config=config)
            for layer in range(config.num_hidden_layers if each.past else 0):
                length = each.past + each.columns if roomy else each.past
                held = torch.zeros(each.rows, heads, length, size, device=device)
                if isinstance(cache, RoomyCache):
                    cache.fill(held, held.clone(), each.rows, each.past)
                else:
                    cache.update(held, held.clone(), layer)
            ids = torch.ones(each.rows, each.columns, dtype=torch.long, device=device)
            mask = ids.new_ones(each.rows, each.past + each.columns)
            positions = torch.arange(each.past, each.past + each.columns, device=device)[None]
            with clock.running():
                out = model(
                    input_ids=ids,
                    attention_mask=mask,
                    position_ids=positions.expand(each.rows, -1),
                    past_key_values=cache,
                    use_cache=True,
                    logits_to_keep=each.keep,
                )
                out.logits[0, 0, 0].item()  # wait for a GPU
    return clock


def tokens_needed(reader: Any, samples: dict[GenerationRequest, list[Generation]]) -> int:
    """Tokens that must go through the model at least: what sequences begin with alike, once; and
    of each sample all but a last token after which nothing is asked."""
    sequences = []
    for request, drawn in samples.items():
        prompt = reader._renderer.prompt_ids(request.prompt)
        for sample in drawn:
            written = list(sample.token_ids)
            sequences.append(
                prompt + (written[:-1] if sample.finish_reason == "length" else written)
            )
    needed, last = 0, []
    for sequence in sorted(sequences):
        shared = 0
        while shared < min(len(last), len(sequence)) and last[shared] == sequence[shared]:
            shared += 1
        needed += len(sequence) - shared
        last = sequence
    return needed


def peak(bench: Bench) -> float:
    """Multiplications and additions in single precision that the machine does in a second."""
    side = 2048 if bench.device == "cpu" else 8192
    square = torch.rand(side, side, device=bench.device)
    took = (timed(lambda: (square @ square)[0, 0].item()) for _ in range(PEAKS))
    return 2 * side**3 / min(map(bench.seconds, took))


def floor(bench: Bench) -> Row:
    runs = trajectories(bench)
    reader = Recording(bench.reader())
    model = weights_of(reader.reader)
    asked = [list(contexts(found, every=False).values()) for found in runs]

    def generated() -> Clock:
        reader.reader._decoder._prefill.tree.clear()
        return timed(lambda: [reader.generate(requests) for requests in asked])

    with observed(model) as passes:
        first = generated()
    forwarded: Forwarded = reader.reader.forwarded
    whole = min((first, *(generated() for _ in range(REPLAYS - 1))), key=bench.seconds)
    bare, copying = (
        min((replayed(model, passes, roomy=roomy) for _ in range(REPLAYS)), key=bench.seconds)
        for roomy in (True, False)
    )
    needed = tokens_needed(reader.reader, reader.samples)
    computing = sum(p.numel() for name, p in model.named_parameters() if "embed" not in name)
    done = 2 * computing * forwarded.tokens
    best = peak(bench)
    return {
        "runs": len(runs),
        "passes": len(passes),
        "tokens forwarded": forwarded.tokens,
        "tokens needed": needed,
        "tokens reused": forwarded.reused,
        "forwarded over needed": forwarded.tokens / needed,
        "seconds": bench.seconds(whole),
        "seconds of the bare passes": bench.seconds(bare),
        "time over bare passes": bench.ratio(whole, bare),
        "likewise, with transformers' cache": bench.ratio(whole, copying),
        "share of peak": done / bench.seconds(whole) / best,
        "share of peak, bare passes": done / bench.seconds(bare) / best,
    }


def tracing(bench: Bench) -> Row:
    """The same runs with and without spans and the database, by a reader that remembers, so that
    the difference shows; and their time by the reader itself."""
    workflow, questions = wiring.workflow("ircot", {}), bench.questions()
    reader = bench.reader()
    real = timed(lambda: [run(workflow, question, bench.deps(reader)) for question in questions])
    deps = bench.deps(CachedReader(reader))
    steps = sum(len(run(workflow, question, deps).steps) for question in questions)
    added = []
    with Store.open(bench.folder / "runs.db") as store:
        for repeat in range(REPEATS):
            took = {}
            for traced in (True, False) if repeat % 2 else (False, True):
                where = telemetry(bench.folder / "spans.jsonl") if traced else nullcontext()
                clock = took[traced] = Clock()
                with clock.running(), where:
                    for question in questions:
                        found = run(workflow, question, deps)
                        if traced:
                            store.save(found)
            added.append(bench.seconds(took[True]) - bench.seconds(took[False]))
    return {
        "runs": len(questions),
        "steps": steps,
        "seconds of the workflow": bench.seconds(real),
        "seconds added": median(added),
        "share added": median(added) / bench.seconds(real),
        "milliseconds added a step": 1000 * median(added) / steps,
    }


class Memory:
    """The most bytes that this process held while inside, beyond those it held before. Linux tells
    and forgets it on request; elsewhere it is not known."""

    def __init__(self) -> None:
        self.bytes: int | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        before = _status("VmRSS")
        if before is not None:
            Path("/proc/self/clear_refs").write_text("5")
        yield
        after = _status("VmHWM")
        if before is not None and after is not None:
            self.bytes = max(0, after - before)


def _status(name: str) -> int | None:
    file = Path("/proc/self/status")
    if not file.exists():
        return None
    [line] = [line for line in file.read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) * 1024


def measured(bench: Bench, runs: Sequence[Run], *, samples: int = N, at_once: int = 1) -> Row:
    """SePer-S and trajectory credit of some runs, by words, as the reader is what grows."""
    reader = bench.reader()
    measuring = Measuring(
        samples=samples,
        seed=SEED,
        meters=("seper",),
        rules=("trajectory",),
        options={"seper.context_words": "0"},
    )

    def work(some: Sequence[Run]) -> None:
        appraiser = Appraiser(reader, wiring.entailment("lexical"), measuring)
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


def growth(bench: Bench) -> Row:
    """Each size alone, the others at their least; an exponent of 1 is linear."""
    retriever = wiring.corpus(wiring.HOPLAND)
    questions = bench.questions(max(1, bench.limit // 10))

    def runs(*, steps: int = 2, k: int = 2, words: int = 0) -> list[Run]:
        return [deep(q, retriever, steps=steps, k=k, words=words) for q in questions]

    crowd = [deep(q, retriever, steps=2, k=2) for q in bench.questions(max(SIZES))]
    measured(bench, runs())  # once for what is only done once
    varied: dict[str, dict[int, Callable[[], Row]]] = {
        "T, steps": {n: lambda n=n: measured(bench, runs(steps=n)) for n in SIZES},
        "k, passages a step": {n: lambda n=n: measured(bench, runs(k=n)) for n in SIZES},
        "N, samples": {N * n: lambda n=n: measured(bench, runs(), samples=N * n) for n in SIZES},
        "words added to a passage": {
            20 * n: lambda n=n: measured(bench, runs(words=20 * n)) for n in SIZES
        },
        "runs at once": {n: lambda n=n: measured(bench, crowd[:n], at_once=n) for n in SIZES},
    }
    found: Row = {}
    for name, sizes in varied.items():
        rows = {size: act() for size, act in sizes.items()}
        found[name] = {
            "exponent of seconds": _exponent({s: r["seconds"] for s, r in rows.items()}),
            "exponent of tokens": _exponent({s: r["tokens"] for s, r in rows.items()}),
            **{str(size): row for size, row in rows.items()},
        }
    return found


def _exponent(values: dict[int, float]) -> float:
    """The slope of log value over log size, by least squares."""
    xs = [log(size) for size in values]
    ys = [log(max(value, 1e-9)) for value in values.values()]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    top = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return top / sum((x - mean_x) ** 2 for x in xs)


def show(found: Row, *, depth: int = 0) -> None:
    for name, value in found.items():
        indent = "  " * depth
        if (
            isinstance(value, dict)
            and not any(isinstance(v, dict) for v in value.values())
            and depth
        ):
            cells = ", ".join(f"{key} {_cell(each)}" for key, each in value.items())
            print(f"{indent}{name}: {cells}")
        elif isinstance(value, dict):
            print(f"\n{indent}{name}")
            show(value, depth=depth + 1)
        else:
            print(f"{indent}{name:44}{_cell(value):>14}")


def _cell(value: object) -> str:
    return (
        f"{value:.4g}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )


def main() -> None:
    gc.set_threshold(200_000)  # as the command line does
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, default=20, help="runs")
    parser.add_argument("--part", action="append", choices=PARTS, help="default: all")
    parser.add_argument("--reader", default=wiring.TINY)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--clock", choices=("processor", "wall"), default="processor")
    parser.add_argument("--layers", type=int, default=random_nli.LAYERS, help="of the NLI model")
    parser.add_argument("--width", type=int, default=random_nli.WIDTH, help="likewise, 64 or more")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.limit < 1:
        parser.error("--limit of 1 or more is needed")
    work = {"speed": speed, "floor": floor, "tracing": tracing, "growth": growth}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(
            spec=given.reader,
            device=given.device,
            wall=given.clock == "wall",
            limit=given.limit,
            nli=random_nli.save(Path(folder) / "nli", layers=given.layers, width=given.width),
            folder=Path(folder),
        )
        found = {name: work[name](bench) for name in given.part or PARTS}
    if given.json:
        json.dump(found, sys.stdout, indent=2)
        return
    show(found)


if __name__ == "__main__":
    main()
