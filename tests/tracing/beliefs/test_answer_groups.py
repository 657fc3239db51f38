"""The answers behind values: grouped, cut and told as tokens."""

from math import log

import pytest

from hopscope.runtime.types import AnswerGroup, MeasuredAnswers, Question
from hopscope.tracing.beliefs.answer_groups import LONGEST, MOST_GROUPS, grouped, told
from hopscope.tracing.entailments import lexical
from hopscope.tracing.meters import grogu, semantic_entropy, seper
from tests.fakes import CONTRADICTS, ScriptedEntailment, ScriptedReader, passage, reply, scored

WHO = Question(text="Who?", answers=("Ada Wilby",))
REPLIES = [
    reply(text, [log(0.5)]) for text in ("Ada Wilby", "the Bo", "Bo.", "Ada Wilby, of Nalmir")
]


def shape(found: MeasuredAnswers | None) -> list[tuple[str, float, bool]]:
    return [(each.answer, each.mass, each.right) for each in found.groups] if found else []


def test_right_answers_share_a_group_and_others_their_words() -> None:
    found = grouped(
        ["Ada", "Bo.", "the bo", "Ada W"], [0.3, 0.2, 0.1, 0.4], [True, False, False, True]
    )
    assert shape(found) == [("Ada W", 0.7, True), ("Bo.", 0.3, False)]


def test_the_heaviest_groups_are_kept_and_long_answers_cut() -> None:
    texts = [f"answer {number}" for number in range(20)]
    found = grouped(texts, [0.05 + (n == 7) for n in range(20)], [False] * 20)
    assert len(found.groups) == MOST_GROUPS
    assert found.groups[0].answer == "answer 7"
    assert sum(group.mass for group in found.groups) <= 1  # likelihoods may sum to more
    assert len(grouped(["x" * 900], [1.0], [True]).groups[0].answer) == LONGEST


def test_a_group_of_sampled_answers_is_as_heavy_as_the_belief() -> None:
    meter = seper.build(ScriptedReader([REPLIES]), lexical.build(), samples=4)
    [found] = meter.measure_answered(WHO, [(passage("a"),)])
    assert shape(found.answers) == [("Ada Wilby", 0.5, True), ("Bo.", 0.5, False)]
    assert found.measurement.value == pytest.approx(0.475)  # lexical: a contained gold is .9


def test_grouping_classifies_no_pair_that_the_value_did_not_need() -> None:
    told = {(one, other): CONTRADICTS for one in ("b", "c") for other in ("Ada Wilby",)}
    told |= {(other, one): relation for (one, other), relation in told.items()}
    replies = [reply("b", [-1.0]), reply("c", [-1.0])]
    meter = seper.build(ScriptedReader([replies]), ScriptedEntailment(told), samples=2)
    [found] = meter.measure_answered(WHO, [()])
    assert shape(found.answers) == [("b", 0.5, False), ("c", 0.5, False)]


def test_hard_belief_and_semantic_entropy_tell_theirs() -> None:
    for build, options in ((seper.build, {"kind": "hard"}), (semantic_entropy.build, {})):
        meter = build(ScriptedReader([REPLIES]), lexical.build(), samples=4, **options)
        [found] = meter.measure_answered(WHO, [()])
        assert found.answers is not None
        assert sum(g.mass for g in found.answers.groups if g.right) in (0.25, 0.5)


def test_what_is_not_measured_has_no_answers() -> None:
    nameless = Question(text="Who?")
    [found] = seper.build(ScriptedReader([]), lexical.build()).measure_answered(nameless, [()])
    assert (found.measurement.value, found.answers) == (None, None)


def test_grogu_tells_its_tokens_and_which_are_keys() -> None:
    entropies, without = [0.02, 0.9, 0.3], [0.05, 0.4, 0.36]
    answers = [[reply("x", [-0.1] * 3, entropies=tuple(each))] for each in (without, entropies)]
    meter = grogu.build(ScriptedReader(answers, [scored(without)]))
    [found] = meter.measure_answered(WHO, [(passage("a"),)])
    assert found.answers is not None
    tokens = found.answers.tokens
    assert [(t.value, t.without, t.key) for t in tokens] == [
        (0.02, 0.05, False), (0.9, 0.4, True), (0.3, 0.36, True)
    ]  # fmt: skip
    assert found.measurement.value == pytest.approx((0.05 + 0.4 + 0.36) / 3 - 0.6, abs=0.2)


def test_tokens_without_a_comparison_have_no_second_value() -> None:
    [token] = told(["a"], [0.123456], None, [0]).tokens
    assert (token.value, token.without, token.key) == (0.1235, None, True)
    assert AnswerGroup(answer="", mass=1.0, right=False) in grouped([" "], [1.0], [False]).groups
