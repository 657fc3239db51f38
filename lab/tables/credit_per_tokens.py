"""Credit per 1,000 tokens: the sum of credit divided by the sum of the tokens spent on it.

The meter is SePer or, if SePer was not measured, the first meter with a baseline.

For whole runs the credit is the total change, the tokens are all tokens of the run. For retrievals
the credit is the Shapley share, the tokens are those from this retrieval to the next. It is a ratio
of sums, not a mean of ratios, so a cheap run has no extra weight.
"""

from hopscope.lab.experiments.results import UNCOUNTED, Results
from hopscope.lab.table_forms.table import Cell, Table, methods
from hopscope.lab.tables.credit_by_step import by_ordinal
from hopscope.store.experiments.result_rows import Value
from hopscope.tracing.reports.displays import display
from hopscope.tracing.statistics.over_questions import Column, estimates


def _known(value: Value, uncounted: int) -> Value:
    """The value if its tokens are known, else the reason why it has no ratio."""
    return UNCOUNTED if uncounted else value


def build(results: Results) -> list[Table]:
    rows: list[dict[str, Cell]] = []
    columns: list[Column] = []
    meter = results.leading
    told = display(meter)
    total = results.measure(f"{meter}_delta" if told.baseline else meter)
    for system, found in results.by_system.items():
        asked = [f.question for f in found]
        values = [_known(v, f.uncounted) for v, f in zip(total.all(found), found, strict=True)]
        columns.append(results.ratio(asked, values, [f.tokens / 1000 for f in found]))
        rows.append({"system": system, "part": "whole run"})
        for ordinal, made in sorted(by_ordinal(results, system).items()):
            asked = [question for question, _ in made]
            values = [_known(each.share(meter, "shapley"), each.uncounted) for _, each in made]
            thousands = [each.tokens / 1000 for _, each in made]
            columns.append(results.ratio(asked, values, thousands))
            rows.append({"system": system, "part": f"retrieval {ordinal}"})
    figures = estimates(columns, results.bootstrap)
    for row, figure in zip(rows, figures, strict=True):
        row["credit"] = figure
    return [
        Table(
            name="credit_per_tokens",
            title="Credit per 1,000 tokens",
            columns={
                "system": "system",
                "part": "part",
                "credit": f"{told.heading} per 1,000 tokens",
            },
            rows=tuple(rows),
            notes=(*methods(*(figure.interval for figure in figures)), *results.appraisals),
            digits={"credit": 3},
        )
    ]
