"""Make the shipped corpus and its questions.

    python -m hopscope.lab.hopland.make --out DIR

rewrites `corpus.jsonl.gz` (`{id, title, text}`), `questions-dev.jsonl` and
`questions-test.jsonl`. All come from one world of test names, whose seed training
never uses. Invariant: a question names no entity of its reasoning but the first (or the two
it compares), and no two questions of either split have the same facts.
"""

import argparse
import gzip
import json
import random
from collections.abc import Iterable
from pathlib import Path

from hopscope.lab.hopland import world
from hopscope.lab.hopland.contexts import Sampler
from hopscope.lab.hopland.names import Forge
from hopscope.lab.hopland.questions import (
    COMPARISONS,
    SAME,
    GeneratedQuestion,
    chain,
    comparison,
    yesno,
)
from hopscope.lab.hopland.relations import FIXED
from hopscope.lab.hopland.world import FIXED_FACTS, FIXED_NAMES, Fact, World
from hopscope.runtime.corpora import hopland
from hopscope.runtime.corpora.hopland import DatasetSplit, Shape

SEED = 2_000_003
SCALE = 256

SIZES: dict[DatasetSplit, int] = {"dev": 200, "test": 400}
"""Questions of each hop count in a split; the other kinds have a third as many."""


def _row(identity: str, shape: Shape, asked: GeneratedQuestion, made: World) -> dict[str, object]:
    gold = list(dict.fromkeys(made.telling_of[f] for f in asked.steps if f in made.telling_of))
    passages = [made.tellings[i].passage for i in gold]
    return {
        "id": identity,
        "question": asked.text,
        "golden_answers": [asked.answer],
        "hops": len(asked.steps),
        "kind": shape,
        "gold_passages": [p.id for p in passages],
        "gold_titles": [p.title for p in passages],
        "reasoning": asked.reasoning,
    }


def _loops(steps: Iterable[Fact]) -> bool:
    names = [name for fact in steps for name in (fact.subject, fact.object)]
    return len(set(names)) <= len(names) // 2


def _ask(rng: random.Random, sampler: Sampler, shape: Shape, hops: int) -> GeneratedQuestion | None:
    """One question of this shape, or None if the draw failed."""
    if shape == "comparison" and (pair := sampler.pair(rng.choice(sorted(COMPARISONS)))):
        return comparison(rng, *pair)
    if shape == "yesno" and (pair := sampler.pair(rng.choice(sorted(SAME)))):
        return yesno(rng, *pair)
    if shape == "chain":
        steps = sampler.walk(hops)
        return chain(rng, steps) if len(steps) == hops and not _loops(steps) else None
    if shape == "known":
        if hops == 1:
            return sampler.fixed()
        steps = sampler.walk(hops - 1)
        if len(steps) == hops - 1 and steps[-1].object in FIXED_NAMES["country"]:
            return chain(rng, [*steps, FIXED_FACTS[steps[-1].object, rng.choice(FIXED).name]])
    return None


def make() -> tuple[World, dict[DatasetSplit, list[dict[str, object]]]]:
    """The world of the shipped corpus and the questions about it."""
    made = world.make(SEED, split="test", scale=SCALE, phrasing="mixed", density="sparse")
    rng = random.Random(SEED)
    sampler = Sampler(made, rng, Forge(rng, "test", world.RESERVED))
    taken: set[frozenset[Fact]] = set()
    splits: dict[DatasetSplit, list[dict[str, object]]] = {}
    for split, n in SIZES.items():
        rows: list[dict[str, object]] = []
        wanted: list[tuple[Shape, int, int]] = [("chain", hops, n) for hops in (1, 2, 3, 4)]
        wanted += [("known", hops, n // 6) for hops in (1, 2, 3)]
        wanted += [("comparison", 2, n // 3), ("yesno", 2, n // 3)]
        for shape, hops, count in wanted:
            left = count
            while left:
                asked = _ask(rng, sampler, shape, hops)
                if asked is None or frozenset(asked.steps) in taken:
                    continue
                taken.add(frozenset(asked.steps))
                rows.append(_row(f"hopland-{split}-{len(rows)}", shape, asked, made))
                left -= 1
        splits[split] = rows
    return made, splits


def write(out: Path) -> None:
    """Write corpus and questions; the same code gives the same bytes."""
    made, splits = make()
    out.mkdir(parents=True, exist_ok=True)
    lines = (t.passage.model_dump_json(include={"id", "title", "text"}) for t in made.tellings)
    text = "".join(line + "\n" for line in lines)
    (out / "corpus.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    for split, rows in splits.items():
        body = "".join(json.dumps(row) + "\n" for row in rows)
        (out / f"questions-{split}.jsonl").write_text(body, "utf-8")


def main() -> None:
    """Parse the command line and write the files."""
    parser = argparse.ArgumentParser(description="Write the Hopland corpus and its questions.")
    parser.add_argument("--out", type=Path, default=Path(hopland.__file__).parent / "hopland_data")
    write(parser.parse_args().out)


if __name__ == "__main__":
    main()
