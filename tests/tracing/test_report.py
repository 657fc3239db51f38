"""The report of a run: one appraisal at a time."""

import pytest
from fakes import run_of

from hopscope.runtime.types import Credit, Measurement, Provenance, Run
from hopscope.tracing.report import report


def credit(run: Run, rule: str, step: int | None, value: float, seed: int) -> Credit:
    return Credit(
        run_id=run.id,
        step=step,
        rule=rule,
        meter="seper",
        measurement=Measurement(value=value, n=10),
        provenance=Provenance(reader="r", seed=seed),
    )


def test_two_appraisals_are_not_mixed() -> None:
    """A total of one seed beside steps of another would not be their sum."""
    run = run_of(["a"])
    first = [credit(run, "trajectory", 0, 0.5, 0), credit(run, "total", None, 0.5, 0)]
    second = [credit(run, "total", None, 0.9, 1)]
    found = report(run, [*first, *second])
    assert found.total.seper is not None
    assert found.total.seper.delta == pytest.approx(0.9)
    assert found.steps[0].credit.seper is None


def test_a_run_without_credits_has_none() -> None:
    found = report(run_of(["a"]), [])
    assert found.total.seper is None
    assert found.steps[0].credit.grogu is None
