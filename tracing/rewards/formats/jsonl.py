"""Hopscope's own: one object a run with everything known of its rewards.

`levels` and `differences` are the numbers alone; `start`, `turns` and `outcome` have n, seed,
estimator and 95 % interval of each, or the reason why it is missing. `proxy` tells whether another
reader measured than ran.
"""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from hopscope.tracing.rewards.formats import RewardFormat
from hopscope.tracing.rewards.turns import TurnRewards


def build() -> RewardFormat:
    return _Lines()


class _Lines:
    levels = False

    def lines(self, batch: Iterable[TurnRewards]) -> Iterator[JsonValue]:
        for each in batch:
            numbers: dict[str, JsonValue] = {
                "proxy": each.proxy,
                "reward": each.reward,
                "levels": list(each.levels),
                "differences": list(each.differences),
                "rest": each.rest,
            }
            yield {**each.model_dump(mode="json"), **numbers}
