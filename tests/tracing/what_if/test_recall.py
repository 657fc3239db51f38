"""Games played again from stored values: equal credits, no model, and honest gaps."""

from collections.abc import Sequence

import pytest

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Credit, GameValues, Provenance, Run
from hopscope.tracing.appraisal import share
from hopscope.tracing.credit import leave_one_out, shapley, solo, trajectory
from hopscope.tracing.games.coalitions import Coalitions, EvidenceValues
from hopscope.tracing.games.frozen import over_passages, over_steps
from hopscope.tracing.games.recorded import MOST, record
from hopscope.tracing.games.rule import CreditRule
from hopscope.tracing.what_if.recall import Recall
from hopscope.tracing.what_if.without import parts, without
from tests.fakes import FunctionMeter, passage, run_of

PROVENANCE = Provenance(reader="r", settings={"counterfactual": "empty", "mode": "frozen"})
RULES = [trajectory.build(), leave_one_out.build(), shapley.build(), solo.build()]


def worth(keys: tuple[str, ...]) -> float:
    """Neither additive nor symmetric."""
    return len({*keys}) ** 0.5 / 7 + 0.3 * ({*"ac"} <= {*keys})


def measured(
    run: Run, rules: Sequence[CreditRule] = RULES
) -> tuple[list[Credit], list[GameValues]]:
    inside = [over_passages(run, step.index) for step in run.steps]
    games = [over_steps(run), *(game for game in inside if game is not None)]
    found = share(run, [FunctionMeter(worth)], rules, PROVENANCE, games=games)
    return found.credits, found.games


def test_credits_of_steps_and_passages_come_back_equal() -> None:
    run = run_of("ab", "c", "", "de")
    credits, games = measured(run)
    recall = Recall(run, PROVENANCE, games)
    assert [*recall.share(RULES, "steps"), *recall.share(RULES, "passages")] == credits


def test_an_error_names_some_passages_each_on_its_line() -> None:
    """It listed all, and a title with a line break forged lines of the message."""
    run = run_of("ab", "".join(map(chr, range(200, 260))))
    with pytest.raises(UsageError, match=r"p:a \(.*, …$") as refused:
        parts(run, ["p:none"])
    assert len(str(refused.value)) < 400
    forging = passage("a").model_copy(update={"title": "T\n\u202eU" * 40})
    step = run.steps[0].model_copy(update={"evidence": (forging,)})
    with pytest.raises(UsageError) as refused:
        parts(run.model_copy(update={"steps": (step,)}), ["p:none\n"])
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 250


def test_another_rule_needs_no_new_value() -> None:
    run = run_of("ab", "c", "de")
    _, games = measured(run, [shapley.build()])
    found = Recall(run, PROVENANCE, games).share([solo.build()], "steps")
    live, _ = measured(run, [solo.build()])
    assert found == [credit for credit in live if credit.passage is None and credit.step in
                     (None, 0, 1, 2) and credit.rule in ("solo", "level", "total")]  # fmt: skip


def test_a_step_with_one_passage_is_shared_by_the_values_of_the_steps() -> None:
    """The same evidence, whichever game measured it."""
    run = run_of("a", "b", "c")
    found = share(run, [FunctionMeter(worth)], RULES, PROVENANCE)
    shares = Recall(run, PROVENANCE, found.games).share([shapley.build()], "passages")
    steps = {c.step: c.measurement.value for c in found.credits if c.rule == "leave_one_out"}
    assert {c.step: c.measurement.value for c in shares if c.passage} == steps


def test_what_was_not_measured_is_said_with_the_command() -> None:
    run = run_of("a", "b", "c")
    found = share(run, [FunctionMeter(worth)], [trajectory.build()], PROVENANCE)
    shares = Recall(run, PROVENANCE, found.games).share([solo.build()], "steps")
    told = {c.step: c.measurement for c in shares if c.rule == "solo"}
    assert told[0].value == pytest.approx(worth(("a",)))
    assert told[1].value is None
    command = f"`hopscope credit {run.id[:12]} --rule shapley --meter function`"
    assert command in (told[1].reason or "")


def test_values_of_other_settings_are_left_out_and_options_of_rules_are_none() -> None:
    run = run_of("a", "b")
    games = share(run, [FunctionMeter(worth)], RULES, PROVENANCE).games

    def meters(**changes: object) -> tuple[str, ...]:
        settings = {**PROVENANCE.settings, **changes}
        other = PROVENANCE.model_copy(update={"settings": settings})
        return Recall(run, other, games).meters

    assert meters(samples=3) == ()
    assert meters(**{"shapley.permutations": 8}) == ("function",)


def test_long_games_are_stored_up_to_the_bound_and_say_so() -> None:
    """The coalitions of the simple rules are among those stored; so those rules stay exact."""
    run = run_of(*"abcdefghijklmnopqrst")
    rule = shapley.build(permutations=256)
    meter = FunctionMeter(worth)
    live = share(run, [meter], [*RULES[:2], rule, RULES[3]], PROVENANCE)
    [game] = live.games
    assert game.measured > len(game.values) == MOST
    again = Recall(run, PROVENANCE, [game]).share([*RULES[:2], rule, RULES[3]], "steps")
    simple = [c for c in live.credits if c.rule != "shapley"]
    assert [c for c in again if c.rule != "shapley"] == simple
    for credit in again:
        if credit.rule == "shapley" and credit.measurement.value is None:
            assert "of 4," in (credit.measurement.reason or "")
            assert "2,048 are stored" in (credit.measurement.reason or "")
            break
    else:
        pytest.fail("no sampled credit told of the bound")


def test_the_bound_can_be_smaller() -> None:
    run = run_of("a", "b", "c", "d")
    coalitions = Coalitions(over_steps(run), EvidenceValues(run.question, FunctionMeter(worth)))
    shapley.build().share(coalitions)
    kept = record(coalitions, run.id, PROVENANCE, most=11)
    assert (kept.measured, len(kept.values)) == (16, 11)
    assert {len(value.members) for value in kept.values} == {0, 1, 2, 3, 4}


def test_without_tells_the_value_and_the_difference() -> None:
    run = run_of("ab", "c", "d")
    _, games = measured(run)
    recall = Recall(run, PROVENANCE, games)
    [found] = without(recall, parts(run, [1]))
    assert found.value.value == worth(("a", "b", "d"))
    assert found.difference.value == pytest.approx(worth((*"abd",)) - worth((*"abcd",)))
    [passage] = without(recall, parts(run, ["p:a"]))
    assert passage.value.value == worth((*"bcd",))
    [mixed] = without(recall, parts(run, ["p:a", 1]))
    assert (mixed.value.value, mixed.difference.value) == (None, None)
    options = "--without 1 --without p:a --meter function"
    told = f"`hopscope credit {run.id[:12]} {options}` with the reader r"
    assert told in (mixed.value.reason or "")


def test_all_steps_but_one_by_passages_are_the_same_evidence() -> None:
    run = run_of("ab", "c")
    _, games = measured(run)
    recall = Recall(run, PROVENANCE, games)
    assert without(recall, parts(run, ["p:a", "p:b"])) == without(recall, parts(run, [0]))


@pytest.mark.parametrize("name", ["9", "x", "p:z", "-1", ""])
def test_parts_that_are_not_there_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="names no"):
        parts(run_of("a", "b"), [name])
