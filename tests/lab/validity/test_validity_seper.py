"""SePer's table with a reader that errs exactly where the evidence is not whole, so that every
correlation is known beforehand."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from hopscope.lab.suites import repeated, rivals, worlds
from hopscope.lab.suites.entailment_models import matrix
from hopscope.lab.suites.figures import figures
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import KnownQuestion
from hopscope.lab.suites.rivals import RivalScores
from hopscope.lab.validity import seper
from hopscope.runtime.errors import MissingExtraError
from hopscope.runtime.ports import Probabilities, Statement
from hopscope.runtime.types import Generation, GenerationRequest, Measurement, Scored, ScoreRequest
from hopscope.tracing.answer_metrics import equivalence
from hopscope.tracing.entailments import judge, lexical
from hopscope.tracing.meters.seper import SePer
from hopscope.tracing.wrappers.cached import CachedReader
from tests.fakes import ScriptedReader, reply, scored

LIMIT = 5


class Knowing:
    """Answers right, and surely, when shown all gold; else it guesses."""

    name = "knowing"

    def __init__(self, items: Sequence[KnownQuestion]) -> None:
        self._items = {item.question.text: item for item in items}
        self.asked = 0

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        self.asked += len(requests)
        return [self._replies(request) for request in requests]

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        return [scored((0.0,), (self._likelihood(request),)) for request in requests]

    def _likelihood(self, request: ScoreRequest) -> float:
        text = request.prompt.messages[-1].content
        item = next(item for asked, item in self._items.items() if f"{asked}\n" in text)
        whole = {passage.key for passage in item.gold} <= set(request.prompt.shown)
        return -0.01 if whole and request.continuation == item.answer else -4.0

    def _replies(self, request: GenerationRequest) -> list[Generation]:
        text = request.prompt.messages[-1].content
        if "Second answer" in text:  # equal ones are not asked about
            return [reply("different")]
        item = next(item for asked, item in self._items.items() if f"{asked}\n" in text)
        whole = {passage.key for passage in item.gold} <= set(request.prompt.shown)
        if whole:
            return [reply(item.answer, (-0.01,)) for _ in range(request.n)]
        return [reply(f"Nobody {i}", (-2.0, -3.0)) for i in range(request.n)]


@pytest.fixture(scope="module", autouse=True)
def _no_encoder() -> Iterator[None]:
    """To load it takes longer than all the rest."""

    def missing() -> None:
        raise MissingExtraError("BERTScore", "minilm")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rivals, "_bertscore", missing)
        yield


@pytest.fixture(scope="module")
def inputs() -> SuiteInputs:
    drawn = worlds.make(ScriptedReader(), seed=3, limit=LIMIT)
    items = [item for hops in (1, 2, 3) for item in drawn.questions(hops)]
    return worlds.make(Knowing(items), seed=3, limit=LIMIT)


@pytest.fixture(scope="module")
def scores(inputs: SuiteInputs) -> RivalScores:
    return rivals.make(inputs)


@pytest.fixture(scope="module")
def found(inputs: SuiteInputs) -> dict[str, Measurement]:
    return figures(seper.build(inputs))


def test_where_the_reader_errs_only_without_gold_everything_of_a_single_passage_is_right(
    found: dict[str, Measurement],
) -> None:
    metrics = (rivals.SOFT, rivals.HARD, "exact match", "semantic entropy", rivals.JUDGE)
    for metric in (*metrics, *rivals.GOLD):
        figure = found[f"single_passage/{metric}/r"]
        assert figure.value == pytest.approx(1)
        assert figure.n == 3 * LIMIT
    # Guesses may share letters with the answer, but they are all alike to these.
    assert found["single_passage/exact match/lead"].value == pytest.approx(0)
    assert found["single_passage/perplexity/r"].value == pytest.approx(1)


class Doubting:
    """Half as sure as lexical match, too little for clusters of SePer-H."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._sure = lexical.build()

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        return [
            Probabilities(
                entailment=p.entailment / 2, neutral=1 - p.entailment / 2, contradiction=0
            )
            for p in self._sure.classify(statements)
        ]


def test_entailment_models_judge_the_same_replies_and_are_correlated(
    inputs: SuiteInputs, found: dict[str, Measurement]
) -> None:
    items = [item for hops in (1, 2, 3) for item in inputs.questions(hops)]
    alone, together = Knowing(items), Knowing(items)
    seper.build(replace(inputs, reader=CachedReader(alone, size=4_000)))
    several = replace(
        inputs,
        reader=CachedReader(together, size=4_000),
        compared=(Doubting("doubting"), Doubting("other")),
    )
    tables = seper.build(several)
    assert together.asked == alone.asked
    shown = figures(tables)
    assert {name: shown[name] for name in found} == found
    assert shown[f"single_passage/{rivals.SOFT} by doubting/r"].value == pytest.approx(1)
    assert shown[f"single_passage/{rivals.SOFT} by doubting/lead"].value == pytest.approx(0)
    hard = shown[f"single_passage/{rivals.HARD} by doubting/r"]
    assert hard.reason == "a constant series has no correlation"
    for contexts in ("single_passage", "multi_hop_sets"):
        cells = {name: cell for name, cell in shown.items() if f"entailments_{contexts}/" in name}
        assert [name.partition("/")[2] for name in cells] == [
            "doubting/lexical",
            "other/lexical",
            "other/doubting",
        ]
        for cell in cells.values():
            assert cell.value == pytest.approx(1)
            assert cell.n == found[f"{contexts}/{rivals.SOFT}/r"].n
    for table in tables:
        noted = "rows without a model: by lexical" in table.notes
        assert noted == (not table.name.startswith("entailments_"))


def test_the_correlation_of_two_models_by_hand(inputs: SuiteInputs) -> None:
    """Over the contexts that both models have a value of."""
    first = [0.0, 1.0, 0.5, None, 0.25, 0.75, 1.0, 0.0]
    other = [0.1, 0.8, 0.5, 0.9, None, 0.5, 0.7, 0.3]
    several = replace(inputs, compared=(Doubting("doubting"),))
    scores = {rivals.SOFT: first, f"{rivals.SOFT} by doubting": other}
    [table] = matrix(several, "m", "Contexts", [0, 0, 1, 2, 3, 4, 5, 6], scores)
    [[_, cell]] = [list(row.values()) for row in table.rows]
    both = [(a, b) for a, b in zip(first, other, strict=True) if a is not None and b is not None]
    assert isinstance(cell, Measurement)
    assert cell.value == pytest.approx(np.corrcoef(np.array(both).T)[0, 1])
    assert cell.n == 6
    assert cell.low is not None
    assert cell.high is not None
    assert -1 <= cell.low < cell.value < cell.high <= 1
    assert matrix(inputs, "m", "Contexts", [], {}) == []


def test_credit_reaches_its_ceilings(found: dict[str, Measurement]) -> None:
    steps = {key: figure.value for key, figure in found.items() if "multi_hop_steps" in key}
    for rule in seper.RULES:
        ceiling = steps[f"multi_hop_steps/{seper.PERFECT}/{rule}"]
        assert steps[f"multi_hop_steps/{rivals.SOFT}/{rule}"] == pytest.approx(ceiling)
    # By Shapley the gold steps have 1/n each, as is true.
    assert steps[f"multi_hop_steps/{seper.PERFECT}/shapley"] == pytest.approx(1)
    trajectory = steps[f"multi_hop_steps/{seper.PERFECT}/trajectory"]
    assert trajectory is not None
    assert 0.3 < trajectory < 0.6
    sets = found[f"multi_hop_sets/{rivals.SOFT}/r"]
    assert sets.value == pytest.approx(found[f"multi_hop_sets/{seper.PERFECT}/r"].value)
    assert sets.value is not None
    assert sets.value < 0.9
    # Two questions of two hops with 7 sets each, and two of three hops with 15.
    assert sets.n == 2 * 7 + 2 * 15


def test_a_strict_chain_of_two_steps_and_a_distractor_by_hand(inputs: SuiteInputs) -> None:
    """Trajectory credit (0, 1, 0) against the truth (.5, .5, 0) has r = .5, wherever the
    distractor stands."""
    [item] = inputs.questions(2, 1)
    game, worth = seper.trajectory_of(inputs, item)
    assert sorted(worth) == [0, 0.5, 0.5]
    contexts = [game.evidence(frozenset(chosen)) for chosen in seper._subsets(game.members)]
    assert [len(shown) for shown in contexts] == [0, 1, 1, 1, 2, 2, 2, 3]
    told = {
        seper.PERFECT: rivals.ContextScores([float(item.holds(shown) == 1) for shown in contexts])
    }
    series = seper.Series()
    credits = seper._credits(game, item, contexts, told)
    series.add(0, worth, credits["trajectory"])
    assert credits["shapley"][seper.PERFECT] == worth
    assert credits["leave_one_out"][seper.PERFECT] == [2 * share for share in worth]
    r = series.pairs(0).pearson(series.scores[seper.PERFECT])
    assert r.value == pytest.approx(0.5)


def test_what_the_reader_knows_closed_book_is_left_out(
    inputs: SuiteInputs, scores: RivalScores
) -> None:
    items = inputs.questions(1)
    known = KnownQuestion(items[0].question, (), items[0].facts)
    knowing = worlds.make(Knowing([known, *items[1:]]), seed=3, limit=LIMIT)
    [table] = seper._single(knowing, scores, {})
    assert f"1 of {LIMIT} questions left out: answered closed book" in table.notes
    assert figures([table])[f"single_passage/{rivals.SOFT}/r"].n == 3 * (LIMIT - 1)


def test_a_judge_to_whom_all_is_the_same_tells_nothing(
    inputs: SuiteInputs, scores: RivalScores
) -> None:
    class Agreeing(Knowing):
        def _replies(self, request: GenerationRequest) -> list[Generation]:
            return [reply("Same.")]

    agreeing = equivalence.build(judge.build(reader=Agreeing(())))
    [table] = seper._single(inputs, replace(scores, judge=agreeing), {})
    figure = figures([table])[f"single_passage/{rivals.JUDGE}/r"]
    assert (figure.value, figure.reason) == (None, "a constant series has no correlation")
    assert f"{rivals.JUDGE}: {figure.reason}" in table.notes


def test_without_its_extra_bertscore_says_what_to_install(found: dict[str, Measurement]) -> None:
    for name, figure in found.items():
        if "BERTScore" in name:
            assert (figure.value, figure.n) == (None, 0)
            assert figure.reason == "BERTScore needs an extra: pip install 'hopscope[minilm]'"


def test_the_first_samples_are_those_of_the_whole(inputs: SuiteInputs) -> None:
    [item] = inputs.questions(1, 1)
    knowing = Knowing([item])
    reader = worlds.make(knowing, seed=3, limit=1).reader
    first = repeated.First(reader)
    seen = []

    for size in repeated.SIZES:
        meter = SePer(first, inputs.entailment, samples=size)
        [belief] = meter.beliefs(item.question, [()])
        seen.append([sample.text for sample in belief.samples])  # type: ignore[union-attr]
    assert [len(texts) for texts in seen] == list(repeated.SIZES)
    for fewer, more in pairwise(seen):
        assert set(fewer) < set(more)
    assert knowing.asked == 1


def test_what_does_not_vary_between_repetitions_has_no_deviation(
    found: dict[str, Measurement],
) -> None:
    for size in repeated.SIZES:
        assert found[f"samples/N={size}/soft"].value == pytest.approx(1)
        assert found[f"samples/N={size}/soft_sd"].value == pytest.approx(0)
        assert found[f"samples/N={size}/sd"].value == pytest.approx(0)
