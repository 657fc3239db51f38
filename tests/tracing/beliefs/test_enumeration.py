"""SePer by enumeration: the search on a tree worked by hand, and on a tiny random reader against
brute force over every reply."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.errors import ContextOverflowError, UsageError
from hopscope.runtime.ports import Branch, BranchRequest
from hopscope.runtime.prompting.prompts import short_answer
from hopscope.runtime.readers import hf
from hopscope.runtime.types import GenerationRequest, Question
from hopscope.tracing.beliefs.beliefs import Belief
from hopscope.tracing.beliefs.enumeration import Enumeration, enumerate_answers
from hopscope.tracing.entailments import lexical
from hopscope.tracing.meters import seper
from hopscope.tracing.wrappers.cached import CachedReader
from tests import models
from tests.fakes import (
    CONTRADICTS,
    ENTAILS,
    Ending,
    ReaderByEvidence,
    ScriptedEntailment,
    ScriptedReader,
    passage,
    reply,
)

END, CUT = 0, 99
REQUEST = GenerationRequest(prompt=short_answer("Who?"), max_tokens=4)
Tree = dict[tuple[int, ...], dict[int, float]]
"""Probabilities of the next tokens after each beginning; `END` ends a reply, and `CUT` does by its
length alone."""


class TreeReader(ScriptedReader):
    """A reader whose replies are a tree: token 1 spells "a", 2 "b" and so on."""

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self.tree = tree
        self.asked: list[list[BranchRequest]] = []

    def branch(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
        self.asked.append(list(requests))
        return [
            [
                Branch(token, math.log(p), self._text(request.token_ids, token), cut=token == CUT)
                for token, p in self.tree[request.token_ids].items()
                if p >= request.least
            ]
            for request in requests
        ]

    def _text(self, begun: tuple[int, ...], token: int) -> str | None:
        spelled = "".join(chr(96 + each) for each in begun)
        return spelled if token in (END, CUT) else None


# "a" has .5 · .8 = .4 by one path and "aa" .1; "b" .3; "ba" and "c" share what is left.
TREE: Tree = {
    (): {1: 0.5, 2: 0.4, 3: 0.1},
    (1,): {END: 0.8, 1: 0.2},
    (2,): {END: 0.75, 1: 0.25},
    (3,): {END: 1.0},
    (1, 1): {END: 1.0},
    (2, 1): {END: 1.0},
}


def search(tree: Tree, **options: Any) -> tuple[TreeReader, Enumeration]:
    reader = TreeReader(tree)
    return reader, enumerate_answers(reader, REQUEST, **{"bound": 0.0, "budget": 100, **options})


def test_all_replies_by_hand() -> None:
    _, found = search(TREE)
    assert dict(found.answers) == pytest.approx(
        {"a": 0.4, "b": 0.3, "c": 0.1, "aa": 0.1, "ba": 0.1}
    )
    assert found.uncovered == pytest.approx(0, abs=1e-12)
    assert found.tokens == 6


def test_the_likeliest_come_first_and_the_bound_ends_the_search() -> None:
    """Uncovered after the two likeliest beginnings: 1 - .4 - .3."""
    reader, found = search(TREE, bound=0.3)
    assert found.answers == (("a", pytest.approx(0.4)), ("b", pytest.approx(0.3)))
    assert found.uncovered == pytest.approx(0.3)
    assert [[request.token_ids for request in call] for call in reader.asked] == [
        [()],
        [(1,), (2,)],
    ]


def test_the_budget_ends_the_search() -> None:
    _, found = search(TREE, budget=2)
    assert found.tokens == 2
    assert found.answers == (("a", pytest.approx(0.4)),)
    assert found.uncovered == pytest.approx(0.6)
    assert search(TREE, budget=1)[1] == ((), 1.0, 1, ())


def test_what_is_left_out_stays_uncovered() -> None:
    """Nodes under bound/budget = .02 are not asked for: c's .01 is never covered."""
    tree = TREE | {(): {1: 0.59, 2: 0.4, 3: 0.01}}
    reader, found = search(tree, bound=0.1, budget=5)
    assert "c" not in dict(found.answers)
    assert found.uncovered + math.fsum(p for _, p in found.answers) == pytest.approx(1)
    assert reader.asked[0][0].least == pytest.approx(0.02)
    assert reader.asked[1][0].least == pytest.approx(0.02 / 0.59)


def test_replies_spelled_alike_are_one() -> None:
    tree: Tree = {(): {1: 0.6, 4: 0.4}, (1,): {END: 1.0}, (4,): {END: 1.0}}

    class Spaced(TreeReader):
        def _text(self, begun: tuple[int, ...], token: int) -> str | None:
            return {(1,): "a", (4,): " a "}.get(begun)

    found = enumerate_answers(Spaced(tree), REQUEST, bound=0.0, budget=9)
    assert found.answers == (("a", pytest.approx(1.0)),)


PROBABILITIES = st.lists(st.integers(1, 50), min_size=2, max_size=4)


@given(st.lists(PROBABILITIES, min_size=1, max_size=6), st.floats(0, 0.5), st.integers(1, 30))
def test_found_and_uncovered_add_up_and_a_longer_search_only_goes_on(
    shapes: list[list[int]], bound: float, budget: int
) -> None:
    """Random trees: chains of nodes each of which can end, go on, or split."""
    tree: Tree = {}
    for depth, shape in enumerate(shapes):
        begun = (1,) * depth
        last = depth == len(shapes) - 1
        tokens = [END, *range(2, len(shape)), *([] if last else [1])]
        total = sum(shape[: len(tokens)])
        tree[begun] = {t: w / total for t, w in zip(tokens, shape, strict=False)}
        for token in tokens[1:]:
            tree.setdefault((*begun, token), {END: 1.0})
    short, long = search(tree, bound=bound, budget=budget)[1], search(tree, bound=0.0)[1]
    assert short.uncovered + math.fsum(p for _, p in short.answers) == pytest.approx(1)
    assert short.uncovered <= bound + 1e-12 or short.tokens == budget or budget == 1
    everything = dict(long.answers)
    assert all(p <= everything[text] + 1e-12 for text, p in short.answers)
    assert long.uncovered == pytest.approx(0, abs=1e-9)


# On the meter ------------------------------------------------------------------------------


def relations(texts: Sequence[str], same: set[str]) -> ScriptedEntailment:
    return ScriptedEntailment(
        {
            (one, other): ENTAILS if {one, other} <= same else CONTRADICTS
            for one in texts
            for other in texts
            if one != other
        }
    )


TEXTS = ["a", "aa", "b", "ba", "c", "g", "h"]


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_the_belief_is_the_mass_of_right_replies_and_the_interval_adds_the_rest(kind: Any) -> None:
    """a and aa say the same as g: .5 of the mass; with bound .3 only a is found."""
    who = Question(text="Who?", answers=("g",))
    judge = relations(TEXTS, {"a", "aa", "g"})
    meter = seper.build(TreeReader(TREE), judge, method="enumerate", bound=0.0, kind=kind)
    [found] = meter.measure(who, [()])
    assert found.value == pytest.approx(0.5)
    assert (found.low, found.high) == (found.value, pytest.approx(0.5))
    assert (found.n, found.seed) == (5, None)
    meter = seper.build(TreeReader(TREE), judge, method="enumerate", bound=0.3, kind=kind)
    [found] = meter.measure(who, [()])
    assert found.value == found.low == pytest.approx(0.4)
    assert found.high == pytest.approx(0.7)
    for part in ["method=enumerate", "bound=0.3", "budget=1000", "interval=certain"]:
        assert part in found.estimator
    assert "samples" not in found.estimator
    assert "weight" not in found.estimator


@pytest.mark.parametrize(("golds", "expected"), [("max", 0.5), ("mean", 0.4), ("union", 0.8)])
def test_the_options_of_sampling_hold_for_golds(golds: Any, expected: float) -> None:
    """g is right with .5 (a, aa), h with .3 (b)."""
    table = relations(TEXTS, {"a", "aa", "g"})
    table._table |= relations(["b", "h"], {"b", "h"})._table  # type: ignore[operator]
    meter = seper.build(TreeReader(TREE), table, method="enumerate", bound=0.0, golds=golds)
    [found] = meter.measure(Question(text="Who?", answers=("g", "h")), [()])
    assert found.value == pytest.approx(expected)


# "a" ends with .6, "b" has .3 and is cut off, "c" .1 and ends.
CUT_TREE: Tree = {
    (): {1: 0.6, 2: 0.3, 3: 0.1},
    (1,): {END: 1.0},
    (2,): {CUT: 1.0},
    (3,): {END: 1.0},
}


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_replies_cut_off_are_neither_right_nor_wrong_as_those_of_samples(kind: Any) -> None:
    """b counted as a whole reply. Of the rest, .7, a is .6; what b means may add nothing or .3."""
    who = Question(text="Who?", answers=("g",))
    judge = relations(TEXTS, {"a", "b", "g"})
    meter = seper.build(TreeReader(CUT_TREE), judge, method="enumerate", bound=0.0, kind=kind)
    [found] = meter.measure(who, [()])
    assert found.value == pytest.approx(0.6 / 0.7)
    assert (found.low, found.high) == (pytest.approx(0.6), pytest.approx(0.9))
    assert (found.n, found.certain) == (3, True)
    assert found.estimator.endswith("with 1 of 3 replies cut off")
    ten = [reply("a")] * 6 + [reply("b", finish_reason="length")] * 3 + [reply("c")]
    sampled = seper.build(
        ReaderByEvidence({(): ten}), judge, samples=10, weight="uniform", kind=kind
    )
    assert sampled.measure(who, [()])[0].value == pytest.approx(found.value)
    [belief] = meter.beliefs(who, [()])
    assert isinstance(belief, Belief)
    assert [each.text for each in belief.samples] == ["a", "c"]
    assert belief.cut_off == pytest.approx(0.3)


def test_an_enumeration_of_replies_that_are_mostly_cut_off_is_a_reason() -> None:
    tree: Tree = {(): {1: 0.4, 2: 0.6}, (1,): {END: 1.0}, (2,): {CUT: 1.0}}
    meter = seper.build(TreeReader(tree), lexical.build(), method="enumerate", bound=0.0)
    [found] = meter.measure(Question(text="Who?", answers=("g",)), [()])
    assert found.value is None
    assert "replies of probability 0.60 are cut off after 64 tokens" in str(found.reason)


def test_a_reader_that_cannot_branch_is_a_reason() -> None:
    meter = seper.build(ScriptedReader(), lexical.build(), method="enumerate")
    for reader in (meter.reader, CachedReader(meter.reader)):
        meter = seper.build(reader, lexical.build(), method="enumerate")
        [found] = meter.measure(Question(text="Who?", answers=("g",)), [(passage("x"),)])
        assert found.value is None
        assert "no next-token probabilities" in str(found.reason)


def test_a_search_that_reaches_no_end_is_a_reason() -> None:
    tree: Tree = {(): {1: 1.0}, (1,): {1: 1.0}}
    meter = seper.build(TreeReader(tree), lexical.build(), method="enumerate", budget=2)
    [found] = meter.measure(Question(text="Who?", answers=("g",)), [()])
    assert "no reply ended within 2 tokens" in str(found.reason)


def test_a_context_that_does_not_fit_spoils_only_itself() -> None:
    class Short(TreeReader):
        def branch(self, requests: Sequence[BranchRequest]) -> list[list[Branch]]:
            if any(request.request.prompt.shown for request in requests):
                raise ContextOverflowError(self.name, 99, 1, 50)
            return super().branch(requests)

    judge = relations(TEXTS, {"c", "g"})
    meter = seper.build(Short(TREE), judge, method="enumerate", bound=0.0)
    found = meter.measure(Question(text="Who?", answers=("g",)), [(passage("x"),), ()])
    assert [m.value for m in found] == [None, pytest.approx(0.1)]
    assert "all of x were shown, none was dropped" in str(found[0].reason)


def test_soft_and_hard_share_one_search_through_the_cache() -> None:
    inner = TreeReader(TREE)
    reader, judge = CachedReader(inner), relations(TEXTS, {"a", "g"})
    for kind in ("soft", "hard"):
        meter = seper.build(reader, judge, method="enumerate", bound=0.0, kind=kind)  # type: ignore[arg-type]
        meter.measure(Question(text="Who?", answers=("g",)), [()])
    assert sum(map(len, inner.asked)) == 6


@pytest.mark.parametrize(
    "options",
    [{"bound": 1.0}, {"bound": -0.1}, {"budget": 0}, {"temperature": 0.5}, {"width": 0.1}],
)
def test_options_of_no_use_are_refused(options: Any) -> None:
    with pytest.raises(UsageError, match="SePer"):
        seper.build(TreeReader(TREE), lexical.build(), method="enumerate", **options)


# On a real reader ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = models.tiny_llama(tmp_path_factory.mktemp("llama"), initializer_range=0.7)
    return hf.build(model=str(folder), device="cpu")


EVIDENCE = (passage("alba"),)


Masses = dict[tuple[str, bool], float]
"""Probabilities by text and whether it is cut off."""


def brute_force(reader: Any, request: GenerationRequest) -> Masses:
    """Every reply of up to two tokens. The probabilities of branches are tested on their own."""
    [first] = reader.branch([BranchRequest(request)])
    masses: dict[tuple[str, bool], list[float]] = {}
    for one in first:
        if one.text is not None:
            masses.setdefault((one.text.strip(), one.cut), []).append(math.exp(one.logprob))
    begun = [(one.token_id,) for one in first if one.text is None]
    for ids, after in zip(
        begun, reader.branch([BranchRequest(request, ids) for ids in begun]), strict=True
    ):
        mass = math.exp(next(one.logprob for one in first if one.token_id == ids[0]))
        for two in after:
            assert two.text is not None
            masses.setdefault((two.text.strip(), two.cut), []).append(mass * math.exp(two.logprob))
    return {key: math.fsum(each) for key, each in masses.items()}


def reached(found: Enumeration) -> Masses:
    return {
        (text, cut): probability
        for answers, cut in ((found.answers, False), (found.cut, True))
        for text, probability in answers
    }


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("deterministic")
def test_enumeration_equals_brute_force_and_brackets_it_when_cut_short(reader: Any) -> None:
    """The search asks about other beginnings together than brute force does. `--deterministic`
    computes each alone, so that all but the sums of doubles is equal to the last bit; otherwise
    float32 rounds each logit by its company."""
    reader = CachedReader(reader)
    prompt = short_answer("Who?", EVIDENCE)
    request = GenerationRequest(prompt=prompt, max_tokens=2, stop=("\n", *"aeiost"))
    truth = brute_force(reader, request)
    assert math.fsum(truth.values()) == pytest.approx(1, abs=1e-9)
    whole = enumerate_answers(reader, request, bound=0.0, budget=1000)
    rounding = 1e-15
    assert reached(whole) == pytest.approx(truth, abs=rounding)
    assert whole.answers
    assert whole.cut
    for bound, budget in [(0.3, 1000), (0.0, 20), (0.05, 1000)]:
        part = enumerate_answers(reader, request, bound=bound, budget=budget)
        assert part.tokens < whole.tokens
        assert 0 < part.uncovered < 1
        for key, probability in reached(part).items():
            assert probability - rounding <= truth[key] <= probability + part.uncovered + rounding


def test_the_interval_brackets_what_uniform_sampling_converges_to(reader: Any) -> None:
    """4000 samples of two tokens: the standard error of a share is at most .008; four of them
    are allowed for, and the seed is fixed."""
    reader = Ending(reader)
    request = GenerationRequest(prompt=short_answer("Who?"), max_tokens=2, stop=("\n",))
    likeliest = max(
        enumerate_answers(reader, request, bound=0.2, budget=500).answers, key=lambda a: a[1]
    )
    who = Question(text="Who?", answers=(likeliest.text,))
    options: Any = {"max_tokens": 2, "direction": "r2g"}
    judge = lexical.build()
    meter = seper.build(reader, judge, method="enumerate", bound=0.1, **options)
    [certain] = meter.measure(who, [()])
    assert certain == meter.measure(who, [()])[0]
    [sampled] = seper.build(
        CachedReader(reader), judge, samples=4000, weight="uniform", **options
    ).measure(who, [()])
    assert certain.low is not None
    assert certain.high is not None
    assert sampled.value is not None
    assert 0.01 < certain.low < certain.high < certain.low + 0.1 + 1e-9
    assert certain.low - 0.032 <= sampled.value <= certain.high + 0.032
    [belief] = meter.beliefs(who, [()])
    assert isinstance(belief, Belief)
    assert math.fsum(belief.weights) + (belief.uncovered or 0) == pytest.approx(1)
