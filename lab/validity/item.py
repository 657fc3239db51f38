"""ITEM's Table 2 in small: F1 of methods of utility judgment against the gold passages.

A question has five to ten candidates in random order: its gold passages; of the others one half are
hits of a search for the question, one half random passages, as in GTI-NQ with its strong and weak
distractors. Each method is the product's own workflow, with the candidates in place of a
retriever's ranking. Micro-F1 counts passages over all questions, macro-F1 is the mean of the
questions' own; the choice of all candidates is the baseline.

Nothing is sampled, so the first rounds of ITEM with m = 5 equal those with a smaller m, and one run
gives all; if its choice is stable earlier, it counts for the remaining rounds.

Source: Zhang, Bi, Guo, Cheng 2026 (arXiv 2406.11290), sections 4 and 5.1, Tables 1 and 2.
"""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np

from hopscope.lab.suites.answering import answer
from hopscope.lab.suites.columns import FAILED, apart, mean
from hopscope.lab.suites.figures import table
from hopscope.lab.suites.worlds import ChainItem, SuiteInputs
from hopscope.lab.table_forms.table import Cell, Table, methods
from hopscope.runtime import key_lists
from hopscope.runtime.execution.run import Workflow
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Reader
from hopscope.runtime.types import Hit, Passage, Question, Run
from hopscope.tracing.erag.selection import agreement
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, Estimate, estimates
from hopscope.workflows import item, k_sampling, uj_expa, uj_impa, vanilla
from hopscope.workflows.selection.choosing import Graph

SHARE = 0.5
"""The share of the limit: every question takes some thirty judgments."""
FEWEST, MOST = 5, 10
"""The numbers of a question's candidates."""
ROUNDS = 5
"""The largest m."""
GUESS, BASELINE = "all candidates", "Vanilla"

Choice = Collection[str] | None
"""Keys of the passages that were chosen; None where the run failed."""


class Listed(NamedTuple):
    """A question and its candidate passages."""

    question: Question
    candidates: tuple[Passage, ...]
    gold: frozenset[str]
    """Keys of the gold passages."""


class Way(NamedTuple):
    """A method of judgment."""

    name: str
    build: Callable[[], Graph]
    decides: str
    """The name of the steps that output a choice."""
    rounds: int = 1


WAYS: tuple[Way, ...] = (
    Way(BASELINE, lambda: vanilla.build(candidates=MOST), "judge_utility"),
    Way("UJ-ExpA", lambda: uj_expa.build(candidates=MOST), "judge_utility"),
    Way("UJ-ImpA", lambda: uj_impa.build(candidates=MOST), "judge_utility"),
    Way("k-sampling", lambda: k_sampling.build(candidates=MOST), "vote"),
    Way("ITEM-As", lambda: item.build(m=ROUNDS, candidates=MOST), "judge_utility", ROUNDS),
    Way(
        "ITEM-ARs",
        lambda: item.build(variant="ARs", m=ROUNDS, candidates=MOST),
        "judge_utility",
        ROUNDS,
    ),
)


@dataclass(frozen=True)
class FixedRetriever:
    """A retriever that returns the same passages for every query."""

    passages: tuple[Passage, ...]
    name: str = "given"

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        found = [Hit(passage=p, score=1 / place) for place, p in enumerate(self.passages, start=1)]
        return [found[:k] for _ in queries]


def build(inputs: SuiteInputs) -> list[Table]:
    """Half of the questions have one hop, half two."""
    n = ceil(inputs.limit * SHARE)
    single, double = inputs.chains(1, ceil(n / 2)), inputs.chains(2, n // 2)
    asked = [listed(inputs, one) for one in (*single, *double)]
    made: dict[str, list[Choice]] = {GUESS: [[p.key for p in row.candidates] for row in asked]}
    made |= judge(inputs.reader, asked, seed=inputs.seed)
    return [tabulate(made, asked, seed=inputs.seed)]


def listed(inputs: SuiteInputs, asked: ChainItem) -> Listed:
    """The candidates of a question."""
    size = random.Random(f"item {inputs.seed} {asked.question.id}").randint(FEWEST, MOST)
    others = size - len(asked.gold)
    near = inputs.distractors(asked, ceil(others / 2))
    shown = {p.key: p for p in (*asked.gold, *near)}
    for passage in inputs.unrelated(asked, size):
        if len(shown) < size:
            shown.setdefault(passage.key, passage)
    gold = frozenset(passage.key for passage in asked.gold)
    return Listed(asked.question, inputs.shuffled(asked, list(shown.values())), gold)


def judge(reader: Reader, asked: Sequence[Listed], *, seed: int) -> dict[str, list[Choice]]:
    """The choice for each question, by method; `(m)` follows the name of a method with rounds."""
    made: dict[str, list[Choice]] = {}
    for way in WAYS:
        workflow = Workflow(way.name, way.build(), {})
        for row in asked:
            deps = Deps(reader, FixedRetriever(row.candidates), seed=seed, capture_content=False)
            found = choices(answer(workflow, row.question, deps), way)
            for m, choice in enumerate(found, start=1):
                name = f"{way.name} ({m})" if way.rounds > 1 else way.name
                made.setdefault(name, []).append(choice)
    return made


def choices(found: Run, way: Way) -> tuple[Choice, ...]:
    """The choices with m = 1, 2, ..., `way.rounds`."""
    if found.status != "ok":
        return (None,) * way.rounds
    made = [
        list(key_lists.read(step.output) or ()) for step in found.steps if step.name == way.decides
    ]
    return (*made, *made[-1:] * (way.rounds - len(made)))


def tabulate(made: Mapping[str, Sequence[Choice]], asked: Sequence[Listed], *, seed: int) -> Table:
    """A row for each method, over the same questions."""
    bootstrap = Bootstrap(seed=seed)
    golds = [row.gold for row in asked]
    micro = [micro_f1(chosen, golds) for chosen in made.values()]
    macro = [macro_f1(chosen, golds) for chosen in made.values()]
    found = estimates([*micro, *macro], bootstrap)
    baseline = micro[list(made).index(BASELINE)]
    rows: list[dict[str, Cell]] = [
        {
            "way": way,
            "micro_f1": found[place],
            "macro_f1": found[len(made) + place],
            **({} if way == BASELINE else {"gain": apart(micro[place], baseline, bootstrap)}),
        }
        for place, way in enumerate(made)
    ]
    used = [cell.interval for row in rows for cell in row.values() if isinstance(cell, Estimate)]
    return table(
        "item",
        "Utility judgments against gold passages: F1 (ITEM, Table 2)",
        {
            "way": "method",
            "micro_f1": "micro-F1",
            "macro_f1": "macro-F1",
            "gain": f"micro-F1 above {BASELINE}",
        },
        rows,
        f"{len(asked)} questions of one and two hops with {FEWEST} to {MOST} candidates; m in "
        "parentheses; a reply that cannot be read chooses nothing",
        *methods(*used),
    )


def micro_f1(made: Sequence[Choice], golds: Sequence[Collection[str]]) -> Column:
    """Micro-F1: twice the right passages over the sum of chosen and gold passages."""
    counts = [agreement([(choice or (), gold)]) for choice, gold in zip(made, golds, strict=True)]
    done = np.array([choice is not None for choice in made], float)
    right = done * [2 * count.right for count in counts]
    whole = done * [2 * count.right + count.wrong + count.missed for count in counts]
    return Column(right, whole, done, np.ones(len(made)), reason=FAILED)


def macro_f1(made: Sequence[Choice], golds: Sequence[Collection[str]]) -> Column:
    """Macro-F1: the mean of the questions' F1."""
    pairs = zip(made, golds, strict=True)
    return mean([None if c is None else agreement([(c, gold)]).f1 for c, gold in pairs])
