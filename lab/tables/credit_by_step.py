"""Mean credit of the first retrieval of a run, the second, and so on, by each credit rule.

The steps of different workflows have different indices; their retrievals are counted from 1. A row
covers the runs with that many retrievals, so later rows cover fewer and harder questions; the
column of questions gives their number.
"""

from hopscope.lab.experiments.results import UNCOUNTED, Results
from hopscope.lab.table_forms.table import Cell, Table, methods
from hopscope.store.experiments.result_rows import QuestionRow, Retrieval, Value
from hopscope.tracing.reports.displays import display, rule_heading
from hopscope.tracing.statistics.over_questions import Column, estimates

RULES = ("trajectory", "shapley", "leave_one_out")
"""Those that have a column also where they were not measured."""


def build(results: Results) -> list[Table]:
    measured = [meter for meter in results.meters if _has_shares(results, meter)]
    others = [meter for meter in measured if meter != results.leading]
    return [
        _table(results, results.leading, "credit_by_step", "Credit by retrieval"),
        *(
            _table(
                results,
                meter,
                f"credit_by_step_{meter}",
                f"Credit by retrieval ({display(meter).heading})",
            )
            for meter in others
        ),
    ]


def _has_shares(results: Results, meter: str) -> bool:
    """Whether runs have credit by other rules than the meter's own changes."""
    return display(meter).baseline and any(
        meter in retrieval.shares for made in results.retrievals.values() for retrieval in made
    )


def _table(results: Results, meter: str, name: str, title: str) -> Table:
    told = display(meter)
    found_rules = dict.fromkeys(
        rule
        for made in results.retrievals.values()
        for retrieval in made
        for rule in retrieval.shares.get(meter, ())
    )
    headings = {rule: rule_heading(rule) for rule in dict.fromkeys([*RULES, *found_rules])}
    headings["trajectory"] = told.delta
    rows: list[dict[str, Cell]] = []
    columns: list[tuple[int, str, Column]] = []
    for system in results.systems:
        for ordinal, found in sorted(by_ordinal(results, system).items()):
            asked = [question for question, _ in found]
            for rule in headings:
                values = [retrieval.share(meter, rule) for _, retrieval in found]
                columns.append((len(rows), rule, results.mean(asked, values)))
            tokens: list[Value] = [UNCOUNTED if o.uncounted else o.tokens for _, o in found]
            columns.append((len(rows), "tokens", results.mean(asked, tokens)))
            rows.append({"system": system, "retrieval": ordinal, "runs": len(found)})
    figures = estimates([column for _, _, column in columns], results.bootstrap)
    for (place, key, _), figure in zip(columns, figures, strict=True):
        rows[place][key] = figure
    return Table(
        name=name,
        title=title,
        columns={
            "system": "system",
            "retrieval": "retrieval",
            "runs": "runs",
            **headings,
            "tokens": "tokens",
        },
        rows=tuple(rows),
        notes=(*methods(*(figure.interval for figure in figures)), *results.appraisals),
        digits={**dict.fromkeys(headings, told.digits), "tokens": 0},
    )


def by_ordinal(results: Results, system: str) -> dict[int, list[tuple[QuestionRow, Retrieval]]]:
    """The first, second, … retrievals of a system's runs, with their questions."""
    found: dict[int, list[tuple[QuestionRow, Retrieval]]] = {}
    for row in results.by_system[system]:
        for retrieval in results.retrievals.get(row.run_id or "", []):
            found.setdefault(retrieval.ordinal, []).append((row.question, retrieval))
    return found
