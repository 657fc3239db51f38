"""AReaL: one object for all runs with `turn_rewards` of shape (run, turn), differences.

Rows end in null where other runs have more turns, and hold null where a turn was not measured;
`turns` counts the turns of each run, `rewards` are the outcomes, `ids` the runs. AReaL's tensor
`turn_rewards` has the shape [batch, turns] (AReaL#1681): decide there what stands for null.
"""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from hopscope.tracing.rewards.formats import RewardFormat
from hopscope.tracing.rewards.turns import TurnRewards


def build() -> RewardFormat:
    return _AReaL()


class _AReaL:
    levels = False

    def lines(self, batch: Iterable[TurnRewards]) -> Iterator[JsonValue]:
        ids: list[JsonValue] = []
        rewards: list[JsonValue] = []
        rows: list[list[JsonValue]] = []
        for each in batch:
            ids.append(each.run)
            rewards.append(each.reward)
            rows.append(list(each.differences))
        most = max(map(len, rows), default=0)
        yield {
            "ids": ids,
            "rewards": rewards,
            "turns": [len(row) for row in rows],
            "turn_rewards": [row + [None] * (most - len(row)) for row in rows],
        }
