"""The reader's figures on unseen worlds.

    python -m hopscope.lab.hopland.evaluation.evaluate [--model FOLDER] [--n N] [--json]

Answers are generated freely and greedily and must equal the gold answer.
"""

import argparse
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import JsonValue
from scipy.stats import mannwhitneyu

from hopscope.lab.hopland.cases import Case, Check, batches, cases, mean, share
from hopscope.lab.hopland.evaluation import calibration, evaluate_prompts
from hopscope.lab.hopland.questions import MARKER, GeneratedQuestion, chain
from hopscope.lab.hopland.world import FIXED_FACTS
from hopscope.runtime.ports import Reader
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Measurement,
    Passage,
    Prompt,
    ScoreRequest,
)


def generate(reader: Reader, asked: Sequence[Prompt], max_tokens: int) -> list[Generation]:
    """Greedy generations, in batches."""
    requests = [GenerationRequest(prompt=p, max_tokens=max_tokens) for p in asked]
    return [replies[0] for part in batches(requests) for replies in reader.generate(part)]


def short(
    reader: Reader, rows: Sequence[tuple[GeneratedQuestion, Sequence[Passage]]]
) -> list[bool]:
    """Whether each bare answer is exactly right."""
    replies = generate(reader, [prompts.short_answer(a.text, e) for a, e in rows], 24)
    return [r.text.strip() == a.answer for r, (a, _) in zip(replies, rows, strict=True)]


def reasoned(
    reader: Reader, rows: Sequence[tuple[GeneratedQuestion, Sequence[Passage]]]
) -> list[bool]:
    """Whether the answer at the end of each chain of thought is exactly right."""
    replies = generate(reader, [prompts.chain_of_thought(a.text, e) for a, e in rows], 128)
    said = [r.text.rpartition(MARKER)[2].strip().removesuffix(".") for r in replies]
    return [s == a.answer for s, (a, _) in zip(said, rows, strict=True)]


def beliefs(
    reader: Reader, rows: Sequence[tuple[GeneratedQuestion, Sequence[Passage]]]
) -> list[float]:
    """The probability of the gold answer as the short answer, the end token left out."""
    requests = [
        ScoreRequest(prompt=prompts.short_answer(a.text, e), continuation=a.answer) for a, e in rows
    ]
    scored = [s for part in batches(requests) for s in reader.score(part)]
    return [2.718281828459045 ** sum(s.logprobs) for s in scored]


def key_entropies(
    reader: Reader,
    rows: Sequence[tuple[GeneratedQuestion, Sequence[Passage]]],
    *,
    alpha: float = 0.05,
    top: float = 0.1,
) -> list[float]:
    """KeyEntropy of the greedy short answer: mean entropy of the tokens the passages change."""
    replies = generate(reader, [prompts.short_answer(a.text, e) for a, e in rows], 24)
    asked = [
        ScoreRequest(prompt=prompts.short_answer(a.text), token_ids=r.token_ids)
        for (a, _), r in zip(rows, replies, strict=True)
    ]
    alone = [s for part in batches(asked) for s in reader.score(part)]
    found = []
    for reply, ungrounded in zip(replies, alone, strict=True):
        pairs = list(zip(reply.entropies, ungrounded.entropies, strict=True))
        keys = [g for g, u in pairs if abs(g - u) > alpha]
        if not keys:
            keys = sorted(reply.entropies, reverse=True)[: max(1, int(top * len(pairs)))]
        found.append(sum(keys) / len(keys))
    return found


def figures(reader: Reader, n: int) -> list[Check]:
    """The figures of the model card."""
    one, two = cases(1, n), cases(2, n)
    unseen_one, unseen_two = (cases(h, n, phrasing="unseen") for h in (1, 2))
    three = cases(3, n // 2)
    rng = random.Random(200)
    fixed = [(chain(rng, [fact]), ()) for fact in FIXED_FACTS.values()]
    with_gold, without = ([(c.asked, e(c)) for c in one] for e in (_full, _bare))
    entropies = key_entropies(reader, with_gold), key_entropies(reader, without)
    auroc = mannwhitneyu(entropies[1], entropies[0]).statistic / (n * n)
    found = [
        share("one hop, short answer", short(reader, with_gold), ">= .98"),
        share("one hop, short answer, unseen phrasing only", short(reader, _over(unseen_one))),
        share("one hop, chain of thought", reasoned(reader, with_gold), ">= .95"),
        share("two hops, chain of thought", reasoned(reader, _over(two)), ">= .93"),
        share("two hops, chain of thought, unseen only", reasoned(reader, _over(unseen_two))),
        share("two hops, short answer", short(reader, _over(two)), ">= .70"),
        share("three hops, chain of thought", reasoned(reader, _over(three)), ">= .85"),
        share("three hops, short answer", short(reader, _over(three))),
        share("fixed facts without passages, short answer", short(reader, fixed)),
        share("one hop, gold passage removed, gold answer", short(reader, without), "<= .10"),
        Check(
            "one hop, AUROC of KeyEntropy",
            Measurement(value=float(auroc), n=2 * n, estimator="auroc"),
            ">= .90",
        ),
        mean("belief, two hops, both gold passages", beliefs(reader, _over(two)), ">= .7"),
    ]
    for name, evidence in BELIEF_CONTEXTS.items():
        rows = [(c.asked, evidence(c)) for c in two]
        found.append(mean(f"belief, two hops, {name}", beliefs(reader, rows), "about 0"))
    rows = [(c.asked, BELIEF_CONTEXTS["first gold passage missing"](c)) for c in two]
    found.append(share("two hops, first gold removed, gold answer", short(reader, rows), "<= .10"))
    rows = [(c.asked, BELIEF_CONTEXTS["last gold passage missing"](c)) for c in two]
    found.append(share("two hops, last gold removed, gold answer", short(reader, rows), "<= .10"))
    found += evaluate_prompts.judgments(reader, n)
    found += calibration.calibration(reader, 2 * n)
    return found + evaluate_prompts.obedience(reader, n // 5)


def _full(case: Case) -> tuple[Passage, ...]:
    return case.full


def _bare(case: Case) -> tuple[Passage, ...]:
    return case.bare


def _over(chosen: Sequence[Case]) -> list[tuple[GeneratedQuestion, tuple[Passage, ...]]]:
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
    if given.n < 5:
        parser.error("--n of 5 or more is needed")
    found = figures(hf.build(model=str(given.model), dtype="float32"), given.n)
    if given.json:
        print(json.dumps([_as_json(check) for check in found], indent=2))
        return
    for check in found:
        of = check.measurement
        between = "" if of.low is None else f"[{of.low:.3f}, {of.high:.3f}]"
        print(f"{check.name:48} {of.value:.3f}  {between:16} n {of.n:4}  {check.wanted}")


def _as_json(check: Check) -> dict[str, JsonValue]:
    measured = {name: getattr(check.measurement, name) for name in ("value", "n", "low", "high")}
    return {"name": check.name, **measured, "wanted": check.wanted}


if __name__ == "__main__":
    main()
