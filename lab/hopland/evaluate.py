"""The reader's figures on worlds it has never seen.

    python -m hopscope.lab.hopland.evaluate [--model FOLDER] [--n N] [--json]

Every question gets a context of five passages from a fresh world of test names: its gold
passages and distractors, of which at least half tell of an entity of the chain or of a relation
of the chain. Answers are generated freely and greedily and must equal the gold answer.
"""

import argparse
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import binomtest, mannwhitneyu

from hopscope.lab.hopland import world
from hopscope.lab.hopland.contexts import Sampler
from hopscope.lab.hopland.names import Forge
from hopscope.lab.hopland.questions import MARKER, Asked, chain
from hopscope.lab.hopland.world import FIXED_FACTS, Fact, Phrasing
from hopscope.runtime import prompts
from hopscope.runtime.ports import Reader
from hopscope.runtime.readers import hf
from hopscope.runtime.types import Generation, GenerationRequest, Passage, Prompt, ScoreRequest

FIRST_WORLD = 1_000_000
PASSAGES = 5
BATCH = 50


@dataclass(frozen=True)
class Case:
    """A question with the contexts it is asked over."""

    asked: Asked
    full: tuple[Passage, ...]
    """All gold passages and distractors."""
    parts: tuple[tuple[Passage, ...], ...]
    """For each hop: the context with that hop's gold passage replaced by a distractor."""
    bare: tuple[Passage, ...]
    """Distractors only."""


def cases(hops: int, n: int, *, phrasing: Phrasing = "mixed") -> list[Case]:
    """Cases of chains of this many hops, two from each world."""
    made: list[Case] = []
    seed = FIRST_WORLD
    while len(made) < n:
        seed += 1
        rng = random.Random(f"evaluate {seed}")
        drawn = world.make(seed, split="test", phrasing=phrasing)
        sampler = Sampler(drawn, rng, Forge(rng, "test", world.RESERVED))
        made += [case for _ in range(2) if (case := _case(sampler, rng, hops))]
    return made[:n]


def _case(sampler: Sampler, rng: random.Random, hops: int) -> Case | None:
    steps = sampler.walk(hops)
    drawn = sampler.world
    gold = list(dict.fromkeys(drawn.telling_of[f] for f in steps))
    names = {name for f in steps for name in (f.subject, f.object)}
    if len(gold) < hops or len(names) < hops + 1:
        return None
    near = [
        i
        for i, t in enumerate(drawn.tellings)
        if i not in gold and any(_near(f, steps) for f in t.facts)
    ]
    far = [i for i in range(len(drawn.tellings)) if i not in gold and i not in near]
    half = min(len(near), (PASSAGES + 1) // 2)
    distractors = rng.sample(near, half) + rng.sample(far, PASSAGES - half)
    rng.shuffle(distractors)

    def shown(kept: Sequence[int]) -> tuple[Passage, ...]:
        needed = PASSAGES - len(kept)
        close = [d for d in distractors if d in near][: (needed + 1) // 2]
        rest = [d for d in distractors if d not in close][: needed - len(close)]
        order = rng.sample([*kept, *close, *rest], PASSAGES)
        return tuple(drawn.tellings[i].passage for i in order)

    parts = tuple(shown([g for g in gold if g != out]) for out in gold)
    return Case(chain(rng, steps), shown(gold), parts, shown([]))


def _near(fact: Fact, steps: Sequence[Fact]) -> bool:
    names = {name for f in steps for name in (f.subject, f.object)}
    relations = {f.relation for f in steps}
    return fact.relation in relations or fact.subject in names or fact.object in names


@dataclass(frozen=True)
class Figure:
    """A share or mean with a 95 % interval (Clopper-Pearson for shares)."""

    name: str
    value: float
    n: int
    low: float | None = None
    high: float | None = None
    wanted: str = ""


def share(name: str, hits: Sequence[bool], wanted: str = "") -> Figure:
    """The share of hits."""
    found = binomtest(sum(hits), len(hits)).proportion_ci(method="exact")
    return Figure(name, sum(hits) / len(hits), len(hits), found.low, found.high, wanted)


def mean(name: str, values: Sequence[float], wanted: str = "") -> Figure:
    """The mean, with a normal interval."""
    n, centre = len(values), sum(values) / len(values)
    spread = (sum((v - centre) ** 2 for v in values) / max(1, n - 1) / n) ** 0.5
    return Figure(name, centre, n, centre - 1.96 * spread, centre + 1.96 * spread, wanted)


def generate(reader: Reader, asked: Sequence[Prompt], max_tokens: int) -> list[Generation]:
    """Greedy generations, in batches."""
    requests = [GenerationRequest(prompt=p, max_tokens=max_tokens) for p in asked]
    found: list[Generation] = []
    for i in range(0, len(requests), BATCH):
        found += [replies[0] for replies in reader.generate(requests[i : i + BATCH])]
    return found


def short(reader: Reader, rows: Sequence[tuple[Asked, Sequence[Passage]]]) -> list[bool]:
    """Whether each bare answer is exactly right."""
    replies = generate(reader, [prompts.short_answer(a.text, e) for a, e in rows], 24)
    return [r.text.strip() == a.answer for r, (a, _) in zip(replies, rows, strict=True)]


def reasoned(reader: Reader, rows: Sequence[tuple[Asked, Sequence[Passage]]]) -> list[bool]:
    """Whether the answer at the end of each chain of thought is exactly right."""
    replies = generate(reader, [prompts.chain_of_thought(a.text, e) for a, e in rows], 128)
    said = [r.text.rpartition(MARKER)[2].strip().removesuffix(".") for r in replies]
    return [s == a.answer for s, (a, _) in zip(said, rows, strict=True)]


def beliefs(reader: Reader, rows: Sequence[tuple[Asked, Sequence[Passage]]]) -> list[float]:
    """The probability of the gold answer as the short answer, the end token left out."""
    requests = [
        ScoreRequest(prompt=prompts.short_answer(a.text, e), continuation=a.answer) for a, e in rows
    ]
    scored = [s for i in range(0, len(rows), BATCH) for s in reader.score(requests[i : i + BATCH])]
    return [2.718281828459045 ** sum(s.logprobs) for s in scored]


def key_entropies(
    reader: Reader,
    rows: Sequence[tuple[Asked, Sequence[Passage]]],
    *,
    alpha: float = 0.05,
    top: float = 0.1,
) -> list[float]:
    """KeyEntropy of the greedy short answer: mean entropy of the tokens the passages sway."""
    replies = generate(reader, [prompts.short_answer(a.text, e) for a, e in rows], 24)
    asked = [
        ScoreRequest(prompt=prompts.short_answer(a.text), token_ids=r.token_ids)
        for (a, _), r in zip(rows, replies, strict=True)
    ]
    alone = [s for i in range(0, len(rows), BATCH) for s in reader.score(asked[i : i + BATCH])]
    found = []
    for reply, ungrounded in zip(replies, alone, strict=True):
        pairs = list(zip(reply.entropies, ungrounded.entropies, strict=True))
        keys = [g for g, u in pairs if abs(g - u) > alpha]
        if not keys:
            keys = sorted(reply.entropies, reverse=True)[: max(1, int(top * len(pairs)))]
        found.append(sum(keys) / len(keys))
    return found


def figures(reader: Reader, n: int) -> list[Figure]:
    """Everything the model card reports."""
    one, two = cases(1, n), cases(2, n)
    unseen_one, unseen_two = (cases(h, n, phrasing="unseen") for h in (1, 2))
    three = cases(3, n // 2)
    rng = random.Random(200)
    fixed = [(chain(rng, [fact]), ()) for fact in FIXED_FACTS.values()]
    with_gold, without = ([(c.asked, e(c)) for c in one] for e in (_full, _bare))
    entropies = key_entropies(reader, with_gold), key_entropies(reader, without)
    auroc = mannwhitneyu(entropies[1], entropies[0]).statistic / (n * n)
    found = [
        share("one hop, short answer", short(reader, with_gold), ">= .95"),
        share("one hop, short answer, unseen phrasing only", short(reader, _over(unseen_one))),
        share("one hop, chain of thought", reasoned(reader, with_gold), ">= .95"),
        share("two hops, chain of thought", reasoned(reader, _over(two)), ">= .85"),
        share("two hops, chain of thought, unseen only", reasoned(reader, _over(unseen_two))),
        share("two hops, short answer", short(reader, _over(two))),
        share("three hops, chain of thought", reasoned(reader, _over(three))),
        share("three hops, short answer", short(reader, _over(three))),
        share("fixed facts without passages, short answer", short(reader, fixed)),
        share("one hop, gold passage removed, gold answer", short(reader, without), "<= .10"),
        Figure("one hop, AUROC of KeyEntropy", float(auroc), 2 * n, wanted=">= .90"),
        mean("belief, two hops, both gold passages", beliefs(reader, _over(two)), ">= .7"),
    ]
    for name, evidence in BELIEF_CONTEXTS.items():
        rows = [(c.asked, evidence(c)) for c in two]
        found.append(mean(f"belief, two hops, {name}", beliefs(reader, rows), "about 0"))
    rows = [(c.asked, BELIEF_CONTEXTS["first gold passage missing"](c)) for c in two]
    found.append(share("two hops, first gold removed, gold answer", short(reader, rows), "<= .10"))
    rows = [(c.asked, BELIEF_CONTEXTS["last gold passage missing"](c)) for c in two]
    found.append(share("two hops, last gold removed, gold answer", short(reader, rows), "<= .10"))
    return found


def _full(case: Case) -> tuple[Passage, ...]:
    return case.full


def _bare(case: Case) -> tuple[Passage, ...]:
    return case.bare


def _over(chosen: Sequence[Case]) -> list[tuple[Asked, tuple[Passage, ...]]]:
    return [(case.asked, case.full) for case in chosen]


BELIEF_CONTEXTS: dict[str, Callable[[Case], tuple[Passage, ...]]] = {
    "first gold passage missing": lambda case: case.parts[0],
    "last gold passage missing": lambda case: case.parts[-1],
    "both gold passages missing": _bare,
    "no passages": lambda case: (),
}


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description="Measure a Hopland reader on unseen worlds.")
    default = Path(hf.__file__).parent / "hopland"
    parser.add_argument("--model", type=Path, default=default, help="folder of the reader")
    parser.add_argument("--n", type=int, default=500, help="questions in most cells")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = figures(hf.build(model=str(given.model), dtype="float32"), given.n)
    if given.json:
        print(json.dumps([vars(f) for f in found], indent=2))
        return
    for f in found:
        between = f"[{f.low:.3f}, {f.high:.3f}]" if f.low is not None else ""
        print(f"{f.name:48} {f.value:.3f}  {between:16} n {f.n:4}  {f.wanted}")


if __name__ == "__main__":
    main()
