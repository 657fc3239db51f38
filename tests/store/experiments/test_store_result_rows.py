"""What tables read of experiments: the same figures as the records hold, from plain rows and from
columns."""

from datetime import timedelta

import pytest

from hopscope.lab import comparison
from hopscope.lab.experiments.results import UNCOUNTED, UNTIMED
from hopscope.lab.tables import credit_by_step, differences, overview
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import (
    Appraisal,
    Credit,
    Decision,
    Measurement,
    Provenance,
    Question,
    Run,
    RunError,
    Usage,
)
from hopscope.store.experiments.records import Arm, DatasetEntry, Experiment
from hopscope.store.experiments.result_rows import QuestionRow, ResultRow, Retrieval, Utility
from hopscope.store.store import Store
from hopscope.tracing.reports import report
from hopscope.tracing.reports.records import TotalUtility
from tests.store.run_examples import STARTED, a_run
from tests.view import experiment as measured

ARMS = (
    Arm(label="naive", workflow="naive", settings={}),
    Arm(label="ircot:k=3", workflow="ircot", settings={"options": {"k": 3}}),
)
OLD = Provenance(reader="tiny@1", seed=1)
NEW = Provenance(reader="tiny@1", seed=2)


def credit(run: Run, step: int | None, rule: str, value: float | None, **fields: object) -> Credit:
    reason = "no gold" if value is None else None
    known = {"meter": "seper", "provenance": NEW, **fields}
    measurement = Measurement(value=value, reason=reason)
    return Credit.model_validate(
        {"run_id": run.id, "step": step, "rule": rule, "measurement": measurement, **known}
    )


def credits_of(run: Run) -> list[Credit]:
    """Of two appraisals of the whole run and a later one of a passage."""
    return [
        credit(run, None, "level", 0.25),
        credit(run, None, "total", 0.5),
        credit(run, None, "level", -3.0, meter="grogu"),
        credit(run, None, "total", -0.125, meter="grogu"),
        credit(run, 0, "trajectory", 0.5),
        credit(run, 0, "shapley", 0.375),
        credit(run, 0, "shapley", 9.0, passage="p0"),
        credit(run, 0, "shapley", 9.0, meter="grogu"),
        credit(run, 2, "trajectory", None),
        credit(run, None, "total", 0.75, provenance=OLD),
        credit(run, 0, "trajectory", 0.75, provenance=OLD),
    ]


def appraisals_of(run: Run) -> list[Appraisal]:
    later = STARTED + timedelta(hours=1)
    return [
        Appraisal(run_id=run.id, provenance=provenance, measured=when)
        for provenance, when in ((OLD, STARTED), (NEW, later))
    ]


@pytest.fixture
def filled(store: Store) -> Store:
    """A question that both arms answered, the second without being appraised; and one where the
    first failed after its run and the second has not begun."""
    experiment = Experiment(
        name="towns",
        settings={},
        reader="tiny@1",
        retriever="bm25",
        entailment="lexical",
        seed=0,
        fingerprint="f",
        created=STARTED,
        arms=ARMS,
    )
    asked = [
        Question(text=f"Who founded town {i}?", answers=("x", "y"), id=f"q{i}") for i in (0, 1)
    ]
    entries = [DatasetEntry(question=question, kind="bridge", hops=2) for question in asked]
    store.experiments.add(experiment, entries)
    session = store.experiments.begin_session("towns", owner="here", environment={})
    for claimed in store.experiments.claim(session, 3):
        update = {"question": claimed.entry.question, "workflow": claimed.arm.workflow}
        run = a_run(f"run-{claimed.position}", hops=2, k=1).model_copy(update=update)
        first, failed = claimed.position == 0, claimed.position == 2
        store.experiments.complete(
            session,
            claimed,
            run,
            credits=credits_of(run) if first else [],
            appraisals=appraisals_of(run) if first else [],
            error=RunError(type="MeterError", message="broke") if failed else None,
        )
    return store


def test_figures_are_those_of_the_run_and_of_the_appraisal_that_is_shown(filled: Store) -> None:
    one, other, failed = filled.experiments.result_rows("towns", "latest")
    asked = QuestionRow("q0", "Who founded town 0?", ("x", "y"), "bridge", 2)
    run = filled.load("run-0")
    assert one == ResultRow(
        experiment="towns",
        arm="naive",
        question=asked,
        run_id="run-0",
        answer="people from the north",
        retrievals=2,
        calls=2,
        input_tokens=800,
        output_tokens=24,
        seconds=1.5,
        utilities=one.utilities,
    )
    assert one.utility("seper") == Utility(0.75, 0.5)
    assert one.utility("grogu").delta == -0.125
    assert one.tokens == run.usage.tokens
    shown = report.report(run, filled.credits("run-0"), filled.appraisals("run-0"))
    whole = shown.total.meters["seper"]
    assert isinstance(whole, TotalUtility)
    assert whole.delta == one.utility("seper").delta
    assert (other.arm, other.question, other.utility("seper").delta) == (
        "ircot:k=3",
        asked,
        "not appraised",
    )
    assert (failed.run_id, failed.error) == ("run-2", "MeterError: broke")


def test_retrievals_have_their_shares_and_what_they_made_the_reader_read(filled: Store) -> None:
    found = filled.experiments.retrievals("towns", "latest")
    assert found[:2] == [
        Retrieval(
            *("run-0", 1, 0, 412),
            {"seper": {"trajectory": 0.5, "shapley": 0.375}, "grogu": {"shapley": 9.0}},
        ),
        Retrieval("run-0", 2, 2, 412, {"seper": {"trajectory": "no gold"}}),
    ]
    assert [
        (each.run_id, each.ordinal, each.share("seper", "trajectory")) for each in found[2:4]
    ] == [
        ("run-1", 1, "not appraised"),
        ("run-1", 2, "not appraised"),
    ]


def test_a_declined_retrieval_is_none(filled: Store) -> None:
    """It counted as the run's last, and took the tokens of the answer from the one before it."""
    run = filled.load("run-1")
    first, second = run.retrievals
    decision = Decision(policy="never", retrieve=False, reason="not worth it")
    nothing = {"query": None, "ranked": (), "new": (), "dangling": (), "decision": decision}
    steps = [step.model_copy(update=nothing) if step == second else step for step in run.steps]
    filled.save(cut := run.model_copy(update={"steps": tuple(steps)}))
    assert [step.index for step in cut.retrievals] == [first.index]
    assert [step.index for step in cut.steps if step.declined] == [second.index]
    rows = [row for row in filled.experiments.retrievals("towns") if row.run_id == "run-1"]
    assert [(row.ordinal, row.step, row.tokens) for row in rows] == [(1, 0, 824)]
    assert next(r for r in filled.runs() if r.id == "run-1").retrievals == 1


def test_the_original_appraisal_is_shown_unless_another_is_asked_for(filled: Store) -> None:
    """What `hopscope credit` measured later stood in the tables without a word."""
    appraised = filled.experiments.appraised("towns")
    assert [(each.provenance, each.runs) for each in appraised] == [(OLD, 1), (NEW, 1)]
    deltas = {"original": 0.75, "latest": 0.5, NEW.settings_hash[:6]: 0.5}
    for which, value in deltas.items():
        figures, *_ = filled.experiments.result_rows("towns", which)
        retrieval, *_ = filled.experiments.retrievals("towns", which)
        assert (figures.utility("seper").delta, retrieval.share("seper", "trajectory")) == (
            value,
            value,
        )
    assert filled.experiments.result_rows("towns") == filled.experiments.result_rows(
        "towns", "original"
    )
    credits = filled.experiments.credits("towns", rules=["total"], appraisal="original")
    assert [credit.provenance for credit in credits["run-0"]] == [OLD]
    with pytest.raises(UsageError, match=f"give original, latest or .* {OLD.settings_hash[:8]}"):
        filled.experiments.result_rows("towns", "zzz")


def test_an_experiment_that_is_not_there_is_told(store: Store) -> None:
    with pytest.raises(UsageError, match="no experiment 'nothing'"):
        store.experiments.result_rows("nothing")


TABLES = ("overview", "differences", "credit_by_step")


def check_columns(store: Store, *names: str) -> None:
    """Tables from columns are those from rows, to the last digit."""
    by_rows = comparison.compare(*names, store=store, tables=TABLES, resamples=50).tables
    found = comparison.columns(*names, store=store, resamples=50)
    built = [*overview.build(found), *differences.build(found)]
    known = {credit_by_step.named(found, meter): meter for meter in found.meters}
    for table in by_rows[2:]:
        meter = known[table.name]
        built.append(credit_by_step.of_columns(found, meter, found.retrievals(meter)))
    for table, expected in zip(built, by_rows, strict=True):
        for row, other in zip(table.rows, expected.rows, strict=True):
            assert row == other
        assert table == expected


def test_columns_have_the_numbers_of_rows(filled: Store) -> None:
    """Of failed items, unmeasured ones, and one that has a share without a value."""
    check_columns(filled, "towns")
    run = filled.load("run-1")
    lost = [credit(run, None, "level", None), credit(run, None, "total", 0.5, meter="grogu")]
    lost += [credit(run, 0, "trajectory", None), credit(run, None, "total", None)]
    old = [each.model_copy(update={"provenance": OLD}) for each in lost]
    filled.save_credits(old, [])
    check_columns(filled, "towns")
    means = comparison.columns("towns", store=filled)
    assert means.columns["ircot:k=3", "seper_delta"].reason == "no gold"
    assert means.columns["ircot:k=3", "seper"].reason == "no gold"


def test_columns_of_measured_experiments_have_the_numbers_of_rows(store: Store) -> None:
    """Of one, and of two on the same questions; a table for each meter."""
    measured.fill(store)
    measured.fill(store, "again")
    check_columns(store, "towns")
    check_columns(store, "towns", "again")


def test_uncounted_tokens_and_untimed_runs_are_missing_in_columns_too(store: Store) -> None:
    usage = Usage(input_tokens=7, output_tokens=1, calls=1, uncounted=1)
    made = a_run("run-0", hops=2, k=1)
    first, *others = made.steps
    changed = first.model_copy(update={"usage": usage})
    update = {"steps": (changed, *others), "seconds": 0.0, "workflow": "imported:x"}
    store.experiments.begin_import("told")
    store.experiments.keep_imported("told", [made.model_copy(update=update)])
    check_columns(store, "told")
    means = comparison.columns("told", store=store)
    [system] = means.systems
    assert means.columns[system, "tokens"].reason == UNCOUNTED
    assert means.columns[system, "seconds"].reason == UNTIMED


def test_retrieval_columns_are_the_rows(filled: Store) -> None:
    rows = filled.experiments.retrievals("towns", "latest")
    number = filled.experiments.appraised("towns")[-1].number
    found = filled.experiments.result_columns("towns", number)
    made = filled.experiments.retrieval_columns("towns", number, "seper", found.run)
    assert filled.experiments.run_ids(found.run[made.item].tolist()) == [r.run_id for r in rows]
    assert made.ordinal.tolist() == [row.ordinal for row in rows]
    assert made.tokens.tolist() == [row.tokens for row in rows]
    shares = made.shares["trajectory"]
    told = [shares.reasons.get(i, value) for i, value in enumerate(shares.values.tolist())]
    assert told[:2] == [row.share("seper", "trajectory") for row in rows[:2]]
