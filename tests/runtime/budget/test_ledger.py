"""Limits hold in every workflow, and a run that reaches one still answers."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopscope.runtime.budget.ledger import Ledger, Limits
from hopscope.runtime.budget.prices import ModelPrice, Price, Prices, prices
from hopscope.runtime.errors import BudgetExceededError, ReaderError, UsageError
from hopscope.runtime.execution.run import Run, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Step, Usage
from hopscope.tracing.entailments import lexical
from tests.probes import Speaker
from tests.talk import ScriptedRetriever
from tests.workflows.test_conformance import NAMES, PASSAGES, PROBES, QUESTION, Probe, build

PRICE = Price(model=ModelPrice(input=1.0, output=3.0), retrieval=1e-5)


def spend(name: str, limits: Limits, say: Any = None, **options: Any) -> tuple[Run, Speaker]:
    probe = PROBES.get(name, Probe())
    reader = Speaker(say or probe.say(), unsure=probe.unsure)
    deps = Deps(
        reader=reader,
        retriever=ScriptedRetriever(lambda query: PASSAGES),
        entailment=lexical.build(),
        ledger=Ledger(limits, PRICE),
    )
    return run(build(name, **options), QUESTION, deps), reader


def largest(result: Run) -> Usage:
    """The call with most tokens."""
    calls = [
        sum((g.usage for g in e.generations), Usage()) for s in result.steps for e in s.exchanges
    ]
    return max(calls, key=lambda usage: usage.tokens, default=Usage())


LIMITS = st.builds(
    Limits,
    tokens=st.none() | st.integers(0, 1500),
    calls=st.none() | st.integers(0, 12),
    retrievals=st.none() | st.integers(0, 4),
    cost=st.none() | st.floats(0, 0.002),
)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(limits=LIMITS)
def test_no_limit_is_exceeded_by_more_than_one_call_and_there_is_an_answer(
    name: str, limits: Limits
) -> None:
    result, reader = spend(name, limits)
    assert result.status == "ok", result.error
    assert result.answer is not None
    assert result.usage == reader.spent, "what a broken-off step spent is not lost"
    most = largest(result)
    queries = sum(len(s.query.split(" | ")) for s in result.steps if s.query is not None)
    if limits.calls is not None:
        assert result.usage.calls <= limits.calls
    if limits.retrievals is not None:
        assert queries <= limits.retrievals
    if limits.tokens is not None:
        assert result.usage.tokens < limits.tokens + most.tokens or not result.usage.tokens
    if limits.cost is not None:
        spent = PRICE.of(result.usage, queries=queries)
        assert spent <= limits.cost + PRICE.of(most, queries=1)


@pytest.mark.parametrize("name", NAMES)
def test_limits_that_are_not_reached_change_nothing(name: str) -> None:
    free, _ = spend(name, Limits())
    wide, _ = spend(name, Limits(tokens=10**9, calls=10**6, retrievals=10**6, cost=1e6))
    times = {"id", "started", "seconds", "steps"}
    assert wide.model_dump(exclude=times) == free.model_dump(exclude=times)
    assert [s.output for s in wide.steps] == [s.output for s in free.steps]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("resource", ["tokens", "calls", "seconds"])
def test_with_nothing_to_spend_nothing_is_asked(name: str, resource: str) -> None:
    result, reader = spend(name, Limits(**{resource: 0}))
    assert (result.status, result.answer) == ("ok", "")
    assert result.stop_reason == f"budget_{resource}"
    assert reader.requests == []


def test_the_last_call_is_kept_for_the_answer() -> None:
    result, reader = spend("ircot", Limits(calls=3))
    assert [s.name for s in result.steps][-1] == "conclude"
    assert result.stop_reason == "budget_calls"
    assert len(reader.requests) == 3
    assert reader.requests[-1].prompt.shown == tuple(p.key for p in result.evidence)


def test_without_a_call_for_the_answer_it_is_what_was_said_last() -> None:
    """A whole chain of thought was the answer, though it named one at its end."""
    chain = "Alba was made by Ines Rocha. She was born in Lisbon. So the answer is: Lisbon."
    result, reader = spend("ircot", Limits(tokens=1), lambda request: chain)
    assert (result.answer, result.stop_reason) == ("Lisbon", "budget_tokens")
    assert len(reader.requests) == 1
    result, _ = spend("ircot", Limits(tokens=1), lambda request: "Alba was made\nby Ines Rocha.")
    assert result.answer == "Alba was made"


def test_a_limit_that_is_just_enough_is_no_reason_to_stop() -> None:
    """`naive` needs one call, which is its last: the reserve is for it."""
    result, _ = spend("naive", Limits(calls=1, retrievals=1))
    assert [s.name for s in result.steps] == ["retrieve", "answer"]
    assert result.stop_reason == "answered"


def test_retrievals_end_and_the_workflow_says_so() -> None:
    result, _ = spend("ircot", Limits(retrievals=2))
    assert sum(s.query is not None for s in result.steps) == 2
    assert result.stop_reason == "budget_retrievals"
    assert [s.name for s in result.steps][-2:] == ["retrieve", "read"]
    decision = result.steps[-2].decision
    assert decision
    assert (decision.policy, decision.retrieve) == ("limit:budget_retrievals", False)
    assert decision.reason == "2 of 2 retrievals are spent"


def test_a_batch_of_requests_stops_within() -> None:
    """ITEM's pointwise judgments are twelve requests at once."""
    result, reader = spend("vanilla", Limits(calls=5), judgment="pointwise")
    assert len(reader.requests) == 5
    assert result.stop_reason == "budget_calls"


def test_what_is_kept_back_is_as_large_as_the_largest_call() -> None:
    ledger = Ledger(Limits(tokens=100))
    ledger.called(Usage(input_tokens=30, output_tokens=10, calls=1), 0.0)
    ledger.check_call(last=False)  # 40 spent, 40 kept back
    ledger.called(Usage(input_tokens=20, calls=1), 0.0)
    with pytest.raises(BudgetExceededError, match="60 of 100 tokens"):
        ledger.check_call(last=False)
    ledger.check_call(last=True)


def test_money_is_counted_by_the_million_tokens() -> None:
    usage = Usage(input_tokens=2_000_000, output_tokens=500_000)
    price = Price(model=ModelPrice(input=0.5, output=2.0), retrieval=0.25)
    assert price.of(usage, queries=4) == 0.5 * 2 + 2.0 * 0.5 + 4 * 0.25
    thinking = usage.model_copy(update={"thinking_tokens": 400_000})
    assert price.of(thinking, queries=4) == price.of(usage, queries=4)
    model = ModelPrice(input=0.5, output=2.0, thinking=1.0)
    own = price.model_copy(update={"model": model})
    assert own.of(thinking) == pytest.approx(0.5 * 2 + 2.0 * 0.1 + 1.0 * 0.4)


def test_the_longest_name_counts_and_a_file_stands_before_the_table(tmp_path: Path) -> None:
    own = tmp_path / "prices.toml"
    own.write_text(
        'currency = "EUR"\n[models]\n"m*" = { input = 1, output = 1 }\n'
        '"my-*" = { input = 2, output = 3 }\n'
    )
    table = prices(own)
    assert table.of("my-model").model == ModelPrice(input=2, output=3)
    assert table.of("mine").model == ModelPrice(input=1, output=1)
    assert table.of("hopland@1").model == ModelPrice(input=0, output=0)
    assert table.of("other") == Price(model=None, currency="EUR")
    assert prices() != table
    assert Prices().of("x").model is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("= 1", "not valid TOML"),
        (f"retrieval = {'9' * 5000}", "not valid TOML: .*4,300 digits"),
        (f"x = {'[' * 5000}{']' * 5000}", "nested too deep"),
        ("models = 3", "models"),
        ("[models]\nx = 3", "models.x"),
        ("cost = 1", "cost: no such field"),
    ],
)
def test_a_broken_table_says_where(tmp_path: Path, text: str, told: str) -> None:
    own = tmp_path / "prices.toml"
    own.write_text(text)
    with pytest.raises(UsageError, match=told):
        prices(own)
    with pytest.raises(UsageError, match="cannot be read"):
        prices(tmp_path / "none.toml")


@pytest.mark.parametrize("limits", [Limits(cost=1e-6), Limits(tokens=1)])
def test_what_nobody_counted_before_a_run_went_on_is_not_nothing(limits: Limits) -> None:
    """The limit of cost held for nothing from then on."""
    ledger = Ledger(limits, PRICE)
    begun = {"index": 0, "name": "read", "kind": "generate", "started": "2026-01-01T00:00:00Z"}
    begun |= {"seconds": 1.0, "usage": Usage(calls=1, uncounted=1)}
    ledger.recall([Step.model_validate(begun)])
    with pytest.raises(ReaderError, match="cannot hold"):
        ledger.called(Usage(input_tokens=9, output_tokens=9, calls=1), 1.0)
