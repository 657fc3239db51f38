"""Semantic entropy as a meter: by hand, by its interval, and what it tells when it has no value."""

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Probabilities, Statement
from hopscope.runtime.types import Generation, Measurement, Passage, Provenance, Question
from hopscope.tracing.appraisal import appraise
from hopscope.tracing.beliefs.sampled_replies import Replies
from hopscope.tracing.beliefs.semantic_entropy import masses
from hopscope.tracing.credit import shapley, trajectory
from hopscope.tracing.meters import semantic_entropy
from tests.fakes import ENTAILS, NEUTRAL, ReaderByEvidence, passage, reply, run_of

WHO = Question(text="Who?")


class FoldedCase:
    """Texts that differ in case only mean the same."""

    name = "folded"

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        return [
            ENTAILS if s.premise.casefold() == s.hypothesis.casefold() else NEUTRAL
            for s in statements
        ]


SAME = FoldedCase()
FOUR = [reply("a"), reply("A"), reply("b"), reply("a")]


def measured(replies: list[Generation], **options: Any) -> Measurement:
    reader = ReaderByEvidence({(): replies})
    meter = semantic_entropy.build(reader, SAME, samples=len(replies), **options)
    [found] = meter.measure(WHO, [()])
    return found


@pytest.mark.parametrize(
    ("entropy", "expected"),
    [
        ("rao", -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))),
        ("kuhn", -(math.log(0.75) + math.log(0.25)) / 2),
        ("discrete", -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))),
    ],
)
def test_the_negative_entropy_of_the_clusters(entropy: Any, expected: float) -> None:
    """a, A and a again are one meaning, b another."""
    found = measured(FOUR, entropy=entropy)
    assert found.value == pytest.approx(-expected)
    assert (found.n, found.seed) == (4, 0)
    assert f"entropy={entropy}" in found.estimator
    assert (found.low is None) is (entropy == "kuhn")
    if found.low is not None and found.high is not None:
        assert found.low < found.value < found.high <= 0  # type: ignore[operator]


def test_the_interval_allows_for_what_cut_replies_could_mean() -> None:
    """It was that of the other replies alone, however many were cut off."""
    whole = [reply("a")] * 6 + [reply("b")]
    cut = [reply(f"c{i}", finish_reason="length") for i in range(3)]
    without, found = measured(whole), measured([*whole, *cut])
    assert found.value == without.value
    assert found.n == 10
    assert found.estimator.endswith("with 3 of 10 replies cut off")
    ends = [measured([*whole, *(reply(text) for text in texts)]) for texts in ("aaa", "xyz", "bbb")]
    for end in ends:
        assert found.low <= end.low  # type: ignore[operator]
        assert end.high <= found.high  # type: ignore[operator]
    assert found.low < without.low  # type: ignore[operator]


def test_weights_count_but_for_discrete() -> None:
    """The mean log-probabilities -.5 and -.5 - ln 3 weigh three to one."""
    replies = [reply("a"), reply("b", (-0.5 - math.log(3),))]
    rao, discrete = (measured(replies, entropy=name).value for name in ("rao", "discrete"))
    assert rao == pytest.approx(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert discrete == pytest.approx(-math.log(2))
    silent = [reply(text, ()) for text in "ab"]
    assert measured(silent, entropy="discrete").value == pytest.approx(-math.log(2))
    assert "no log-probabilities" in str(measured(silent, entropy="rao").reason)


def test_replies_of_one_meaning_still_leave_room_for_others() -> None:
    found = measured([reply("a")] * 10)
    assert found.value == 0
    assert found.high == 0
    assert found.low == pytest.approx(-1.68, abs=0.005)


def test_without_a_word_there_is_no_meaning() -> None:
    found = measured([reply(" ", (-0.1,)), reply("", (-0.2,))])
    assert (found.value, found.reason) == (None, "every reply is empty")


def test_it_needs_no_gold_is_shared_by_any_rule_and_says_what_was_dropped() -> None:
    reader = ReaderByEvidence({(): [reply("a"), reply("b")], ("x",): [reply("a"), reply("A")]})
    meter = semantic_entropy.build(reader, SAME, samples=2, context_words=2)
    found = appraise(run_of("x"), [meter], [trajectory.build(), shapley.build()],
                     Provenance(reader="scripted"))  # fmt: skip
    values = {(c.rule, c.step): c.measurement.value for c in found}
    assert values["level", None] == pytest.approx(-math.log(2))
    assert values["trajectory", 0] == values["shapley", 0] == pytest.approx(math.log(2))
    assert {c.meter for c in found} == {"semantic_entropy"}
    long = passage("y").model_copy(update={"text": "one two three"})
    cut = semantic_entropy.build(
        ReaderByEvidence({("y",): FOUR[:2]}), SAME, samples=2, context_words=2
    )
    [shortened] = cut.measure(WHO, [(long, Passage(id="z", text="four"))])
    assert shortened.dropped == ("y", "z")


@pytest.mark.parametrize(
    "option", [{"samples": 1}, {"max_tokens": 0}, {"temperature": 0}, {"threshold": 2}]
)
def test_options_of_no_use_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="semantic entropy needs"):
        semantic_entropy.build(ReaderByEvidence({}), SAME, **option)


@pytest.mark.parametrize("truth", [(0.95, 0.05), (0.5, 0.5), (0.6, 0.2, 0.1, 0.1), (0.1,) * 10])
def test_the_interval_covers_the_entropy_of_the_reader(truth: tuple[float, ...]) -> None:
    """Of ten replies, in 93 % of 300 simulated cases or more."""
    draw = random.Random(0)
    entropy = -sum(p * math.log(p) for p in truth)
    held = 0
    for _ in range(300):
        drawn = draw.choices(range(len(truth)), weights=truth, k=10)
        weights = np.full(10, 0.1)
        replies = Replies(tuple(reply(str(k)) for k in drawn), weights)
        ids = [sorted(set(drawn)).index(k) for k in drawn]
        low, high = semantic_entropy.largest_cluster(float(masses(weights, ids).max()), replies)
        held += low <= entropy <= high
    assert held / 300 >= 0.93
