"""Mean credit of the first retrieval of a run, the second, and so on, by each credit rule.

The steps of different workflows have different indices; their retrievals are counted from 1. A row
covers the runs with that many retrievals, so later rows cover fewer and harder questions; the
column of questions gives their number.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from hopscope.lab.experiments.columnar import ColumnarResults
from hopscope.lab.experiments.results import UNCOUNTED, Results
from hopscope.lab.table_forms.table import Cell, Table, methods
from hopscope.store.experiments.result_columns import RetrievalColumns
from hopscope.store.experiments.result_rows import NOT_APPRAISED, QuestionRow, Retrieval, Value
from hopscope.tracing.reports.displays import display, rule_heading
from hopscope.tracing.statistics.over_questions import Column, estimates

NAME = "credit_by_step"
RULES = ("trajectory", "shapley", "leave_one_out")
"""Those that have a column also where they were not measured."""


def build(results: Results) -> list[Table]:
    measured = [meter for meter in results.meters if _has_shares(results, meter)]
    others = [meter for meter in measured if meter != results.leading]
    return [_table(results, meter, *_names(results, meter)) for meter in (results.leading, *others)]


def named(results: Results | ColumnarResults, meter: str) -> str:
    """The name of a meter's table."""
    return _names(results, meter)[0]


def _names(results: Results | ColumnarResults, meter: str) -> tuple[str, str]:
    """The name and the title of a meter's table."""
    if meter == results.leading:
        return NAME, "Credit by retrieval"
    return f"{NAME}_{meter}", f"Credit by retrieval ({display(meter).heading})"


def _has_shares(results: Results, meter: str) -> bool:
    """Whether runs have credit by other rules than the meter's own changes."""
    return display(meter).baseline and any(
        meter in retrieval.shares for made in results.retrievals.values() for retrieval in made
    )


def of_columns(results: ColumnarResults, meter: str, made: RetrievalColumns) -> Table:
    """The table of one meter, from columns.

    Args:
        made: `results.retrievals(meter)`.
    """
    unknown = np.where(made.uncounted > 0, np.nan, made.tokens)

    def groups(rules: Iterable[str]) -> Iterator[Group]:
        for system in results.systems:
            of_system = np.isin(made.item, results.of_system(system))
            for ordinal in np.unique(made.ordinal[of_system]):
                own = np.flatnonzero(of_system & (made.ordinal == ordinal))
                items = made.item[own]
                columns = {}
                for rule in rules:
                    shares = made.shares.get(rule)
                    values = np.full(len(own), np.nan) if shares is None else shares.values[own]
                    why = _why(shares.reasons if shares else {})
                    columns[rule] = results.mean(items, values, own, why)
                tokens = results.mean(items, unknown[own], own, lambda _: UNCOUNTED)
                yield Group(system, int(ordinal), len(own), columns, tokens)

    headings = _headings(meter, made.shares)
    return _assembled(results, meter, *_names(results, meter), headings, groups(headings))


def _why(reasons: Mapping[int, str]) -> Callable[[int], str]:
    return lambda retrieval: reasons.get(retrieval, NOT_APPRAISED)


def _table(results: Results, meter: str, name: str, title: str) -> Table:
    found_rules = (
        rule
        for made in results.retrievals.values()
        for retrieval in made
        for rule in retrieval.shares.get(meter, ())
    )
    headings = _headings(meter, found_rules)

    def groups() -> Iterator[Group]:
        for system in results.systems:
            for ordinal, found in sorted(by_ordinal(results, system).items()):
                asked = [question for question, _ in found]
                columns = {
                    rule: results.mean(asked, [each.share(meter, rule) for _, each in found])
                    for rule in headings
                }
                tokens: list[Value] = [UNCOUNTED if o.uncounted else o.tokens for _, o in found]
                yield Group(system, ordinal, len(found), columns, results.mean(asked, tokens))

    return _assembled(results, meter, name, title, headings, groups())


class Group(NamedTuple):
    """The retrievals of a system's runs with the same number."""

    system: str
    ordinal: int
    runs: int
    shares: Mapping[str, Column]
    """By rule."""
    tokens: Column


def _headings(meter: str, found: Iterable[str]) -> dict[str, str]:
    headings = {rule: rule_heading(rule) for rule in dict.fromkeys([*RULES, *found])}
    headings["trajectory"] = display(meter).delta
    return headings


def _assembled(
    results: Results | ColumnarResults,
    meter: str,
    name: str,
    title: str,
    headings: Mapping[str, str],
    groups: Iterable[Group],
) -> Table:
    rows: list[dict[str, Cell]] = []
    columns: list[tuple[int, str, Column]] = []
    for group in groups:
        columns += [(len(rows), rule, column) for rule, column in group.shares.items()]
        columns.append((len(rows), "tokens", group.tokens))
        rows.append({"system": group.system, "retrieval": group.ordinal, "runs": group.runs})
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
        digits={**dict.fromkeys(headings, display(meter).digits), "tokens": 0},
    )


def by_ordinal(results: Results, system: str) -> dict[int, list[tuple[QuestionRow, Retrieval]]]:
    """The first, second, … retrievals of a system's runs, with their questions."""
    found: dict[int, list[tuple[QuestionRow, Retrieval]]] = {}
    for row in results.by_system[system]:
        for retrieval in results.retrievals.get(row.run_id or "", []):
            found.setdefault(retrieval.ordinal, []).append((row.question, retrieval))
    return found
