"""DeBERTa as an entailment on the processor: time for a pair, and agreement in eight bits.

speed          milliseconds for a pair, by transformers, with the relative positions that occur
               (`runtime/models/deberta.py`), packed (`runtime/models/deberta_packed.py`), and
               packed in bfloat16 and in numbers of eight bits; random weights of DeBERTa-base's
               size; the best of several times, in turn. And the operations a second of the packed
               model's widest map alone, beside those of the whole model
agreement      the packed model in single precision against both approximations. No trained MNLI
               classifier can be had offline, so a small one of the same architecture is trained
               here on the verdicts of `lexical` on answers of Hopland's `dev`. It is trained,
               so its verdicts mean something, but it is far smaller than a published one.
               Differences of P(entailment) on pairs of `test` and how often the relation is
               the same; differences of credit by SePer-S over IRCoT runs, and how often the
               95 % interval by an approximation holds the value by single precision

OMP_NUM_THREADS=1 python benchmarks/reader/entailment.py [--part NAME]... [--steps 400] [--limit 20]
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from math import inf
from pathlib import Path
from statistics import mean
from time import process_time
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hopscope.api import parts
from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.models import deberta_packed
from hopscope.runtime.models.deberta import keep_near
from hopscope.runtime.models.devices import Precision
from hopscope.runtime.models.linear import Build, bfloat16, eight_bits, laid_out, multiplies
from hopscope.runtime.ports import Probabilities, Statement
from hopscope.tracing.entailments import lexical, nli

sys.path.insert(0, str(Path(__file__).parents[1]))
from credit_parts import random_nli

CLASSES = ("contradiction", "neutral", "entailment")
BATCH, RATE, WARM = 48, 1e-3, 50
TIMES = 3
APPROXIMATIONS: tuple[Precision, ...] = ("bfloat16", "eight-bits")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", action="append", choices=("speed", "agreement"))
    parser.add_argument("--steps", type=int, default=400, help="of training")
    parser.add_argument("--layers", type=int, default=2, help="of the model to train")
    parser.add_argument("--width", type=int, default=128, help="likewise")
    parser.add_argument("--limit", type=int, default=20, help="runs")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--keep", type=Path, help="a folder for the trained model")
    given = parser.parse_args()
    chosen = given.part or ("speed", "agreement")
    with tempfile.TemporaryDirectory() as folder:
        if "speed" in chosen:
            speed(random_nli.save(Path(folder) / "large"))
        if "agreement" in chosen:
            place = given.keep or Path(folder) / "trained"
            if not (place / "config.json").exists():
                train(place, steps=given.steps, layers=given.layers, width=given.width)
            exact = nli.build(model=str(place), device="cpu")
            for precision in APPROXIMATIONS:
                if multiplies(precision):
                    print(f"precision={precision}")
                    models = [exact, nli.build(model=str(place), device="cpu", precision=precision)]
                    probabilities(models, list(pairs(random.Random(1), given.pairs, "test")))
                    credits(models, given.limit)


def speed(folder: Path) -> None:
    """Print the table."""
    kinds: dict[str, Callable[[Any], None]] = {
        "transformers": lambda model: None,
        "near": keep_near,
        "packed": deberta_packed.pack,
    }
    if multiplies("eight-bits"):
        kinds["packed, eight bits"] = lambda model: deberta_packed.pack(model, eight_bits)
    if multiplies("bfloat16"):
        kinds["packed, bfloat16"] = lambda model: deberta_packed.pack(model, bfloat16)
    models = {}
    for name, change in kinds.items():
        model: Any = AutoModelForSequenceClassification.from_pretrained(
            folder, local_files_only=True
        )
        change(model.eval())
        models[name] = model
    for texts, least, most in ((8, 30, 30), (40, 30, 30), (40, 24, 36)):
        generator = torch.Generator().manual_seed(0)
        ids = torch.randint(5, 1000, (texts, most), generator=generator)
        lengths = torch.randint(least, most + 1, (texts,), generator=generator)
        lengths[0] = most
        mask = (torch.arange(most) < lengths[:, None]).long()
        best: dict[str, float] = {}
        probabilities = {}
        with torch.inference_mode():
            for _ in range(TIMES):
                for name, model in models.items():
                    start = process_time()
                    logits = model(input_ids=ids, attention_mask=mask).logits
                    took = 1000 * (process_time() - start) / texts
                    best[name] = min(took, best.get(name, inf))
                    probabilities[name] = logits.softmax(1)
        exact = probabilities["transformers"]
        cells = (
            f"{name} {took:.0f} (P ± {(probabilities[name] - exact).abs().max():.1g})"
            for name, took in best.items()
        )
        print(f"{texts} pairs of {least} to {most} tokens, ms each: {', '.join(cells)}", flush=True)
    wide = torch.nn.Linear(random_nli.WIDTH, 4 * random_nli.WIDTH)
    tokens = torch.randn(deberta_packed.CACHED, random_nli.WIDTH)
    operations = 2e-9 * wide.weight.numel() * len(tokens)
    alone: dict[str, Build] = {"single": laid_out}
    if multiplies("eight-bits"):
        alone["eight bits"] = eight_bits
    if multiplies("bfloat16"):
        alone["bfloat16"] = bfloat16
    for name, build in alone.items():
        mapped = build([wide])
        least_time = inf
        with torch.inference_mode():
            for _ in range(20 * TIMES):
                start = process_time()
                mapped(tokens)
                least_time = min(least_time, process_time() - start)
        print(f"the widest map alone, {name}: {operations / least_time:.0f} GFLOP/s")


def train(folder: Path, *, steps: int, layers: int, width: int) -> None:
    """Write a model trained on lexical verdicts."""
    random_nli.save(folder, layers=layers, width=width)
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model: Any = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True)
    model.eval()  # nothing is dropped: pairs are never seen twice
    keep_near(model)  # which computes the same in less time
    judge = lexical.build()
    given = pairs(random.Random(0), steps * BATCH, "dev")
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    right = 0.0
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min((step + 1) / WARM, (steps - step) / steps)
        batch = [next(given) for _ in range(BATCH)]
        found = judge.classify(batch)
        wanted = torch.tensor([[getattr(one, name) for name in CLASSES] for one in found])
        premises, hypotheses = zip(*map(nli.statement_texts, batch), strict=True)
        texts = tokenizer(list(premises), list(hypotheses), padding=True, return_tensors="pt")
        logits = model(**texts).logits
        loss = torch.nn.functional.cross_entropy(logits, wanted)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        right += (logits.argmax(1) == wanted.argmax(1)).double().mean().item()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.3f}, right {right / 100:.3f}", flush=True)
            right = 0.0
    model.save_pretrained(folder)


def pairs(rng: random.Random, count: int, split: Any) -> Iterator[Statement]:
    """Answers to a question against its gold, in either order."""
    questions = [item.question for item in hopland.questions(split)]
    for _ in range(count):
        question = rng.choice(questions)
        gold, other = question.answers[0], rng.choice(questions).answers[0]
        said = rng.choice(
            [gold, gold, other, other, f"{gold} and {other}", gold.split()[0], f"in {gold}"]
        )
        both = (said, gold) if rng.random() < 0.5 else (gold, said)
        yield Statement(question.text, *both)


def probabilities(models: Sequence[Any], asked: list[Statement]) -> None:
    exact, short = (model.classify(asked) for model in models)
    words = lexical.build().classify(asked)
    apart = [abs(a.entailment - b.entailment) for a, b in zip(exact, short, strict=True)]
    print(
        f"{len(asked)} pairs: {agreeing(exact, words):.1%} of the verdicts in single precision are "
        f"those of lexical. P(entailment) differs by {mean(apart):.4f} on average, "
        f"{max(apart):.4f} at most; {agreeing(exact, short):.1%} of the verdicts are the same"
    )


def agreeing(some: Sequence[Probabilities], others: Sequence[Probabilities]) -> float:
    """The share of pairs with the same likeliest relation."""
    return mean(a.index(max(a)) == b.index(max(b)) for a, b in zip(some, others, strict=True))


def credits(models: Sequence[Any], limit: int) -> None:
    reader = parts.reader(parts.TINY)
    deps = Deps(reader=reader, retriever=parts.corpus(parts.HOPLAND))
    chains = [item.question for item in hopland.questions("test") if item.hops > 1]
    runs = [run(parts.workflow("ircot", {}), question, deps) for question in chains[:limit]]
    measuring = Measuring(samples=10, seed=0, meters=("seper",), rules=("trajectory",))
    exact, short = (
        [one for each in runs for one in Appraiser(reader, model, measuring).appraise(each).credits]
        for model in models
    )
    for rule, name in (("level", "beliefs"), ("trajectory", "credits of steps")):
        both = [
            (a.measurement.value, b.measurement)
            for a, b in zip(exact, short, strict=True)
            if a.rule == rule
        ]
        measured = [
            (a, b.value, b.low <= a <= b.high)
            for a, b in both
            if a is not None and b.value is not None and b.low is not None and b.high is not None
        ]
        apart = [abs(a - b) for a, b, _ in measured]
        held = [inside for *_, inside in measured]
        size = mean(abs(a) for a, *_ in measured)
        print(
            f"{len(measured)} {name} of mean size {size:.3f}: differ by "
            f"{mean(apart):.4f} on average, {max(apart):.4f} at most; {sum(held)} intervals hold "
            "the value by single precision"
        )


if __name__ == "__main__":
    main()
