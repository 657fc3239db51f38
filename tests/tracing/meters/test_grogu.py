"""GroGU: its arithmetic, and the meter on scripted answers. Vectors 7 to 10."""

from math import log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.types import Question, Thought
from hopscope.tracing.asking.asking import Unmeasured
from hopscope.tracing.meters import grogu
from hopscope.tracing.meters.grogu import Confidence, key_tokens
from tests.fakes import ScriptedReader, passage, reply, scored

WHO = Question(text="Who?")
GROUNDED, WITHOUT = [0.02, 0.90, 0.30, 0.01], [0.05, 0.40, 0.36, 0.0]
CLOSED = [0.04, 0.70, 0.02, 0.90]
FLAT = [0.20, 0.01, 0.50, 0.03, 0.10, 0.02, 0.40, 0.05, 0.06, 0.07, 0.08, 0.09]
LOGPROBS = [log(0.9), log(0.5), log(0.25)]


def answer(entropies: list[float], logprobs: list[float] | None = None, **fields: object) -> Any:
    return reply("x", logprobs or [-0.1] * len(entropies), entropies=tuple(entropies), **fields)


def test_vector_7_keys_are_what_the_documents_change() -> None:
    keys = key_tokens.grounded_keys(GROUNDED, WITHOUT, 0.05, 0.1)
    assert keys == (1, 2)
    assert key_tokens.entropy([GROUNDED[i] for i in keys]) == pytest.approx(0.6)
    assert key_tokens.entropy(GROUNDED) == pytest.approx(0.3075)


def test_vector_8_without_keys_the_highest_share_counts() -> None:
    keys = key_tokens.grounded_keys(FLAT, [value + 0.04 for value in FLAT], 0.05, 0.1)
    assert keys == (2, 6)
    assert key_tokens.entropy([FLAT[i] for i in keys]) == pytest.approx(0.45)


def test_the_share_is_at_least_one_token_and_ties_go_to_the_earlier() -> None:
    assert key_tokens.highest([0.1, 0.1, 0.1], 0.1) == (0,)
    assert len(key_tokens.highest([0.1] * 30, 0.1)) == 3
    assert len(key_tokens.highest([0.1] * 31, 0.1)) == 4


def test_a_change_of_exactly_alpha_makes_no_key() -> None:
    assert key_tokens.grounded_keys([0.5, 0.25], [0.25, 0.25], 0.25, 0.5) == (0,)
    assert key_tokens.grounded_keys([0.25, 0.5], [0.5, 0.5], 0.25, 0.5) == (1,)


def test_vector_10_perplexities() -> None:
    assert -sum(LOGPROBS) / 3 == pytest.approx(0.728267, abs=1e-6)
    assert key_tokens.perplexity(LOGPROBS) == pytest.approx(2.071488, abs=1e-6)
    assert key_tokens.mean_inverse_probability(LOGPROBS) == pytest.approx(2.370370, abs=1e-6)
    assert key_tokens.perplexity(LOGPROBS[1:]) == pytest.approx(2.828427, abs=1e-6)


def test_confidences_without_the_closed_book_answer_take_its_thought_all_the_same() -> None:
    """A reader that thinks was asked what it thinks of the tokens behind no thought at all, where
    the empty evidence was not among the contexts."""
    thoughts = {"with": Thought(text="it says Bruno"), "without": Thought(text="who knows")}
    replies = [
        [answer(GROUNDED, thought=thoughts["with"])],
        [answer(CLOSED, thought=thoughts["without"])],
    ]
    evidence = (passage("x"),)
    alone = ScriptedReader(replies, [scored(WITHOUT)])
    [found] = grogu.build(alone).confidences(WHO, [evidence])
    assert [request.thought for [request] in alone.scored] == ["who knows"]
    together = ScriptedReader(replies[::-1], [scored(WITHOUT)])
    assert grogu.build(together).confidences(WHO, [(), evidence])[1] == found
    plain = ScriptedReader(replies[:1])
    grogu.build(plain, score="entropy").confidences(WHO, [evidence])  # compares nothing

    silent = ScriptedReader([replies[0], [reply("", ())]])
    [missing] = grogu.build(silent).confidences(WHO, [evidence])
    assert missing == Unmeasured("without documents: the reader's answer is empty")


def test_vectors_7_and_9_through_the_meter() -> None:
    """No evidence is exactly 0; the difference to it uses the rule of appendix C.1."""
    reader = ScriptedReader([[answer(CLOSED)], [answer(GROUNDED)]], [scored(WITHOUT)])
    meter = grogu.build(reader)
    found = meter.measure(WHO, [(passage("x"),), (), (passage("x"),)])
    assert [m.value for m in found] == pytest.approx([0.2, 0, 0.2])
    assert found[1].value == 0.0
    assert len(reader.generated) == len(reader.scored) == 1
    assert all(request.temperature == 0 for request in reader.generated[0])
    [request] = reader.scored[0]
    assert request.token_ids == (0, 1, 2, 3)
    assert request.prompt.shown == ()
    assert "score=key_entropy, alpha=0.05, top=0.1, ungrounded_keys=C.1" in found[0].estimator


def test_the_record_shows_the_key_tokens_in_their_text() -> None:
    spelled = answer(GROUNDED, tokens=("It", " is", " Al", "ba"))
    reader = ScriptedReader([[spelled]], [scored(WITHOUT)])
    [found] = grogu.build(reader).confidences(WHO, [(passage("x"),)])
    assert isinstance(found, Confidence)
    assert found.key_tokens == (" is", " Al")
    assert found.value == pytest.approx(-0.6)
    assert found.ungrounded_entropies == tuple(WITHOUT)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"score": "entropy"}, -0.3075 + 0.415),
        ({"score": "key_ppl"}, -(2.828427 - 1 / 0.5)),
        ({"score": "ppl"}, -(2.071488 - 2**0.5)),
        ({"score": "ppl", "perplexity": "mean_inverse"}, -(2.370370 - 1.5)),
    ],
)
def test_the_other_scores(options: dict[str, Any], expected: float) -> None:
    """key_ppl: tokens 1 and 2 change by more than alpha; the closed-book key is token 1."""
    if options["score"] == "entropy":
        replies = [[answer(CLOSED)], [answer(GROUNDED)]]
    else:
        closed = answer([0.0] * 2, [log(1.0), log(0.5)])
        replies = [[closed], [answer([0.0] * 3, LOGPROBS)]]
    same = scored([0.0] * 3, [log(0.9), log(0.9), log(0.9)])
    reader = ScriptedReader(replies, [same] if options["score"] == "key_ppl" else [])
    meter = grogu.build(reader, **options)
    [found] = meter.measure(WHO, [(passage("x"),)])
    assert found.value == pytest.approx(expected, abs=1e-6)
    assert meter.comparable_baseline is (options["score"] in ("entropy", "ppl"))


def test_an_empty_answer_is_a_reason() -> None:
    reader = ScriptedReader([[answer(CLOSED)], [reply("", [])]])
    [found] = grogu.build(reader).measure(WHO, [(passage("x"),)])
    assert "empty" in str(found.reason)
    reader = ScriptedReader([[reply("", [])], [answer(GROUNDED)]], [scored(WITHOUT)])
    [found] = grogu.build(reader).measure(WHO, [(passage("x"),)])
    assert "without evidence" in str(found.reason)


def test_a_reader_without_entropies_is_a_reason() -> None:
    [found] = grogu.build(ScriptedReader([[reply("x", [-0.1])]])).measure(WHO, [()])
    assert "entropies" in str(found.reason)


def test_truncated_entropies_are_marked_and_never_mixed_with_exact_ones() -> None:
    x = passage("x")
    reader = ScriptedReader(
        [[answer(CLOSED, approx=True)], [answer(GROUNDED, approx=True)]],
        [scored(WITHOUT, approx=True)],
    )
    [found] = grogu.build(reader).measure(WHO, [(x,)])
    assert found.value == pytest.approx(0.2)
    assert found.estimator.endswith("approx")
    reader = ScriptedReader([[answer(CLOSED)], [answer(GROUNDED)]], [scored(WITHOUT, approx=True)])
    assert grogu.build(reader).measure(WHO, [(x,)])[0].value is None
    reader = ScriptedReader([[answer(CLOSED, approx=True)], [answer(GROUNDED)]])
    [found] = grogu.build(reader, score="entropy").measure(WHO, [(x,)])
    assert "truncated" in str(found.reason)


def test_other_tokens_than_generated_are_a_reason() -> None:
    reader = ScriptedReader([[answer(CLOSED)], [answer(GROUNDED)]], [scored(WITHOUT[:2])])
    assert grogu.build(reader).measure(WHO, [(passage("x"),)])[0].value is None


ENTROPIES = st.lists(st.floats(0, 5), min_size=1, max_size=12)


@given(ENTROPIES, st.data(), st.floats(0, 1), st.floats(0, 1))
def test_keys_are_what_changed_or_the_highest_share_and_never_nobody(
    grounded: list[float], data: st.DataObject, alpha: float, top: float
) -> None:
    size = len(grounded)
    without = data.draw(st.lists(st.floats(0, 5), min_size=size, max_size=size))
    keys = key_tokens.grounded_keys(grounded, without, alpha, top)
    changed = [i for i in range(size) if abs(grounded[i] - without[i]) > alpha]
    assert keys
    assert list(keys) == sorted(set(keys))
    if changed:
        assert list(keys) == changed
    else:
        others = [grounded[i] for i in range(size) if i not in keys]
        assert min(grounded[i] for i in keys) >= max(others, default=0)
    assert key_tokens.grounded_keys(grounded, grounded, 0, top) == key_tokens.highest(grounded, top)


@pytest.mark.parametrize("score", ["entropy", "key_entropy", "ppl", "key_ppl"])
def test_every_score_is_zero_without_evidence_and_says_what_it_is(score: Any) -> None:
    """The estimator spells the ungrounded rule for the two scores that have one."""
    meter = grogu.build(ScriptedReader([[answer(CLOSED)]]), score=score)
    [found] = meter.measure(WHO, [()])
    assert found.value == 0.0
    assert f"score={score}" in found.estimator
    assert ("ungrounded_keys=C.1" in found.estimator) is score.startswith("key_")
    assert found.low is None


def test_approximate_entropies_leave_perplexities_exact() -> None:
    """Log-probabilities of chosen tokens are exact even where the distribution is truncated."""
    closed, grounded = answer(CLOSED, approx=True), answer(GROUNDED, approx=True)
    reader = ScriptedReader([[closed], [grounded]])
    [found] = grogu.build(reader, score="ppl").measure(WHO, [(passage("x"),)])
    assert found.value == pytest.approx(0)
    assert "approx" not in found.estimator
