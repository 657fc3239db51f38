"""Relative win ratios: the share of one system's wrong answers that another gets right.

They cover the questions with a verdict on all systems; of several runs of a system on a question
the first counts. Source: Li et al. 2024 (arXiv 2405.20680), equations 1-3.
"""

from collections.abc import Sequence

from hopscope.lab.experiments.results import Results
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Measurement
from hopscope.store.experiments.result_rows import QuestionRow
from hopscope.tracing.error_decomposition.inconsistency import Matrix, inconsistency


def build(results: Results) -> list[Table]:
    right = verdicts(results)
    shared = set.intersection(*(set(of) for of in right.values())) if right else set()
    asked = [question for question in results.questions if question in shared]
    found = inconsistency(
        {system: [of[question] for question in asked] for system, of in right.items()},
        seed=results.bootstrap.seed,
    )
    table = heat_map(
        "win_ratios",
        "Wrong answers of the column that the row gets right",
        found.systems,
        found.rwr,
        questions=len(asked),
    )
    further = {"mrwr": "MRWR", "mrlr": "MRLR", "accuracy": "right"}
    rows = tuple(
        row | {name: getattr(found, name)[place] for name in further}
        for place, row in enumerate(table.rows)
    )
    oracle = "unknown" if found.oracle.value is None else f"{found.oracle.value:.2f}"
    return [
        table.model_copy(
            update={
                "columns": table.columns | further,
                "rows": rows,
                "notes": (*table.notes, f"any of them right: {oracle}"),
            }
        )
    ]


def verdicts(results: Results) -> dict[str, dict[QuestionRow, bool]]:
    """By system and question, whether the answer is right; questions without a verdict are left
    out."""
    found: dict[str, dict[QuestionRow, bool]] = {}
    for system, rows in results.by_system.items():
        of = found.setdefault(system, {})
        for row in rows:
            right = results.right(row)
            if right is not None:
                of.setdefault(row.question, right)
    return found


def heat_map(
    name: str, title: str, systems: Sequence[str], matrix: Matrix, *, questions: int
) -> Table:
    """A table of systems against systems: each cell compares the row with the column."""
    # A system may have the name of the first column.
    keys = [f"over {system}" for system in systems]
    cells: list[dict[str, Cell]] = [
        {"system": system, **dict(zip(keys, row, strict=True))}
        for system, row in zip(systems, matrix, strict=True)
    ]
    found = [cell for row in matrix for cell in row if isinstance(cell, Measurement)]
    reasons = dict.fromkeys(cell.reason for cell in found if cell.reason)
    return Table(
        name=name,
        title=title,
        columns={"system": "system", **dict(zip(keys, systems, strict=True))},
        rows=tuple(cells),
        notes=(
            f"over {counted(questions, 'question')}",
            "95 % intervals: clopper-pearson",
            *(f"-: {reason}" for reason in reasons),
        ),
        shaded=tuple(keys),
    )
