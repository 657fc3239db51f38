"""TRL: one object a run with `prompt`, `completion`, `reward` and `turn_rewards`.

`prompt` is the question, `completion` the answer; `reward` is the outcome, as a reward function of
GRPOTrainer returns it, and `turn_rewards` are differences that sum to it. TRL (1.16) takes one
reward for a completion: rewards of turns need a trainer of one's own. In a training loop use
`hopscope.rewards` instead of a file.
"""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from hopscope.tracing.rewards.formats import RewardFormat
from hopscope.tracing.rewards.turns import TurnRewards


def build() -> RewardFormat:
    return _TRL()


class _TRL:
    levels = False

    def lines(self, batch: Iterable[TurnRewards]) -> Iterator[JsonValue]:
        for each in batch:
            yield {
                "id": each.run,
                "prompt": each.question,
                "completion": each.answer,
                "reward": each.reward,
                "turn_rewards": list(each.differences),
            }
