"""The choice of a threshold with a promise, and policies learned with one."""

from collections.abc import Sequence
from pathlib import Path as File

import numpy as np
import pytest

from hopscope.lab.budget.fit import Fitting
from hopscope.lab.budget.paths import Path, Stop
from hopscope.lab.budget.promises import choosing, guarantee
from hopscope.lab.budget.promises.choosing import RisksByThreshold
from hopscope.lab.budget.promises.following import follow
from hopscope.lab.budget.promises.report import told
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Moment
from hopscope.runtime.types import Question
from hopscope.tracing.learned.files import read
from hopscope.tracing.learned.promise import Risk, parse_all
from hopscope.tracing.learned.value_file import ValueFile
from hopscope.tracing.policies.value import ValuePolicy
from hopscope.tracing.signals.gathering import Stage
from tests.probes import Speaker

pytest.importorskip("sklearn")

LOSS = Risk.parse("loss<=.02@.95")
QUICK = Fitting(trees=15, leaf=5, prices=2)
BAGS = Fitting(trees=40, leaf=5, prices=2)
"""So many trees that one at least has not seen a question, of the fewer that teach here."""


def table(losses: np.ndarray, tokens: np.ndarray | None = None) -> RisksByThreshold:
    """Later thresholds are cheaper."""
    rows, questions = losses.shape
    spent = (
        tokens
        if tokens is not None
        else np.repeat([[500.0 - 100 * r] for r in range(rows)], questions, 1)
    )
    return RisksByThreshold(tuple(range(rows)), {"loss": losses, "tokens": spent}, spent)


def losses(*worse: float, questions: int = 600, seed: int = 0) -> np.ndarray:
    """One row for each share of questions that are lost; 3 % are won."""
    rng = np.random.default_rng(seed)
    return np.vstack(
        [rng.choice([1.0, -1.0, 0.0], p=[w, 0.03, 0.97 - w], size=questions) for w in worse]
    )


@pytest.mark.parametrize(
    ("text", "name", "measure", "quantile", "limit", "level"),
    [
        ("loss<=.02@.95", "loss", "loss", None, 0.02, 0.95),
        (" loss <= 0.1 ", "loss", "loss", None, 0.1, 0.95),
        ("tokens<=900@.9", "tokens", "tokens", None, 900, 0.9),
        ("steps<=1.5", "steps", "steps", None, 1.5, 0.95),
        ("p95_seconds<=3", "p95_seconds", "seconds", 0.95, 3, 0.95),
        ("p50_tokens<=3e2@.99", "p50_tokens", "tokens", 0.5, 300, 0.99),
        ("p90_steps<=2", "p90_steps", "steps", 0.9, 2, 0.95),
    ],
)
def test_limits_are_read(
    text: str, name: str, measure: str, quantile: float | None, limit: float, level: float
) -> None:
    risk = Risk.parse(text)
    assert (risk.name, risk.measure, risk.quantile) == (name, measure, quantile)
    assert (risk.limit, risk.level) == (limit, level)
    assert Risk.parse(str(risk)) == risk


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("loss<.02", "give loss<="),
        ("loss", "give loss<="),
        ("accuracy<=.02", "give loss<="),
        ("seconds<=3", "give loss<="),
        ("p100_seconds<=3", "give loss<="),
        ("loss<=two", "two is no number"),
        ("loss<=nan", "nan is no number"),
        ("loss<=0", "above 0 and below 1"),
        ("loss<=2", "above 0 and below 1"),
        ("tokens<=-4", "above 0"),
        ("loss<=.02@95", "the level must be"),
        ("loss<=.02@.3", "the level must be"),
        ("loss<=.02@", "give loss<="),
    ],
)
def test_what_is_no_limit_is_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Risk.parse(text)
    with pytest.raises(UsageError, match="two limits"):
        parse_all(["loss<=.02", "loss<=.03@.9"])


def test_the_cheapest_threshold_that_keeps_the_limit_is_chosen() -> None:
    found = table(losses(0.0, 0.0, 0.15))
    chosen = choosing.choose(found, [LOSS], (0, 1, 2), {})
    assert (chosen.place, chosen.kept) == (1, (0, 1))


def test_testing_stops_at_the_first_threshold_that_is_not_shown() -> None:
    """Going on would be as many tests as thresholds, each with its own chance of an error."""
    found = table(losses(0.0, 0.15, 0.0))
    assert choosing.choose(found, [LOSS], (0, 1, 2), {}).kept == (0,)
    assert choosing.choose(found, [LOSS], (2, 0, 1), {}).place == 2


def test_the_order_is_that_of_the_evidence_on_other_questions() -> None:
    """With a limit of the loss alone, those that seem to keep it are tested by price."""
    found = table(losses(0.0, 0.2, 0.15, 0.0))
    assert choosing.sequence(found, [LOSS], {}) == (0, 3, 2, 1)
    both = (LOSS, Risk.parse("tokens<=410"))
    assert choosing.sequence(found, both, {"tokens": 1000})[0] == 3


def test_the_promise_is_kept_as_often_as_it_says() -> None:
    """1,000 calibrations among thresholds that lose .00, .02 (its limit), .021 and .1."""
    broken = 0
    for seed in range(1000):
        found = table(losses(0.03, 0.05, 0.051, 0.13, questions=200, seed=seed))
        broken += (choosing.choose(found, [LOSS], (0, 1, 2, 3), {}).place or 0) >= 2
    assert broken / 1000 <= 0.05


def test_all_limits_must_be_kept() -> None:
    spent = np.array([[100.0] * 600, [900.0] * 600])
    found = table(losses(0.0, 0.0), spent)
    risks = (LOSS, Risk.parse("tokens<=150"))
    assert choosing.choose(found, risks, (0, 1), {"tokens": 2000}).kept == (0,)
    assert choosing.choose(found, risks, (1, 0), {"tokens": 2000}).place is None


def test_a_limit_of_a_quantile_is_tested_exactly() -> None:
    """No one of 59 above the limit: .95^59 = .0485; 58 are too few."""
    risk = Risk.parse("p95_tokens<=100")
    for questions, kept in ((59, True), (58, False)):
        found = table(np.zeros((1, questions)), np.full((1, questions), 100.0))
        assert (choosing.choose(found, [risk], (0,), {}).place == 0) is kept
        upper = choosing.bound(found.costs[0], risk, {}).upper
        assert upper == (100 if kept else None)
    few = table(np.zeros((1, 20)), np.full((1, 20), 100.0))
    assert choosing.needed(few, [risk], 0, {}) == pytest.approx(59, abs=3)


def test_the_bound_of_a_quantile_is_an_observed_value() -> None:
    values = np.random.default_rng(0).permutation(1000).astype(float)
    found = choosing.bound(values, Risk.parse("p95_tokens<=980"), {})
    assert found.found == pytest.approx(949, abs=1)
    assert found.upper == pytest.approx(961, abs=3), "binomial: 38 of 1,000 above is the .05 point"


def path(number: int, *, draft: int = 5) -> Path:
    """Right after `number % 4` retrievals; a signal tells so for nine of ten. Three retrievals by
    the workflow itself, each for 100 tokens and a second."""
    hops = number % 4
    told_hops = hops if number % 10 else 0
    known = tuple(
        {"draft_found": float(t >= told_hops), "retrievals": float(t), "nesting": float(told_hops)}
        for t in range(3)
    )
    stops = tuple(
        Stop(utility=float(t >= hops), tokens=50 + 100 * t, seconds=1.0 + t) for t in range(4)
    )
    asked: dict[Stage, int] = {"free": 0, "draft": draft, "change": 5}
    return Path(question=Question(text=f"q{number}"), stops=stops, known=known, asked=(asked,) * 3)


PATHS = [path(i) for i in range(600)]


def learned(*limits: str, paths: list[Path] = PATHS, others: Sequence[Path] = ()) -> ValueFile:
    return guarantee.learn(
        paths,
        [Risk.parse(limit) for limit in limits],
        others=others,
        workflow="ircot",
        reader="r@1",
        utility="correctness",
        fitting=BAGS if others else QUICK,
        source="e",
    )


@pytest.fixture(scope="module")
def kept() -> ValueFile:
    return learned("loss<=.1@.9", "p95_seconds<=4.5", "tokens<=340")


def test_a_policy_with_a_promise_costs_less_and_records_it(kept: ValueFile, tmp_path: File) -> None:
    promise = kept.promise
    assert promise is not None
    assert promise.kept
    assert promise.threshold == kept.price
    assert promise.cost < promise.cost_always == pytest.approx(350)
    assert (promise.calibrated, kept.learned["questions"]) == (300, 300)
    assert promise.seen == guarantee.marks(f"q{n}" for n in range(600)), "of both halves"
    loss, seconds, tokens = promise.risks
    assert loss.found < (loss.upper or 1) <= 0.1
    assert (seconds.upper or 9) <= 4.5
    assert (tokens.cap or 0) >= 700
    assert {(each.name, each.retrievals) for each in promise.signals} >= {("nesting", 0)}
    lines = list(told(promise))
    assert lines[0].startswith("promised: loss<=0.1@0.9 and p95_seconds<=4.5@0.95 and tokens<=340")
    file = tmp_path / "p.json"
    file.write_text(kept.model_dump_json(indent=1))
    assert read(ValueFile, file, workflow="ircot", reader="r@1") == kept


def test_the_same_seed_promises_the_same() -> None:
    assert learned("loss<=.1", paths=PATHS[:100]) == learned("loss<=.1", paths=PATHS[:100])


def test_where_no_price_keeps_the_promise_it_always_retrieves() -> None:
    found = learned("loss<=.001", paths=PATHS[:120])
    assert found.always
    assert found.promise is not None
    assert not found.promise.kept
    assert found.promise.cost == found.promise.cost_always
    first, second = told(found.promise)
    assert "always retrieves" in first
    assert "needed" in second or "would not help" in second
    policy = ValuePolicy(found, "x")
    decision = policy.decide(Moment(Question(text="Who?")), Speaker(lambda _: "nobody"))
    assert decision.retrieve
    assert "no price keeps the promise loss<=0.001@0.95" in decision.reason
    assert follow(found, PATHS).stops.tolist() == [3] * len(PATHS)


def test_a_promise_says_that_it_learns_from_one_half_of_the_runs() -> None:
    with pytest.raises(
        UsageError, match=r"^50 runs are too few for a promise.*one half, in which 30"
    ):
        learned("loss<=.1", paths=PATHS[:50])


def test_with_others_the_promise_is_by_half_of_the_paths_like_those_to_come() -> None:
    """50 teach and calibrate; alone they would be too few to learn from."""
    found = learned("loss<=.3@.9", paths=PATHS[:50], others=PATHS[50:200])
    assert found.promise is not None
    assert found.promise.calibrated == 25
    assert (found.learned["questions"], found.learned["adapted_to"]) == (150, 25)
    assert found.promise.kept
    assert not (learned("loss<=.02", paths=PATHS[:50], others=PATHS[50:200])).promise.kept
    with pytest.raises(UsageError, match=r"^19 questions to adapt to are too few for a promise"):
        learned("loss<=.1", paths=PATHS[:19], others=PATHS[50:200])


def test_seconds_that_were_not_measured_have_no_promise() -> None:
    bare = [
        each.model_copy(
            update={"stops": tuple(s.model_copy(update={"seconds": None}) for s in each.stops)}
        )
        for each in PATHS[:200]
    ]
    with pytest.raises(UsageError, match="seconds were not measured"):
        learned("p95_seconds<=3", paths=bare)


def test_following_is_what_the_policy_decides(kept: ValueFile) -> None:
    """The policy itself, with signals taken from the path in place of a reader."""
    some = PATHS[:40]
    followed = follow(kept, some)
    for each, stop in zip(some, followed.stops, strict=True):
        decided = 0
        while decided < each.retrievals:
            head = kept.head(decided)
            for staged in head.stages:
                known = head.inputs(each.known[decided], kept.signals)
                predicted = staged.predict(known)
                price = kept.price * predicted.cost
                if abs(predicted.gain - price) >= staged.doubt:
                    break
            if predicted.gain <= price:
                break
            decided += 1
        assert stop == decided
