"""The answers after each retrieval, in a report; or the reason why there are none."""

import pytest

from hopscope.runtime.types import Credit, GameValues, Question, Run
from hopscope.tracing.appraisal import Shares, share
from hopscope.tracing.credit import trajectory
from hopscope.tracing.games.frozen import over_passages, over_steps
from hopscope.tracing.games.recorded_answers import answers
from hopscope.tracing.reports.contexts import NO_GROUPS, NO_TOKENS
from hopscope.tracing.reports.records import ContextReport
from hopscope.tracing.reports.report import report
from tests.view import experiment

RUN = experiment.run(1, Question(text="Who?", answers=("Ada Wilby",)), "ircot")
NOT_MEASURED = f"the run was not measured: `hopscope credit {RUN.id[:12]}` does"


def measured(*meters: str) -> Shares:
    games = [over_steps(RUN), over_passages(RUN, 0)]
    played = [game for game in games if game]
    told = [experiment.named(name) for name in meters]
    return share(RUN, told, [trajectory.build()], experiment.SETTINGS, games=played)


def contexts(
    credits: list[Credit], games: list[GameValues], run: Run = RUN
) -> dict[int | None, ContextReport]:
    return {each.step: each for each in report(run, credits, games=games).contexts}


def test_each_retrieval_has_the_answers_of_all_evidence_up_to_it() -> None:
    found = measured("seper", "grogu")
    told = contexts(found.credits, found.games)
    assert list(told) == [None, 0, 1, 2]
    masses = [max(g.mass for g in each.groups or () if g.right) for each in told.values()]
    assert masses == [0.1, 0.3, 0.9, 0.9]  # the belief
    assert [[t.key for t in each.tokens or ()] for each in told.values()] == [[False, True]] * 4
    assert {each.tokens_reason or each.groups_reason for each in told.values()} == {None}


def test_values_of_an_older_version_say_how_answers_are_had() -> None:
    found = measured("seper", "grogu")
    bare = [
        game.model_copy(
            update={"values": tuple(v.model_copy(update={"answers": None}) for v in game.values)}
        )
        for game in found.games
    ]
    for games in (bare, []):
        first = contexts(found.credits, games)[0]
        assert (first.tokens, first.groups) == (None, None)
        for reason in (first.tokens_reason, first.groups_reason):
            assert f"`hopscope credit {RUN.id[:12]} --again`" in (reason or "")


@pytest.mark.parametrize(
    ("meters", "reasons"),
    [
        ((), (NOT_MEASURED, NOT_MEASURED)),
        (("seper",), (NO_TOKENS, None)),
        (("grogu",), (None, NO_GROUPS)),
    ],
)
def test_what_no_meter_measured_is_said(
    meters: tuple[str, ...], reasons: tuple[str | None, str | None]
) -> None:
    found = measured(*meters)
    told = contexts(found.credits, found.games)[0]
    assert (told.tokens_reason, told.groups_reason) == reasons


def test_answers_are_told_once_for_each_evidence() -> None:
    """Variants of a meter have the same replies, and games the same evidence."""
    found = measured("seper", "seper", "grogu")
    told = [v.evidence for game in found.games for v in game.values if v.answers]
    assert len(told) == 2 * len({*told})
    assert answers(found.games).keys() == {*told}
