"""GroGU's Tables 1 to 4 in small: figures from readings that can be checked by hand."""

import pytest

from hopscope.lab.suites import two_readers, worlds
from hopscope.lab.suites.figures import figures
from hopscope.lab.suites.readings import SCORES, Reading
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.lab.validity import grogu
from hopscope.lab.validity.grogu import PairOutcome, agreement, concordance, contexts, wins
from hopscope.runtime.readers import tiny
from hopscope.runtime.types import Measurement
from hopscope.tracing.statistics.over_questions import Bootstrap, Difference, Estimate
from tests.fakes import ScriptedReader

BOOTSTRAP = Bootstrap(resamples=50)


def reading(utility: float | None, right: bool | None = None, **scores: float) -> Reading:
    """One utility by all scores but those named."""
    reason = "too long" if utility is None else None
    whole = Measurement(value=utility, reason=reason)
    measured = {name: whole for name, _ in SCORES}
    for name, _ in SCORES:
        if name in scores:
            measured[name] = Measurement(value=scores[name])
    return Reading(measured, right)


def row(table: Table, name: str) -> dict[str, Cell]:
    return next(each for each in table.rows if name in each.values())


def estimate(cell: Cell) -> Estimate:
    assert isinstance(cell, Estimate)
    return cell


def measurement(cell: Cell) -> Measurement:
    assert isinstance(cell, Measurement)
    return cell


def test_ties_are_no_wins_and_what_was_not_measured_is_left_out() -> None:
    found = [
        [reading(2), reading(1), reading(0)],
        [reading(2), reading(2), reading(3)],
        [reading(2), reading(1), reading(None)],
        [reading(None), reading(1), reading(1)],
    ]
    table = wins(found, BOOTSTRAP)
    for _, name in SCORES:
        over = row(table, name)
        rate, against_random = estimate(over["distractor"]), estimate(over["random"])
        assert (rate.value, rate.measured, rate.total) == (pytest.approx(2 / 3), 3, 4)
        assert (against_random.value, against_random.measured) == (0.5, 2)
        assert (over["distractor_ties"], over["random_ties"]) == (1, 0)
        assert rate.interval == "clopper-pearson"


def test_key_tokens_are_compared_with_all_tokens_on_the_same_questions() -> None:
    """Here KeyEntropy sees in two of four questions what Entropy does not."""
    seen = [reading(1, entropy=0), reading(0), reading(0)]
    plain = [reading(1), reading(0), reading(0)]
    table = wins([seen, seen, plain, plain], BOOTSTRAP)
    gain = row(table, "KeyEntropy")["distractor_gain"]
    assert isinstance(gain, Difference)
    assert (gain.value, gain.measured) == (0.5, 4)
    assert row(table, "Entropy")["distractor_gain"] is None


def test_nothing_measured_says_why() -> None:
    cell = estimate(row(wins([[reading(None)] * 3], BOOTSTRAP), "KeyPPL")["random"])
    assert (cell.value, cell.reason) == (None, "too long")


def test_vector_11_agreement_by_counts() -> None:
    """Rebuilt from GroGU's Tables 2 and 3: Phi with KeyEntropy."""
    outcomes = [
        *[PairOutcome(True, True)] * 129,
        *[PairOutcome(False, False)] * 32,
        *[PairOutcome(True, False)] * 57,
        *[PairOutcome(False, True)] * 26,
        *[PairOutcome(True, None)] * 3,
    ]
    found = agreement(outcomes, seed=0)
    for name, value in (("tau", 0.319672), ("accuracy", 0.659836), ("f1", 0.595986)):
        cell = measurement(found[name])
        assert cell.value == pytest.approx(value, abs=1e-6)
        assert cell.n == 244
        assert cell.low is not None
        assert cell.high is not None
        assert cell.low < value < cell.high
    assert found["ties"] == 3


def test_the_retriever_s_preference_is_that_of_table_3() -> None:
    outcomes = [*[PairOutcome(True, False)] * 186, *[PairOutcome(False, False)] * 58]
    found = agreement(outcomes, seed=0)
    assert measurement(found["tau"]).value == pytest.approx(-0.524590, abs=1e-6)
    assert measurement(found["accuracy"]).value == pytest.approx(0.237705, abs=1e-6)


def test_without_a_decided_question_there_is_no_agreement() -> None:
    found = agreement([PairOutcome(True, None)], seed=0)
    for name in ("tau", "accuracy", "f1"):
        cell = measurement(found[name])
        assert (cell.value, cell.n) == (None, 0)
        assert "unequal utilities" in (cell.reason or "")
    assert found["ties"] == 1


def test_concordance_counts_questions_with_one_context_right_and_the_other_wrong() -> None:
    """Of contexts with retrieved and with random passages, in this order."""
    found = [
        [reading(0, False), reading(1, True)],  # random is right, and preferred
        [reading(1, True), reading(0, False)],  # retrieved is right, and preferred
        [reading(1, False), reading(0, True)],  # random is right, retrieved preferred
        [reading(1, True), reading(0, True)],
        [reading(1, False), reading(0, False)],
        [reading(1, None), reading(0, True)],
    ]
    table = concordance(found, seed=0)
    assert measurement(row(table, "KeyEntropy")["accuracy"]).value == pytest.approx(2 / 3)
    assert measurement(row(table, "Relevance")["accuracy"]).value == pytest.approx(1 / 3)
    assert table.notes[0].startswith("3 of 6 questions")
    rates = contexts(found, BOOTSTRAP)
    retrieved, mixed = rates.rows
    assert (estimate(retrieved["right"]).value, retrieved["only"]) == (0.4, 1)
    assert (estimate(mixed["right"]).value, mixed["only"]) == (pytest.approx(2 / 3), 2)


def test_two_readers_differ_in_signs_and_orders() -> None:
    """The first question: one of three signs and one of three pairs; the second: none."""
    one = [[reading(2), reading(1), reading(-1)], [reading(1), reading(0), reading(-1)]]
    other = [[reading(2), reading(-1), reading(-0.5)], [reading(3), reading(0), reading(-2)]]
    cells = row(two_readers.readers(one, other, BOOTSTRAP), "Entropy")
    assert estimate(cells["sign"]).value == pytest.approx(1 / 6)
    assert estimate(cells["order"]).value == pytest.approx(1 / 6)
    assert (estimate(cells["sign"]).measured, estimate(cells["sign"]).questions) == (6, 2)


def test_a_reader_is_right_where_its_own_utility_lays_out_the_passages() -> None:
    one = [[reading(1, True), reading(0, False), reading(0, False)]] * 2
    other = [[reading(0, False), reading(0, False), reading(1, True)]] * 2
    table = two_readers.by_layout(one, other, BOOTSTRAP)
    own, foreign, gain = table.rows[:3]
    assert [estimate(r["key_entropy"]).value for r in (own, foreign)] == [1, 0]
    assert estimate(own["any"]).value == pytest.approx(1 / 3)
    apart = gain["key_entropy"]
    assert isinstance(apart, Difference)
    assert apart.value == 1


def test_layouts_move_the_gold_passages_and_nothing_else() -> None:
    bench = worlds.make(ScriptedReader(), seed=7, limit=1)
    [item] = bench.questions(2)
    first, middle, last = two_readers.layouts(item, bench.distractors(item, 8))
    assert {len(each) for each in (first, middle, last)} == {10}
    assert first[:2] == middle[4:6] == last[8:] == item.gold
    assert first[2:] == (*middle[:4], *middle[6:]) == last[:8]


def test_without_another_reader_the_reason_names_the_option() -> None:
    found = [[reading(1, True)] * 3]
    for table in (
        two_readers.readers(found, None, BOOTSTRAP),
        two_readers.by_layout(found, None, BOOTSTRAP),
    ):
        missing = [f.reason for f in figures([table]).values() if f.value is None]
        assert missing
        assert all("--other-reader" in (reason or "") for reason in missing)


def test_the_real_reader_beside_itself_never_differs() -> None:
    reader = tiny.build()
    found = figures(grogu.build(worlds.make(reader, other=reader, seed=7, limit=2)))
    for _, name in SCORES:
        assert found[f"grogu_wins/{name}/distractor"].n == 2
        assert found[f"grogu_readers/{name}/sign"].value == 0
        assert found[f"grogu_readers/{name}/order"].value == 0
        assert found[f"grogu_readers/{name}/sign"].n == 6
    for score, _ in SCORES:
        assert found[f"grogu_layouts/reader itself - the other/{score}"].value == 0
    assert found["grogu_contexts/4 random/right"].n == 2
    assert all((f.value is None) == (f.reason is not None) for f in found.values())
