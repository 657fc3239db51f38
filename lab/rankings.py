"""Rankings of an index against judgments: MRR, recall and NDCG.

A query without a relevant passage in the judgments is left out and counted. MRR looks at the whole
ranking; recall@c is the share of a query's relevant passages among the first c; NDCG's gain is the
label. All are trec_eval's, computed through ir_measures, and means have intervals over queries.
"""

from collections.abc import Mapping, Sequence

from hopscope.lab.table_forms.table import Cell, Table, methods
from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.counting import counted
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, estimates

RECALL = (1, 5, 10, 20, 100)
NDCG = (1, 3, 5, 10, 20)
"""Cutoffs; those beyond the depth of the rankings are left out."""
MRR = "MRR"


def names(k: int) -> list[str]:
    """The measures of rankings of `k` passages, as in R@10."""
    return [
        MRR,
        *(f"R@{cut}" for cut in RECALL if cut <= k),
        *(f"NDCG@{cut}" for cut in NDCG if cut <= k),
    ]


def by_query(
    rankings: Mapping[str, Sequence[str]], relevant: Mapping[str, Mapping[str, int]], k: int
) -> dict[str, list[float]]:
    """Each measure of each query that has a relevant passage, in the order of the rankings.

    Args:
        rankings: ids of passages by the id of the query, best first.
        relevant: labels from 1 on, by the ids of query and passage.
    """
    import ir_measures
    from ir_measures import RR, R, nDCG

    wanted = {
        MRR: RR,
        **{f"R@{cut}": R @ cut for cut in RECALL if cut <= k},
        **{f"NDCG@{cut}": nDCG @ cut for cut in NDCG if cut <= k},
    }
    asked = [query for query in rankings if relevant.get(query)]
    judged = {query: dict(relevant[query]) for query in asked}
    ranked = {
        query: {id: float(-rank) for rank, id in reversed([*enumerate(rankings[query])])}
        for query in asked
    }
    found: dict[str, dict[str, float]] = {name: dict.fromkeys(asked, 0.0) for name in wanted}
    called = {measure: name for name, measure in wanted.items()}
    if asked:
        for each in ir_measures.iter_calc(list(called), judged, ranked):
            found[called[each.measure]][each.query_id] = float(each.value)
    return {name: list(values.values()) for name, values in found.items()}


def evaluate(
    rankings: Mapping[str, Sequence[str]],
    relevant: Mapping[str, Mapping[str, int]],
    *,
    k: int,
    bootstrap: Bootstrap,
) -> Table:
    """A row for each measure.

    Raises:
        UsageError: no query has a relevant passage.
    """
    found = by_query(rankings, relevant, k)
    count = len(found[MRR])
    if not count:
        some = ", ".join(list(relevant)[:3]) or "none"
        raise UsageError(
            f"no query has a relevant passage in the judgments, whose queries are like {some}: "
            "the ids must be the same"
        )
    columns = [_column(values) for values in found.values()]
    means = estimates(columns, bootstrap)
    rows: list[dict[str, Cell]] = [
        {"measure": name, "mean": mean} for name, mean in zip(found, means, strict=True)
    ]
    left = len(rankings) - count
    return Table(
        name="rankings",
        title="Rankings against judgments",
        columns={"measure": "measure", "mean": "mean"},
        rows=tuple(rows),
        notes=(
            f"{counted(count, 'query', 'queries')}, {counted(k, 'passage')} each",
            *(
                [
                    f"{counted(left, 'query', 'queries')} left out: no relevant passage in the "
                    "judgments"
                ]
                if left
                else []
            ),
            *methods(*(mean.interval for mean in means)),
        ),
        digits={"mean": 3},
    )


def _column(values: Sequence[float]) -> Column:
    import numpy as np

    each = np.ones(len(values))
    return Column(np.array(values), each, each, each)
