"""Rollouts, transcripts and FlashRAG's data become the runs that they tell of."""

import json
from pathlib import Path
from typing import Any

import pytest

from hopscope.runtime import components
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Run, Usage
from hopscope.store import formats
from hopscope.store.formats import messages
from hopscope.store.trajectories.sources import Source, Unread
from hopscope.tracing.games.frozen import contributions


def written(folder: Path, *records: Any) -> Source:
    path = folder / "rollouts.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return Source(path)


def read(folder: Path, name: str, *records: Any) -> list[Run | Unread]:
    """What a format makes of these records, once they are found to be of it and no other."""
    source = written(folder, *records)
    fitting = [
        each
        for each in components.names(formats)
        if components.load(formats, each).build().fits(source)
    ]
    assert fitting == [name]
    return list(components.load(formats, name).build().runs([source]))


def one(folder: Path, name: str, record: Any) -> Run:
    [run] = read(folder, name, record)
    assert isinstance(run, Run)
    return run


def told(run: Run) -> list[tuple[str, str | None, list[str], int]]:
    """Kind, query, titles or texts found, and number of passages shown, of each step."""
    return [
        (
            step.kind,
            step.query,
            [hit.passage.title or hit.passage.text for hit in step.ranked],
            len(step.shown),
        )
        for step in run.steps
    ]


R1 = {
    "question": "Who leads the town of Flower of Yalhal?",
    "answer": "Cleo Marwick",
    "gen_text_store": "I look.\n<|begin_of_query|> Flower of Yalhal <|end_of_query|>\n\n"
    "<|begin_of_documents|>\n(1)Flower of Yalhal   A film made in Port Hellon.\n"
    "(2)Rovmar   A town.\n<|end_of_documents|>\n\nPort Hellon, then. "
    "<|begin_of_query|>Port Hellon mayor<|end_of_query|>\n<|begin_of_documents|>\n"
    "(1)Port Hellon   Its mayor is Cleo Marwick.\n(2)Rovmar   A town.\n<|end_of_documents|>\n"
    "</think>\n<answer> Cleo Marwick </answer>",
}


def test_a_rollout_of_r1_searcher(tmp_path: Path) -> None:
    run = one(tmp_path, "r1_searcher", R1)
    assert told(run) == [
        ("generate", None, [], 0),
        ("retrieve", "Flower of Yalhal", ["Flower of Yalhal", "Rovmar"], 0),
        ("generate", None, [], 2),
        ("retrieve", "Port Hellon mayor", ["Port Hellon", "Rovmar"], 0),
        ("generate", None, [], 3),
    ]
    assert run.question.answers == ("Cleo Marwick",)
    assert (run.answer, run.status, run.stop_reason) == ("Cleo Marwick", "ok", "answered")
    assert run.steps[0].output == "I look."
    assert len(run.steps[3].new) == 1  # Rovmar had been found before
    assert run.options == {
        "format": "r1_searcher",
        "split": {"1": "parentheses", "3": "parentheses"},
        "file": "rollouts.jsonl",
        "sha256": Source(tmp_path / "rollouts.jsonl").sha256,
        "line": 1,
    }
    assert run.usage == Usage(calls=3, uncounted=3)
    assert {step: len(brought) for step, brought in contributions(run).items()} == {1: 2, 3: 1}


def test_passages_without_id_get_theirs_from_what_they_say(tmp_path: Path) -> None:
    run = one(tmp_path, "r1_searcher", R1)
    first, second = run.steps[1].ranked, run.steps[3].ranked
    assert first[1].passage.id == second[1].passage.id
    assert len({hit.passage.id for hit in (*first, *second)}) == 3


def test_a_rollout_of_search_r1_as_verl_writes_it(tmp_path: Path) -> None:
    prompt = (
        "<|im_start|>user\nAnswer. For example, <answer> Beijing </answer>. Question: Who leads?\n"
    )
    record = {
        "input": f"{prompt}<|im_end|>\n<|im_start|>assistant\n",
        "output": "<think>Hm</think><search>mayor</search>\n\n"
        '<information>Doc 1(Title: "Port Hellon") Its mayor is Cleo.</information>\n\n'
        "<answer>Cleo</answer>",
        "gts": {"target": ["Cleo", "Cleo Marwick"]},
        "score": 1.0,
    }
    run = one(tmp_path, "search_r1", record)
    assert run.question.text == "Who leads?"
    assert run.question.answers == ("Cleo", "Cleo Marwick")
    assert told(run)[1] == ("retrieve", "mayor", ["Port Hellon"], 0)
    assert run.answer == "Cleo"
    both = record | {"question": "Who?", "output": "", "sequences_str": prompt + record["output"]}
    cut = one(tmp_path, "search_r1", both | {"output": None})
    assert cut.answer == "Cleo"


def test_a_rollout_without_retrieval_or_answer_is_a_run_all_the_same(tmp_path: Path) -> None:
    record = {"question": "Who?", "gen_text_store": "So <answer> Cleo </answer>"}
    lost = {"question": "Who?", "output": "<|begin_of_query|>who<|end_of_query|> and then"}
    known, failed = read(tmp_path, "r1_searcher", record, lost)
    assert isinstance(known, Run)
    assert isinstance(failed, Run)
    assert told(known) == [("generate", None, [], 0)]
    assert known.answer == "Cleo"
    assert (failed.answer, failed.status) == (None, "failed")
    assert failed.error is not None


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"question": "Who?", "output": "<search>a</search><information>b"}, "</information>"),
        ({"question": "Who?", "output": "<information>b</information>"}, "no query"),
        ({"question": "Who?", "output": 3}, "no rollout"),
        ({"question": ["Who?"], "output": "<answer>a</answer>"}, "'question' must be"),
        ({"output": "<answer>a</answer>"}, "no 'question'"),
        ({"question": "Who?", "output": "<answer>a</answer>", "answers": [{}]}, "'answers' must"),
        ({"question": "Who?", "output": "<answer>a</answer>", "id": [1]}, "'id' must"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(
    tmp_path: Path, record: Any, problem: str
) -> None:
    good = {"question": "Who?", "output": "<search>a</search><answer>b</answer>"}
    first, second, third = read(tmp_path, "search_r1", good, record, good)
    assert isinstance(first, Run)
    assert isinstance(second, Unread)
    assert isinstance(third, Run)
    assert second.where == "rollouts.jsonl, line 2"
    assert problem in second.problem


def test_flashrags_naive_pipeline_and_iter_retgen(tmp_path: Path) -> None:
    found = [{"id": "7", "contents": "Port Hellon\nIts mayor is Cleo."}]
    naive = {
        "id": "test_0",
        "question": "Who leads?",
        "golden_answers": ["Cleo"],
        "output": {"retrieval_result": found, "prompt": "…", "pred": "Cleo"},
    }
    turns = {
        "id": "test_1",
        "question": "Who leads?",
        "golden_answers": ["Cleo"],
        "output": {
            "retrieval_result_iter_0": found,
            "pred_iter_0": "Rovmar",
            "retrieval_result_iter_1": [],
            "pred_iter_1": "Cleo",
            "pred": "Cleo",
        },
    }
    reasoning = {
        "question": "Who leads?",
        "output": {
            "retrieval_results": {
                "0": {"query": "leads", "docs": found},
                "1": {"query": "mayor", "docs": []},
            },
            "pred": "Cleo",
        },
    }
    ircot = {"question": "Who?", "output": {"intermediate_output_iter1": {}, "pred": "Cleo"}}
    one_search, two, named, refused = read(tmp_path, "flashrag", naive, turns, reasoning, ircot)
    assert isinstance(one_search, Run)
    assert isinstance(two, Run)
    assert isinstance(named, Run)
    assert told(one_search) == [
        ("retrieve", "Who leads?", ["Port Hellon"], 0),
        ("generate", None, [], 1),
    ]
    assert one_search.steps[0].ranked[0].passage.id == "7"
    assert one_search.question.id == "test_0"
    assert "split" not in one_search.options
    assert [step.query for step in two.steps] == ["Who leads?", None, "Who leads? Rovmar", None]
    assert two.answer == "Cleo"
    assert [step.query for step in named.steps] == ["leads", "mayor", None]
    assert isinstance(refused, Unread)
    assert "IRCoT" in refused.problem


def transcript(**changes: Any) -> dict[str, Any]:
    """Two searches at once, then an answer."""
    calls = [
        {"id": id, "type": "function", "function": {"name": "search", "arguments": arguments}}
        for id, arguments in (("a", '{"query": "film"}'), ("b", '{"town": "Rovmar", "k": 2}'))
    ]
    return {
        "model": "some-model",
        "messages": [
            {"role": "system", "content": "Search."},
            {"role": "user", "content": [{"type": "text", "text": "Who leads?"}]},
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "b", "content": "A town.\n\nA port."},
            {
                "role": "tool",
                "tool_call_id": "a",
                "content": json.dumps([{"id": "7", "text": "Port Hellon", "score": 2.5}]),
            },
            {
                "role": "assistant",
                "content": "Cleo",
                "usage": {"prompt_tokens": 40, "completion_tokens": 2},
            },
        ],
        **changes,
    }


def test_parallel_searches_of_a_transcript_are_searches_of_their_own(tmp_path: Path) -> None:
    run = one(tmp_path, "messages", transcript(answers=["Cleo Marwick"]))
    assert told(run) == [
        ("generate", None, [], 0),
        ("retrieve", "Rovmar", ["A town.", "A port."], 0),
        ("retrieve", "film", ["Port Hellon"], 0),
        ("generate", None, [], 3),
    ]
    assert run.steps[2].ranked[0].score == 2.5
    assert run.options["split"] == {"1": "blank_lines"}
    assert run.steps[-1].usage == Usage(input_tokens=40, output_tokens=2, calls=1)
    assert (run.reader, run.answer) == ("some-model", "Cleo")


def test_tools_that_do_not_search_earn_nothing(tmp_path: Path) -> None:
    source = written(tmp_path, transcript())
    [run] = messages.build(tools="wiki lookup").runs([source])
    assert isinstance(run, Run)
    assert [step.query for step in run.steps] == [None] * 4
    [run] = messages.build(tools="search", split="whole").runs([source])
    assert isinstance(run, Run)
    assert [hit.passage.text for hit in run.steps[1].ranked] == ["A town.\n\nA port."]
    with pytest.raises(UsageError, match="choose from doc_title"):
        messages.build(split="commas")


@pytest.mark.parametrize(
    ("messages_given", "problem"),
    [
        ([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], "2 messages"),
        ([{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}], "nobody made"),
        ([{"role": "user", "content": 3}], "'content' must be a string"),
        (["hello"], "list of objects"),
        (
            [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [{"id": "1"}]}],
            "message 2: a tool call",
        ),
    ],
)
def test_a_broken_transcript_is_named(
    tmp_path: Path, messages_given: list[Any], problem: str
) -> None:
    [broken] = read(tmp_path, "messages", {"messages": messages_given})
    assert isinstance(broken, Unread)
    assert problem in broken.problem


def test_two_texts_under_one_id_stay_two_passages(tmp_path: Path) -> None:
    found = {"7": "Port Hellon\nA port.", "8": "Port Hellon\nA town."}
    record = {
        "question": "Who?",
        "output": {
            "retrieval_results": {
                str(turn): {"query": "q", "docs": [{"id": "7", "contents": text}]}
                for turn, text in enumerate(found.values())
            },
            "pred": "Cleo",
        },
    }
    run = one(tmp_path, "flashrag", record)
    first, second = (step.ranked[0].passage for step in run.steps[:2])
    assert first.id == "7"
    assert second.id == f"7#{second.content_hash[:8]}"
    assert len(run.evidence) == 2


def test_the_real_rollouts_of_r1_searcher(research_data: Any) -> None:
    """123 of 125 hold retrievals, 248 of them, each of five titled passages."""
    source = Source(research_data("r1searcher_bamboogle_traces.jsonl"))
    found = list(components.load(formats, "r1_searcher").build().runs([source]))
    runs = [each for each in found if isinstance(each, Run)]
    searches = [step for run in runs for step in run.steps if step.kind == "retrieve"]
    assert len(runs) == len(found) == 125
    assert sum(any(step.kind == "retrieve" for step in run.steps) for run in runs) == 123
    assert len(searches) == 248
    assert all(step.query and len(step.ranked) == 5 for step in searches)
    assert all(hit.passage.title for step in searches for hit in step.ranked)
    assert all(run.answer and run.question.answers for run in runs)
