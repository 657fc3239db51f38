"""The Shapley interaction index against its definition and against games worked by hand."""

from collections.abc import Callable
from fractions import Fraction
from itertools import chain, combinations
from math import factorial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.tracing.credit import shapley
from hopscope.tracing.credit.shapley import Shapley
from hopscope.tracing.games.coalitions import Coalitions, EvidenceValues
from hopscope.tracing.games.frozen import over_passages, over_steps
from hopscope.tracing.what_if.interactions import interactions
from tests.fakes import FunctionMeter, run_of

RULE = shapley.build()
LETTERS = "abcdefghijkl"
assert isinstance(RULE, Shapley)


def of(count: int, value: Callable[[str], float]) -> Coalitions:
    """The game of runs whose steps bring one passage each; a coalition is the letters present."""
    run = run_of(*LETTERS[:count])
    meter = FunctionMeter(lambda keys: value("".join(sorted(keys))))
    return Coalitions(over_steps(run), EvidenceValues(run.question, meter))


def pairs(coalitions: Coalitions, rule: Shapley = RULE) -> dict[str, float]:
    found = {}
    for each in interactions(coalitions, rule):
        assert each.measurement.value is not None, each.measurement.reason
        assert each.first.step is not None
        assert each.second.step is not None
        name = LETTERS[each.first.step] + LETTERS[each.second.step]
        found[name] = each.measurement.value
    return found


def defined(count: int, value: Callable[[str], float]) -> dict[str, float]:
    """The definition, subset by subset."""
    found = {}
    for i, j in combinations(LETTERS[:count], 2):
        rest = [k for k in LETTERS[:count] if k not in (i, j)]
        subsets = chain.from_iterable(combinations(rest, size) for size in range(len(rest) + 1))
        total = Fraction(0)
        for subset in subsets:
            size = len(subset)
            weight = Fraction(factorial(count - size - 2) * factorial(size), factorial(count - 1))
            told = ["".join(sorted((*subset, *more))) for more in ((i, j), (i,), (j,), ())]
            both, first, second, neither = (Fraction(value(letters)) for letters in told)
            total += weight * (both - first - second + neither)
        found[i + j] = float(total)
    return found


def test_two_hops_that_need_each_other_interact_by_all_they_bring() -> None:
    assert pairs(of(2, lambda letters: 0.75 * (letters == "ab"))) == {"ab": 0.75}


def test_two_copies_of_a_fact_interact_by_minus_what_one_brings() -> None:
    assert pairs(of(2, lambda letters: 0.75 * bool(letters))) == {"ab": -0.75}


def test_an_additive_game_has_no_interactions() -> None:
    assert set(pairs(of(4, lambda letters: 0.25 * len(letters))).values()) == {0}


def test_a_chain_beside_a_bystander() -> None:
    """a and b are a chain, c adds by itself."""
    found = pairs(of(3, lambda letters: 0.5 * ({*"ab"} <= {*letters}) + 0.25 * ("c" in letters)))
    assert found == {"ab": 0.5, "ac": 0, "bc": 0}


@given(st.integers(2, 5), st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_it_is_as_defined(count: int, draw: object) -> None:
    told: dict[str, float] = {}

    def value(letters: str) -> float:
        return told.setdefault(letters, draw.random())  # type: ignore[attr-defined]

    assert pairs(of(count, value)) == pytest.approx(defined(count, value), abs=1e-12)


def crowd(letters: str) -> float:
    """a and b need each other, c and d are redundant, the others add."""
    chain_, copies = 0.5 * ({*"ab"} <= {*letters}), 0.3 * bool({*"cd"} & {*letters})
    return chain_ + copies + 0.01 * len({*letters} - {*"abcd"})


@pytest.mark.parametrize("sampling", ["permutations", "kernel"])
def test_above_eight_players_the_sample_says_so_and_covers_the_truth(sampling: str) -> None:
    rule = shapley.build(sampling=sampling)  # type: ignore[arg-type]
    assert isinstance(rule, Shapley)
    coalitions, truth = of(10, crowd), defined(10, crowd)
    rule.share(coalitions)
    drawn = len(coalitions.measured)
    found = interactions(coalitions, rule)
    assert len(coalitions.measured) == drawn
    covered = 0
    for each, true in zip(found, truth.values(), strict=True):
        told = each.measurement
        assert told.value is not None
        assert told.low is not None
        assert told.high is not None
        assert "interaction from shapley(" in told.estimator
        assert "+-" in told.estimator
        covered += told.low <= true <= told.high
    assert covered >= 0.8 * len(truth)
    values = pairs(coalitions, rule)
    assert max(values, key=values.__getitem__) == "ab"
    assert min(values, key=values.__getitem__) == "cd"


def test_the_sample_has_no_bias() -> None:
    """The mean over many seeds is the index."""
    truth = defined(9, crowd)
    sums = dict.fromkeys(truth, 0.0)
    for seed in range(40):
        rule = shapley.build(permutations=32, seed=seed)
        assert isinstance(rule, Shapley)
        coalitions = of(9, crowd)
        rule.share(coalitions)
        for name, value in pairs(coalitions, rule).items():
            sums[name] += value / 40
    assert sums == pytest.approx(truth, abs=0.06)


def test_passages_of_a_step_interact_while_the_other_steps_stay() -> None:
    run = run_of("ab", "c")
    game = over_passages(run, 0)
    assert game is not None
    meter = FunctionMeter(lambda keys: float({*keys} >= {*"abc"}))
    [found] = interactions(Coalitions(game, EvidenceValues(run.question, meter)), RULE)
    assert (found.first.passage, found.second.passage) == ("a", "b")
    assert found.measurement.value == 1


def test_one_player_has_no_pair() -> None:
    assert interactions(of(1, lambda letters: len(letters)), RULE) == []
