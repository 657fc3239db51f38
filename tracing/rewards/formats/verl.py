"""verl: one object a run with `extra_fields.tool_rewards`, a difference for each search.

`reward_score` is the outcome. verl's agent loop puts the rewards of its tools into
`extra_fields["tool_rewards"]`, one for each call, but its advantages do not use them (verl#7244): a
reward manager of one's own must.
"""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from hopscope.tracing.rewards.formats import RewardFormat
from hopscope.tracing.rewards.turns import TurnRewards


def build() -> RewardFormat:
    return _Verl()


class _Verl:
    levels = False

    def lines(self, batch: Iterable[TurnRewards]) -> Iterator[JsonValue]:
        for each in batch:
            yield {
                "uid": each.run,
                "reward_score": each.reward,
                "extra_fields": {"tool_rewards": list(each.differences)},
            }
