"""The suite of proxies, on credits made by hand."""

import pytest

from hopscope.api import parts
from hopscope.lab.suites import worlds
from hopscope.lab.suites.figures import figures
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.perfect import Perfect
from hopscope.lab.validity import proxy, reward_hacking
from hopscope.lab.validity.proxy import OTHER, OWN, SEPER, Measured, Shares


@pytest.fixture(scope="module")
def inputs() -> SuiteInputs:
    reader = parts.reader("tiny")
    return worlds.make(reader, other=reader, limit=4)


def shares(*values: tuple[float, float, float]) -> Shares:
    """Credits of three steps for each question."""
    return {(q, step): value for q, row in enumerate(values) for step, value in enumerate(row)}


def test_tau_over_all_steps_and_within_runs(inputs: SuiteInputs) -> None:
    """Proxies may know which runs have much to share and not which step earned it."""
    own = shares(*[(q, q + 0.1, q + 0.2) for q in range(8)])
    turned = shares(*[(q + 0.2, q + 0.1, q) for q in range(8)])
    found = {
        Measured(OWN, by, SEPER, rule): of
        for by, of in ((OWN, own), (OTHER, turned))
        for rule in proxy.RULES
    }
    samples = {Measured(OWN, OWN, SEPER, rule): own for rule in proxy.RULES}
    runs: dict[str, dict[int, object]] = {OWN: {}, OTHER: {}}
    told = figures([proxy._table(inputs, found, samples, runs, 8)])  # type: ignore[arg-type]
    own_row, other_row = (f"proxy_tau/{OWN} {by} {SEPER}" for by in (OWN, OTHER))
    for rule in proxy.RULES:
        assert told[f"{own_row}/{rule}"].value == pytest.approx(1.0)
        assert told[f"{other_row}/{rule}{proxy.WITHIN}"].value == pytest.approx(-1.0)
        # Of 276 pairs of steps the 24 within runs are turned.
        assert told[f"{other_row}/{rule}"].value == pytest.approx((252 - 24) / 276)
    assert not any(name.startswith(f"proxy_tau/{OTHER}") for name in told)


def test_differences_below_a_hundredth_are_ties(inputs: SuiteInputs) -> None:
    assert proxy._tau([(0.001, 0.3), (0.002, 0.1)]) == -1.0
    own, other = shares((0.001, 0.002, 0.5)), shares((0.002, 0.001, 0.5))
    bootstrap = proxy.Bootstrap(seed=0)
    found = proxy._agreement(inputs, "shapley", own, other, bootstrap)
    assert getattr(found["shapley"], "value", None) == pytest.approx(1.0)


def test_shares_are_those_of_the_steps_that_brought_passages(inputs: SuiteInputs) -> None:
    item = inputs.questions(2, 1)[0]
    honest = next(h for h in reward_hacking._hacks(inputs) if h.name == "honest search")
    run = reward_hacking.rollout(item, honest.searches(item))
    found = proxy._credits(inputs, inputs.reader, {0: run}, Perfect(item))
    assert sorted(found["shapley"].values()) == [0.5, 0.5]
    assert sorted(found["trajectory"].values()) == [0.0, 1.0]


def test_without_another_reader_the_figures_have_a_reason(inputs: SuiteInputs) -> None:
    found = figures([proxy._table(inputs, {}, {}, {OWN: {}}, 0)])
    [missing] = found.values()
    assert missing.reason == "no other reader: name one with --other-reader"
