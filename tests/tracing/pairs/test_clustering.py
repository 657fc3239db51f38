"""Clusters and semantic entropy: vectors 4 and 5 of the specification, and equivalence."""

import math
import random
from collections.abc import Callable, Generator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.ports import Probabilities
from hopscope.tracing.beliefs.semantic_entropy import (
    discrete,
    kuhn,
    predictive,
    rao,
    semantic_entropy,
)
from hopscope.tracing.pairs.clustering import (
    Clustering,
    EquivalenceRule,
    allows,
    cluster,
    equivalent,
)
from hopscope.tracing.statistics.correlation import pearson_test

E, N, C = Probabilities(0.8, 0.1, 0.1), Probabilities(0.1, 0.8, 0.1), Probabilities(0.1, 0.1, 0.8)


class Clustered:
    """The clusters by a rule, and the pairs that were compared on the way."""

    def __init__(self, count: int, equal: Callable[[int, int], bool], rule: Clustering) -> None:
        self.compared: list[tuple[int, int]] = []

        def compare(first: int, later: Sequence[int]) -> Generator[int, None, list[bool]]:
            yield len(later)
            self.compared += [(first, j) for j in later]
            return [equal(first, j) for j in later]

        self.rounds: list[int] = []
        search = cluster(count, compare, rule)
        while True:
            try:
                self.rounds.append(next(search))
            except StopIteration as end:
                self.ids: list[int] = end.value
                return


def by_definition(count: int, equal: Callable[[int, int], bool], rule: Clustering) -> list[int]:
    """The first member of each reply's cluster, as the rules are told, with all pairs at hand."""
    firsts: list[int] = []
    owner: dict[int, int] = {}
    for j in range(count):
        candidates = [i for i in firsts if equal(i, j)]
        if not candidates:
            firsts.append(j)
        owner[j] = (candidates or [j])[0 if rule == "first-match" else -1]
    return [owner[j] for j in range(count)]


@pytest.mark.parametrize(
    ("rule", "ids", "entropy"),
    [("seed", [0, 1, 1], 0.693147), ("first-match", [0, 1, 0], 0.500402)],
)
def test_vector_4_rules_differ_where_equivalence_is_not_transitive(
    rule: Clustering, ids: list[int], entropy: float
) -> None:
    equal = {(0, 2), (1, 2)}
    found = Clustered(3, lambda i, j: (i, j) in equal, rule).ids
    assert found == ids
    assert rao([0.5, 0.2, 0.3], found) == pytest.approx(entropy, abs=1e-6)


def test_vector_5_estimators() -> None:
    masses = [0.6, 0.3, 0.1]
    assert rao(masses, [0, 1, 2]) == pytest.approx(0.897946, abs=1e-6)
    assert kuhn(masses, [0, 1, 2]) == pytest.approx(1.339128, abs=1e-6)
    assert discrete([0, 1, 2, 1]) == pytest.approx(1.039721, abs=1e-6)
    for name, expected in [("rao", 0.897946), ("kuhn", 1.339128), ("discrete", 1.098612)]:
        found = semantic_entropy(masses, [0, 1, 2], name)  # type: ignore[arg-type]
        assert found == pytest.approx(expected, abs=1e-6)
    assert predictive([[-1.0, -3.0], [-4.0]]) == pytest.approx(3.0)


def test_vector_6_correlation() -> None:
    found = pearson_test(0.5, 20)
    assert found == pytest.approx((2.449490, 0.024770), abs=1e-6)


@pytest.mark.parametrize(
    ("forward", "backward", "bi", "loose", "threshold"),
    [
        (E, E, True, True, True),
        (E, N, False, True, False),
        (N, N, False, False, False),
        (E, C, False, False, False),
        (C, N, False, False, False),
    ],
)
def test_equivalence(
    forward: Probabilities, backward: Probabilities, bi: bool, loose: bool, threshold: bool
) -> None:
    assert equivalent(forward, backward) is bi
    assert equivalent(forward, backward, "loose") is loose
    assert equivalent(forward, backward, "threshold", 0.5) is threshold


def test_the_threshold_itself_counts_and_a_tie_does_not_entail() -> None:
    half = Probabilities(0.5, 0.5, 0.0)
    assert equivalent(half, half, "threshold", 0.5)
    assert not equivalent(half, half, "bi")


def test_no_replies_have_no_clusters() -> None:
    assert Clustered(0, lambda i, j: True, "first-match").ids == []


@given(
    st.lists(st.tuples(st.floats(0.01, 1), st.integers(0, 3)), min_size=1, max_size=10),
    st.randoms(use_true_random=False),
)
def test_entropies_do_not_depend_on_the_order_of_replies_or_the_names_of_clusters(
    replies: list[tuple[float, int]], rng: random.Random
) -> None:
    total = sum(weight for weight, _ in replies)
    shuffled = rng.sample(replies, len(replies))
    names = rng.sample(range(4), 4)
    for estimator in ("rao", "kuhn", "discrete"):
        first, again = (
            semantic_entropy(
                [weight / total for weight, _ in each],
                [name[cluster] for _, cluster in each],
                estimator,  # type: ignore[arg-type]
            )
            for each, name in ((replies, range(4)), (shuffled, names))
        )
        assert first == pytest.approx(again, abs=1e-9)
        assert first >= 0
        if len({cluster for _, cluster in replies}) == 1:
            assert first == pytest.approx(0, abs=1e-9)
        elif estimator != "kuhn":
            assert first <= math.log(4) + 1e-9


def relations(count: int) -> st.SearchStrategy[set[tuple[int, int]]]:
    """Which of so many replies mean the same as a later one."""
    pairs = [(i, j) for j in range(count) for i in range(j)]
    return st.sets(st.sampled_from(pairs)) if pairs else st.just(set())


@given(st.integers(1, 8), st.data(), st.sampled_from(["first-match", "seed"]))
def test_replies_that_come_later_change_no_cluster_of_those_before(
    count: int, data: st.DataObject, rule: Clustering
) -> None:
    """What makes the interval of an enumerated SePer-H certain."""
    equal = data.draw(relations(count))
    whole = Clustered(count, lambda i, j: (i, j) in equal, rule).ids
    fewer = data.draw(st.integers(1, count))
    assert Clustered(fewer, lambda i, j: (i, j) in equal, rule).ids == whole[:fewer]


@given(st.integers(1, 8), st.data(), st.sampled_from(["first-match", "seed"]))
def test_only_first_members_are_compared_and_the_clusters_are_those_of_the_definition(
    count: int, data: st.DataObject, rule: Clustering
) -> None:
    """Comparing all pairs would give the same clusters."""
    equal = data.draw(relations(count))
    found = Clustered(count, lambda i, j: (i, j) in equal, rule)
    owners = by_definition(count, lambda i, j: (i, j) in equal, rule)
    assert [owners.index(owner) for owner in owners] == [
        found.ids.index(number) for number in found.ids
    ]
    assert sorted(found.compared) == [
        (i, j)
        for i in range(count)
        for j in range(i + 1, count)
        if owners[i] == i and (rule == "seed" or owners[j] >= i)
    ]


PROBABILITIES = st.sampled_from(
    [E, N, C, Probabilities(0.5, 0.5, 0.0), Probabilities(0.0, 0.5, 0.5), Probabilities(1, 0, 0)]
)


@given(
    PROBABILITIES,
    PROBABILITIES,
    st.sampled_from(["bi", "loose", "threshold"]),
    st.sampled_from([0.0, 0.5, 0.8, 1.0]),
)
def test_what_one_direction_does_not_allow_the_other_cannot_mend(
    forward: Probabilities, backward: Probabilities, equivalence: EquivalenceRule, threshold: float
) -> None:
    """On which it rests that the second direction is not asked about; and which comes first does
    not matter."""
    found = equivalent(forward, backward, equivalence, threshold)
    assert found == equivalent(backward, forward, equivalence, threshold)
    if not allows(forward, equivalence, threshold):
        assert not found
