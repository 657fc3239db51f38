"""A pair of texts is compared once, and how its comparison was come by is told."""

from collections.abc import Sequence

import pytest

from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.runtime.types import PairCounts
from hopscope.tracing.pairs.forms import classify_counted, normalised
from hopscope.tracing.pairs.shortcuts import Shortcut, ShortcutRule, shortened
from hopscope.tracing.wrappers.cached import CachedEntailment
from hopscope.tracing.wrappers.metered import MeteredEntailment

NO = Probabilities(0.0, 0.2, 0.8)
YES = Probabilities(1.0, 0.0, 0.0)


class Model:
    """Finds no pair to be the same and keeps what it was asked."""

    name = "nli:model@1"

    def __init__(self) -> None:
        self.asked: list[Statement] = []

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        self.asked += statements
        return [NO for _ in statements]


def pair(premise: str, hypothesis: str) -> Statement:
    return Statement("Where?", premise, hypothesis)


def test_equal_pairs_are_asked_once_within_a_call_and_across_calls() -> None:
    model = Model()
    cached = CachedEntailment(model)
    found = cached.classify_counted(
        [pair("Rome", "in Rome"), pair("Rome ", "in  Rome"), pair("a", "b")]
    )
    assert found == ([NO] * 3, PairCounts(asked=3, computed=2))
    assert cached.classify_counted([pair("a", "b"), pair("b", "a")]).pairs == PairCounts(
        asked=2, computed=1
    )
    assert model.asked == [pair("Rome", "in Rome"), pair("a", "b"), pair("b", "a")]


def test_case_and_punctuation_tell_pairs_apart() -> None:
    """A model can see a difference there, so one must not stand for the other."""
    assert normalised(pair("rome", "U.S.")) != normalised(pair("Rome", "US"))


@pytest.mark.parametrize(
    ("rule", "decided"),
    [
        ("none", []),
        ("exact", [True, False, False, False]),
        ("containment", [True, True, False, False]),
    ],
)
def test_a_rule_decides_only_what_it_says(rule: ShortcutRule, decided: list[bool]) -> None:
    model = Model()
    statements = [
        pair("The Rome.", "rome"),
        pair("in Rome, Italy", "Rome"),
        pair("Rome", "in Rome, Italy"),
        pair("The", "A"),
    ]
    found = classify_counted(shortened(model, rule), statements)
    wanted = [YES if by_rule else NO for by_rule in decided] or [NO] * 4
    assert found.probabilities == wanted
    assert model.asked == [s for s, p in zip(statements, wanted, strict=True) if p == NO]
    assert found.pairs == PairCounts(asked=4, computed=len(model.asked))


def test_a_rule_stands_in_the_name() -> None:
    """By which estimators and provenance record it; without one nothing changes."""
    model = Model()
    assert shortened(model, "none") is model
    assert CachedEntailment(Shortcut(model, "exact")).name == "nli:model@1+exact"


def test_a_rule_that_decides_all_asks_nobody() -> None:
    class Silent(Model):
        def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
            raise AssertionError("asked")

    found = classify_counted(Shortcut(Silent(), "exact"), [pair("Rome", "rome")])
    assert found == ([YES], PairCounts(asked=1))


def test_a_meter_counts_through_all_layers() -> None:
    layers: Entailment = CachedEntailment(Shortcut(CachedEntailment(Model()), "exact"))
    metered = MeteredEntailment(layers)
    metered.classify([pair("x", "X"), pair("a", "b"), pair("a", "b")])
    metered.classify([pair("a", "b")])
    assert metered.take() == PairCounts(asked=4, computed=1)
    assert metered.take() == PairCounts()
