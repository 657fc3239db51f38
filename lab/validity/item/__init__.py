"""ITEM's Tables 2 and 6 in small: methods of utility judgment against the gold passages.

A question has five to ten candidates in random order: its gold passages; of the others one half are
hits of a search for the question, one half random passages, as in GTI-NQ with its strong and weak
distractors. A question of a file keeps the candidates, and their order, that the file or a given
ranking has for it, as BM25's top 20 in Table 1. Each method is the product's own workflow, with the
candidates in place of a retriever's ranking. Precision, recall and micro-F1 count passages over all
questions, macro-F1 is the mean of the questions' own; the choice of all candidates is the baseline.
ITEM drafts an explicit answer or an implicit one, the information that an answer needs. With
judgment=pointwise every passage is judged alone; ITEM-ARs and k-sampling cannot do that and are
left out.

Where judgments of passages have several grades, another table has the precision by the grade that
counts as right (Table 10).

The next table has the answers from what each method chose, from the gold passages and from all
candidates; where nothing was chosen, all are shown.

Nothing is sampled, so the first rounds of ITEM with m = 5 equal those with a smaller m, and one run
gives all; if its choice is stable earlier, it counts for the remaining rounds.

Source: Zhang, Bi, Guo, Cheng 2026 (arXiv 2406.11290), sections 4 and 5, Tables 1, 2,
5, 6 and 10.
"""

import random
from collections.abc import Mapping, Sequence
from math import ceil

from hopscope.lab.suites.columns import FAILED, apart, mean
from hopscope.lab.suites.figures import table
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import KnownQuestion, Need
from hopscope.lab.table_forms.table import Cell, Table, methods
from hopscope.lab.validity.item import selections
from hopscope.lab.validity.item.selections import Choice
from hopscope.lab.validity.item.ways import BASELINE, FEWEST, MOST, Listed, judge, ways
from hopscope.runtime.ports import Reader
from hopscope.runtime.texts.counting import counted
from hopscope.tracing.answer_metrics import exact_match, f1
from hopscope.tracing.asking import asking
from hopscope.tracing.asking.asking import Unmeasured
from hopscope.tracing.scoring.metric import Case
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, Estimate, estimates

NEEDS = (Need.GOLD,)
TAKES_CANDIDATES = True
METERS = ()
WORKFLOWS = ("vanilla", "uj_expa", "uj_impa", "k_sampling", "item")
VARIED = ("item.m", "item.variant", *(f"{name}.candidates" for name in WORKFLOWS))
SHARE = 0.5
"""The share of the limit: every question takes some thirty judgments."""
GUESS, GOLDEN = "all candidates", "Golden"
MAX_TOKENS = 32
"""Tokens of an answer from chosen passages."""


def build(inputs: SuiteInputs) -> list[Table]:
    """Questions of one and of two hops, or those of a file."""
    asked = [listed(inputs, one) for one in inputs.mixed(ceil(inputs.limit * SHARE))]
    made: dict[str, list[Choice]] = {GUESS: [[p.key for p in row.candidates] for row in asked]}
    errors: list[str] = []
    judging = ways({name: inputs.workflow(name) for name in WORKFLOWS})
    made |= judge(
        inputs.reader,
        asked,
        judging,
        seed=inputs.seed,
        tell=errors.append,
        prompts=inputs.prompts("item"),
    )
    graded = max((grade for row in asked for grade in row.grades.values()), default=0) > 1
    return [
        tabulate(made, asked, *_failures(errors), *_without_gold(asked), seed=inputs.seed),
        *([by_grade(made, asked, seed=inputs.seed)] if graded else []),
        answers(inputs.reader, made, asked, seed=inputs.seed),
    ]


def listed(inputs: SuiteInputs, asked: KnownQuestion) -> Listed:
    """The candidates of a question."""
    if asked.candidates:
        gold = frozenset(passage.key for passage in asked.candidates if asked.is_gold(passage))
        return Listed(asked.question, asked.candidates, gold, asked.grades)
    size = random.Random(f"item {inputs.seed} {asked.question.id}").randint(FEWEST, MOST)
    others = size - len(asked.gold)
    near = inputs.distractors(asked, ceil(others / 2))
    shown = {p.key: p for p in (*asked.gold, *near)}
    for passage in inputs.unrelated(asked, size):
        if len(shown) < size:
            shown.setdefault(passage.key, passage)
    gold = frozenset(passage.key for passage in asked.gold)
    candidates = inputs.shuffled(asked, list(shown.values()))
    return Listed(asked.question, candidates, gold, asked.grades)


def _failures(errors: Sequence[str]) -> list[str]:
    return [f"{counted(len(errors), 'run')} failed, the first with: {errors[0]}"] if errors else []


def _without_gold(asked: Sequence[Listed]) -> list[str]:
    n = sum(not row.gold for row in asked)
    return (
        [f"{counted(n, 'question has', 'questions have')} no gold passage among the candidates"]
        if n
        else []
    )


def tabulate(
    made: Mapping[str, Sequence[Choice]], asked: Sequence[Listed], *notes: str, seed: int
) -> Table:
    """A row for each method, over the same questions."""
    bootstrap = Bootstrap(seed=seed)
    golds = [row.gold for row in asked]
    columns = {
        way: {**selections.micro(chosen, golds), "macro_f1": selections.macro_f1(chosen, golds)}
        for way, chosen in made.items()
    }
    found = iter(estimates([each for of in columns.values() for each in of.values()], bootstrap))
    baseline = columns[BASELINE]["micro_f1"]
    rows: list[dict[str, Cell]] = [
        {
            "way": way,
            **{key: next(found) for key in of},
            **({} if way == BASELINE else {"gain": apart(of["micro_f1"], baseline, bootstrap)}),
        }
        for way, of in columns.items()
    ]
    return table(
        "item",
        "Utility judgments against gold passages (ITEM, Tables 2 and 6)",
        {
            "way": "method",
            "precision": "precision",
            "recall": "recall",
            "micro_f1": "micro-F1",
            "macro_f1": "macro-F1",
            "gain": f"micro-F1 above {BASELINE}",
        },
        rows,
        f"{counted(len(asked), 'question')} with {_sizes(asked)} candidates; m in parentheses; a "
        "reply that cannot be read chooses nothing",
        *notes,
        *_intervals(rows),
    )


def by_grade(made: Mapping[str, Sequence[Choice]], asked: Sequence[Listed], *, seed: int) -> Table:
    """Precision by the least grade that counts as right."""
    grades = [row.grades for row in asked]
    levels = sorted({grade for of in grades for grade in of.values() if grade > 0})
    columns = [
        selections.precision_from(chosen, grades, least)
        for chosen in made.values()
        for least in levels
    ]
    found = iter(estimates(columns, Bootstrap(seed=seed)))
    rows: list[dict[str, Cell]] = [
        {"way": way, **{f"grade_{least}": next(found) for least in levels}} for way in made
    ]
    return table(
        "item_grades",
        "Precision of utility judgments by grade (ITEM, Table 10)",
        {"way": "method", **{f"grade_{least}": f"grade {least} or more" for least in levels}},
        rows,
        f"{counted(len(asked), 'question')}; passages without a judgment have grade 0",
        *_intervals(rows),
    )


def _intervals(rows: Sequence[Mapping[str, Cell]]) -> tuple[str, ...]:
    used = [cell.interval for row in rows for cell in row.values() if isinstance(cell, Estimate)]
    return methods(*used)


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
        f"{counted(len(asked), 'question')}; where nothing was chosen, all candidates are shown",
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
