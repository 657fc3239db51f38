"""Rollouts of other programs get rewards, one for each record and in its order."""

import json
from pathlib import Path
from typing import Any

import pytest

import hopscope
from hopscope.api import parts
from hopscope.api.turn_rewards import rollouts
from hopscope.runtime.types import Run
from hopscope.store.importers.golds import Golds
from hopscope.store.trajectories.sources import Unread

WHO = "What is the headquarters city of the company that employs Elsa Wilby?"
EMPLOYER = "Elsa Wilby is employed by Salwin Pictures."
CITY = "Salwin Pictures is based in Grand Rovmar."


def transcript(*found: str) -> dict[str, Any]:
    """A search for each text, in OpenAI's format."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": WHO}]
    for place, text in enumerate(found):
        function = {"name": "search", "arguments": json.dumps({"query": f"query {place}"})}
        call = {"id": str(place), "type": "function", "function": function}
        content = json.dumps([{"title": "", "text": text}])
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(place), "content": content})
    messages.append({"role": "assistant", "content": "Grand Rovmar"})
    return {"question": WHO, "answers": ["Grand Rovmar"], "messages": messages}


BROKEN = {"question": WHO, "messages": [{"role": "tool", "tool_call_id": "9", "content": "x"}]}


def test_records_are_scored_in_order_and_equal_ones_stay() -> None:
    """Of an import's two equal rollouts one would be left, and rewards would slip by one."""
    both = transcript(EMPLOYER, CITY)
    found = hopscope.rewards(
        [both, BROKEN, both, transcript(EMPLOYER)],
        reader=parts.reader("tiny"),
        meter="gold_probability",
        rule="shapley",
    )
    assert [len(each.turns) for each in found] == [2, 0, 2, 1]
    assert found[0].levels == found[2].levels
    assert found[0].reward is not None
    assert found[0].reward > 0.5
    assert found[0].rest == pytest.approx(0, abs=1e-9)
    assert [turn.query for turn in found[0].turns] == ["query 0", "query 1"]
    assert (found[1].reward, found[1].levels) == (None, [None])
    assert found[1].reason is not None
    assert "which nobody made" in found[1].reason


def test_records_that_cannot_be_read_at_all_are_refused() -> None:
    for records, how, told in (
        ([{"a": 1}], {}, "looks like none of the formats of rollouts"),
        ([transcript(CITY)], {"format": "nemo"}, "no 'nemo' among formats"),
        ([{"messages": {1, 2}}], {}, "a record is no JSON"),
        ([3], {}, "give runs or records of rollouts, not int"),
    ):
        with pytest.raises(hopscope.UsageError, match=told):
            hopscope.rewards(records, **how)  # type: ignore[arg-type]


def test_rollouts_of_a_file_are_named_by_file_and_line(tmp_path: Path) -> None:
    file, golds = tmp_path / "agent.jsonl", tmp_path / "golds.jsonl"
    lines = [
        json.dumps(transcript(CITY)),
        "{",
        json.dumps(BROKEN),
        json.dumps(transcript(EMPLOYER)),
    ]
    file.write_text("\n".join(lines))
    golds.write_text(json.dumps({"question": WHO, "answers": ["Rovmar"]}))
    found = list(rollouts.of_file(file, golds=Golds.read(golds)))
    runs = [each for each in found if isinstance(each, Run)]
    assert [run.id for run in runs] == ["agent.jsonl, line 1", "agent.jsonl, line 4"]
    assert {run.question.answers for run in runs} == {("Rovmar",)}
    assert [isinstance(each, Unread) for each in found] == [False, True, True, False]
    told = [each.where if isinstance(each, Unread) else each.id for each in found]
    assert told == [f"agent.jsonl, line {line}" for line in (1, 2, 3, 4)]


def test_each_broken_line_of_a_file_keeps_its_place(tmp_path: Path) -> None:
    """Those behind the first 100 were missing, and rewards slipped."""
    file = tmp_path / "agent.jsonl"
    broken = "{broken\n" * 150
    file.write_text(broken + json.dumps(transcript(CITY)) + "\n" + broken)
    found = list(rollouts.of_file(file))
    assert [isinstance(each, Run) for each in found] == [line == 151 for line in range(1, 302)]
    told = [each.where if isinstance(each, Unread) else each.id for each in found]
    assert told == [f"agent.jsonl, line {line}" for line in range(1, 302)]


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    file = tmp_path / "agent.jsonl"
    file.write_text("")
    with pytest.raises(hopscope.UsageError, match=r"agent.jsonl: the file is empty\Z"):
        list(rollouts.of_file(file))


def test_right_answers_to_other_questions_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, golds = tmp_path / "agent.jsonl", tmp_path / "golds.jsonl"
    file.write_text(json.dumps(transcript(CITY)))
    golds.write_text(json.dumps({"question": "Why?", "answers": ["so"]}))
    [run] = rollouts.of_file(file, "messages:tools=serch", golds=Golds.read(golds))
    assert isinstance(run, Run)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "tools=serch",
        "golds.jsonl has right answers to none of the questions",
    ]
