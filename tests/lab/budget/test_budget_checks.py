"""Promises of routers, and whether promises hold on fresh questions."""

import numpy as np
import pytest

from hopscope.lab.budget.outcomes import OutcomeRow, Outcomes
from hopscope.lab.budget.paths import Path, Stop
from hopscope.lab.budget.promises import checking, routers
from hopscope.lab.budget.promises.guarantee import split
from hopscope.lab.budget.promises.report import checked
from hopscope.lab.budget.routing.fitting import Fitting
from hopscope.lab.budget.routing.judging import judge
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Question
from hopscope.tracing.learned.promise import Promise, Risk, RiskBound, SignalSample
from hopscope.tracing.learned.route_file import Asked, RouteFile
from hopscope.tracing.learned.value_file import ValueFile
from hopscope.tracing.statistics import betting
from hopscope.tracing.statistics.drift import sketch

QUICK = Fitting(trees=8, leaf=3, prices=12)
ARMS = ("none", "one", "ircot")
HEDGE = "It is not known, there is no information about that"


def row(number: int, *, misled: float = 0.0) -> OutcomeRow:
    """A draft that hedges needs IRCoT; of the others so many are misled."""
    hedges = number % 2 == 0
    wrong = hedges or number % 100 < 100 * misled
    return OutcomeRow(
        question=f"Who founded the town number {number * 7919 % 9000 + 1000}?",
        scores={"none": float(not wrong), "one": float(not wrong), "ircot": 1.0},
        costs={"steps": {"none": 0.0, "one": 1.0, "ircot": 3.0}},
        draft=HEDGE if hedges else "Ina Dorn",
    )


def rows(first: int, count: int, *, misled: float = 0.0) -> Outcomes:
    made = tuple(row(first + n, misled=misled) for n in range(count))
    return Outcomes(rows=made, arms=ARMS, unit="steps")


@pytest.fixture(scope="module")
def router() -> RouteFile:
    pytest.importorskip("sklearn")
    return routers.learn(rows(0, 600), [Risk.parse("loss<=.05")], fitting=QUICK, source="here")


def test_a_router_promises_what_it_saves(router: RouteFile) -> None:
    promise = router.promise
    assert promise is not None
    assert promise.kept
    assert (promise.unit, promise.cost_always, promise.threshold) == ("steps", 3.0, router.price)
    assert promise.cost < 2
    assert promise.risks[0].upper is not None
    assert promise.risks[0].upper <= 0.05
    assert "predicted ircot" in {each.name for each in promise.signals}
    assert RouteFile.model_validate_json(router.model_dump_json()) == router


def test_a_question_of_two_sets_is_not_on_both_sides_of_a_promise() -> None:
    """What was learned from it in one set would be tested on it in the other."""
    once = rows(0, 60)
    elsewhere = tuple(row.model_copy(update={"set": "b"}) for row in once.rows)
    twice = once.model_copy(update={"rows": once.rows + elsewhere})
    halves = routers._halves(twice, 0)
    learned, tested = ({twice.rows[place].question for place in half} for half in halves)
    assert not learned & tested
    assert sorted([*halves.learning, *halves.calibration]) == [*range(120)]
    assert routers._halves(once, 0) == split(60, 0)


def test_where_no_price_keeps_the_promise_the_router_takes_the_dearest_arm() -> None:
    pytest.importorskip("sklearn")
    file = routers.learn(rows(0, 80), [Risk.parse("loss<=.001")], fitting=QUICK)
    assert file.always
    assert file.promise is not None
    assert not file.promise.kept
    assert file.route(Asked("Who founded it?", draft="Ina Dorn")).arm == 2
    assert judge(rows(900, 40), file, resamples=100).pooled.shipped.cost == pytest.approx(3)
    with pytest.raises(UsageError, match="promises nothing"):
        checking.check_outcomes(file, rows(900, 40))


def test_with_rows_to_adapt_to_the_promise_is_for_questions_like_them() -> None:
    """Confident drafts are right in the others, and wrong in those to come: a promise by the others
    would be broken."""
    pytest.importorskip("sklearn")
    risk, there = Risk.parse("loss<=.05"), rows(600, 200, misled=1.0)
    file = routers.learn(rows(0, 600), [risk], adapt=there, fitting=QUICK)
    assert file.promise is not None
    assert (file.promise.calibrated, file.learned["adapted_to"]) == (100, 100)
    assert judge(there, file, resamples=100).pooled.shipped.accuracy == pytest.approx(1)
    alike = routers.learn(rows(0, 300), [risk], adapt=rows(300, 300), fitting=QUICK).promise
    assert alike is not None
    assert alike.kept
    assert alike.calibrated == 150
    assert alike.cost < alike.cost_always


def test_no_question_of_the_calibration_is_learned_from() -> None:
    """Those of the others that are among the rows to adapt to do not count."""
    pytest.importorskip("sklearn")
    file = routers.learn(
        rows(0, 400), [Risk.parse("loss<=.1")], adapt=rows(300, 100), fitting=QUICK
    )
    assert (file.learned["questions"], file.learned["adapted_to"]) == (300, 50)
    with pytest.raises(UsageError, match=r"^19 questions to adapt to are too few for a promise"):
        routers.learn(rows(0, 80), [Risk.parse("loss<=.1")], adapt=rows(80, 19), fitting=QUICK)


def test_only_what_all_rows_tell_can_have_a_limit() -> None:
    with pytest.raises(UsageError, match="tokens were not measured; there are loss, steps"):
        routers.learn(rows(0, 80), [Risk.parse("tokens<=9")], fitting=QUICK)


def test_a_promise_that_holds_is_kept_and_no_signal_moves(router: RouteFile) -> None:
    found = checking.check_outcomes(router, rows(1001, 400), source="elsewhere")
    assert (found.verdict, found.fresh, found.moved) == ("kept", True, ())
    assert found.cost < found.cost_always == 3
    assert found.risks[0].high <= 0.05
    assert next(checked(found)) == "kept: loss<=0.05@0.95 on 400 questions"
    assert not checking.check_outcomes(router, rows(0, 40), source="here").fresh


def test_a_question_told_twice_counts_once(router: RouteFile) -> None:
    """Else a file that is given ten times would be ten times the evidence."""
    few = rows(1000, 20)
    tenfold = few.model_copy(update={"rows": few.rows * 10})
    found = checking.check_outcomes(router, tenfold)
    assert found == checking.check_outcomes(router, few)
    assert (found.questions, found.verdict) == (20, "not yet known")
    with pytest.raises(UsageError, match="10 rows are too few"):
        routers.learn(tenfold, [Risk.parse("loss<=.05")], fitting=QUICK)


def test_questions_that_it_has_learned_from_are_not_fresh_under_any_name(
    router: RouteFile,
) -> None:
    """An experiment or a file can be renamed, and another one made under its name."""
    for first, known in ((0, 40), (570, 30), (1000, 0)):
        for source in ("here", "elsewhere"):
            found = checking.check_outcomes(router, rows(first, 40), source=source)
            assert (found.fresh, found.known) == (known == 0, known)


def test_what_the_adapted_router_has_seen_of_both_is_known() -> None:
    pytest.importorskip("sklearn")
    risk, there = Risk.parse("loss<=.05"), rows(600, 200)
    file = routers.learn(rows(0, 300), [risk], adapt=there, fitting=QUICK)
    for first, known in ((280, 20), (590, 30), (790, 10), (400, 0)):
        assert checking.check_outcomes(file, rows(first, 40)).known == known


def test_an_older_router_knows_the_names_of_its_files_only(router: RouteFile) -> None:
    assert router.promise is not None
    promise = router.promise.model_copy(update={"seen": ()})
    learned = router.model_copy(
        update={"learned": {"source": "a.jsonl, b.jsonl"}, "promise": promise}
    )
    assert checking.check_outcomes(learned, rows(0, 40), source="c.jsonl").known is None
    assert not checking.check_outcomes(learned, rows(1000, 40), source="b.jsonl").fresh
    assert checking.check_outcomes(learned, rows(1000, 40), source="c.jsonl").fresh


def test_few_questions_do_not_tell(router: RouteFile) -> None:
    found = checking.check_outcomes(router, rows(1001, 30))
    assert found.verdict == "not yet known"
    needed = found.risks[0].needed
    assert needed is not None
    assert checking.check_outcomes(router, rows(1001, needed + 2)).verdict == "kept"
    assert f"about {needed} in all" in "\n".join(checked(found))


def test_a_promise_is_broken_under_a_shift_and_the_signals_tell(router: RouteFile) -> None:
    """All drafts are confident, and half of them are wrong."""
    made = tuple(row(2 * n + 1, misled=0.5) for n in range(300))
    found = checking.check_outcomes(router, Outcomes(rows=made, arms=ARMS, unit="steps"))
    assert found.verdict == "broken"
    assert found.risks[0].low > 0.05
    assert found.moved
    told = "\n".join(checked(found))
    assert "learn another" in told
    assert f"drift: {len(found.moved)} of {found.signals} signals differ" in told


def value_file(*limits: str, always: bool | None = None) -> ValueFile:
    """It stops at once, by its promise; without heads it is only followed where it is `always`."""
    bounds = tuple(RiskBound(risk=Risk.parse(each), found=0.0, upper=0.0) for each in limits)
    samples = (SignalSample(name="nesting", retrievals=0, sketch=sketch(range(100))),)
    promise = Promise(
        kept=True,
        risks=bounds,
        method="m",
        threshold=0.1,
        tried=1,
        calibrated=100,
        seed=0,
        cost=1.0,
        cost_always=2.0,
        signals=samples,
    )
    return ValueFile.model_construct(always=True, promise=promise, learned={"source": "e"})


def path(seconds: float, number: int) -> Path:
    stops = (Stop(utility=0, tokens=9, seconds=0), Stop(utility=1, tokens=99, seconds=seconds))
    return Path(question=Question(text=f"q{number}"), stops=stops, known=({},), asked=({},))


def quick(count: int) -> list[Path]:
    """All of one second."""
    return [path(1.0, number) for number in range(count)]


def test_runs_by_another_reader_are_checked_and_named() -> None:
    """They were refused, so that nobody could know whether a promise survives a new reader."""
    file = value_file("p90_seconds<=5").model_copy(update={"reader": "old@1"})
    own = checking.check_paths(file, quick(200), reader="old@1")
    assert own.readers is None
    found = checking.check_paths(file, quick(200), reader="new@2")
    assert (found.verdict, found.readers) == ("kept", ("old@1", "new@2"))
    told = "\n".join(checked(found))
    assert "these runs are by new@2, and the promise is for old@1" in told
    assert "these runs" not in "\n".join(checked(own))


def test_runs_with_other_prompts_are_checked_and_named() -> None:
    """A policy is learned from what a reader does with its prompts. Where they are not known, as in
    files of earlier editions, nothing is said."""
    file = value_file("p90_seconds<=5")
    assert checking.check_paths(file, quick(30), prompts=["default"]).prompts is None
    file = file.model_copy(update={"prompts": ("default",)})
    assert checking.check_paths(file, quick(30), prompts=["default"]).prompts is None
    found = checking.check_paths(file, quick(30), prompts=["/mine#ab12", "x\nkept: y"])
    told = "\n".join(checked(found))
    assert "  these runs are with the prompts /mine#ab12, x kept: y, and the promise" in told
    assert "is for the prompts default\n" in told


def test_a_router_knows_the_prompts_that_its_rows_name(router: RouteFile) -> None:
    assert router.prompts == ()
    named = [each.model_copy(update={"prompts": "mine#ab12"}) for each in rows(1001, 40).rows]
    fresh = Outcomes(rows=tuple(named), arms=ARMS, unit="steps")
    assert checking.check_outcomes(router, fresh).prompts is None
    router = router.model_copy(update={"prompts": ("default",)})
    found = checking.check_outcomes(router, fresh).prompts
    assert found == ("the prompts default", "the prompts mine#ab12")


def test_one_of_several_experiments_it_has_learned_from_is_not_fresh() -> None:
    file = value_file("p90_seconds<=5").model_copy(update={"learned": {"source": "a, b"}})
    assert not checking.check_paths(file, quick(30), source="b").fresh
    assert checking.check_paths(file, quick(30), source="c").fresh


def test_a_quantile_is_checked_by_the_share_above_it() -> None:
    slow = [path(9.0 if n % 5 == 0 else 1.0, n) for n in range(200)]
    found = checking.check_paths(value_file("p90_seconds<=5"), slow, source="e")
    [risk] = found.risks
    assert (risk.verdict, risk.found, risk.limit) == ("broken", 0.2, 0.1)
    assert risk.of == "share above 5 seconds"
    assert (found.fresh, found.signals) == (False, 0)
    both = checking.check_paths(value_file("p90_seconds<=5", "loss<=.05"), quick(200))
    assert [each.verdict for each in both.risks] == ["kept", "kept"]


def test_a_question_that_occurs_often_is_checked_once() -> None:
    """Else a promise would be kept or broken by copies."""
    file = value_file("p90_seconds<=5")
    found = checking.check_paths(file, quick(10) * 20)
    assert found == checking.check_paths(file, quick(10))
    assert (found.questions, found.verdict) == (10, "not yet known")


def test_looks_tell_when_wealth_suffices() -> None:
    values = np.random.default_rng(0).choice([0.0, 1.0, -1.0], p=[0.9, 0.05, 0.05], size=4000)
    size = betting.looks(values, 0.1)
    assert betting.wealth(values[: 2 * size], 0.1) > 20 > betting.wealth(values[: size // 2], 0.1)
    assert betting.looks([1.0] * 5, 0.1, most=99) == 99
