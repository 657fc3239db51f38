"""prime-rl: one object a run with `info.turn_rewards`, a level for each turn of the policy.

The policy has a turn for each search and one for the answer. The first level is the closed-book
belief, and each further one is the belief with what the policy had found by then. prime-rl takes
the differences (its algorithm `turn_credit`, prime-rl#3282): the gain of a search falls on the turn
after it, from where its `gamma` moves it back. A level of None passes its progress on to the next.

A run without an answer has no turn after its last search: that search then has the last level, so
that the differences still sum to the outcome. `reward` is the outcome.
"""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from hopscope.tracing.rewards.formats import RewardFormat
from hopscope.tracing.rewards.turns import TurnRewards


def build() -> RewardFormat:
    return _PrimeRL()


class _PrimeRL:
    levels = True

    def lines(self, batch: Iterable[TurnRewards]) -> Iterator[JsonValue]:
        for each in batch:
            levels = list(each.levels)
            if each.answer is None and len(levels) > 1:
                del levels[-2]
            yield {"id": each.run, "reward": each.reward, "info": {"turn_rewards": list(levels)}}
