"""Each trainer gets the form that it documents."""

import json
from itertools import pairwise
from typing import Any

import pytest

from hopscope.runtime import components
from hopscope.runtime.types import Measurement, Provenance
from hopscope.tracing.rewards import formats
from hopscope.tracing.rewards.turns import Rule, TurnReward, TurnRewards


def measured(value: float | None) -> Measurement:
    return Measurement(value=value, reason="too long" if value is None else None)


def rewards(run: str, *levels: float | None, answer: str | None = "gold") -> TurnRewards:
    """By trajectory, of these levels."""
    turns = tuple(
        TurnReward(
            step=2 * place,
            query=f"query {place}",
            difference=measured(None if before is None or after is None else after - before),
            level=measured(after),
        )
        for place, (before, after) in enumerate(pairwise(levels))
    )
    first, last = levels[0], levels[-1]
    assert first is not None
    assert last is not None
    return TurnRewards(
        run=run,
        question="Who?",
        question_id="q1",
        answer=answer,
        meter="seper",
        rule=Rule.trajectory,
        provenance=Provenance(reader="r"),
        start=measured(first),
        turns=turns,
        outcome=measured(last - first),
    )


LONG, SHORT = rewards("one", 0.0, 0.25, 1.0), rewards("two", 0.5, 0.25)
GAP = rewards("three", 0.0, None, 0.5)


def written(name: str, *batch: TurnRewards) -> list[Any]:
    lines = components.load(formats, name).build().lines(iter(batch))
    return [json.loads(json.dumps(line, allow_nan=False)) for line in lines]


def test_trl() -> None:
    assert written("trl", LONG, GAP) == [
        {
            "id": "one",
            "prompt": "Who?",
            "completion": "gold",
            "reward": 1.0,
            "turn_rewards": [0.25, 0.75],
        },
        {
            "id": "three",
            "prompt": "Who?",
            "completion": "gold",
            "reward": 0.5,
            "turn_rewards": [None, None],
        },
    ]


def test_verl() -> None:
    assert written("verl", LONG, SHORT) == [
        {"uid": "one", "reward_score": 1.0, "extra_fields": {"tool_rewards": [0.25, 0.75]}},
        {"uid": "two", "reward_score": -0.25, "extra_fields": {"tool_rewards": [-0.25]}},
    ]


def progress(scores: list[float | None]) -> float:
    """The sum of prime-rl's differences, by its description: each scored turn minus the scored one
    before it; the first is where it starts."""
    known = [score for score in scores if score is not None]
    return sum(after - before for before, after in pairwise(known))


def test_prime_rl_has_a_level_for_each_turn_of_the_policy() -> None:
    """Without the closed-book belief in front the gain of the first search would be lost, and with
    another number of levels than turns prime-rl refuses the trace."""
    lines = written("prime_rl", LONG, GAP)
    assert lines == [
        {"id": "one", "reward": 1.0, "info": {"turn_rewards": [0.0, 0.25, 1.0]}},
        {"id": "three", "reward": 0.5, "info": {"turn_rewards": [0.0, None, 0.5]}},
    ]
    for line in lines:
        assert progress(line["info"]["turn_rewards"]) == line["reward"]


def test_prime_rl_of_a_run_without_an_answer_still_telescopes() -> None:
    [line] = written("prime_rl", rewards("cut", 0.0, 0.25, 1.0, answer=None))
    assert line["info"]["turn_rewards"] == [0.0, 1.0]
    [line] = written("prime_rl", rewards("none", 0.5, answer=None))
    assert line["info"]["turn_rewards"] == [0.5]


def test_areal_has_one_array_whose_short_rows_end_in_null() -> None:
    assert written("areal", LONG, SHORT, GAP) == [
        {
            "ids": ["one", "two", "three"],
            "rewards": [1.0, -0.25, 0.5],
            "turns": [2, 1, 2],
            "turn_rewards": [[0.25, 0.75], [-0.25, None], [None, None]],
        }
    ]


def test_jsonl_gives_the_rewards_back() -> None:
    [line] = written("jsonl", GAP)
    numbers = {
        name: line.pop(name) for name in ("proxy", "reward", "levels", "differences", "rest")
    }
    assert numbers == {
        "proxy": None,
        "reward": 0.5,
        "levels": [0.0, None, 0.5],
        "differences": [None, None],
        "rest": None,
    }
    assert TurnRewards.model_validate(line) == GAP


@pytest.mark.parametrize("name", components.names(formats))
def test_nothing_is_written_of_nothing_but_a_form(name: str) -> None:
    empty = {"ids": [], "rewards": [], "turns": [], "turn_rewards": []}
    assert written(name) == ([empty] if name == "areal" else [])


def test_rewards_tell_that_another_reader_measured() -> None:
    ran = [SHORT.model_copy(update={"ran": reader}) for reader in ("r", "policy", "")]
    assert [line["proxy"] for line in written("jsonl", *ran)] == [False, True, None]
