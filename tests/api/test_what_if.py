"""What-if questions to runs of the embedded reader: the answers need no model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hopscope
from hopscope.api.appraiser import rules_of
from hopscope.runtime.errors import UsageError
from hopscope.tracing.what_if.answers import recall, without_rows

QUESTION = "What is the headquarters city of the company that employs Elsa Wilby?"
GOLD = "Grand Rovmar"
RULES = ("trajectory", "leave_one_out", "shapley", "solo")
OWN_RULE = '''
"""Twice the solo credit; with `needs`, as a third party would write it."""

from hopscope.tracing.credit import solo


def build():
    return solo.build()._replace(name="own")
'''


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hopscope.Session]:
    database = tmp_path_factory.mktemp("what_if") / "runs.db"
    with hopscope.Session(store=database, samples=4, rules=RULES) as opened:
        yield opened


@pytest.fixture(scope="module")
def run(session: hopscope.Session) -> hopscope.MeasuredRun:
    return session.ask(QUESTION, gold=GOLD, workflow="ircot")


def key(row: Any) -> tuple[object, ...]:
    return row.meter, row.rule, row.step, row.passage


@pytest.mark.parametrize("workflow", ["naive", "ircot", "iter_retgen", "self_ask"])
def test_shares_from_stored_values_equal_the_live_ones(
    session: hopscope.Session, workflow: str
) -> None:
    """To 1e-12, with intervals, over steps and passages. A store has no model to ask."""
    live = session.ask(QUESTION, gold=GOLD, workflow=workflow, k=2)
    inside = session.credit(live, over="passages", rules=RULES)
    assert isinstance(session.store, hopscope.Store)
    stored = session.store.run(live.id)
    for rows, over in ((live.credits, "steps"), (inside, "passages")):
        found = {key(row): row for row in stored.share(*RULES, over=over)}  # type: ignore[arg-type]
        assert len(found) == len(rows) > 0
        for row in rows:
            again = found[key(row)]
            for told, true in ((again.value, row.value), (again.low, row.low)):
                assert told == (true if true is None else pytest.approx(true, abs=1e-12))
            assert again.reason == row.reason


@pytest.mark.parametrize(
    "how", [{"mode": "replay"}, {"counterfactual": "random"}, {"counterfactual": "leave-out"}]
)
def test_values_of_other_games_come_back_too(
    session: hopscope.Session, run: hopscope.MeasuredRun, how: dict[str, str]
) -> None:
    """The passages behind replayed runs and stand-ins are not stored, their values are."""
    # Every coalition of passages would be another run of the workflow.
    few = ("leave_one_out", "solo")
    for over in ("steps", "passages"):
        chosen = few if (how, over) == ({"mode": "replay"}, "passages") else RULES
        live = session.credit(run, over=over, rules=chosen, meters=["seper"], **how)
        provenance = live.records[0].provenance
        values = recall(run.record, provenance, session.store.games(run.id))
        again = values.share(rules_of(chosen, provenance), over)  # type: ignore[arg-type]
        assert {*map(str, again)} == {*map(str, live.records)}
    step = run.record.steps[0]
    parts = [str(run.record.steps[2].index), f"p:{step.new[0]}"]
    for row in without_rows(values, parts):
        assert row.value is None
        assert ("--mode frozen" if "mode" in how else "--without") in (row.reason or "")


def test_a_rule_of_somebody_else_shares_stored_values(
    run: hopscope.MeasuredRun, tmp_path: Path
) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN_RULE)
    found = {key(row): row.value for row in run.share(str(file), "solo")}
    mine = {k: value for k, value in found.items() if k[1] == "own"}
    assert mine
    assert all(found[meter, "solo", *rest] == mine[meter, "own", *rest] for meter, _, *rest in mine)


def test_a_second_credit_of_the_same_values_asks_no_model(
    session: hopscope.Session, run: hopscope.MeasuredRun
) -> None:
    found = session.credit(run, rules=["solo"], meters=["seper"])
    assert found.appraisal is not None
    assert found.appraisal.usage.calls == 0
    solo = {row.step: row.value for row in found if row.rule == "solo"}
    assert solo == {r.step: r.value for r in run.credits if key(r)[:2] == ("seper", "solo")}


def test_interactions_have_intervals_and_a_frame(run: hopscope.MeasuredRun) -> None:
    """Of the two hops that the answer needs."""
    found = run.interactions()
    hops = [row for row in found if row.meter == "seper"]
    assert hops
    for row in hops:
        assert row.value is not None
        assert row.low is not None
        assert row.high is not None
        assert row.low <= row.value <= row.high
        assert row.step is None
    frame = found.to_frame()
    assert list(frame["value"].dropna()) == [r.value for r in found if r.value is not None]
    assert "interaction" in found._repr_html_()


def test_without_a_step_is_the_full_value_less_its_leave_one_out(
    run: hopscope.MeasuredRun,
) -> None:
    lost = {r.step: r.value for r in run.credits if key(r)[:2] == ("seper", "leave_one_out")}
    step = max(lost, key=lambda each: lost[each] or 0)
    assert step is not None
    [told] = [row for row in run.without(step) if row.meter == "seper"]
    assert told.without == (str(step),)
    assert told.difference == pytest.approx(-(lost[step] or 0), abs=1e-12)
    assert told.value == pytest.approx((told.full or 0) + (told.difference or 0), abs=1e-12)
    assert told.difference_low is not None


def test_a_run_without_values_says_how_to_have_them(run: hopscope.MeasuredRun) -> None:
    bare = hopscope.MeasuredRun(run.record)
    with pytest.raises(UsageError, match=r"hopscope credit .* --again"):
        bare.interactions()


def test_players_and_meters_that_are_none_are_refused(
    session: hopscope.Session, run: hopscope.MeasuredRun
) -> None:
    """Interactions over nothing had no rows, and no meter stood for the default ones."""
    nope: Any = "nope"
    for ask in (run.interactions, lambda over: run.share("solo", over=over)):
        with pytest.raises(UsageError, match="over='nope': choose from steps, passages"):
            ask(nope)
    with pytest.raises(UsageError, match="meters: name at least one"):
        session.credit(run, meters=[])
