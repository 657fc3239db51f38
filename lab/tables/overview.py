"""Means over questions of each system's quality, utility of evidence and cost."""

from hopscope.lab.table_forms.table import Cell, Table, methods
from hopscope.lab.tables._means import Means
from hopscope.tracing.statistics.over_questions import estimates


def build(results: Means) -> list[Table]:
    measures = results.measures
    cells = [(system, measure) for system in results.systems for measure in measures]
    columns = [results.columns[system, measure.name] for system, measure in cells]
    found = estimates(columns, results.bootstrap)
    rows: dict[str, dict[str, Cell]] = {
        system: {
            "system": system,
            "questions": size.questions,
            "failed": size.failed,
        }
        for system, size in results.sizes.items()
    }
    for (system, measure), estimate in zip(cells, found, strict=True):
        rows[system][measure.name] = estimate
    reasons = dict.fromkeys(
        f"{measure.heading} of {system}: {estimate.reason}"
        for (system, measure), estimate in zip(cells, found, strict=True)
        if estimate.reason
    )
    return [
        Table(
            name="overview",
            title="Means over the measured values",
            columns={
                "system": "system",
                "questions": "questions",
                "failed": "failed",
                **{measure.name: measure.heading for measure in measures},
            },
            rows=tuple(rows.values()),
            notes=(
                *methods(*(estimate.interval for estimate in found)),
                *reasons,
                *results.appraisals,
            ),
            digits={measure.name: measure.digits for measure in measures},
        )
    ]
