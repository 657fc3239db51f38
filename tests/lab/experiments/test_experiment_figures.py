"""Running figures and estimates, worked by hand."""

from datetime import UTC, datetime

import pytest

from hopscope.lab.experiments.estimate import Spent, estimate, of_done, sample
from hopscope.lab.experiments.experiment import ExperimentSettings, Models, check, plan, run_id
from hopscope.lab.experiments.tally import Tally, total
from hopscope.lab.experiments.workers import ItemResult
from hopscope.runtime.budget.prices import ModelPrice, Price
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import (
    Appraisal,
    Credit,
    Measurement,
    Provenance,
    Question,
    Run,
    RunError,
    Step,
    Usage,
)
from hopscope.store.experiments.records import Arm, ClaimedItem, DatasetEntry, Item, Outcome

NOW = datetime(2026, 11, 21, tzinfo=UTC)
NAIVE = Arm(label="naive", workflow="naive", settings={"options": {}})
PROVENANCE = Provenance(reader="r")
SPENT = Usage(input_tokens=100, output_tokens=10, calls=1)
MEASURED = Usage(input_tokens=300, output_tokens=50, calls=2)
PRICE = Price(model=ModelPrice(input=1.0, output=10.0), retrieval=0.01)


def entry(number: int) -> DatasetEntry:
    return DatasetEntry(
        question=Question(text=f"Who {number}?", answers=("Bruno Costa",), id=str(number))
    )


def claimed(number: int) -> ClaimedItem:
    return ClaimedItem(entry=entry(number), arm=NAIVE, position=number)


def gain(value: float | None, *, reason: str | None = None) -> Credit:
    return Credit(
        run_id="x",
        step=None,
        rule="total",
        meter="seper",
        measurement=Measurement(value=value, reason=reason),
        provenance=PROVENANCE,
    )


def done(answer: str, *credits: Credit, error: RunError | None = None) -> ItemResult:
    step = Step(
        index=0, name="retrieve", kind="retrieve", query="q", usage=SPENT, started=NOW, seconds=1.0
    )
    run = Run(
        id="x",
        question=entry(0).question,
        workflow="naive",
        answer=answer,
        steps=(step,),
        started=NOW,
        seconds=2.0,
    )
    cost = Appraisal(run_id="x", provenance=PROVENANCE, measured=NOW, usage=MEASURED, seconds=3.0)
    return ItemResult(run, credits, (cost,), error)


def pending(number: int) -> Item:
    return Item(
        entry=entry(number), arm="naive", workflow="naive", position=number, status="pending"
    )


def test_a_tally_counts_what_was_there_and_what_comes() -> None:
    stored = pending(0).model_copy(
        update={
            "status": "ok",
            "outcome": Outcome(
                run_id="y", answer="the Bruno Costa", status="ok", stop_reason=None, started=NOW,
                seconds=1.0, steps=1, retrievals=1, usage=SPENT,
            ),
        }
    )  # fmt: skip
    items = [stored, *(pending(i) for i in range(1, 5))]
    tally = Tally(items, {"y": [gain(0.5)]}, {"y": MEASURED})
    row = tally.rows["naive"]
    assert (row.items, row.done, row.right.value, row.gain.value) == (5, 1, 1.0, 0.5)
    assert (row.usage, row.queries) == (SPENT + MEASURED, 1)

    assert tally.add(claimed(1), done("Lisbon", gain(-0.1))) == SPENT + MEASURED
    tally.add(claimed(2), done("Bruno Costa", gain(None, reason="no gold")))
    failed = RunError(type="ReaderError", message="x")
    tally.add(claimed(3), done("Bruno Costa", gain(1.0), error=failed))
    tally.add(claimed(4), ItemResult(None, error=failed))
    assert (row.ok, row.failed) == (3, 2)
    assert (row.right.value, row.right.n) == (2 / 3, 3)
    assert row.gain.value == pytest.approx(0.2)
    assert row.gain.n == 2, "what was not measured is not zero"
    assert row.usage.tokens == 4 * 460, "also of what failed"
    assert tally.all == row


def test_of_several_appraisals_the_last_counts() -> None:
    found = total([gain(0.1), gain(0.7)], "seper")
    assert found is not None
    assert found.value == 0.7
    assert total([gain(0.1)], "grogu") is None


def test_an_estimate_is_the_mean_times_what_is_left() -> None:
    spent = [of_done(done("a")), of_done(done("b"))]
    assert spent == [Spent(usage=SPENT + MEASURED, queries=1, seconds=5.0)] * 2
    cheaper = Spent(
        usage=Usage(input_tokens=200, output_tokens=20, calls=1), queries=0, seconds=1.0
    )
    found = estimate(
        "naive", 10, [s for s in spent if s] + [cheaper], basis="trial", workers=4, price=PRICE
    )
    assert (found.calls, found.n) == (pytest.approx(70 / 3), 3)
    assert found.input_tokens == pytest.approx(10 * (400 + 400 + 200) / 3)
    assert found.output_tokens == pytest.approx(10 * (60 + 60 + 20) / 3)
    assert found.seconds == pytest.approx(10 * 11 / 3 / 4)
    one = estimate("naive", 3, spent[:1], basis="trial", workers=2, threads=4, price=PRICE)
    assert one.seconds == 5.0, "a worker is at all three at once"
    assert found.cost == pytest.approx(10 * (1000 + 1400) / 3 / 1e6 + 10 * 0.02 / 3)


def test_nothing_is_estimated_from_nothing_and_no_price_costs_nothing_known() -> None:
    assert of_done(ItemResult(None, error=RunError(type="x", message="y"))) is None
    empty = estimate("naive", 10, [], basis="trial", workers=1, price=PRICE)
    assert (empty.calls, empty.seconds, empty.cost) == (None, None, None)
    some = Spent(usage=SPENT, queries=0, seconds=1.0)
    free = estimate("naive", 10, [some], basis="trial", workers=1, price=Price())
    assert (free.calls, free.cost) == (10, None)


def test_a_trial_takes_questions_from_all_over() -> None:
    entries = [entry(i) for i in range(30)]
    assert [c.entry.question.id for c in sample(NAIVE, entries)] == ["5", "15", "25"]
    assert [c.entry.question.id for c in sample(NAIVE, entries[:2])] == ["0", "1"]


SETTINGS = ExperimentSettings(
    data="a.jsonl", form="plain", digest="d", corpus="index", reader="tiny", entailment="lexical",
    seed=0, samples=10, meters=("seper",), rules=("shapley",),
)  # fmt: skip
MODELS = Models(reader="tiny@1", retriever="bm25@1", entailment="lexical@1")


def test_what_counts_is_what_models_turn_out_to_be() -> None:
    known = plan("e", SETTINGS, MODELS, [NAIVE])
    elsewhere = SETTINGS.model_copy(update={"data": "b.jsonl", "limit": 3, "corpus": "./index"})
    check(known, elsewhere, MODELS)
    assert plan("e", elsewhere, MODELS, []).fingerprint == known.fingerprint
    for field in ("reader", "retriever", "entailment"):
        other = MODELS.model_copy(update={field: "another"})
        with pytest.raises(UsageError, match=rf"began with the {field} '[^']+@1' .*'another'"):
            check(known, SETTINGS, other)
        assert plan("e", SETTINGS, other, []).fingerprint != known.fingerprint
    for field, value in (("digest", "e"), ("seed", 1), ("rules", ()), ("deterministic", True)):
        changed = SETTINGS.model_copy(update={field: value})
        with pytest.raises(UsageError, match=r"another name \(--name\)"):
            check(known, changed)
        assert plan("e", changed, MODELS, []).fingerprint != known.fingerprint


def test_other_questions_are_told_by_their_file_not_by_their_digest() -> None:
    known = plan("e", SETTINGS, MODELS, [NAIVE])
    with pytest.raises(UsageError, match=r"began with other questions, those of a\.jsonl: give"):
        check(known, SETTINGS.model_copy(update={"digest": "e", "data": "b.jsonl"}))


def test_the_run_of_an_item_has_the_same_id_each_time() -> None:
    assert run_id("e", claimed(1)) == run_id("e", claimed(1))
    others = [run_id("f", claimed(1)), run_id("e", claimed(2))]
    other_arm = claimed(1).model_copy(update={"arm": NAIVE.model_copy(update={"label": "b"})})
    assert len({run_id("e", claimed(1)), run_id("e", other_arm), *others}) == 4
