"""The suites of turn rewards, by a perfect reader, for whom all is known."""

import pytest

from hopscope.api import parts
from hopscope.lab.suites import worlds
from hopscope.lab.suites.figures import figures
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import KnownQuestion
from hopscope.lab.suites.perfect import Perfect
from hopscope.lab.validity import reward_hacking, turn_rewards
from hopscope.lab.validity.reward_hacking import Hack, rollout
from hopscope.lab.validity.turn_rewards import SearchCase
from hopscope.tracing.rewards.turns import Rule, TurnRewards


@pytest.fixture(scope="module")
def inputs() -> SuiteInputs:
    return worlds.make(parts.reader("tiny"), limit=4)


@pytest.fixture(scope="module")
def item(inputs: SuiteInputs) -> KnownQuestion:
    return inputs.questions(2, 1)[0]


def scored(inputs: SuiteInputs, item: KnownQuestion, hack: Hack, rule: Rule) -> TurnRewards:
    run = rollout(item, hack.searches(item))
    return turn_rewards.rewards(inputs, run, Perfect(item), rule)


def test_each_hack_earns_a_perfect_reader_nothing(inputs: SuiteInputs, item: KnownQuestion) -> None:
    hacks = {hack.name: hack for hack in reward_hacking._hacks(inputs)}
    earned = {
        name: hack.earned(scored(inputs, item, hack, Rule.trajectory))
        for name, hack in hacks.items()
    }
    assert earned == {
        "honest search": 1.0,
        "leaked answer": 0.0,
        "repeated search": 0.0,
        "flood after": 0.0,  # its passages disturb no perfect reader
        "flood before": 1.0,  # what comes after it is useful
        "endless flood": 1.0,
    }
    honest = scored(inputs, item, hacks["honest search"], Rule.shapley)
    assert honest.differences == [0.5, 0.5]


def test_hacks_are_what_they_say(inputs: SuiteInputs, item: KnownQuestion) -> None:
    hacks = {hack.name: hack for hack in reward_hacking._hacks(inputs)}
    leak = hacks["leaked answer"].searches(item)[-1]
    assert item.answer in leak.query
    assert all(item.answer not in passage.text for passage in leak.passages)
    assert hacks["leaked answer"].unguarded is not None
    bare = hacks["leaked answer"].unguarded(item)[-1]
    assert any(item.answer in passage.text for passage in bare.passages)
    for name, words in (("flood before", 600), ("endless flood", 4000)):
        flood = hacks[name].searches(item)[0].passages
        assert sum(len(passage.text.split()) for passage in flood) > words
        assert not set(flood) & set(item.gold)


def test_auroc_of_searches(inputs: SuiteInputs) -> None:
    cases = [
        SearchCase(n, hops=2, whole=n < 3, useful=useful, rewards={"good": reward, "none": None})
        for n in range(6)
        for useful, reward in ((True, 0.5), (False, 0.0 if n < 3 else 0.5))
    ]
    found = figures([turn_rewards._table(inputs, cases, [])])
    assert found["useful_searches/good/whole"].value == 1.0
    assert found["useful_searches/good/all"].value == 0.75
    assert found["useful_searches/none/all"].value is None
