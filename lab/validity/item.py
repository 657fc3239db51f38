"""ITEM's Table 2 in small: F1 of methods of utility judgment against the gold passages.

A question has five to ten candidates in random order: its gold passages; of the others one half are
hits of a search for the question, one half random passages, as in GTI-NQ with its strong and weak
distractors. A question of a file keeps the candidates that the file gives it. Each method is the
product's own workflow, with the candidates in place of a retriever's ranking. Micro-F1 counts
passages over all questions, macro-F1 is the mean of the questions' own; the choice of all
candidates is the baseline.

The second table has the answers from what each method chose, from the gold passages and from all
candidates; where nothing was chosen, all are shown.

Nothing is sampled, so the first rounds of ITEM with m = 5 equal those with a smaller m, and one run
gives all; if its choice is stable earlier, it counts for the remaining rounds.

Source: Zhang, Bi, Guo, Cheng 2026 (arXiv 2406.11290), sections 4 and 5, Tables 1, 2 and
5.
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
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import KnownQuestion, Need
from hopscope.lab.table_forms.table import Cell, Table, methods
from hopscope.runtime import key_lists
from hopscope.runtime.execution.run import Workflow
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Reader
from hopscope.runtime.types import Hit, Passage, Question, Run
from hopscope.tracing.answer_metrics import exact_match, f1
from hopscope.tracing.asking import asking
from hopscope.tracing.asking.asking import Unmeasured
from hopscope.tracing.erag.selection import agreement
from hopscope.tracing.scoring.metric import Case
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, Estimate, estimates
from hopscope.workflows import item, k_sampling, uj_expa, uj_impa, vanilla
from hopscope.workflows.selection.choosing import Graph

NEEDS = (Need.GOLD,)
SHARE = 0.5
"""The share of the limit: every question takes some thirty judgments."""
FEWEST, MOST = 5, 10
"""The numbers of a question's candidates."""
ROUNDS = 5
"""The largest m."""
GUESS, BASELINE, GOLDEN = "all candidates", "Vanilla", "Golden"
MAX_TOKENS = 32
"""Tokens of an answer from chosen passages."""

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
    build: Callable[[int], Graph]
    """The workflow over so many candidates."""
    decides: str
    """The name of the steps that output a choice."""
    rounds: int = 1


WAYS: tuple[Way, ...] = (
    Way(BASELINE, lambda most: vanilla.build(candidates=most), "judge_utility"),
    Way("UJ-ExpA", lambda most: uj_expa.build(candidates=most), "judge_utility"),
    Way("UJ-ImpA", lambda most: uj_impa.build(candidates=most), "judge_utility"),
    Way("k-sampling", lambda most: k_sampling.build(candidates=most), "vote"),
    Way("ITEM-As", lambda most: item.build(m=ROUNDS, candidates=most), "judge_utility", ROUNDS),
    Way(
        "ITEM-ARs",
        lambda most: item.build(variant="ARs", m=ROUNDS, candidates=most),
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
    """Questions of one and of two hops, or those of a file."""
    asked = [listed(inputs, one) for one in inputs.mixed(ceil(inputs.limit * SHARE))]
    made: dict[str, list[Choice]] = {GUESS: [[p.key for p in row.candidates] for row in asked]}
    errors: list[str] = []
    made |= judge(inputs.reader, asked, seed=inputs.seed, tell=errors.append)
    return [
        tabulate(made, asked, *_failures(errors), seed=inputs.seed),
        answers(inputs.reader, made, asked, seed=inputs.seed),
    ]


def listed(inputs: SuiteInputs, asked: KnownQuestion) -> Listed:
    """The candidates of a question."""
    if asked.candidates:
        gold = frozenset(passage.key for passage in asked.candidates if asked.is_gold(passage))
        return Listed(asked.question, asked.candidates, gold)
    size = random.Random(f"item {inputs.seed} {asked.question.id}").randint(FEWEST, MOST)
    others = size - len(asked.gold)
    near = inputs.distractors(asked, ceil(others / 2))
    shown = {p.key: p for p in (*asked.gold, *near)}
    for passage in inputs.unrelated(asked, size):
        if len(shown) < size:
            shown.setdefault(passage.key, passage)
    gold = frozenset(passage.key for passage in asked.gold)
    return Listed(asked.question, inputs.shuffled(asked, list(shown.values())), gold)


def judge(
    reader: Reader, asked: Sequence[Listed], *, seed: int, tell: Callable[[str], object] = str
) -> dict[str, list[Choice]]:
    """The choice for each question, by method; `(m)` follows the name of a method with rounds.
    `tell` gets the errors of runs that failed."""
    made: dict[str, list[Choice]] = {}
    most = max([MOST, *(len(row.candidates) for row in asked)])
    for way in WAYS:
        workflow = Workflow(way.name, way.build(most), {})
        for row in asked:
            deps = Deps(reader, FixedRetriever(row.candidates), seed=seed, capture_content=False)
            done = answer(workflow, row.question, deps)
            if done.error:
                tell(done.error.message)
            found = choices(done, way)
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


def _failures(errors: Sequence[str]) -> list[str]:
    return [f"{len(errors)} runs failed, the first with: {errors[0]}"] if errors else []


def tabulate(
    made: Mapping[str, Sequence[Choice]], asked: Sequence[Listed], *notes: str, seed: int
) -> Table:
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
        f"{len(asked)} questions with {_sizes(asked)} candidates; m in parentheses; a reply that "
        "cannot be read chooses nothing",
        *notes,
        *methods(*used),
    )


def answers(
    reader: Reader, made: Mapping[str, Sequence[Choice]], asked: Sequence[Listed], *, seed: int
) -> Table:
    """A row for the passages of each method: exact match and F1 of the answers from them."""
    golden: list[Choice] = [row.gold for row in asked]
    chosen = {GOLDEN: golden, **made}
    told = [
        _answered(reader, row, [of[at] for of in chosen.values()]) for at, row in enumerate(asked)
    ]
    metrics = {"em": exact_match.build(), "f1": f1.build()}
    columns: list[Column] = []
    for place in range(len(chosen)):
        for name, metric in metrics.items():
            scored = metric.score([row[place] for row in told])
            reason = next((one.reason for one in scored if one.reason), FAILED)
            values = [one.value for one in scored]
            columns.append(mean(values, binary=name == "em", reason=reason))
    found = estimates(columns, Bootstrap(seed=seed))
    rows: list[dict[str, Cell]] = [
        {"way": way, "em": found[2 * place], "f1": found[2 * place + 1]}
        for place, way in enumerate(chosen)
    ]
    return table(
        "item_answers",
        "Answers from the chosen passages (ITEM, Table 5)",
        {"way": "method", "em": "EM", "f1": "F1"},
        rows,
        f"{len(asked)} questions; where nothing was chosen, all candidates are shown",
        *methods(*(each.interval for each in found)),
    )


def _answered(reader: Reader, row: Listed, chosen: Sequence[Choice]) -> list[Case]:
    """The question with the reader's answer from each choice."""
    shown = [
        tuple(p for p in row.candidates if p.key in (choice or ())) or row.candidates
        for choice in chosen
    ]
    asked = asking.requests(
        row.question.text, shown, n=1, temperature=0.0, max_tokens=MAX_TOKENS, seed=0
    )
    replies = dict(zip(asked, asking.generate(reader, list(asked.values())), strict=True))
    found = [replies[asking.content(passages)] for passages in shown]
    return [
        Case(
            row.question,
            None if choice is None or isinstance(reply, Unmeasured) else reply[0].text.strip(),
        )
        for choice, reply in zip(chosen, found, strict=True)
    ]


def _sizes(asked: Sequence[Listed]) -> str:
    sizes = sorted({len(row.candidates) for row in asked})
    return str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"


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
