"""People's labels beside credits that can be worked out on paper."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import hopscope
from hopscope.lab import agreement
from hopscope.lab.table_forms.table import Table
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import (
    Credit,
    Hit,
    Measurement,
    Passage,
    Provenance,
    Question,
    Run,
    Step,
)
from hopscope.store.labels import Label, Target
from hopscope.store.store import Store

NOW = datetime(2026, 11, 23, tzinfo=UTC)
RUNS = 12


def run_of(number: int) -> Run:
    hits = tuple(Hit(passage=Passage(id=key, text=key), score=1.0) for key in ("good", "bad"))
    step = Step(
        index=0, name="retrieve", kind="retrieve", query="q", ranked=hits, started=NOW, seconds=0
    )
    return Run(
        id=f"run-{number:02}",
        question=Question(text=f"q{number}", answers=("Zana",)),
        workflow="naive",
        steps=(step,),
        answer="Zana" if number % 2 else "Oslo",
        started=NOW,
    )


def credit(run: Run, key: str | None, value: float, rule: str = "shapley") -> Credit:
    return Credit(
        run_id=run.id,
        step=None if rule == "total" else 0,
        passage=key,
        rule=rule,
        meter="seper",
        measurement=Measurement(value=value, low=value - 0.1, high=value + 0.1),
        provenance=Provenance(reader="r"),
    )


def label(run: Run, target: Target, word: str, key: str | None = None, **more: object) -> Label:
    told = {
        "run_id": run.id,
        "target": target,
        "step": 0 if key else None,
        "passage": key,
        "name": "relevant" if key else "correct",
        "label": word,
        "author": "ada",
        "source": "phoenix",
        "made": NOW,
    }
    return Label.model_validate(told | more)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Table]]:
    """Credit of passages agrees with people; one passage has no credit."""
    with Store.open(tmp_path_factory.mktemp("labels") / "runs.db") as store:
        for number in range(RUNS):
            run = run_of(number)
            store.save(run)
            shares = [credit(run, "good", 0.4 + number / 100), credit(run, None, 0.3, "total")]
            if number:
                shares.append(credit(run, "bad", -number / 100))
            store.save_credits(shares)
            given = [
                label(run, "passage", "Yes", "good"),
                label(run, "passage", "irrelevant", "bad"),
                label(run, "answer", "yes" if number % 2 else "no"),
                label(run, "answer", "who knows", author="ben"),
            ]
            store.labels.save(given)
        ids = [f"run-{number:02}" for number in range(RUNS)]
        found = hopscope.labels(*ids, store=store, resamples=200)
        yield {table.name: table for table in found}


def test_each_label_stands_beside_the_credit_of_what_it_speaks_of(
    tables: dict[str, Table],
) -> None:
    rows = [row for row in tables["labels"].rows if row["run"] == "run-00"]
    told = {(row["of"], row["author"]): row for row in rows}
    good, bad = told["step 0: good", "ada"], told["step 0: bad", "ada"]
    assert isinstance(good["credit"], Measurement)
    assert (good["credit"].value, good["credit"].low) == (0.4, 0.4 - 0.1)
    assert good["by"] == "seper.shapley"
    assert isinstance(bad["credit"], Measurement)
    assert bad["credit"].value is None
    assert bad["credit"].reason == agreement.NONE
    assert told["answer", "ada"]["by"] == "seper.total"
    assert told["answer", "ben"]["label"] == "who knows"


def test_agreement_has_an_interval_over_questions(tables: dict[str, Table]) -> None:
    rows = {(row["name"], row["measure"]): row for row in tables["agreement"].rows}
    relevant = rows["relevant", "seper.shapley"]
    # 12 ones and 11 zeros, all ones above all zeros: rho of binary labels against 23 ranks,
    # sqrt(3 * 11 * 12 / (23**2 - 1)).
    found = relevant["agreement"]
    assert isinstance(found, Measurement)
    assert found.value == pytest.approx((3 * 11 * 12 / (23**2 - 1)) ** 0.5)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value <= found.high
    assert (relevant["labels"], relevant["unmeasured"], relevant["questions"]) == (23, 1, 12)
    right = rows["correct", "exact_match"]["agreement"]
    assert isinstance(right, Measurement)
    assert right.value == pytest.approx(1.0)
    total = rows["correct", "seper.total"]["agreement"]
    assert isinstance(total, Measurement)
    assert total.value is None
    assert total.reason == "a constant series has no order"


def test_runs_without_labels_are_told(tmp_path: Path) -> None:
    with Store.open(tmp_path / "runs.db") as store:
        store.save(run_of(0))
        with pytest.raises(UsageError, match=r"none of these runs has a label: .*hopscope pull"):
            agreement.labels("run-00", store=store)
