"""The shipped prices of hosted models, and files that change them."""

import datetime
from pathlib import Path

import pytest

from hopscope.runtime.budget.prices import ModelPrice, Price, prices
from hopscope.runtime.types import Usage

MINI = ModelPrice(input=0.25, cached=0.025, output=2.0)


@pytest.mark.parametrize(
    "reader",
    [
        "gpt-5-mini@api.openai.com:chat",
        "gpt-5-mini-2025-08-07@api.openai.com:chat",
        "gpt-5-mini@api.openai.com:443:tokens",
    ],
)
def test_a_hosted_model_is_known_by_its_host(reader: str) -> None:
    found = prices().of(reader)
    assert found.model == MINI
    assert found.read == datetime.date(2026, 10, 3)


@pytest.mark.parametrize(
    "reader",
    [
        "gpt-5-mini@127.0.0.1:8000:chat",
        "gpt-5-mini@api.openai.com.example.org:chat",
        "gpt-5-mini-audio@api.openai.com:chat",
        "gpt-5-mini",
    ],
)
def test_no_price_is_guessed(reader: str) -> None:
    assert prices().of(reader).model is None


def test_names_are_those_of_each_service() -> None:
    table = prices()
    google = "generativelanguage.googleapis.com:chat"
    assert table.of(f"models/gemini-2.5-pro@{google}").model == ModelPrice(
        input=1.25, cached=0.125, output=10.0
    )
    haiku = table.of("claude-haiku-4-5-20251001@api.anthropic.com:chat").model
    assert haiku == ModelPrice(input=1.0, cached=0.1, output=5.0)


def test_every_host_tells_its_source_and_nothing_is_free() -> None:
    for host in prices().hosts.values():
        assert "/" in host.source
        assert host.read <= datetime.date(2026, 11, 22)
        for price in host.models.values():
            assert 0 < price.input <= price.output
            assert price.cached is None or 0 < price.cached < price.input


def test_a_file_changes_one_model_and_a_host(tmp_path: Path) -> None:
    own = tmp_path / "prices.toml"
    own.write_text(
        '[models]\n"gpt-5-mini@*" = { input = 9, output = 9 }\n'
        '[hosts."api.mistral.ai"]\nsource = "a contract/ours"\nread = 2026-11-01\n'
        "models = { small = { input = 1, output = 2 } }\n"
    )
    table = prices(own)
    assert table.of("gpt-5-mini@api.openai.com:chat").model == ModelPrice(input=9, output=9)
    assert table.of("gpt-5-nano@api.openai.com:chat").model is not None
    assert table.of("small@api.mistral.ai:chat").model == ModelPrice(input=1, output=2)
    assert table.of("mistral-small-latest@api.mistral.ai:chat").model is None


def test_currencies_are_not_mixed(tmp_path: Path) -> None:
    own = tmp_path / "prices.toml"
    own.write_text('currency = "EUR"\n[models]\n"mine@*" = { input = 1, output = 1 }\n')
    table = prices(own)
    assert table.of("mine@here").currency == "EUR"
    assert table.of("gpt-5-mini@api.openai.com:chat").model is None
    assert table.of("hopland@1").model == ModelPrice(input=0, output=0)


def test_cached_tokens_cost_less_and_uncounted_ones_are_unknown() -> None:
    usage = Usage(input_tokens=1_000_000, cached_tokens=400_000, output_tokens=500_000, calls=2)
    assert Price(model=MINI).of(usage) == pytest.approx(0.6 * 0.25 + 0.4 * 0.025 + 0.5 * 2)
    dear = ModelPrice(input=1.0, output=1.0)
    assert Price(model=dear).of(usage) == pytest.approx(1.5)
    assert Price(model=MINI).of(usage + Usage(calls=1, uncounted=1)) is None
    assert Price().of(usage) is None
