"""What fails, is refused or is malformed at a server of OpenAI's API, and what is asked again."""

import math
import time
from pathlib import Path
from typing import Any

import pytest

from hopscope.runtime.errors import ContextOverflowError, ReaderError
from hopscope.runtime.types import (
    Message,
    Prompt,
)
from tests.runtime.readers.openai_reader.asking import exact, reader, request
from tests.servers.openai_api import CONTEXT, Reply, Service

DEEP = b"[" * 100_000
"""JSON that is nested deeper than Python reads."""


def test_what_fails_for_now_is_asked_again(plain: Service) -> None:
    plain.planned = [
        Reply(status=429, body={"error": {"message": "slow"}}, headers={"retry-after": "0"}),
        Reply(status=500, body={"error": {"message": "oops"}}),
    ]
    [[reply]] = reader(plain, retries=2).generate([request()])
    assert reply.text
    assert len(plain.asked) == 3


def test_it_waits_as_long_as_it_is_told(plain: Service) -> None:
    plain.planned = [Reply(status=429, body={}, headers={"retry-after": "0.4"})]
    begun = time.monotonic()
    reader(plain, retries=1).generate([request()])
    assert time.monotonic() - begun >= 0.4
    plain.planned = [Reply(status=503, body={}, headers={"retry-after": "3600"})]
    with pytest.raises(ReaderError, match="asked again in 3600 seconds"):
        reader(plain, retries=5).generate([request()])
    assert len(plain.asked) == 3


def test_after_all_tries_the_last_error_is_told(plain: Service) -> None:
    plain.planned = [Reply(status=500, body={"error": {"message": "worn out"}})] * 2
    with pytest.raises(ReaderError, match="status 500: worn out"):
        reader(plain, retries=1).generate([request()])
    assert len(plain.asked) == 2


def test_an_answer_that_does_not_come_is_given_up(plain: Service) -> None:
    plain.planned = [Reply(seconds=1.0)]
    with pytest.raises(ReaderError, match=r"no answer in time.*timeout=SECONDS"):
        reader(plain, timeout=0.2).generate([request()])


def test_a_reply_that_was_cut_off_is_asked_for_again(plain: Service) -> None:
    for broken in (b'{"choices": [{"mess', b"", b"<html>busy</html>", DEEP):
        plain.asked.clear()
        plain.planned = [Reply(body=broken)]
        [[reply]] = reader(plain, retries=1).generate([request()])
        assert reply.text
        assert len(plain.asked) == 2


def test_what_cannot_be_decoded_is_asked_for_again(plain: Service) -> None:
    bad = Reply(body=b"no gzip", headers={"content-encoding": "gzip"})
    plain.planned = [bad]
    [[reply]] = reader(plain, retries=1).generate([request()])
    assert reply.text
    plain.planned = [bad]
    with pytest.raises(ReaderError, match="sent an answer that cannot be decoded"):
        reader(plain).generate([request()])


def test_an_error_with_status_200_is_an_error(plain: Service) -> None:
    """As OpenRouter tells that the server behind it is busy."""
    plain.planned = [Reply(body={"error": {"message": "overloaded", "code": 503}})] * 2
    [[reply]] = reader(plain, retries=2).generate([request()])
    assert reply.text
    plain.planned = [Reply(body={"error": {"message": "no such thing", "code": "unknown"}})]
    with pytest.raises(ReaderError, match="no such thing"):
        reader(plain, retries=1).generate([request()])


REFUSALS = [
    (Reply(status=400, body={"error": {"message": "bad field"}}), "status 400: bad field"),
    (Reply(status=404, body={"detail": "Not Found"}), "Not Found.*end as it should"),
    (Reply(status=422, body=b"<html>"), "status 422: <html>"),
    (Reply(status=307, body=b"", headers={"location": "http://127.0.0.1:9/v1"}), "status 307"),
    (
        Reply(status=429, body={"error": {"message": "pay", "code": "insufficient_quota"}}),
        "status 429: pay",
    ),
    (Reply(status=400, body=DEEP), r"status 400: \[\[\["),
    (
        Reply(status=400, body=b"bad", headers={"content-type": "text/plain; charset=hex"}),
        "status 400: bad",
    ),
    (Reply(status=400, body={"error": {"message": ["a", {"b": 1}]}}), "status 400: .*'b': 1"),
]


@pytest.mark.parametrize(("refusal", "told"), REFUSALS)
def test_a_refusal_is_told_and_not_asked_again(plain: Service, refusal: Reply, told: str) -> None:
    plain.planned = [refusal]
    with pytest.raises(ReaderError, match=told):
        reader(plain, retries=3).generate([request()])
    assert len(plain.asked) == 1


def _chat(**told: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "a"}, **told}]}


def _token(**told: Any) -> dict[str, Any]:
    return _chat(logprobs={"content": [{"token": "a", "logprob": -1.0, **told}]})


STRANGE: list[Any] = [
    b"{",
    b"",
    DEEP,
    [],
    {"choices": [{"message": {"content": 5}}]},
    {"choices": [{"message": {"content": ["a"]}}]},
    {"choices": [{"message": "a"}]},
    {"choices": [5]},
    {"choices": {"a": 1}},
    _token(token=5),
    _token(logprob="high"),
    _token(logprob=10**400),
    _token(bytes=[300]),
    _token(top_logprobs=5),
    _token(token="token_id:x"),
    _chat(logprobs=5),
    _chat(logprobs={"tokens": [1], "token_logprobs": [-1.0]}),
    None,
    {"choices": []},
    {"choices": [{}]},
    {"choices": [{"message": {}, "logprobs": {"content": [{"token": "a"}]}}]},
    {
        "choices": [
            {
                "message": {"content": "a"},
                "logprobs": {"content": [{"token": "a", "logprob": math.nan}]},
            }
        ]
    },
]


@pytest.mark.parametrize("body", STRANGE)
def test_an_answer_of_another_kind_is_an_error(plain: Service, body: Any) -> None:
    plain.planned = [Reply(body=body)]
    with pytest.raises(ReaderError, match="does not answer as OpenAI's API does"):
        reader(plain).generate([request()])


def test_a_token_that_the_model_does_not_have_is_an_error(vllm: Service, folder: Path) -> None:
    def other(choice: dict[str, Any]) -> None:
        choice["logprobs"]["tokens"] = ["token_id:99999999999999999999"]
        choice["logprobs"]["token_logprobs"] = [-1.0]
        choice["logprobs"]["top_logprobs"] = [{}]

    vllm.change = other
    with pytest.raises(ReaderError, match="does not answer as OpenAI's API does"):
        exact(vllm, folder).generate([request()])


def test_missing_log_probabilities_are_missing(plain: Service) -> None:
    plain.change = lambda choice: choice.pop("logprobs")
    [[reply]] = reader(plain).generate([request()])
    assert reply.text
    assert (reply.logprobs, reply.entropies, reply.approx) == ((), (), False)
    assert reply.usage.output_tokens > 0


def test_tokens_that_do_not_spell_the_text_are_left_out(plain: Service) -> None:
    def other(choice: dict[str, Any]) -> None:
        choice["message"]["content"] = "something else"

    plain.change = other
    [[reply]] = reader(plain).generate([request()])
    assert (reply.text, reply.tokens, reply.logprobs) == ("something else", (), ())


def test_a_withheld_reply_is_an_error(plain: Service) -> None:
    plain.change = lambda choice: choice.update(finish_reason="content_filter")
    with pytest.raises(ReaderError, match="withheld a reply: content_filter"):
        reader(plain).generate([request()])


def test_a_prompt_that_is_too_long_is_told_as_such(
    plain: Service, vllm: Service, folder: Path
) -> None:
    long = request(Prompt(messages=(Message(role="user", content="word " * CONTEXT),)))
    for one in (reader(plain), reader(vllm), reader(vllm, tokenizer=str(folder))):
        with pytest.raises(ContextOverflowError) as caught:
            one.generate([long])
        assert caught.value.tokens > CONTEXT
        assert caught.value.allowed == CONTEXT - long.max_tokens
    assert len(vllm.asked) == 1, "with a tokenizer it is known before"


def test_not_more_is_asked_at_a_time_than_allowed(plain: Service) -> None:
    asked = [request(seed=seed, temperature=1.0) for seed in range(6)]
    one = reader(plain, concurrency=2)
    replies = one.generate(asked)
    assert plain.most_at_once == 2
    alone = [one.generate([each])[0] for each in asked]
    assert [r[0].text for r in replies] == [r[0].text for r in alone]


def test_after_a_failure_no_more_is_asked(plain: Service) -> None:
    plain.planned = [Reply(status=400, body={})]
    with pytest.raises(ReaderError):
        reader(plain, concurrency=1).generate([request(seed=seed) for seed in range(20)])
    assert len(plain.asked) < 20
