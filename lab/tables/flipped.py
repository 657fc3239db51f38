"""Questions that one system has right and another wrong, for every pair, and their numbers.

A pair covers the questions with a verdict on both systems; of several runs of a system on a
question the first counts.
"""

from itertools import combinations

from hopscope.lab.experiments.results import Results
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.lab.tables.win_ratios import verdicts
from hopscope.store.experiments.result_rows import QuestionRow
from hopscope.tracing.statistics.over_questions import holm, mcnemar


def build(results: Results) -> list[Table]:
    right = verdicts(results)
    answers = {
        system: {row.question: row.answer for row in reversed(rows)}
        for system, rows in results.by_system.items()
    }
    counts: list[dict[str, Cell]] = []
    listed: list[dict[str, Cell]] = []
    p_values = []
    for one, other in combinations(results.systems, 2):
        shared = [asked for asked in right[one] if asked in right[other]]
        pairs = [(right[one][asked], right[other][asked]) for asked in shared]
        p_values.append(
            mcnemar(pairs.count((True, False)), pairs.count((False, True))) if shared else None
        )
        counts.append(
            {
                "system": one,
                "versus": other,
                "both": pairs.count((True, True)),
                "only_system": pairs.count((True, False)),
                "only_versus": pairs.count((False, True)),
                "neither": pairs.count((False, False)),
                "p": p_values[-1],
            }
        )
        for asked, (first, second) in zip(shared, pairs, strict=True):
            if first != second:
                winner, loser = (one, other) if first else (other, one)
                said = {"said_right": answers[winner][asked], "said_wrong": answers[loser][asked]}
                listed.append({"right": winner, "wrong": loser, **_question(asked), **said})
    for row, adjusted in zip(counts, holm(p_values), strict=True):
        row["adjusted"] = adjusted
    return [
        Table(
            name="flipped",
            title="Right in one system, wrong in the other",
            columns={
                "system": "system",
                "versus": "versus",
                "both": "both right",
                "only_system": "only system",
                "only_versus": "only versus",
                "neither": "neither",
                "p": "p",
                "adjusted": "p (Holm)",
            },
            rows=tuple(counts),
            notes=("p: mcnemar(exact), adjusted over the pairs",),
            digits={"p": 4, "adjusted": 4},
        ),
        Table(
            name="flipped_questions",
            title="Flipped questions",
            columns={
                "right": "right",
                "wrong": "wrong",
                "id": "id",
                "question": "question",
                "golds": "golds",
                "said_right": "right answer",
                "said_wrong": "wrong answer",
            },
            rows=tuple(listed),
        ),
    ]


def _question(asked: QuestionRow) -> dict[str, Cell]:
    return {"id": asked.id, "question": asked.text, "golds": " | ".join(asked.answers)}
