"""The report of a run: one appraisal at a time."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import (
    Appraisal,
    Credit,
    Hit,
    Measurement,
    Provenance,
    Run,
    Usage,
)
from hopscope.store.store import Store
from hopscope.tracing.reports.appraised import shown_provenance
from hopscope.tracing.reports.records import TotalUtility
from hopscope.tracing.reports.report import report
from tests.fakes import NOW, passage, run_of


def provenance(seed: int) -> Provenance:
    return Provenance(reader="r", seed=seed)


def credit(
    run: Run,
    rule: str,
    step: int | None,
    value: float,
    seed: int,
    *,
    meter: str = "seper",
    passage: str | None = None,
) -> Credit:
    return Credit(
        run_id=run.id,
        step=step,
        passage=passage,
        rule=rule,
        meter=meter,
        measurement=Measurement(value=value, n=10),
        provenance=provenance(seed),
    )


def measured(run: Run, seed: int, minute: int = 0) -> Appraisal:
    return Appraisal(
        run_id=run.id,
        provenance=provenance(seed),
        measured=NOW + timedelta(minutes=minute),
        usage=Usage(input_tokens=70, output_tokens=7, calls=1),
        seconds=0.5,
    )


def test_two_appraisals_are_not_mixed() -> None:
    """A total of one seed beside steps of another would not be their sum."""
    run = run_of(["a"])
    first = [credit(run, "trajectory", 0, 0.5, 0), credit(run, "total", None, 0.5, 0)]
    second = [credit(run, "total", None, 0.9, 1)]
    found = report(run, [*first, *second])
    whole = found.total.meters["seper"]
    assert isinstance(whole, TotalUtility)
    assert whole.delta == pytest.approx(0.9)
    assert found.steps[0].credit["seper"] is None
    assert found.appraisal is not None
    assert found.appraisal.seed == 1
    assert found.appraisal.others == (provenance(0).settings_hash,)


def test_a_measuring_of_parts_does_not_hide_that_of_the_whole_run() -> None:
    run = run_of("ab")
    whole = [credit(run, "total", None, 0.5, 0)]
    part = [credit(run, "shapley", 0, 0.25, 1, passage="a")]
    found = report(run, [*whole, *part])
    whole = found.total.meters["seper"]
    assert isinstance(whole, TotalUtility)
    assert whole.delta == 0.5
    assert shown_provenance(part) == provenance(1)
    assert shown_provenance([]) is None


def test_a_budget_that_bought_nothing_does_not_hide_what_was_measured() -> None:
    run = run_of("a")
    whole = credit(run, "total", None, 0.5, 0)
    reason = Measurement(value=None, reason="the credit budget of 1 calls does not suffice")
    nothing = credit(run, "total", None, 0.5, 1).model_copy(update={"measurement": reason})
    assert shown_provenance([whole, nothing]) == provenance(0)
    assert shown_provenance([nothing]) == provenance(1)


def test_an_appraisal_can_be_asked_for_by_the_beginning_of_its_settings_hash() -> None:
    run = run_of("a")
    given = [credit(run, "total", None, 0.1 * seed, seed) for seed in (0, 1, 2)]
    name = provenance(1).settings_hash
    found = report(run, given, settings_hash=name[:10])
    assert found.appraisal is not None
    assert (found.appraisal.id, found.appraisal.seed) == (name, 1)
    for wrong in ("", "zz"):
        with pytest.raises(UsageError, match="does not name one of the appraisals"):
            report(run, given, settings_hash=wrong)


def test_the_cost_of_measuring_is_that_of_all_measurings_with_the_settings() -> None:
    run = run_of("a")
    given = [credit(run, "total", None, 0.1, 0)]
    told = [measured(run, 0, 1), measured(run, 0, 5), measured(run, 3, 9)]
    found = report(run, given, told).appraisal
    assert found is not None
    assert found.usage == Usage(input_tokens=140, output_tokens=14, calls=2)
    assert (found.seconds, found.measured) == (1.0, NOW + timedelta(minutes=5))
    unknown = report(run, given).appraisal
    assert unknown is not None
    assert (unknown.usage, unknown.measured) == (Usage(), None)


def test_passages_show_what_they_earned_in_the_step_that_brought_them() -> None:
    run = run_of("ab", "c")
    hits = tuple(Hit(passage=passage(key), score=1) for key in "ab")
    steps = [s.model_copy(update={"ranked": hits}) for s in run.steps]
    run = run.model_copy(update={"steps": tuple(steps)})
    given = [
        credit(run, "shapley", 0, 0.25, 0, passage="a"),
        credit(run, "leave_one_out", 0, 0.5, 0, passage="a"),
    ]
    first, second = report(run, given).steps[0].passages
    assert first.credit is not None
    share = first.credit["seper"]
    assert share is not None
    assert (share.shapley, share.leave_one_out) == (0.25, 0.5)
    assert second.credit is None
    assert all(p.credit is None for p in report(run, given).steps[1].passages)


def test_a_run_without_credits_has_none() -> None:
    found = report(run_of(["a"]), [])
    assert found.total.meters["seper"] is None
    assert found.steps[0].credit["grogu"] is None
    assert found.appraisal is None


events = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["seper", "grogu"]),
        st.sampled_from(["total", "shapley"]),
        st.integers(0, 5) | st.none(),
    ),
    max_size=6,
)


@settings(
    deadline=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(events)
def test_a_list_of_runs_and_the_report_choose_the_same_appraisal(
    tmp_path_factory: pytest.TempPathFactory, told: list[tuple[int, str, str, int | None]]
) -> None:
    """Whatever was measured in whatever order, with settings that earlier runs had too."""
    run, other = run_of("a"), run_of("a").model_copy(update={"id": "earlier"})
    with Store.open(tmp_path_factory.mktemp("choice") / "runs.db") as store:
        store.save(other)
        store.save_credits([credit(other, "total", None, 0.5, seed) for seed in (3, 1)])
        store.save(run.model_copy(update={"started": NOW + timedelta(days=1)}))
        for number, (seed, meter, rule, minute) in enumerate(told):
            step = None if rule == "total" else 0
            given = credit(run, rule, step, number / 8, seed, meter=meter)
            store.save_credits([given], [] if minute is None else [measured(run, seed, minute)])
        found = report(run, store.credits("run"), store.appraisals("run"))
        listed = store.runs()[0]
    assert listed.id == "run"
    total = found.total.meters["seper"]
    assert listed.seper_delta == (total.delta if total else None)


def test_a_third_meter_is_reported_like_the_first_two() -> None:
    """Also one that is not installed any more; by the rules of others, too."""
    run = run_of("a")
    given = [
        credit(run, rule, step, value, 0, meter="third")
        for rule, step, value in (
            ("level", None, 0.25),
            ("level", 0, 0.75),
            ("trajectory", 0, 0.5),
            ("equal_shares", 0, 0.125),
            ("total", None, 0.5),
        )
    ]
    given.append(credit(run, "shapley", 0, 0.375, 0, meter="third", passage="a"))
    written = report(run, given).model_dump(mode="json")
    assert {"seper": None, "grogu": None}.items() <= written["total"].items()
    whole, step = written["total"]["third"], written["steps"][0]["credit"]["third"]
    assert (whole["before"], whole["after"], whole["delta"], whole["n"]) == (0.25, 0.75, 0.5, 10)
    assert (step["value"], step["delta"], step["equal_shares"]) == (0.75, 0.5, 0.125)


def test_a_variant_is_reported_where_its_base_was_not_measured() -> None:
    run = run_of("a")
    hard = credit(run, "total", None, 0.5, 0, meter="seper_hard")
    assert "seper_hard" in report(run, [hard]).total.meters
    both = report(run, [hard, credit(run, "total", None, 0.25, 0)])
    assert list(both.total.meters) == ["seper", "grogu"]


def test_a_meter_called_like_a_field_takes_nothing_away() -> None:
    run = run_of("a")
    written = report(run, [credit(run, "total", None, 0.5, 0, meter="seconds")])
    assert written.model_dump(mode="json")["total"]["seconds"] == run.seconds
