"""Addresses, keys and options of the reader over servers of OpenAI's API."""

import logging
from pathlib import Path

import pytest

from hopscope.api import parts
from hopscope.runtime.errors import ReaderError, UsageError
from hopscope.runtime.readers import openai
from tests.runtime.readers.openai_reader.asking import (
    reader,
    request,
)
from tests.servers import openai_api
from tests.servers.openai_api import Reply, Service

SECRET = "sk-very-secret-0123456789"


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
