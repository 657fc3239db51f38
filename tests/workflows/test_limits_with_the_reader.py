"""Limits with the embedded reader, whose calls differ in size and are not known beforehand."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopscope.cli import wiring
from hopscope.runtime.ledger import Ledger, Limits
from hopscope.runtime.ports import Reader
from hopscope.runtime.run import run
from hopscope.runtime.state import Deps
from hopscope.runtime.types import Passage, Question
from hopscope.tracing.caching import CachedReader
from hopscope.tracing.metering import MeteredReader
from hopscope.tracing.policies import repeat
from tests.talk import ScriptedRetriever

PASSAGES = [
    Passage(id="a", title="Alba", text="Alba was directed by Ines Rocha."),
    Passage(id="b", title="Ines Rocha", text="Ines Rocha was born in Lisbon."),
]
ASKED = Question(text="Where was the director of Alba born?", answers=("Lisbon",))
LIMITS = st.builds(
    Limits,
    tokens=st.none() | st.integers(0, 1200),
    calls=st.none() | st.integers(0, 8),
    retrievals=st.none() | st.integers(0, 3),
)


@pytest.fixture(scope="module")
def embedded() -> Reader:
    return CachedReader(wiring.reader(wiring.TINY))


@pytest.mark.parametrize("name", ["naive", "ircot", "iter_retgen"])
@settings(
    max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors]
)
@given(limits=LIMITS)
def test_no_limit_is_exceeded_by_more_than_the_call_in_flight(
    embedded: Reader, name: str, limits: Limits
) -> None:
    """A policy that asks for drafts spends from the same limits."""
    counting = MeteredReader(embedded)
    deps = Deps(
        reader=counting,
        retriever=ScriptedRetriever(lambda _: PASSAGES),
        policy=repeat.build(),
        ledger=Ledger(limits),
    )
    built = wiring.workflow(name, {"max_steps": "2"} if name == "ircot" else {})
    result = run(built, ASKED, deps)

    assert result.status == "ok", result.error
    assert result.answer is not None
    spent = counting.take()
    assert result.usage.tokens == spent.tokens
    sizes = [
        sum(g.usage.tokens for g in exchange.generations)
        for each in result.steps
        for exchange in each.exchanges
    ]
    if limits.tokens is not None:
        assert spent.tokens < limits.tokens + max(sizes, default=0) or not spent.tokens
    if limits.calls is not None:
        assert spent.calls <= limits.calls
    if limits.retrievals is not None:
        assert sum(each.query is not None for each in result.steps) <= limits.retrievals
