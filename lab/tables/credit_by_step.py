"""What the first retrieval of a run is worth, the second, and so on, by each rule of credit.

The steps of different workflows have different indices; their retrievals are counted from 1. A row
is over the runs that came so far, so that later rows are over fewer and harder questions. Their
number says how many.
"""

from hopscope.lab.results import Results
from hopscope.lab.statistics import Column, estimates
from hopscope.lab.tables._table import Cell, Table, methods
from hopscope.store.figures import Asked, Retrieval

RULES = {"trajectory": "ΔSePer", "shapley": "Shapley", "leave_one_out": "leave-one-out"}


def build(results: Results) -> list[Table]:
    rows: list[dict[str, Cell]] = []
    columns: list[tuple[int, str, Column]] = []
    for system in results.systems:
        for ordinal, found in sorted(by_ordinal(results, system).items()):
            asked = [question for question, _ in found]
            for name in (*RULES, "tokens"):
                values = [getattr(retrieval, name) for _, retrieval in found]
                columns.append((len(rows), name, results.mean(asked, values)))
            rows.append({"system": system, "retrieval": ordinal, "runs": len(found)})
    figures = estimates([column for _, _, column in columns], results.bootstrap)
    for (place, name, _), figure in zip(columns, figures, strict=True):
        rows[place][name] = figure
    return [
        Table(
            name="credit_by_step",
            title="Credit by retrieval",
            columns={
                "system": "system",
                "retrieval": "retrieval",
                "runs": "runs",
                **RULES,
                "tokens": "tokens",
            },
            rows=tuple(rows),
            notes=(*methods(*(figure.interval for figure in figures)), *results.appraisals),
            digits={"tokens": 0},
        )
    ]


def by_ordinal(results: Results, system: str) -> dict[int, list[tuple[Asked, Retrieval]]]:
    """The first, second, … retrievals of a system's runs, with their questions."""
    found: dict[int, list[tuple[Asked, Retrieval]]] = {}
    for figures in results.by_system[system]:
        for retrieval in results.retrievals.get(figures.run_id or "", []):
            found.setdefault(retrieval.ordinal, []).append((figures.asked, retrieval))
    return found
