"""Tokens that a server does not tell are counted here, or marked as unknown."""

from pathlib import Path
from typing import Any

import pytest

from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import openai
from hopscope.runtime.servers.reasoning import counts
from hopscope.runtime.servers.replies import CompletionChoice
from hopscope.runtime.servers.token_usage import usages
from hopscope.runtime.types import GenerationRequest, Usage
from tests.servers import openai_api
from tests.servers.openai_api import Service

ASKED = GenerationRequest(prompt=prompts.short_answer("Who?"), n=2, temperature=1.0, max_tokens=8)


@pytest.fixture
def kind() -> str:
    return "vllm"


def spent(service: Service, **options: Any) -> Usage:
    reader = openai.build(model=f"{service.url}#{openai_api.MODEL}", retries=0, **options)
    [replies] = reader.generate([ASKED])
    return sum((reply.usage for reply in replies), Usage())


NOTHING: list[Any] = [
    None,
    {},
    [1],
    "many",
    {"prompt_tokens": 0},
    {"prompt_tokens": "12", "completion_tokens": -1},
    {"prompt_tokens": 10**30, "completion_tokens": True},
]


@pytest.mark.parametrize("told", NOTHING)
def test_what_is_not_told_is_marked(server: Service, told: Any) -> None:
    """It was 0 tokens, and cost nothing."""
    server.counts = lambda usage: told
    found = spent(server, alternatives="none")
    assert found == Usage(calls=1, uncounted=1)


def test_listed_tokens_are_counted_but_the_prompt_stays_unknown(server: Service) -> None:
    whole = spent(server)
    assert whole.uncounted == 0
    server.counts = lambda usage: None
    found = spent(server)
    assert found == Usage(calls=1, uncounted=1, output_tokens=whole.output_tokens)


def test_with_a_tokenizer_they_are_counted(server: Service, folder: Path) -> None:
    options: Any = {"tokenizer": str(folder), "alternatives": "all"}
    whole = spent(server, **options)
    server.counts = lambda usage: None
    assert spent(server, **options) == whole
    server.change = lambda choice: choice.update(text=" Bruno Costa", finish_reason="stop")
    found = spent(server, **{**options, "alternatives": "none"})
    tokens = len(server.tokenizer(" Bruno Costa", add_special_tokens=False).input_ids)
    end = 1
    assert found == Usage(
        input_tokens=whole.input_tokens, output_tokens=2 * (tokens + end), calls=1
    )


@pytest.mark.parametrize(("total", "output", "thinking"), [(62, 42, 30), (None, 12, 12)])
def test_tokens_of_thoughts_are_among_those_of_replies(
    total: int | None, output: int, thinking: int
) -> None:
    """Some servers count them in the total only: they were missing, and a price that is lower for
    thoughts than for answers made the cost fall below 0."""
    thoughts = {"completion_tokens_details": {"reasoning_tokens": 30}}
    told = {"prompt_tokens": 20, "completion_tokens": 12, "total_tokens": total, **thoughts}
    choices = [CompletionChoice("Lisbon", "stop", None, False, ())]
    found = usages(told, choices, {}, None)
    assert [usage.output_tokens for usage in found] == [output]
    assert counts(told, choices, found) == [thinking]


@pytest.mark.parametrize(
    "cached",
    [
        {"prompt_tokens_details": {"cached_tokens": 7}},
        {"prompt_cache_hit_tokens": 7, "prompt_tokens_details": None},
        {"cached_tokens": 7},
    ],
)
def test_prompt_tokens_that_cost_less_are_known(server: Service, cached: Any) -> None:
    server.counts = lambda usage: usage | cached
    assert spent(server).cached_tokens == 7
    server.counts = lambda usage: {**usage, "cached_tokens": 10**6}
    found = spent(server)
    assert found.cached_tokens == found.input_tokens
