"""EoR's errors by system and step, and the share of a system's errors that another avoids.

`tracing.error_decomposition.report` defines and computes them.
"""

from collections.abc import Mapping, Sequence

from hopscope.lab.experiments.results import Results
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.lab.tables.win_ratios import heat_map
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Measurement
from hopscope.tracing.error_decomposition.report import ErrorReport, error_report

SHARES = {
    "failure": "failure",
    "retriever": "retriever",
    "extraction": "extraction",
    "hallucination": "hallucination",
    "lucky_guess": "lucky guess",
    "residual": "residual",
}


def build(results: Results) -> list[Table]:
    found = error_report(
        [run for runs in results.runs.values() for run in runs],
        results.metrics[results.verdict],
        threshold=results.threshold,
        seed=results.bootstrap.seed,
    )
    tables = [_shares(found)]
    if found.comparison is not None:
        tables += [
            heat_map(
                f"errors_{kind}",
                f"{SHARES[kind].capitalize()} errors of the column that the row avoids",
                found.comparison.right.systems,
                matrix,
                questions=found.comparison.questions,
            )
            for kind, matrix in found.comparison.errors.items()
        ]
    return tables


def _shares(found: ErrorReport) -> Table:
    rows: list[dict[str, Cell]] = []
    for system in found.systems:
        head: dict[str, Cell] = {"system": system.system, "part": "whole run"}
        rows.append(head | {"answers": system.measured} | _cells(system.shares))
        for index, shares in system.steps.items():
            head = {"system": system.system, "part": f"step {index}"}
            rows.append(head | {"answers": shares["failure"].n} | _cells(shares))
    notes = [
        "95 % intervals: clopper-pearson",
        f"right from {found.threshold} of {found.metric} on",
    ]
    if found.too_long:
        notes.append(
            f"left out: {counted(found.too_long, 'question')} with an answer of more than "
            f"{found.max_words} words"
        )
    return Table(
        name="errors",
        title="Errors by system and step",
        columns={"system": "system", "part": "part", "answers": "answers", **SHARES},
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _cells(shares: Mapping[str, Measurement]) -> dict[str, Cell]:
    names: Sequence[str] = tuple(SHARES)
    return {name: shares[name] for name in names}
