"""Differences of systems on the same questions, with p-values.

Every pair of systems is compared on the questions with a measurement of both. The p-values of a
measure, over all pairs, are one family for Holm's correction.
"""

from itertools import combinations

from hopscope.lab.table_forms.table import Table, methods
from hopscope.lab.tables._means import Heading, Means
from hopscope.tracing.statistics.over_questions import Difference, differences, holm


def build(results: Means) -> list[Table]:
    pairs = list(combinations(results.systems, 2))
    measures = results.measures
    columns = results.columns
    cells = [(measure, one, other) for measure in measures for one, other in pairs]
    found = differences(
        [(columns[one, m.name], columns[other, m.name]) for m, one, other in cells],
        results.bootstrap,
    )
    rows = list(zip(cells, _adjusted(cells, found), strict=True))
    tests = dict.fromkeys(difference.test for difference in found if difference.test)
    return [
        Table(
            name="differences",
            title="Differences on the same questions",
            columns={
                "measure": "measure",
                "system": "system",
                "versus": "versus",
                "difference": "difference",
                "p": "p",
                "adjusted": "p (Holm)",
            },
            rows=tuple(
                {
                    "measure": measure.heading,
                    "system": one,
                    "versus": other,
                    "difference": difference,
                    "p": difference.p,
                    "adjusted": difference.adjusted,
                }
                for (measure, one, other), difference in rows
                if difference.value is not None
            ),
            notes=(
                *methods(*(difference.interval for difference in found)),
                *(
                    (f"p: {'; '.join(tests)}, adjusted over the pairs of a measure",)
                    if tests
                    else ()
                ),
                *results.appraisals,
            ),
            digits={"p": 4, "adjusted": 4},
        )
    ]


def _adjusted(cells: list[tuple[Heading, str, str]], found: list[Difference]) -> list[Difference]:
    result = list(found)
    for name in dict.fromkeys(measure.name for measure, _, _ in cells):
        family = [place for place, cell in enumerate(cells) if cell[0].name == name]
        for place, p in zip(family, holm([found[i].p for i in family]), strict=True):
            result[place] = found[place].model_copy(update={"adjusted": p})
    return result
