"""SePer's tolerance: pairs left out, and an interval that holds the value with all pairs."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Probabilities, Statement
from hopscope.runtime.types import Generation, Measurement, Question
from hopscope.tracing.beliefs import unasked
from hopscope.tracing.entailments import lexical
from hopscope.tracing.meters import seper
from tests.fakes import ScriptedReader, reply
from tests.tracing.beliefs.test_enumeration import TREE, TreeReader


class Arbitrary:
    """Any relation between two texts, the same one for the same pair; it counts the pairs."""

    name = "arbitrary"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.pairs: list[tuple[str, str]] = []

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        self.pairs += ((s.premise, s.hypothesis) for s in statements)
        return [self._relation(each) for each in statements]

    def _relation(self, statement: Statement) -> Probabilities:
        shares = Random(f"{self._seed} {statement}").choices((0.02, 0.1, 1.0, 9.0), k=3)
        return Probabilities(*(share / sum(shares) for share in shares))


REPLIES = st.lists(
    st.builds(
        lambda text, logprob, reason: reply(text, [logprob], finish_reason=reason),
        st.sampled_from("abcdef") | st.just(""),
        st.floats(-6, 0),
        st.sampled_from(["stop", "stop", "stop", "length"]),
    ),
    min_size=1,
    max_size=9,
)
OPTIONS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["soft", "hard"]),
        "weight": st.sampled_from(["lennorm", "uniform", "raw_normalised"]),
        "direction": st.sampled_from(["max", "r2g", "half"]),
        "golds": st.sampled_from([None, "max", "mean", "union"]),
        "equivalence": st.sampled_from(["bi", "loose", "threshold"]),
        "match": st.sampled_from(["bi", "loose"]),
        "clustering": st.sampled_from(["first-match", "seed"]),
    }
)
TOLERANCES = st.sampled_from([0.01, 0.05, 0.2, 0.5, 0.9])
GOLDS = st.sampled_from([("g",), ("g", "h"), ("a", "g", "h")])


def sampled(
    replies: list[Generation], model: Any, aliases: tuple[str, ...], **options: Any
) -> Measurement:
    meter = seper.build(ScriptedReader([replies]), model, samples=len(replies), **options)
    return meter.measure(Question(text="Who?", answers=aliases), [()])[0]


def ends(found: Measurement) -> tuple[float, float, float]:
    """Value, and both ends of the interval."""
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    return found.value, found.low, found.high


@settings(max_examples=300, deadline=None)
@given(REPLIES, GOLDS, OPTIONS, TOLERANCES, st.integers(0, 10_000))
def test_the_exact_value_and_its_interval_lie_in_the_widened_one(
    replies: list[Generation],
    golds: tuple[str, ...],
    options: dict[str, Any],
    tolerance: float,
    seed: int,
) -> None:
    every, some = Arbitrary(seed), Arbitrary(seed)
    exact = sampled(replies, every, golds, **options)
    found = sampled(replies, some, golds, **options, tolerance=tolerance)
    if exact.value is None:
        assert found.value is None
        return
    value, low, high = ends(found)
    exact_value, exact_low, exact_high = ends(exact)
    rounding = 1e-9
    assert value <= exact_value + rounding
    assert exact_value <= value + tolerance + rounding
    assert low <= exact_low + rounding
    assert exact_high <= high + rounding
    if options["kind"] == "soft":  # clusters of fewer replies may need other pairs
        assert set(some.pairs) <= set(every.pairs)


@settings(max_examples=100, deadline=None)
@given(TOLERANCES, st.sampled_from(["soft", "hard"]), GOLDS, st.integers(0, 10_000))
def test_an_enumeration_stays_certain(
    tolerance: float, kind: Any, golds: tuple[str, ...], seed: int
) -> None:
    question = Question(text="Who?", answers=golds)

    def found(tolerance: float) -> Measurement:
        meter = seper.build(
            TreeReader(TREE),
            Arbitrary(seed),
            method="enumerate",
            bound=0.1,
            kind=kind,
            tolerance=tolerance,
        )
        return meter.measure(question, [()])[0]

    exact, some = found(0.0), found(tolerance)
    assert some.certain
    _, low, high = ends(some)
    value, _, exact_high = ends(exact)
    assert low <= value <= high + 1e-9
    assert exact_high <= high + 1e-9


@given(REPLIES, GOLDS, OPTIONS, st.integers(0, 10_000))
def test_a_tolerance_of_0_is_the_present_measurement(
    replies: list[Generation], golds: tuple[str, ...], options: dict[str, Any], seed: int
) -> None:
    """Every digit, and the name of the estimator."""
    one, other = Arbitrary(seed), Arbitrary(seed)
    assert sampled(replies, one, golds, **options) == sampled(
        replies, other, golds, **options, tolerance=0.0
    )
    assert one.pairs == other.pairs


# Weights e^l over their sum: a .5, b .3, c .15, d .05.
BY_WEIGHT = [
    reply(text, [logprob])
    for text, logprob in zip("bacd", [-1.203973, -0.693147, -1.89712, -2.995732], strict=True)
]


class Certain(Arbitrary):
    """P(entailment) of .9 from a to the gold and 0 else."""

    def _relation(self, statement: Statement) -> Probabilities:
        share = 0.9 if statement.premise == "a" else 0.0
        return Probabilities(share, 0.0, 1 - share)


@pytest.mark.parametrize(
    ("tolerance", "pairs"),
    [
        (0.0, ["ag", "bg", "cg", "dg", "ga", "gb", "gc", "gd"]),
        # The second direction of a can add .5 · .1 only.
        (0.051, ["ag", "bg", "cg", "ga", "gb", "gc"]),
        (0.11, ["ag", "bg", "cg", "gb", "gc"]),
        (0.21, ["ag", "bg", "gb", "ga"]),
        (0.26, ["ag", "bg", "gb"]),
    ],
)
def test_the_lightest_replies_and_the_smallest_gains_are_not_compared(
    tolerance: float, pairs: list[str]
) -> None:
    model = Certain(0)
    found = sampled(BY_WEIGHT, model, ("g",), tolerance=tolerance)
    assert sorted("".join(pair) for pair in model.pairs) == sorted(pairs)
    assert found.value == pytest.approx(0.45, abs=1e-5)


def test_clusters_lose_the_last_replies_alone() -> None:
    """Without a, b would open the cluster that a opens, with another match."""
    model = Certain(0)
    sampled(BY_WEIGHT, model, ("g",), kind="hard", tolerance=0.21)
    assert not {text for pair in model.pairs for text in pair} & {"c", "d"}
    texts = [reply(text, [-1.0]) for text in "abcd"]
    light_first = [reply("a", [-9.0]), *texts[1:]]
    model = Certain(0)
    sampled(light_first, model, ("g",), kind="hard", tolerance=0.2)
    assert "a" in {text for pair in model.pairs for text in pair}


def test_the_estimator_names_a_tolerance_and_refuses_what_cannot_carry_it() -> None:
    meter = seper.build(ScriptedReader(), lexical.build(), tolerance=0.01)
    assert ", tolerance=0.01, " in meter.estimator
    for options in (
        {"tolerance": 1.0},
        {"tolerance": -0.1},
        {"tolerance": 0.1, "weight": "raw"},
        {"tolerance": 0.1, "temperature": 0.0},
        {"tolerance": 0.3, "width": 0.3},
    ):
        with pytest.raises(UsageError, match="tolerance"):
            seper.build(ScriptedReader(), lexical.build(), **options)  # type: ignore[arg-type]


@given(
    st.dictionaries(st.text("ab", min_size=1, max_size=3), st.floats(0, 1), max_size=7),
    st.floats(0, 2),
)
def test_no_choice_leaves_out_more_texts_than_the_lightest(
    costs: dict[str, float], tolerance: float
) -> None:
    chosen = unasked.lightest(costs, tolerance)
    rest = [cost for text, cost in costs.items() if text not in chosen]
    spent = sum(sorted(costs[text] for text in chosen))
    if tolerance > 0:
        assert spent <= tolerance + 1e-12
        assert all(spent + cost > tolerance - 1e-12 for cost in rest)
    else:
        assert not chosen
