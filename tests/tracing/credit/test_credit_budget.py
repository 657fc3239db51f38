"""Credit within a budget of calls: what it buys, what it draws, and whether its intervals hold."""

import random
from collections.abc import Sequence

import pytest

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Credit, Generation, GenerationRequest, Provenance, Run
from hopscope.tracing import credit_budget
from hopscope.tracing.appraisal import share
from hopscope.tracing.credit import leave_one_out, shapley, trajectory
from hopscope.tracing.credit.shapley import Shapley
from hopscope.tracing.entailments import lexical
from hopscope.tracing.games.coalitions import Coalitions, EvidenceValues
from hopscope.tracing.games.frozen import over_steps
from hopscope.tracing.games.rule import CreditRule
from hopscope.tracing.meters import semantic_entropy, seper
from tests.fakes import FunctionMeter, run_of

RULES = (leave_one_out.build(), trajectory.build(), shapley.build())


def chance(keys: Sequence[str]) -> float:
    """The probability of a right reply on these passages: "1" and "3" need each other."""
    both = {"1", "3"} <= set(keys)
    return 0.1 + 0.7 * both + sum(0.01 for key in keys if key not in "13")


class DrawingReader:
    """Right or wrong replies drawn by the passages of the prompt, the same for the same seed."""

    name = "drawing"

    def __init__(self) -> None:
        self.drawn = 0
        self.contexts: set[tuple[str, ...]] = set()

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        return self.more(requests, first=0)

    def more(self, requests: Sequence[GenerationRequest], *, first: int) -> list[list[Generation]]:
        return [
            [self._reply(request, i) for i in range(first, first + request.n)]
            for request in requests
        ]

    def _reply(self, request: GenerationRequest, place: int) -> Generation:
        shown = request.prompt.shown
        self.drawn += 1
        self.contexts.add(shown)
        draw = random.Random(f"{shown} {request.seed} {place}").random()
        return Generation(text="Rome" if draw < chance(shown) else "Oslo", finish_reason="stop")

    def score(self, requests: object) -> list[object]:
        raise AssertionError("not asked to score")


def asked(players: int = 4) -> Run:
    run = run_of(*(str(t) for t in range(1, players + 1)))
    question = run.question.model_copy(update={"answers": ("Rome",)})
    return run.model_copy(update={"question": question})


def credits(
    run: Run,
    calls: int | None,
    *,
    seed: int = 0,
    rules: Sequence[CreditRule] = RULES,
    samples: int = 10,
) -> tuple[list[Credit], DrawingReader]:
    reader = DrawingReader()
    meter = seper.build(reader, lexical.build(), weight="uniform", samples=samples, seed=seed)
    provenance = Provenance(reader=reader.name, seed=seed)
    return share(run, [meter], rules, provenance, calls=calls).credits, reader


def by_rule(found: Sequence[Credit], rule: str) -> list[Credit]:
    return [credit for credit in found if credit.rule == rule and credit.step is not None]


@pytest.mark.parametrize("calls", [16, 17, 40, 100, 160])
def test_the_budget_is_spent_to_the_last_call(calls: int) -> None:
    found, reader = credits(asked(), calls)
    assert reader.drawn == calls
    shares = [credit.measurement for credit in by_rule(found, "shapley")]
    total = next(c for c in found if c.rule == "total").measurement
    assert sum(each.value or 0.0 for each in shares) == pytest.approx(total.value, abs=1e-12)
    assert all(each.low is not None and each.low <= (each.value or 0.0) for each in shares)


def test_more_calls_than_the_credit_needs_give_the_credit_without_a_budget() -> None:
    rich, reader = credits(asked(), 1000)
    free, _ = credits(asked(), None)
    assert reader.drawn == 160
    values = [[c.measurement.value for c in by_rule(f, "shapley")] for f in (rich, free)]
    assert values[0] == pytest.approx(values[1], abs=1e-12)
    # The interval holds at every number of replies together, so it is wider.
    low = [[c.measurement.low or 0.0 for c in by_rule(f, "shapley")] for f in (rich, free)]
    assert all(own <= other for own, other in zip(*low, strict=True))


def test_leave_one_out_comes_first_and_what_is_missing_tells_its_price() -> None:
    found, reader = credits(asked(), 6)
    assert reader.drawn == 6  # none, all, and all but each of four
    assert all(c.measurement.value is not None for c in by_rule(found, "leave_one_out"))
    for credit in by_rule(found, "shapley"):
        assert credit.measurement.value is None
        assert "shapley needs" in (credit.measurement.reason or "")
        assert "the credit budget has 6" in (credit.measurement.reason or "")
    assert len(by_rule(found, "shapley")) == 4


def test_nothing_is_drawn_that_the_budget_does_not_hold() -> None:
    found, reader = credits(asked(), 1)
    assert reader.drawn == 0
    assert {c.measurement.value for c in found} == {None}
    assert all("budget" in (c.measurement.reason or "") for c in found)


def test_the_rest_goes_where_the_intervals_are_widest_and_count_most() -> None:
    run = asked()
    values = EvidenceValues(run.question, FunctionMeter(lambda _: 0.0))
    game = Coalitions(over_steps(run), values)
    plan = credit_budget.plan([game], [[shapley.build()]], 100, credit_budget.Replies(1, 10))
    weights = credit_budget.importance([game], plan.rules, plan.evidences)
    place = {key: i for i, key in enumerate(plan.evidences)}
    nothing, pair = game.key(frozenset()), game.key(frozenset({0, 1}))
    # Each of four shares has 1/4 of the value of nothing; a pair has 1/12 in each share.
    # The total has all of it.
    assert weights[place[nothing]] == pytest.approx(4 / 16 + 1)
    assert weights[place[pair]] == pytest.approx(4 / 144)


def test_few_calls_for_many_steps_take_orders_with_their_rotations() -> None:
    run = asked(10)
    found, reader = credits(run, 260, rules=(shapley.build(),))
    shares = by_rule(found, "shapley")
    assert reader.drawn == 260
    assert len(reader.contexts) <= 260
    assert all("rotations" in (c.measurement.estimator or "") for c in shares)
    total = next(c for c in found if c.rule == "total").measurement.value
    assert sum(c.measurement.value or 0.0 for c in shares) == pytest.approx(total, abs=1e-12)
    assert all(c.measurement.low is not None for c in shares)


def test_rotations_are_stratified_by_size() -> None:
    rule = Shapley(20, 3, "rotations", 0)
    groups = rule.draws(range(5))
    assert len(groups) == 4
    for group in groups:
        assert sum(weight for c, weight in group if len(c) == 2) == pytest.approx(1)
        for size in range(1, 5):  # each player is as often in a coalition of any size
            inside = [sum(p in c for c, _ in group if len(c) == size) for p in range(5)]
            assert set(inside) == {size}


def test_intervals_cover_the_exact_shares_at_a_quarter_of_the_calls() -> None:
    """Four players: 40 of the 160 calls of exact shares with ten samples."""
    run = asked()
    values = EvidenceValues(run.question, FunctionMeter(chance))
    exact = [m.value or 0.0 for m in shapley.build().share(Coalitions(over_steps(run), values))]
    inside, errors = 0, []
    seeds = 25
    for seed in range(seeds):
        found, _ = credits(run, 40, seed=seed, rules=(leave_one_out.build(), shapley.build()))
        for credit, truth in zip(by_rule(found, "shapley"), exact, strict=True):
            measured = credit.measurement
            assert measured.value is not None
            inside += (measured.low or 0.0) <= truth <= (measured.high or 0.0)
            errors.append(abs(measured.value - truth))
    assert inside >= 0.95 * 4 * seeds
    assert sum(errors) / len(errors) < 0.1


def test_options_that_leave_no_choice_are_refused() -> None:
    run = asked()
    for options in ({"width": 0.3}, {"temperature": 0.0}):
        meter = seper.build(DrawingReader(), lexical.build(), weight="uniform", **options)
        with pytest.raises(UsageError, match="credit budget"):
            share(run, [meter], RULES, Provenance(reader="drawing", seed=0), calls=40)


def test_evidence_that_is_shown_alike_shares_its_replies() -> None:
    """With few words of the context several evidence sets are one."""
    reader = DrawingReader()
    meter = seper.build(reader, lexical.build(), weight="uniform", context_words=4)
    provenance = Provenance(reader=reader.name, seed=0)
    found = share(asked(), [meter], RULES, provenance, calls=60).credits
    assert 0 < reader.drawn <= 60
    assert any(credit.measurement.value is not None for credit in found)


def test_every_evidence_set_that_is_reported_gets_all_replies_of_a_rich_budget() -> None:
    found, reader = credits(asked(), 1000, rules=(leave_one_out.build(),))
    assert reader.drawn == 60
    assert {c.measurement.n for c in found if c.measurement.n} == {10}


@pytest.mark.parametrize("permutations", [4, 8, 9])
def test_rotations_of_few_orders_have_a_standard_error(permutations: int) -> None:
    run = asked(9)
    values = EvidenceValues(run.question, FunctionMeter(chance))
    rule = shapley.build(permutations=permutations, sampling="rotations")
    assert all(m.low is not None for m in rule.share(Coalitions(over_steps(run), values)))


@pytest.mark.parametrize("calls", [19, 20, 59, 60, 200])
def test_a_meter_that_always_draws_all_samples_keeps_to_the_budget(calls: int) -> None:
    """Ten replies to each of six evidence sets are 60 calls."""
    reader = DrawingReader()
    meter = semantic_entropy.build(reader, lexical.build(), weight="uniform", samples=10, seed=0)
    provenance = Provenance(reader=reader.name, seed=0)
    found = share(asked(), [meter], [leave_one_out.build()], provenance, calls=calls).credits
    assert reader.drawn == (0 if calls < 20 else 20 if calls < 60 else 60)
    values = [credit.measurement for credit in by_rule(found, "leave_one_out")]
    if calls < 60:
        assert all("needs 60 calls" in (each.reason or "") for each in values)
    else:
        assert all(each.value is not None for each in values)
