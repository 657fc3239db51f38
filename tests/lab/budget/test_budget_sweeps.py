"""All policies on a few paths: learned ones decide about questions that they have not seen."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from hopscope.lab.budget import fit, sweeps
from hopscope.lab.budget.fit import Fitting
from hopscope.lab.budget.frontier import cells, compare, summary
from hopscope.lab.budget.paths import Path, Stop, simulate
from hopscope.lab.budget.plot import draw
from hopscope.lab.budget.promises.following import follow
from hopscope.lab.budget.stored import Walked
from hopscope.runtime.ports import Moment
from hopscope.runtime.types import Question
from hopscope.tracing.policies.value import ValuePolicy
from hopscope.tracing.signals.gathering import signals
from tests.probes import Speaker

pytest.importorskip("sklearn")

QUICK = Fitting(trees=30, leaf=5, prices=1)


def reader() -> Speaker:
    return Speaker(lambda request: f"town {len(request.prompt.shown)}")


def walk(number: int) -> Walked:
    """One retrieval, which half of the questions need."""
    asked = Question(text=f"Where is town {number % 2} of {number}?")
    at = (Moment(asked),)
    stops = (Stop(utility=float(number % 2), tokens=10), Stop(utility=1.0, tokens=110))
    known = tuple(signals(moment, reader()) for moment in at)
    return Walked(
        Path(
            question=asked, stops=stops, known=known, asked=({"free": 0, "draft": 7, "change": 7},)
        ),
        at,
    )


WALKS = [walk(i) for i in range(64)]


@pytest.fixture(scope="module")
def swept() -> sweeps.Swept:
    return sweeps.sweep(WALKS, reader(), fitting=QUICK)


def test_every_policy_is_tried_or_told_why_not(swept: sweeps.Swept) -> None:
    tried = {each.policy for each in swept.policies}
    assert tried == {*sweeps.SETTINGS, "tasr", "classifier", "value"} - set(swept.missing)
    assert "gives no entropies" in swept.missing["entropy"]
    for each in swept.policies:
        assert each.costs.shape == each.utilities.shape == (len(each.settings), len(WALKS))


def test_the_ends_and_the_oracle_are_what_they_are_called(swept: sweeps.Swept) -> None:
    assert (swept.never.costs.mean(), swept.never.utilities.mean()) == (10, 0.5)
    assert (swept.native.costs.mean(), swept.native.utilities.mean()) == (110, 1)
    assert (swept.oracle.stops.mean(), swept.oracle.utilities.mean()) == (0.5, 1)


def test_deciding_is_paid_for(swept: sweeps.Swept) -> None:
    """A fixed number asks nothing; a gate asks for a draft before it stops at once."""
    costs = {each.policy: each.costs for each in swept.policies}
    assert costs["fixed"][0].mean() == 10
    assert (costs["margin"] > 10).all()


def test_the_classifier_learns_from_the_other_half(swept: sweeps.Swept) -> None:
    """The word `0` or `1` of the question tells all."""
    [found] = [each for each in swept.policies if each.policy == "classifier"]
    assert found.utilities.mean() == 1
    assert found.stops.mean() == 0.5


def test_questions_to_learn_from_can_be_others() -> None:
    paths = [each.path for each in WALKS]
    found = sweeps.sweep(WALKS[:4], reader(), fitting=QUICK, train=paths)
    [classified] = [each for each in found.policies if each.policy == "classifier"]
    assert classified.utilities.tolist() == [[1, 1, 1, 1]]


def test_frontiers_are_printed_and_drawn(swept: sweeps.Swept) -> None:
    found = compare(
        swept.policies, never=swept.never, native=swept.native, reference="value", resamples=100
    )
    assert len(cells(found, unit="tokens")) == 1 + len(swept.policies)
    assert summary(found, unit="tokens") == "64 questions, tokens from 10 (never) to 110 (native)"
    drawn = draw(found, unit="tokens", utility="correctness")
    assert drawn.startswith("<svg")
    assert drawn.count("<polyline") == len(swept.policies)
    assert "nan" not in drawn


def test_too_few_questions_to_learn_from_cost_the_learned_policy_only() -> None:
    found = sweeps.sweep(WALKS[:8], reader(), fitting=QUICK)
    assert "too few to learn from" in found.missing["value"]
    assert "margin" in {each.policy for each in found.policies}


def test_a_mixture_is_followed_as_its_policy_decides() -> None:
    """By real signals of a reader, question by question."""
    paths = [each.path for each in WALKS]
    outcomes = fit.try_prices(paths, replace(QUICK, prices=2))
    most = fit.choose(outcomes, inf).tokens
    chosen = fit.choose(outcomes, (min(each.tokens for each in outcomes) + most) / 2)
    assert 0 < chosen.share < 1
    file = fit.mixed_file(chosen, utility="correctness")
    followed = follow(file, paths)
    policy = ValuePolicy(file, "x")
    done = [simulate(policy, each.path, each.moments, reader()) for each in WALKS]
    assert followed.stops.tolist() == [each.stop for each in done]
    apart = [follow(fit.value_file(each, utility=""), paths).stops for each in chosen[:2]]
    taken = [file.drawn(path.question.text).price == chosen.dear.price for path in paths]
    assert followed.stops.tolist() == np.where(taken, apart[1], apart[0]).tolist()


def test_a_question_of_several_runs_is_in_one_half() -> None:
    """Else what decides about it has learned from it."""
    for seed in range(5):
        half = sweeps._halves([each.path for each in WALKS] * 3, seed).reshape(3, -1)
        assert (half == half[0]).all()
        assert half[0].sum() == len(WALKS) / 2
