"""The traces of verifiers, which prime-rl trains on, carry the rewards through their own file."""

import json
from pathlib import Path
from typing import Any

import pytest

from hopscope.runtime import components
from hopscope.tracing.rewards import formats
from tests.tracing.rewards.test_formats import rewards


@pytest.mark.filterwarnings("ignore")  # of verifiers and what it calls
def test_a_trace_keeps_its_rewards_one_for_each_sampled_turn(tmp_path: Path) -> None:
    """prime-rl refuses a trace with another number of scores than sampled turns."""
    import verifiers.v1 as vf
    from verifiers.v1.episode import EnvInfo, Episode
    from verifiers.v1.utils.trace_store import read_episodes, write_episode

    scored = [rewards("one", 0.0, 0.25, 1.0), rewards("two", 0.5, None, 0.75, 0.5)]
    lines: list[Any] = list(components.load(formats, "prime_rl").build().lines(scored))
    for each, line in zip(scored, json.loads(json.dumps(lines)), strict=True):
        said: list[dict[str, Any]] = [{"role": "user", "content": each.question}]
        for place, turn in enumerate(each.turns):
            call = {"id": str(place), "name": "search", "arguments": turn.query}
            said.append({"role": "assistant", "content": None, "tool_calls": [call]})
            said.append({"role": "tool", "tool_call_id": str(place), "content": "passages"})
        said.append({"role": "assistant", "content": each.answer})
        nodes = [
            {"message": message, "sampled": message["role"] == "assistant", "parent": place - 1}
            if place
            else {"message": message}
            for place, message in enumerate(said)
        ]
        trace = vf.WireTrace.model_validate(
            {
                "task": {"type": "Search", "data": {"prompt": each.question}},
                "agent": {"config": {}},
                "nodes": nodes,
                "info": line["info"],
            }
        )
        write_episode(
            tmp_path, Episode(env=EnvInfo(id="search"), task=trace.task, traces=[trace], ok=True)
        )
    read = [episode.traces[0] for episode in read_episodes(tmp_path, vf.WireTrace)]
    assert [trace.info["turn_rewards"] for trace in read] == [each.levels for each in scored]
    assert [len(trace.info["turn_rewards"]) for trace in read] == [t.num_turns for t in read]
