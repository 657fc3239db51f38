"""The reader over servers of OpenAI's API, against a server on this machine with a real model, and
against the transformers reader on the same weights."""

import logging
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopscope.api import parts
from hopscope.runtime.errors import CapabilityError, ContextOverflowError, ReaderError, UsageError
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf, openai
from hopscope.runtime.types import (
    GenerationRequest,
    Message,
    Passage,
    Prompt,
    Question,
    ScoreRequest,
)
from hopscope.tracing.meters.grogu import GroGU
from tests import models
from tests.servers import openai_api
from tests.servers.openai_api import CONTEXT, Reply, Service

EVIDENCE = [Passage(title="Alba", text="Alba is a film directed by Bruno Costa.")]
PROMPT = prompts.short_answer("Who?", EVIDENCE)
BEGUN = prompts.chain_of_thought("Who directed Alba?", EVIDENCE[:1], ["Alba is a film."])
SECRET = "sk-very-secret-0123456789"
DEEP = b"[" * 100_000
"""JSON that is nested deeper than Python reads."""


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HOPSCOPE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.tiny_llama(tmp_path_factory.mktemp("model") / "llama")


@pytest.fixture(scope="module")
def local(folder: Path) -> Any:
    return hf.build(model=str(folder), device="cpu")


@pytest.fixture
def plain(folder: Path) -> Iterator[Service]:
    with openai_api.running(Service(folder)) as service:
        yield service


@pytest.fixture
def vllm(folder: Path) -> Iterator[Service]:
    with openai_api.running(Service(folder, "vllm")) as service:
        yield service


def reader(service: Service, **options: Any) -> Any:
    return openai.build(model=f"{service.url}#{openai_api.MODEL}", **{"retries": 0, **options})


def request(prompt: Prompt = PROMPT, **options: Any) -> GenerationRequest:
    return GenerationRequest(prompt=prompt, **{"max_tokens": 10, **options})


def exact(service: Service, folder: Path) -> Any:
    return reader(service, tokenizer=str(folder), alternatives="all")


@pytest.mark.parametrize("prompt", [PROMPT, BEGUN])
def test_by_tokens_it_says_and_scores_what_transformers_does(
    vllm: Service, folder: Path, local: Any, prompt: Prompt
) -> None:
    asked = request(prompt, max_tokens=12)
    [[here]], [[there]] = local.generate([asked]), exact(vllm, folder).generate([asked])
    assert there.text == here.text
    assert there.token_ids == here.token_ids
    assert there.tokens == here.tokens
    assert there.finish_reason == here.finish_reason
    assert there.logprobs == pytest.approx(here.logprobs, abs=1e-4)
    assert there.entropies == pytest.approx(here.entropies, abs=1e-4)
    assert there.end_logprob == pytest.approx(here.end_logprob, abs=1e-4)
    assert not there.approx
    assert there.usage == here.usage


def test_scores_are_those_of_transformers(vllm: Service, folder: Path, local: Any) -> None:
    asked = [
        ScoreRequest(prompt=PROMPT, continuation=" Bruno Costa."),
        ScoreRequest(prompt=BEGUN, continuation="no"),
        ScoreRequest(prompt=PROMPT, continuation=""),
        ScoreRequest(prompt=PROMPT, token_ids=(5, 1, 300)),
    ]
    remote = exact(vllm, folder)
    for here, there in zip(local.score(asked), remote.score(asked), strict=True):
        assert there.token_ids == here.token_ids
        assert there.tokens == here.tokens
        assert there.logprobs == pytest.approx(here.logprobs, abs=1e-4)
        assert there.entropies == pytest.approx(here.entropies, abs=1e-4)
        assert there.usage == here.usage
        assert not there.approx


def test_stop_strings_cut_as_transformers_does(vllm: Service, folder: Path, local: Any) -> None:
    """Servers list the tokens that wrote the stop string, which a record must not hold."""
    [[free]] = local.generate([request(max_tokens=30)])
    stops = [piece for piece in dict.fromkeys(free.tokens) if piece.strip() and piece.isascii()]
    assert len(stops) > 2, "the model is to write enough to be stopped"
    for stop in [*stops[:3], stops[-1] + stops[0]]:
        asked = request(max_tokens=30, stop=(stop, "never written"))
        [[here]], [[there]] = local.generate([asked]), exact(vllm, folder).generate([asked])
        assert (there.text, there.tokens, there.token_ids) == (
            here.text,
            here.tokens,
            here.token_ids,
        )
        assert there.finish_reason == here.finish_reason
        assert there.logprobs == pytest.approx(here.logprobs, abs=1e-4)
        assert there.end_logprob == pytest.approx(here.end_logprob, abs=1e-4)


@pytest.mark.parametrize("kind", ["plain", "vllm"])
@pytest.mark.parametrize("api", ["chat", "completions"])
def test_without_a_tokenizer_tokens_spell_the_text(
    kind: str, api: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    service: Service = request.getfixturevalue(kind)
    asked = GenerationRequest(prompt=PROMPT, n=6, temperature=1.0, max_tokens=12, stop=("e",))
    for one in reader(service, api=api).generate([asked])[0]:
        if not one.tokens and one.text:  # the API told half characters, in completions
            assert api == "completions"
            continue
        assert "".join(one.tokens).startswith(one.text)
        assert "e" not in one.text
        assert len(one.tokens) == len(one.logprobs) == len(one.entropies)
        assert one.approx == bool(one.tokens)
        assert all(logprob <= 0 for logprob in one.logprobs)


def test_chat_and_tokens_give_the_same_where_the_template_is_the_same(
    vllm: Service, folder: Path
) -> None:
    for prompt in (PROMPT, BEGUN):
        asked = request(prompt, n=4, temperature=1.0)
        by_chat = reader(vllm, alternatives=320).generate([asked])[0]
        by_tokens = reader(vllm, tokenizer=str(folder), alternatives=320).generate([asked])[0]
        assert [g.token_ids for g in by_chat] == [g.token_ids for g in by_tokens]
        assert [g.text for g in by_chat] == [g.text for g in by_tokens]


def test_a_truncated_distribution_is_marked_and_bounds_the_entropy(
    vllm: Service, folder: Path
) -> None:
    [[whole]] = exact(vllm, folder).generate([request()])
    [[part]] = reader(vllm, tokenizer=str(folder), alternatives=5).generate([request()])
    [[none]] = reader(vllm, tokenizer=str(folder), alternatives=0).generate([request()])
    assert part.approx
    assert part.logprobs == whole.logprobs == none.logprobs
    for low, true in zip(part.entropies, whole.entropies, strict=True):
        assert 0 < low < true
    assert none.approx
    [[silent]] = reader(vllm, alternatives="none").generate([request()])
    assert (silent.logprobs, silent.entropies, silent.tokens) == ((), (), ())
    assert silent.text
    assert all("logprobs" not in body for body in vllm.asked[-1:])


def test_samples_are_drawn_in_several_goes(vllm: Service) -> None:
    asked = request(n=5, temperature=1.0)
    remote = reader(vllm)
    five = remote.generate([asked])[0]
    assert len({g.text for g in five}) > 1
    three = remote.more([asked.model_copy(update={"n": 3})], first=2)[0]
    assert [g.text for g in three] == [g.text for g in five[2:]]
    other = remote.generate([asked.model_copy(update={"seed": 1})])[0]
    assert [g.text for g in other] != [g.text for g in five]


def test_a_server_of_one_sample_at_a_time_is_asked_again(vllm: Service, folder: Path) -> None:
    asked = request(n=4, temperature=1.0)
    four = reader(vllm).generate([asked])[0]
    vllm.asked.clear()
    vllm.one_each = True
    one_by_one = reader(vllm).generate([asked])[0]
    assert [g.text for g in one_by_one] == [g.text for g in four]
    assert len(vllm.asked) == 4
    assert sum(g.usage.calls for g in one_by_one) == 4
    assert sum(g.usage.output_tokens for g in one_by_one) == sum(
        g.usage.output_tokens for g in four
    )


def test_greedy_copies_are_asked_for_once(vllm: Service) -> None:
    """vLLM refuses several samples at temperature 0."""
    replies = reader(vllm).generate([request(n=3)])[0]
    assert len({g.text for g in replies}) == 1
    assert [g.usage.calls for g in replies] == [1, 0, 0]
    assert [body["n"] for body in vllm.asked] == [1]


def test_an_ordinary_server_is_sent_nothing_but_the_common_fields(plain: Service) -> None:
    """The server refuses unknown ones; a begun answer is the last turn."""
    reader(plain).generate([request(BEGUN, n=2, temperature=0.5, stop=("x",))])
    assert plain.asked[0]["messages"][-1] == {"role": "assistant", "content": BEGUN.prefix}
    assert plain.asked[0]["top_p"] == 1.0


def test_it_does_not_score_where_nothing_tells_how(plain: Service, vllm: Service) -> None:
    for service in (plain, vllm):
        with pytest.raises(CapabilityError, match="tokenizer="):
            reader(service).score([ScoreRequest(prompt=PROMPT, continuation="x")])


def test_a_meter_that_needs_scores_says_why_there_is_no_value(vllm: Service, folder: Path) -> None:
    by_chat = GroGU(reader(vllm), max_tokens=8)
    [nothing, value] = by_chat.measure(Question(text="Who?"), [(), tuple(EVIDENCE)])
    assert nothing.value == 0
    assert value.value is None
    assert "cannot score a given text" in str(value.reason)
    by_tokens = GroGU(exact(vllm, folder), max_tokens=8)
    [measured] = by_tokens.measure(Question(text="Who?"), [tuple(EVIDENCE)])
    [there] = GroGU(hf.build(model=str(folder), device="cpu"), max_tokens=8).measure(
        Question(text="Who?"), [tuple(EVIDENCE)]
    )
    assert measured.value == pytest.approx(there.value, abs=1e-2)
    assert "approx" not in measured.estimator
    truncated = GroGU(reader(vllm, tokenizer=str(folder)), max_tokens=8)
    [marked] = truncated.measure(Question(text="Who?"), [tuple(EVIDENCE)])
    assert marked.estimator.endswith("approx")


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


def test_a_key_is_sent_and_stands_nowhere(
    plain: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    plain.key = SECRET
    monkeypatch.setenv("HOPSCOPE_API_KEY", f"{SECRET}\n")
    one = reader(plain)
    one.generate([request()])
    plain.planned = [Reply(status=400, body={"error": {"message": f"no {SECRET} here"}})]
    with pytest.raises(ReaderError, match=r"no \*\*\* here") as refused:
        one.generate([request()])
    assert set(plain.seen_keys) == {f"Bearer {SECRET}"}
    plain.key = "another"
    with pytest.raises(ReaderError, match=r"does not take the key.*HOPSCOPE_API_KEY") as denied:
        one.generate([request()])
    told = [caplog.text, one.name, repr(one), str(refused.value), str(denied.value)]
    assert not any(SECRET in text or SECRET[-5:] in text for text in told)


@pytest.mark.parametrize("before", range(255, 300, 4))
def test_a_key_across_the_cut_of_a_long_message_is_masked(
    plain: Service, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """The message was cut to 300 characters first, and the rest of the key was not found."""
    monkeypatch.setenv("HOPSCOPE_API_KEY", SECRET)
    one = reader(plain)
    plain.planned = [Reply(status=400, body={"error": {"message": "a" * before + SECRET}})]
    with pytest.raises(ReaderError) as refused:
        one.generate([request()])
    assert SECRET[:2] not in str(refused.value)


def test_a_key_for_openai_goes_nowhere_else(
    plain: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    reader(plain)
    assert plain.seen_keys == [""]
    reader(plain, key="OPENAI_API_KEY")
    assert plain.seen_keys == ["", f"Bearer {SECRET}"]


def test_a_broken_key_is_not_shown(plain: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for broken in ("two words", "sk-\N{BULLET}secret", "line\nline"):
        monkeypatch.setenv("HOPSCOPE_API_KEY", broken)
        with pytest.raises(UsageError, match="HOPSCOPE_API_KEY holds no valid key") as caught:
            reader(plain)
        assert broken not in str(caught.value)
    with pytest.raises(UsageError, match="NO_SUCH_KEY is not set"):
        reader(plain, key="NO_SUCH_KEY")


def test_no_proxy_comes_between_it_and_an_ordinary_address(
    plain: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert reader(plain).generate([request()])


BAD_ADDRESSES = [
    "",
    "model",
    "#model",
    "http://#m",
    "ftp://h/v1#m",
    "http://h/v1",
    "http://h:x/v1#m",
]


@pytest.mark.parametrize("bad", BAD_ADDRESSES)
def test_an_address_that_names_no_model_is_refused(bad: str) -> None:
    with pytest.raises(UsageError, match="openai:URL#MODEL"):
        openai.build(model=bad)


def test_an_address_must_hold_no_credentials() -> None:
    with pytest.raises(UsageError, match="no credentials") as caught:
        openai.build(model=f"http://me:{SECRET}@host/v1#m")
    assert SECRET not in str(caught.value)


def test_a_model_that_is_not_there_is_told_at_once(plain: Service) -> None:
    with pytest.raises(UsageError, match="no model 'other'; it has model"):
        openai.build(model=f"{plain.url}#other")
    with pytest.raises(ReaderError, match="end as it should, often in /v1"):
        openai.build(model=f"{plain.url.removesuffix('/v1')}/v2#model", server="plain").generate(
            [request()]
        )


def test_what_a_server_says_cannot_steer_a_terminal(
    plain: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error, its list of models and its reason to withhold a reply end up on stderr."""
    steering = "a\x1b]0;title\x07\x9bb\u202ec\nhopscope: all is well"
    one = reader(plain)
    plain.planned = [Reply(status=400, body={"error": {"message": steering}})]
    with pytest.raises(ReaderError, match="status 400") as refused:
        one.generate([request()])
    plain.change = lambda choice: choice.update(finish_reason=steering)
    with pytest.raises(ReaderError, match="withheld") as withheld:
        one.generate([request()])
    monkeypatch.setattr(openai_api, "MODEL", steering)
    with pytest.raises(UsageError, match="it has a") as listed:
        openai.build(model=f"{plain.url}#other")
    for caught in (refused, withheld, listed):
        assert str(caught.value).isprintable()


def test_a_server_that_is_not_there_is_told() -> None:
    with pytest.raises(ReaderError, match="cannot be reached"):
        openai.build(model="http://127.0.0.1:9/v1#m", timeout=2)


def test_options_that_do_not_go_together_are_refused(plain: Service, folder: Path) -> None:
    for options, told in [
        ({"alternatives": "all"}, "tokenizer=FOLDER"),
        ({"alternatives": -1}, "0 or more"),
        ({"api": "chat", "tokenizer": str(folder)}, "takes no tokenizer="),
        ({"timeout": 0}, "timeout"),
        ({"tokenizer": str(folder / "none")}, "tokenizer cannot be used"),
    ]:
        with pytest.raises(UsageError, match=told):
            reader(plain, **options)


def test_the_command_line_names_it_with_options(plain: Service) -> None:
    spec = f"openai:{plain.url}#{openai_api.MODEL},api=completions,alternatives=none,timeout=9"
    built = parts.reader(spec)
    assert built.name.endswith(":text")
    built.generate([request()])
    assert "logprobs" not in plain.asked[0]
    with pytest.raises(UsageError, match="unknown option 'colour'"):
        parts.reader(f"{spec},colour=red")
