"""eRAG's Table 1 in small: labels and correlations that can be checked by hand."""

import pytest

from hopscope.lab.suites import worlds
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.table_forms.table import Table
from hopscope.lab.validity import erag
from hopscope.lab.validity.erag import Scored, correlations, lists, quality, score
from hopscope.runtime.readers import tiny
from hopscope.runtime.types import GenerationRequest, Measurement
from hopscope.tracing.erag import ranking
from hopscope.tracing.statistics.over_questions import Bootstrap, Estimate
from tests.probes import Speaker


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """72 correlations with 1,000 resamples take a minute."""
    monkeypatch.setattr(erag, "RESAMPLES", 50)


@pytest.fixture(scope="module")
def inputs() -> SuiteInputs:
    """Its reader is right where all the gold passages are shown, and only there."""

    def answer(request: GenerationRequest) -> str:
        asked = request.prompt.messages[-1].content
        [item] = [item for item in items if item.question.text in asked]
        sufficient = {passage.key for passage in item.gold} <= set(request.prompt.shown)
        return item.answer if sufficient else "nobody"

    made = worlds.make(Speaker(answer), seed=7, limit=3)
    items = [*made.questions(1), *made.questions(2)]
    return made


def cells(table: Table, column: str) -> dict[tuple[object, object], Measurement]:
    found = {}
    for row in table.rows:
        cell = row[column]
        assert isinstance(cell, Measurement)
        found[row["labels"], row["measure"]] = cell
    return found


def scored(question: str, value: float | None, right: float | None) -> Scored:
    labelled = {kind: dict.fromkeys(ranking.BINARY, value) for kind in erag.LABELS}
    return Scored(question, "search", right, labelled)


def test_the_lists_hold_as_much_of_the_gold_as_they_say(inputs: SuiteInputs) -> None:
    for hops in (1, 2):
        for item in inputs.questions(hops):
            found = lists(inputs, item)
            assert {len(passages) for passages in found.values()} == {erag.SIZE}
            shares = {name: item.holds(passages) for name, passages in found.items()}
            assert shares["no gold"] == shares["random"] == 0
            for hop in range(hops):
                assert shares[f"gold from hop {hop + 1}"] == (hops - hop) / hops
            keys = [{p.key for p in found[name]} for name in ("search", "search, next")]
            assert not keys[0] & keys[1]


def test_an_ideal_reader_s_labels_are_the_gold_ones_over_one_hop(inputs: SuiteInputs) -> None:
    """Over two hops no passage suffices alone: eRAG sees nothing in any list."""
    one, two = ([score(inputs, item) for item in inputs.questions(hops)] for hops in (1, 2))
    for row in (each for rows in one for each in rows):
        assert row.measures["eRAG"] == row.measures["gold"]
        assert row.right == row.measures["gold"]["Hit"]
    for row in (each for rows in two for each in rows):
        assert set(row.measures["eRAG"].values()) == {0}
        assert row.right == (row.measures["gold"]["P"] == 2 / erag.SIZE)
    table = correlations({1: one, 2: two}, seed=0)
    assert cells(table, "tau_1")["eRAG", "Hit"].value == pytest.approx(1)
    assert cells(table, "rho_1")["gold", "P"].value == pytest.approx(1)
    missing = cells(table, "tau_2")["eRAG", "AP"]
    assert (missing.value, missing.reason) == (None, "a constant series has no order")
    rates = {row["list"]: row for row in quality({1: one, 2: two}, Bootstrap()).rows}
    for name, value in (("gold from hop 1", 1), ("gold from hop 2", 0), ("no gold", 0)):
        rate = rates[name]["right_2"]
        assert isinstance(rate, Estimate)
        assert (rate.value, rate.measured) == (value, 3)
    assert "right_1" not in rates["gold from hop 2"]


def test_correlations_are_over_lists_with_both_values() -> None:
    """Vector 13 of eRAG's own: ties on both sides. A list that the reader has no room for, or that
    a label is missing of, is left out."""
    pairs = zip([0.4, 0.2, 0.2, 0, 1], [1, 0, 1, 0, 1], strict=True)
    rows = [[scored(str(i), x, y) for i, (x, y) in enumerate(pairs)]]
    rows.append([scored("5", None, 1), scored("5", 0.1, None)])
    table = correlations({1: rows}, seed=0)
    for found in cells(table, "tau_1").values():
        assert found.value == pytest.approx(0.680414, abs=1e-6)
        assert found.n == 5
    for found in cells(table, "rho_1").values():
        assert found.value == pytest.approx(0.740436, abs=1e-6)


def test_lists_of_one_question_are_no_independent_draws() -> None:
    """Twelve questions of two lists each that are alike: the interval is that of twelve lists."""
    values = [(i / 12, float(i in (1, 3, 4, 6, 7, 10))) for i in range(12)]
    once = [[scored(str(i), *value)] for i, value in enumerate(values)]
    twice = [[scored(str(i), *value)] * 2 for i, value in enumerate(values)]
    one, two = (
        cells(correlations({1: rows}, seed=0), "rho_1")["gold", "P"] for rows in (once, twice)
    )
    assert (one.n, two.n) == (12, 24)
    assert one.low is not None
    assert (two.low, two.high) == (pytest.approx(one.low), pytest.approx(one.high))


def test_the_real_reader_labels_and_is_correlated() -> None:
    of_lists, table = erag.build(worlds.make(tiny.build(), seed=7, limit=2))
    for hops, per_question in ((1, 5), (2, 6)):
        found = cells(table, f"tau_{hops}")
        assert {each.n for each in found.values()} == {2 * per_question}
        for kind in erag.LABELS:
            # Binary labels: recall within the list is whether there is any.
            assert found[kind, "R"] == found[kind, "Hit"]
        for each in found.values():
            assert each.value is None or -1 <= each.value <= 1
    assert len(of_lists.rows) == 6
