"""The upper bound of an ensemble by the number of its systems.

A pool of systems is right on a question if any of them is; the spread is over all pools of one
size. It covers the questions with a verdict on all systems; of several runs of a system on a
question the first counts. Source: Li et al. 2024 (arXiv 2405.20680), Figure 5.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from hopscope.lab.experiments.results import Results
from hopscope.lab.table_forms.table import Cell, Table, methods
from hopscope.lab.tables.win_ratios import verdicts
from hopscope.runtime.texts.counting import counted
from hopscope.tracing.error_decomposition.pools import pool_sizes
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, Floats, estimates

SPREAD = {
    "lowest": "lowest",
    "lower": "quarter",
    "median": "median",
    "upper": "three quarters",
    "highest": "highest",
}


def build(results: Results) -> list[Table]:
    right = verdicts(results)
    shared = set.intersection(*(set(of) for of in right.values())) if right else set()
    asked = [question for question in results.questions if question in shared]
    of_systems = {system: [of[question] for question in asked] for system, of in right.items()}
    return [tabulate("upper_bound", of_systems, results.bootstrap)]


def tabulate(name: str, right: Mapping[str, Sequence[bool]], bootstrap: Bootstrap) -> Table:
    """A row for each size of the pool.

    Args:
        right: whether each system is right on each question, questions in the same order.
    """
    found = pool_sizes(right, seed=bootstrap.seed)
    means = estimates([_column(row.by_question) for row in found], bootstrap)
    rows: list[dict[str, Cell]] = [
        {
            "size": str(row.size),
            "pools": row.pools,
            **dict(zip(SPREAD, row.quartiles, strict=True)),
            "mean": mean,
        }
        for row, mean in zip(found, means, strict=True)
    ]
    questions = len(found[0].by_question) if found else 0
    return Table(
        name=name,
        title="Questions that any system of a pool gets right, by the size of the pool",
        columns={"size": "systems", "pools": "pools", **SPREAD, "mean": "mean"},
        rows=tuple(rows),
        notes=(
            f"over {counted(questions, 'question')}",
            "highest with " + "; ".join(", ".join(row.best) for row in found),
            *(
                f"of {row.pools:,} pools of {row.size} the spread is that of {row.seen:,} drawn"
                for row in found
                if row.seen < row.pools
            ),
            *methods(*(mean.interval for mean in means)),
        ),
        digits=dict.fromkeys([*SPREAD, "mean"], 3),
    )


def _column(values: Floats) -> Column:
    each = np.ones(len(values))
    return Column(values, each, each, each)
