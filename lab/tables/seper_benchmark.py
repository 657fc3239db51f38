"""SePer's benchmark of workflows: rows are datasets and workflows, columns passages per retrieval
and readers.

The paper heads its table ΔSePer, but its rows of naive RAG equal those of its Table 10, which are
SePer; this table has both. A cell covers all items with that workflow, k and reader, whatever the
workflow's other settings.

Source: Dai et al. 2025 (arXiv 2503.01478), Table 12.
"""

from pathlib import Path

from hopscope.lab.experiments.results import Measure, Results
from hopscope.lab.table_forms.table import Cell, Table, methods
from hopscope.store.experiments.records import Arm, Experiment
from hopscope.store.experiments.result_rows import ResultRow
from hopscope.tracing.statistics.over_questions import Column, estimates

Row = tuple[str, str]
"""Dataset and workflow."""
Across = tuple[int, str]
"""Passages per retrieval and reader."""


def build(results: Results) -> list[Table]:
    return [_table(results, results.measure(name)) for name in ("seper", "seper_delta")]


def _table(results: Results, measure: Measure) -> Table:
    arms = {
        (experiment.name, arm.label): (experiment, arm)
        for experiment in results.experiments.values()
        for arm in experiment.arms
    }
    cells: dict[tuple[Row, Across], list[ResultRow]] = {}
    for found in results.rows:
        experiment, arm = arms[found.experiment, found.arm]
        row = (dataset(experiment), arm.workflow)
        cells.setdefault((row, (_k(arm), experiment.reader)), []).append(found)
    columns: list[Column] = [
        results.mean([found.question for found in rows], measure.all(rows))
        for rows in cells.values()
    ]
    figures = estimates(columns, results.bootstrap)
    rows: dict[Row, dict[str, Cell]] = {}
    for (row, across), figure in zip(cells, figures, strict=True):
        of_row = rows.setdefault(row, {"dataset": row[0], "workflow": row[1]})
        of_row[_head(across)] = figure
    heads = [_head(across) for across in sorted({across for _, across in cells})]
    return Table(
        name=f"seper_benchmark_{measure.name}",
        title=f"{measure.heading} by dataset and workflow",
        columns={
            "dataset": "dataset",
            "workflow": "workflow",
            **{name: name for name in heads},
        },
        rows=tuple(rows.values()),
        notes=(*methods(*(figure.interval for figure in figures)), *results.appraisals),
    )


def dataset(experiment: Experiment) -> str:
    """The dataset's name: its file's name, else the experiment's."""
    given = experiment.settings.get("data")
    return Path(given).stem if isinstance(given, str) and given else experiment.name


def _head(across: Across) -> str:
    return "k={}, {}".format(*across)


def _k(arm: Arm) -> int:
    """Passages per retrieval, or 0 for workflows that do not retrieve."""
    options = arm.settings.get("options")
    k = options.get("k") if isinstance(options, dict) else None
    return k if isinstance(k, int) else 0
