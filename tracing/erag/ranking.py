"""Measures of a ranking from the labels of its passages, best rank first.

Binary labels get the measures of trec_eval, computed by it (through ir_measures): P@c divides by c
however short the list is; recall counts the relevant passages of the list itself, so that without
a cutoff it is Hit; NDCG has gain = label and discount log2(rank + 1). The means of AP and RR over
questions are MAP and MRR. Labels in between have two measures only: P, their mean, and Hit, the
highest (Salemi & Zamani 2024, arXiv 2404.13781, notes to Table 1); the others are None.
"""

from collections.abc import Sequence

from ir_measures import AP, RR, Measure, P, R, Success, evaluator, nDCG

BINARY = ("P", "R", "AP", "RR", "NDCG", "Hit")

_TREC: dict[str, Measure] = {"P": P, "R": R, "AP": AP, "RR": RR, "NDCG": nDCG, "Hit": Success}


def names(cutoffs: Sequence[int] = ()) -> list[str]:
    """Names of all measures: over the whole list, then at each cutoff, as in `P@5`."""
    return [_name(measure, cutoff) for cutoff in (None, *cutoffs) for measure in BINARY]


def measures(
    labels: Sequence[float], *, binary: bool, cutoffs: Sequence[int] = ()
) -> dict[str, float | None]:
    """All measures of one ranking by name; None for those that its labels do not have.

    Args:
        labels: in order of rank, in [0, 1].
        binary: whether the labels' metric gives only 0 and 1; not inferred from the labels, so that
            a list of extreme labels has the same measures as the others.
        cutoffs: ranks from 1 on.

    Raises:
        ValueError: an empty list, a cutoff below 1, or a binary label that is neither 0 nor 1.
    """
    if not labels or any(cutoff < 1 for cutoff in cutoffs):
        raise ValueError("measures need at least one label and cutoffs from 1 on")
    values: dict[str, float | None] = dict.fromkeys(names(cutoffs))
    values.update(_trec(labels, cutoffs) if binary else _continuous(labels, cutoffs))
    return values


def _name(measure: str, cutoff: int | None) -> str:
    return measure if cutoff is None else f"{measure}@{cutoff}"


def _trec(labels: Sequence[float], cutoffs: Sequence[int]) -> dict[str, float]:
    if not set(labels) <= {0, 1}:
        raise ValueError(f"binary labels are 0 or 1, not {sorted(set(labels) - {0, 1})[0]}")
    wanted = {
        _name(name, cutoff): measure @ (cutoff or len(labels))
        for cutoff in (None, *cutoffs)
        for name, measure in _TREC.items()
    }
    # Every rank is a document of its own, so that a repeated passage counts twice.
    documents = [str(rank) for rank in range(len(labels))]
    judged = {"q": {key: int(label) for key, label in zip(documents, labels, strict=True)}}
    ranked = {"q": {key: float(-rank) for rank, key in enumerate(documents)}}
    asked = evaluator(list(set(wanted.values())), judged)
    values = {result.measure: float(result.value) for result in asked.iter_calc(ranked)}
    return {name: values[measure] for name, measure in wanted.items()}


def _continuous(labels: Sequence[float], cutoffs: Sequence[int]) -> dict[str, float]:
    values: dict[str, float] = {}
    for cutoff in (None, *cutoffs):
        head = labels[:cutoff]
        values[_name("P", cutoff)] = sum(head) / (cutoff or len(labels))
        values[_name("Hit", cutoff)] = max(head)
    return values
