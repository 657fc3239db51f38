"""Measures of rankings. Vector 13 of the specification is in here."""

from math import log2

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.tracing.erag.ranking import BINARY, measures, names

LABELS = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=30)


def test_vector_13_binary_labels() -> None:
    found = measures([1, 0, 1, 0, 0], binary=True, cutoffs=[2, 5, 10])
    expected = {
        "AP": 0.833333,
        "RR": 1,
        "NDCG": 0.919721,
        "P@5": 0.4,
        "P@10": 0.2,
        "R@2": 0.5,
        "Hit": 1,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-6)


def test_vector_13_a_first_passage_without_worth() -> None:
    found = measures([0, 1, 1, 0], binary=True)
    expected = {"AP": 0.583333, "RR": 0.5, "NDCG": 0.693426}
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-6)


def test_vector_13_continuous_labels_have_a_mean_and_a_highest_only() -> None:
    found = measures([0.2, 0.8, 0.5], binary=False, cutoffs=[1])
    assert found["P"] == pytest.approx(0.5)
    assert (found["Hit"], found["Hit@1"], found["P@1"]) == (0.8, 0.2, 0.2)
    assert {name for name, value in found.items() if value is None} == {
        f"{measure}{cutoff}" for measure in ("R", "AP", "RR", "NDCG") for cutoff in ("", "@1")
    }


def test_a_cutoff_beyond_the_list_divides_by_the_cutoff_for_both_kinds() -> None:
    """eRAG's own code raises a KeyError for continuous labels here."""
    assert measures([1, 1], binary=True, cutoffs=[4])["P@4"] == 0.5
    assert measures([0.5, 0.5], binary=False, cutoffs=[4])["P@4"] == 0.25


def test_continuous_labels_that_happen_to_be_extremes_are_not_taken_for_binary() -> None:
    """eRAG's own code decides by the data."""
    assert measures([1.0, 0.0], binary=False)["RR"] is None


@settings(deadline=None)
@given(LABELS, st.lists(st.integers(1, 12), max_size=3, unique=True))
def test_binary_measures_are_those_of_trec_eval(labels: list[float], cutoffs: list[int]) -> None:
    """Asked directly, without ir_measures between."""
    keys = [f"d{rank}" for rank in range(len(labels))]
    qrels = {"q": {key: int(label) for key, label in zip(keys, labels, strict=True)}}
    run = {"q": {key: float(len(labels) - rank) for rank, key in enumerate(keys)}}
    trec = {"P": "P", "R": "recall", "AP": "map_cut", "NDCG": "ndcg_cut", "Hit": "success"}
    asked = {f"{name}.{cutoff}" for name in trec.values() for cutoff in cutoffs}
    found = pytrec_eval.RelevanceEvaluator(qrels, {*asked, "map", "recip_rank", "ndcg"})
    expected = found.evaluate(run)["q"]
    ours = measures(labels, binary=True, cutoffs=cutoffs)
    assert ours["AP"] == pytest.approx(expected["map"])
    assert ours["RR"] == pytest.approx(expected["recip_rank"])
    assert ours["NDCG"] == pytest.approx(expected["ndcg"])
    for name, theirs in trec.items():
        for cutoff in cutoffs:
            value = expected[f"{theirs}_{cutoff}"]
            assert ours[f"{name}@{cutoff}"] == pytest.approx(value), (name, cutoff)


@settings(deadline=None)
@given(LABELS)
def test_binary_measures_by_their_formulas(labels: list[float]) -> None:
    found = measures(labels, binary=True)
    ranks = [rank for rank, label in enumerate(labels, start=1) if label]
    precisions = [place / rank for place, rank in enumerate(ranks, start=1)]
    assert found["P"] == pytest.approx(len(ranks) / len(labels))
    assert found["AP"] == pytest.approx(sum(precisions) / len(ranks) if ranks else 0)
    assert found["RR"] == pytest.approx(1 / ranks[0] if ranks else 0)
    assert found["R"] == found["Hit"] == float(bool(ranks))
    best = sum(1 / log2(rank + 1) for rank in range(1, len(ranks) + 1))
    gained = sum(1 / log2(rank + 1) for rank in ranks)
    assert found["NDCG"] == pytest.approx(gained / best if ranks else 0)


@pytest.mark.parametrize(
    ("labels", "cutoffs", "said"),
    [([], [], "at least one label"), ([1.0], [0], "cutoffs from 1"), ([0.5], [], "not 0.5")],
)
def test_what_cannot_be_measured_is_refused(
    labels: list[float], cutoffs: list[int], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        measures(labels, binary=True, cutoffs=cutoffs)


def test_names_are_in_order() -> None:
    assert names([3]) == [*BINARY, *(f"{name}@3" for name in BINARY)]
