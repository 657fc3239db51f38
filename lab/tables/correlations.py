"""Rank correlations over questions between measures of the evidence and the answer's score.

The measures are the evidence's value by each meter and, for labelled passages, eRAG's measures of
the run's ranking (Salemi & Zamani 2024, arXiv 2404.13781, section 4.1). SePer uses the gold
answers, as the score does; GroGU and eRAG's ranking do not use the final answer.
"""

from collections.abc import Sequence

from hopscope.lab.experiments.results import Results
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.types import Measurement
from hopscope.tracing.erag.report import erag_report
from hopscope.tracing.statistics.correlation import rank_correlation


def build(results: Results) -> list[Table]:
    rows: list[dict[str, Cell]] = []
    for system in results.systems:
        rows += _of_utilities(results, system)
        rows += _of_rankings(results, system)
    intervals = dict.fromkeys(
        cell.estimator for row in rows for cell in row.values() if isinstance(cell, Measurement)
    )
    return [
        Table(
            name="correlations",
            title=f"Rank correlation with {results.measure(results.verdict).heading}",
            columns={
                "system": "system",
                "measure": "measure",
                "kendall": "τ-b",
                "spearman": "ρ",  # noqa: RUF001
                "questions": "questions",
            },
            rows=tuple(rows),
            notes=(
                *(f"{estimator}" for estimator in intervals if "interval" in estimator),
                *_missing(rows),
                *results.appraisals,
            ),
        )
    ]


def _missing(rows: Sequence[dict[str, Cell]]) -> list[str]:
    """Why correlations are not there: each reason with the rows it holds for."""
    found: dict[str, list[str]] = {}
    for row in rows:
        correlation = row["kendall"]
        if isinstance(correlation, Measurement) and correlation.reason:
            found.setdefault(correlation.reason, []).append(f"{row['system']}, {row['measure']}")
    return [f"no correlation, {reason}: {'; '.join(of)}" for reason, of in found.items()]


def _of_utilities(results: Results, system: str) -> list[dict[str, Cell]]:
    verdict = results.measure(results.verdict)
    rows: list[dict[str, Cell]] = []
    for measure in results.utilities:
        pairs = [
            (value, score)
            for found in results.by_system[system]
            if not isinstance(value := measure.of(found), str)
            and not isinstance(score := verdict.of(found), str)
        ]
        if pairs:
            rows.append(_row(results, system, measure.heading, pairs))
    return rows


def _of_rankings(results: Results, system: str) -> list[dict[str, Cell]]:
    if results.erag is None:
        return []
    seed = results.bootstrap.seed
    found = erag_report(results.runs[system], results.erag, seed=seed)
    return [
        {
            "system": system,
            "measure": f"eRAG {name}",
            "kendall": agreement.kendall,
            "spearman": agreement.spearman,
            "questions": agreement.kendall.n,
        }
        for name, agreement in found.agreement.items()
        if found.averages[name].value is not None
    ]


def _row(
    results: Results, system: str, name: str, pairs: Sequence[tuple[float, float]]
) -> dict[str, Cell]:
    one, other = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    seed = results.bootstrap.seed
    return {
        "system": system,
        "measure": name,
        "kendall": rank_correlation("kendall", one, other, seed=seed),
        "spearman": rank_correlation("spearman", one, other, seed=seed),
        "questions": len(pairs),
    }
