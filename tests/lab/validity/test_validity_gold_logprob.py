"""The suite of gold_logprob with a reader that knows every fact it is shown, and by hand."""

from collections.abc import Sequence

import pytest

from hopscope.lab.suites import worlds
from hopscope.lab.suites.figures import figures
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import KnownQuestion
from hopscope.lab.suites.rivals import GOLD, SOFT
from hopscope.lab.validity import gold_logprob
from hopscope.runtime.types import Generation, GenerationRequest, Measurement, Scored, ScoreRequest
from tests.fakes import ScriptedReader, reply, scored

LIMIT = 6


class Spelling:
    """Answers right if it is shown all gold, else "Nobody"; gives the answer as it is spelled .9
    for each of two tokens, and other texts .01."""

    name = "spelling"

    def __init__(self, items: Sequence[KnownQuestion]) -> None:
        self._items = {item.question.text: item for item in items}

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        return [
            [reply(item.answer if whole else "Nobody") for _ in range(request.n)]
            for request in requests
            for item, whole in [self._known(request)]
        ]

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        return [
            scored((0, 0), (logprob, logprob))
            for request in requests
            for item, whole in [self._known(request)]
            for logprob in [-0.1 if whole and request.continuation == item.answer else -5.0]
        ]

    def _known(self, request: GenerationRequest | ScoreRequest) -> tuple[KnownQuestion, bool]:
        text = request.prompt.messages[-1].content
        item = next(item for asked, item in self._items.items() if f"{asked}\n" in text)
        return item, {passage.key for passage in item.gold} <= set(request.prompt.shown)


@pytest.fixture(scope="module")
def inputs() -> SuiteInputs:
    drawn = worlds.make(ScriptedReader(), seed=3, limit=LIMIT)
    items = [item for hops in (1, 2) for item in drawn.questions(hops)]
    return worlds.make(Spelling(items), seed=3, limit=LIMIT)


@pytest.fixture(scope="module")
def found(inputs: SuiteInputs) -> dict[str, Measurement]:
    return figures(gold_logprob.build(inputs))


def test_gains_are_those_of_the_reader(found: dict[str, Measurement]) -> None:
    logprob, probability = GOLD
    one = "gold_one_hop/{}/{}"
    for kind, by_seper, by_logprob in (
        ("gold passage", 1, 4.9),
        ("distractor", 0, 0),
        ("gold passage, gold in lower case", 1, 0),
        ("gold passage, another's gold", 0, 0),
    ):
        assert found[one.format(kind, SOFT)].value == pytest.approx(by_seper)
        assert found[one.format(kind, logprob)].value == pytest.approx(by_logprob)
    assert found[one.format("gold passage", probability)].value == pytest.approx(0.8981, abs=1e-4)
    assert found[one.format("gold passage", SOFT)].n == LIMIT
    lower = found[one.format("gold passage, gold in lower case", SOFT)]
    assert 0 < lower.n < LIMIT  # years have no case
    for kind, gain in (("first passage", 0), ("last passage", 0), ("both", 4.9)):
        assert found[f"gold_two_hops/{kind}/{logprob}"].value == pytest.approx(gain)


def test_the_agreement_of_signs_counts_clear_gains(found: dict[str, Measurement]) -> None:
    """Of two hops only the gain of both passages is clear, and there all agree; of one hop the gold
    in lower case is believed and has no gain of likelihood."""
    for scale in GOLD:
        two = found[f"gold_agreement/{scale}, 2 hops/sign"]
        assert (two.value, two.n) == (1, LIMIT)
        assert found[f"gold_agreement/{scale}, 2 hops/r"].value == pytest.approx(1)
        one = found[f"gold_agreement/{scale}, 1 hop/sign"]
        assert one.value is not None
        assert 0.3 < one.value < 1


def test_a_passage_that_names_the_answer_is_no_gold(inputs: SuiteInputs) -> None:
    items = inputs.questions(1)
    for item in items:
        told = {s.kind: s for s in gold_logprob._one_hop(inputs, item, [i.answer for i in items])}
        naming = told["names the answer, does not tell it"].evidence
        if naming is not None:
            assert item.answer in f"{naming[0].title} {naming[0].text}"
            assert naming != item.gold
        assert told["gold passage, another's gold"].gold != item.answer
