"""SePer through its public methods, on scripted replies and relations."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.errors import ContextOverflowError, UsageError
from hopscope.runtime.ports import Probabilities
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Measurement,
    Provenance,
    Question,
)
from hopscope.tracing.appraisal import appraise
from hopscope.tracing.asking import cut_off
from hopscope.tracing.beliefs.beliefs import Belief
from hopscope.tracing.credit import trajectory
from hopscope.tracing.entailments import lexical
from hopscope.tracing.meters import seper
from hopscope.tracing.reports.records import TotalUtility
from hopscope.tracing.reports.report import report
from hopscope.tracing.wrappers.cached import CachedEntailment, CachedReader
from tests.fakes import (
    CONTRADICTS,
    ENTAILS,
    NEUTRAL,
    ReaderByEvidence,
    ScriptedEntailment,
    passage,
    reply,
    run_of,
)
from tests.fakes import ScriptedReader as Scripted

ONE = Question(text="Who?", answers=("g",))
TWO = Question(text="Who?", answers=("g", "h"))


def p(entailment: float) -> Probabilities:
    return Probabilities(entailment, 1 - entailment, 0)


VECTOR_1 = [reply("a", [-0.1, -0.3]), reply("b", [-0.5, -0.7, -0.6]), reply("c", [-1.0])]
TABLE_1 = {
    ("a", "g"): p(0.9), ("b", "g"): p(0.2), ("c", "g"): p(0.05),
    ("g", "a"): p(0.6), ("g", "b"): p(0.7), ("g", "c"): p(0.01),
}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 0.656566),
        ({"direction": "r2g"}, 0.498446),
        ({"direction": "half"}, 0.577506),
        ({"weight": "raw", "direction": "r2g"}, 0.654742),
        ({"weight": "raw"}, 0.737391),
        ({"weight": "raw_normalised", "direction": "r2g"}, 0.544032),
        ({"weight": "uniform"}, 0.55),
    ],
)
def test_vector_1(options: dict[str, Any], expected: float) -> None:
    meter = seper.build(Scripted([VECTOR_1]), ScriptedEntailment(TABLE_1), samples=3, **options)
    [found] = meter.measure(ONE, [()])
    assert found.value == pytest.approx(expected, abs=1e-6)
    assert found.n == 3
    if options.get("weight") == "raw":
        assert found.low is None
    else:
        assert 0 <= found.low < found.value < found.high <= 1  # type: ignore[operator]


@pytest.mark.parametrize(("golds", "expected"), [("max", 0.725), ("mean", 0.5)])
def test_vector_3_two_replies_two_aliases(golds: Any, expected: float) -> None:
    """Softmax weights .75 and .25; the public code's layout of pairs gives .700 for max."""
    logprob = [reply("a", [-1.0]), reply("b", [-1.0 - 1.0986122886681098])]
    table = {("a", "g"): p(0.9), ("a", "h"): p(0.1), ("b", "g"): p(0.2), ("b", "h"): p(0.8)}
    table |= {(g, r): p(0.0) for g in "gh" for r in "ab"}
    meter = seper.build(Scripted([logprob]), ScriptedEntailment(table), samples=2, golds=golds)
    [found] = meter.measure(TWO, [()])
    assert found.value == pytest.approx(expected)


def relations(equal: Sequence[set[str]], texts: str) -> dict[tuple[str, str], Probabilities]:
    """Everything contradicts everything but what stands in one of the sets."""
    return {
        (one, other): ENTAILS if any({one, other} <= same for same in equal) else CONTRADICTS
        for one in texts
        for other in texts
        if one != other
    }


@pytest.mark.parametrize(
    ("golds", "aggregation", "expected"),
    [("g", None, 0.6), ("gh", None, 0.9), ("gh", "mean", 0.45), ("gh", "max", 0.6)],
)
def test_vector_2_hard(golds: str, aggregation: Any, expected: float) -> None:
    """Replies a and c mean the same and match g; b matches h; d matches nothing."""
    replies = [
        reply(text, [logprob])
        for text, logprob in zip("abcd", [-0.916291, -1.203973, -1.609438, -2.302585], strict=True)
    ]
    table = relations([{"a", "c", "g"}, {"b", "h"}], "abcdgh")
    meter = seper.build(
        Scripted([replies]), ScriptedEntailment(table), kind="hard", samples=4, golds=aggregation
    )
    [found] = meter.measure(Question(text="Who?", answers=tuple(golds)), [()])
    assert found.value == pytest.approx(expected, abs=1e-6)
    assert meter.name == "seper_hard"


def test_a_belief_shows_all_it_was_computed_from() -> None:
    table = relations([{"a", "g"}], "abg")
    replies = [reply("b", [-1.0]), reply(" a ", [-1.0]), reply("a", [-1.0])]
    meter = seper.build(Scripted([replies]), ScriptedEntailment(table), samples=3)
    [belief] = meter.beliefs(ONE, [()])
    assert isinstance(belief, Belief)
    assert [s.text.strip() for s in belief.samples] == ["a", "a", "b"]
    assert belief.weights == pytest.approx([1 / 3] * 3)
    assert belief.clusters == (0, 0, 1)
    assert belief.matches == ((True,), (False,))
    assert belief.agreement == ((1,), (1,), (0,))
    assert belief.reply_to_gold[2] == (CONTRADICTS,)
    assert belief.soft == pytest.approx(2 / 3)
    assert belief.hard == pytest.approx(2 / 3)
    for estimator in ("rao", "discrete"):
        assert belief.semantic_entropy(estimator) == pytest.approx(0.636514, abs=1e-6)  # type: ignore[arg-type]
    assert belief.semantic_entropy("kuhn") == pytest.approx(0.752039, abs=1e-6)


def test_loose_match_accepts_neutral_one_way_and_bi_does_not() -> None:
    table = {("a", "g"): ENTAILS, ("g", "a"): NEUTRAL}
    for match, expected in [("loose", 1), ("bi", 0)]:
        meter = seper.build(
            Scripted([[reply("a")]]), ScriptedEntailment(table), kind="hard", match=match  # type: ignore[arg-type]
        )  # fmt: skip
        assert meter.measure(ONE, [()])[0].value == expected


def test_contexts_go_together_and_equal_ones_once() -> None:
    reader = ReaderByEvidence({(): [reply("b")], ("x",): [reply("a")], ("x", "y"): [reply("a")]})
    entailment = ScriptedEntailment(relations([{"a", "g"}], "abg"))
    x, y = passage("x"), passage("y")
    found = seper.build(reader, entailment, samples=1).measure(ONE, [(), (x,), (x,), (x, y), ()])
    assert [m.value for m in found] == [0, 1, 1, 1, 0]
    assert found[0] == found[4]
    [asked] = reader.generated
    assert [request.prompt.shown for request in asked] == [(), ("x",), ("x", "y")]
    assert asked[0].stop == ("\n", "Question:", "Context:")
    assert "Documents" not in asked[0].prompt.text
    pairs = [(s.premise, s.hypothesis) for call in entailment.calls for s in call]
    assert pairs == [("b", "g"), ("a", "g"), ("g", "b")]
    assert len(entailment.calls) == 2


def test_no_gold_answer_is_a_reason_and_costs_nothing() -> None:
    meter = seper.build(Scripted(), ScriptedEntailment({}))
    for golds in [(), (" ",)]:
        [found] = meter.measure(Question(text="Who?", answers=golds), [()])
        assert found.value is None
        assert "gold" in str(found.reason)


def test_a_reader_without_logprobs_is_a_reason_unless_weights_are_uniform() -> None:
    replies = [reply("a", []), reply("a", [])]
    table = relations([{"a", "g"}], "ag")
    [found] = seper.build(Scripted([replies]), ScriptedEntailment(table)).measure(ONE, [()])
    assert "log-probabilities" in str(found.reason)
    meter = seper.build(Scripted([replies]), ScriptedEntailment(table), weight="uniform")
    assert meter.measure(ONE, [()])[0].value == 1


def test_empty_replies_weigh_by_their_end_token_and_entail_nothing() -> None:
    table = relations([{"a", "g"}], "ag")
    replies = [reply("a", [-1.0]), reply("", [], end_logprob=-1.0), reply("", [])]
    meter = seper.build(Scripted([replies]), ScriptedEntailment(table), samples=3)
    [belief] = meter.beliefs(ONE, [()])
    assert isinstance(belief, Belief)
    assert belief.weights == pytest.approx([1 / 3] * 3)
    assert belief.soft == pytest.approx(1 / 3)
    assert belief.clusters == (0, 0, 1)
    assert belief.hard == pytest.approx(1 / 3)


def test_only_empty_replies_are_no_belief_but_zero_when_their_likelihood_is_known() -> None:
    known = [reply("", [], end_logprob=-0.1)]
    unknown = [reply("", [])]
    assert seper.build(Scripted([known]), ScriptedEntailment({})).measure(ONE, [()])[0].value == 0
    [found] = seper.build(Scripted([unknown]), ScriptedEntailment({})).measure(ONE, [()])
    assert found.value is None


class ShortReader(Scripted):
    """Takes prompts of one passage at most."""

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        if any(len(request.prompt.shown) > 1 for request in requests):
            raise ContextOverflowError(self.name, 99, 1, 50)
        return super().generate(requests)


def test_a_context_that_does_not_fit_spoils_only_itself() -> None:
    reader = ShortReader([[reply("a")], [reply("a")]])
    meter = seper.build(reader, ScriptedEntailment(relations([{"a", "g"}], "ag")), samples=1)
    found = meter.measure(ONE, [(), (passage("x"), passage("y")), (passage("x"),)])
    assert [m.value for m in found] == [1, None, 1]
    assert "exceed" in str(found[1].reason)


def cut_replies(whole: Sequence[str], cut: Sequence[str]) -> list[Generation]:
    return [*map(reply, whole), *(reply(text, finish_reason="length") for text in cut)]


KNOWN = relations([{"a", "g"}], "abg")


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_a_reply_that_was_cut_off_is_neither_right_nor_wrong(kind: Any) -> None:
    """It counted as whole: "Grand" was believed for "Grand Rovmar" by .90, and nothing told."""

    def believed(replies: list[Generation]) -> Measurement:
        known, size = ScriptedEntailment(KNOWN), len(replies)
        return seper.build(Scripted([replies]), known, samples=size, kind=kind).measure(ONE, [()])[
            0
        ]

    found = believed(cut_replies("aaab", "c"))
    assert (found.value, found.n) == (0.75, 5)
    # At its lower end it counts as wrong, at its upper as right.
    wrong, right = (believed(cut_replies(texts, "")) for texts in ("aaabb", "aaaab"))
    assert (found.low, found.high) == pytest.approx((wrong.low, right.high))
    assert found.estimator == f"{wrong.estimator} with 1 of 5 replies cut off"
    assert cut_off.replies(found.estimator) == "1 of 5 replies"
    assert cut_off.untold(found.estimator) == wrong.estimator


def test_where_most_replies_were_cut_off_nothing_is_measured() -> None:
    replies = [cut_replies("a", "ccc")]
    meter = seper.build(Scripted(replies), ScriptedEntailment(KNOWN), samples=4, max_tokens=1)
    [found] = meter.measure(ONE, [()])
    assert found.value is None
    assert found.reason == (
        "3 of 4 replies were cut off after 1 tokens, so what they mean is not known; raise -o "
        "seper.max_tokens"
    )


def test_beliefs_are_compared_though_replies_of_one_were_cut_off() -> None:
    """Their estimators are the same but for how many were cut off."""
    replies = {(): cut_replies("bbb", "c"), ("x",): cut_replies("aaaa", "")}
    meter = seper.build(ReaderByEvidence(replies), ScriptedEntailment(KNOWN), samples=4)
    run = run_of("x", answers=["g"])
    credits = appraise(run, [meter], [trajectory.build()], Provenance(reader="r"))
    told = {(credit.rule, credit.step): credit.measurement for credit in credits}
    assert told["total", None].value == 1
    assert told["total", None].low is not None
    found = report(run, credits)
    whole = found.total.meters["seper"]
    assert isinstance(whole, TotalUtility)
    assert whole.cut_off == "1 of 4 replies"


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_the_greedy_reply_is_one_and_no_sample(kind: Any) -> None:
    """Ten equal greedy replies had an interval as of ten samples."""
    reader = Scripted([[reply("a")]])
    meter = seper.build(reader, ScriptedEntailment(KNOWN), temperature=0.0, kind=kind)
    [found] = meter.measure(ONE, [()])
    assert (found.value, found.n, found.low, found.high) == (1, 1, None, None)
    assert [request.n for request in reader.generated[0]] == [1]
    assert "samples=1, temperature=0.0" in meter.estimator
    assert "interval" not in meter.estimator
    with pytest.raises(UsageError, match="leave width out"):
        seper.build(reader, lexical.build(), temperature=0.0, width=0.3)


def test_the_estimator_spells_every_option() -> None:
    meter = seper.build(Scripted(), lexical.build(), kind="hard", equivalence="threshold")
    for part in ["seper-hard", "samples=10", "temperature=1.0", "weight=lennorm", "golds=union",
                 "equivalence=threshold", "match=loose", "threshold=0.5", "entailment=lexical",
                 "clustering=first-match"]:  # fmt: skip
        assert part in meter.estimator


def test_soft_and_hard_share_samples_and_relations_through_caches() -> None:
    inner, entailment = (
        Scripted([[reply("a"), reply("b")]]),
        ScriptedEntailment(relations([{"a", "g"}], "abg")),
    )
    reader, judge = CachedReader(inner), CachedEntailment(entailment)
    soft = seper.build(reader, judge, samples=2)
    hard = seper.build(reader, judge, samples=2, kind="hard")
    assert soft.measure(ONE, [()])[0].value == hard.measure(ONE, [()])[0].value == 0.5
    assert len(inner.generated) == 1
    asked = [[(s.premise, s.hypothesis) for s in call] for call in entailment.calls]
    assert asked == [[("a", "g"), ("b", "g")], [("g", "b")], [("g", "a")], [("a", "b")]]
    assert judge.name == "scripted"


ANSWERS = ["Lisbon", "Lisbon, Portugal", "Porto", "yes", "1951", "", "not Lisbon", "lisbon"]
REPLIES = st.lists(
    st.builds(
        lambda text, logprobs: reply(text, logprobs),
        st.sampled_from(ANSWERS),
        st.lists(st.floats(-5, 0), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=6,
)
GOLDS = st.lists(st.sampled_from(ANSWERS), max_size=4)
OPTIONS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["soft", "hard"]),
        "weight": st.sampled_from(["lennorm", "uniform", "raw_normalised"]),
        "direction": st.sampled_from(["max", "r2g", "half"]),
        "golds": st.sampled_from([None, "max", "mean", "union"]),
        "equivalence": st.sampled_from(["bi", "loose", "threshold"]),
        "clustering": st.sampled_from(["first-match", "seed"]),
    }
)


def _ten(*logprobs: float, text: str = "gold") -> Measurement:
    """The belief in ten equal right replies of these log-probabilities."""
    meter = seper.build(Scripted([[reply(text, logprobs)] * 10]), lexical.build())
    [found] = meter.measure(Question(text="Who?", answers=("gold",)), [()])
    return found


def test_ten_equal_replies_of_low_likelihood_leave_room_for_heavier_ones() -> None:
    """A right answer of probability .8 whose tokens have 1/2.3: what is said else can outweigh it,
    so that the belief's limit is .64, and ten right replies gave [.69, 1] in 11 of 100 cases."""
    unsure = _ten(-0.83, -0.83, -0.83)
    assert unsure.value == 1
    # The replies not seen: at most 30.8 % of all, each weighing 2.3 times as much as those seen.
    assert unsure.low == pytest.approx(0.692 / (0.692 + 0.308 * 2.293), abs=1e-3)
    # Where the replies seen have nearly all probability, nothing is left for others.
    assert _ten(-0.001, -0.001).low == pytest.approx(0.6915, abs=1e-4)


def test_replies_that_differ_bound_what_others_weigh() -> None:
    """The heaviest of them; a bound of 1 would double the interval of any guess."""
    texts = [f"gold {i}" for i in range(10)]
    replies = [reply(text, (-1.5 - 0.01 * i,) * 2) for i, text in enumerate(texts)]
    table = {(text, "gold"): ENTAILS for text in texts}
    meter = seper.build(Scripted([replies]), ScriptedEntailment(table))
    [found] = meter.measure(Question(text="Who?", answers=("gold",)), [()])
    assert found.low is not None
    assert 0.66 < found.low < 0.6915


@given(REPLIES, GOLDS, OPTIONS, st.randoms(use_true_random=False))
def test_order_and_repetition_change_nothing_and_beliefs_are_shares(
    replies: list[Generation], golds: list[str], options: dict[str, Any], rng: random.Random
) -> None:
    def value(replies: list[Generation], golds: list[str]) -> float | None:
        meter = seper.build(Scripted([replies]), lexical.build(), samples=len(replies), **options)
        return meter.measure(Question(text="Where?", answers=tuple(golds)), [()])[0].value

    first = value(replies, golds)
    others = golds + golds[:1]
    rng.shuffle(others)
    again = value(rng.sample(replies, len(replies)), others)
    assert first == again
    if first is None:
        assert not any(gold.strip() for gold in golds)
    else:
        assert 0 <= first <= 1
