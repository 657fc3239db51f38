"""How much of the evidence SePer shows, and that it says what it did not show."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.errors import ContextOverflowError, UsageError
from hopscope.runtime.types import Generation, GenerationRequest, Passage, Provenance, Question
from hopscope.store.store import Store
from hopscope.tracing.appraisal import appraise
from hopscope.tracing.asking.asking import Unmeasured
from hopscope.tracing.asking.context import cut
from hopscope.tracing.beliefs.beliefs import Belief
from hopscope.tracing.credit import leave_one_out, shapley, solo, trajectory
from hopscope.tracing.meters import grogu, semantic_entropy, seper
from hopscope.tracing.reports.records import StepUtility, TotalUtility
from hopscope.tracing.reports.report import report
from tests.fakes import (
    ENTAILS,
    NEUTRAL,
    ReaderByEvidence,
    ScriptedEntailment,
    reply,
    run_of,
    step,
)

WHO = Question(text="Who?", answers=("g",))
A = Passage(id="a", title="One", text="two  three\nfour five.")
B = Passage(id="b", title="six seven", text="eight nine")
C = Passage(id="c", text="ten")
BROUGHT = re.compile(r"<\|begin_of_documents\|>(.*?)<\|end_of_documents\|>", re.DOTALL)
JUDGE = ScriptedEntailment({("r", "g"): ENTAILS, ("g", "r"): ENTAILS})


@pytest.mark.parametrize(
    ("words", "texts", "shortened", "dropped"),
    [
        (0, [A.text, B.text, C.text], None, ()),
        (10, [A.text, B.text, C.text], None, ()),
        (9, [A.text, B.text], None, ("c",)),
        (8, [A.text, "eight"], "b", ("c",)),
        (7, [A.text], None, ("b", "c")),
        (3, ["two  three"], "a", ("b", "c")),
        (1, [], None, ("a", "b", "c")),
    ],
)
def test_the_context_ends_after_so_many_words(
    words: int, texts: list[str], shortened: str | None, dropped: tuple[str, ...]
) -> None:
    found = cut([A, B, C], words)
    assert [passage.text for passage in found.passages] == texts
    assert (found.cut, found.dropped) == (shortened, dropped)


@given(
    st.lists(
        st.builds(Passage, title=st.text(" ab", max_size=5), text=st.text(" a\n", max_size=9))
    ),
    st.integers(0, 20),
)
def test_what_is_shown_is_a_beginning_and_nothing_gets_lost(
    evidence: list[Passage], words: int
) -> None:
    found = cut(evidence, words)
    assert len(found.passages) + len(found.dropped) == len(evidence)
    for shown, whole in zip(found.passages, evidence, strict=False):
        assert whole.text.startswith(shown.text)
    if words:
        assert sum(len(f"{p.title} {p.text}".split()) for p in found.passages) <= words


def test_the_meter_shows_the_cut_context_and_the_belief_says_what_was_dropped() -> None:
    reader = ReaderByEvidence({("a", "b"): [reply("r")], (): [reply("r")]})
    meter = seper.build(reader, JUDGE, samples=1, context_words=8)
    belief, without = meter.beliefs(WHO, [(A, B, C), ()])
    assert isinstance(belief, Belief)
    assert isinstance(without, Belief)
    assert (belief.cut, belief.dropped) == ("b", ("c",))
    assert (without.cut, without.dropped) == (None, ())
    assert "eight nine" not in reader.generated[0][0].prompt.text
    assert "context_words=8" in meter.estimator
    assert "context_words=0" in seper.build(reader, JUDGE).estimator


def test_contexts_that_are_equal_once_cut_are_measured_once() -> None:
    reader = ReaderByEvidence({("a",): [reply("r")]})
    meter = seper.build(reader, JUDGE, samples=1, context_words=5)
    found = meter.beliefs(WHO, [(A, B), (A, C)])
    assert [each.dropped for each in found if isinstance(each, Belief)] == [("b",), ("c",)]
    assert len(reader.generated[0]) == 1


def test_what_was_dropped_is_stored_with_every_credit_it_concerns(tmp_path: Path) -> None:
    """And with which limit."""
    long = Passage(id="long", text="word " * 600)
    replies = {(): [reply("r")], ("long",): [reply("r")], ("a",): [reply("r")]}
    meter = seper.build(ReaderByEvidence(replies), JUDGE, samples=1, context_words=512)
    first = step(0, ["long"], evidence=(long,), shown=("long",))
    second = step(1, ["a"], evidence=(long, A), shown=("long", "a"))
    run = run_of(answers=["g"]).model_copy(update={"steps": (first, second)})
    rules = [trajectory.build(), solo.build()]
    credits = appraise(run, [meter], rules, Provenance(reader="by-evidence"))
    with Store.open(str(tmp_path / "runs.db")) as store:
        store.save(run)
        store.save_credits(credits)
        kept = store.credits(run.id)
    assert {c.model_dump_json() for c in kept} == {c.model_dump_json() for c in credits}
    found = {(c.rule, c.step): c.measurement.dropped for c in kept}
    assert found["level", None] is None
    assert found["level", 0] == ("long",)
    assert found["total", None] == found["level", 1] == ("long", "a")
    assert found["solo", 1] is None
    unseen = next(c.measurement for c in kept if (c.rule, c.step) == ("trajectory", 1))
    assert unseen.value is None
    assert unseen.reason == "seper cuts the context before a: the reader saw nothing of it"
    assert all("context_words=512" in c.measurement.estimator for c in kept)
    told = report(run, kept)
    whole = told.total.meters["seper"]
    assert isinstance(whole, TotalUtility)
    assert whole.dropped == ("long", "a")
    assert [
        s.dropped for step in told.steps if isinstance(s := step.credit["seper"], StepUtility)
    ] == [
        ("long",),
        ("long", "a"),
    ]


def test_the_whole_context_is_shown_by_default() -> None:
    """A step beyond word 512 once had a credit of exactly 0, though no reader had seen it."""
    long = Passage(id="long", text="word " * 600)
    replies = {
        (): [reply("other")],
        ("long",): [reply("other")],
        ("long", "a"): [reply("r")],
        ("a",): [reply("r")],
    }
    judge = ScriptedEntailment({("r", "g"): ENTAILS, ("other", "g"): NEUTRAL})
    meter = seper.build(ReaderByEvidence(replies), judge, samples=1, direction="r2g")
    steps = (
        step(0, ["long"], evidence=(long,), shown=("long",)),
        step(1, ["a"], evidence=(long, A), shown=("long", "a")),
    )
    run = run_of(answers=["g"]).model_copy(update={"steps": steps})
    rules = [trajectory.build(), leave_one_out.build(), shapley.build()]
    credits = appraise(run, [meter], rules, Provenance(reader="by-evidence"))
    found = {c.rule: c.measurement for c in credits if c.step == 1}
    assert {rule: m.value for rule, m in found.items()} == {
        "level": 1, "trajectory": 1, "leave_one_out": 1, "shapley": 1
    }  # fmt: skip
    assert all(m.dropped is None for m in found.values())


@pytest.mark.parametrize(
    ("words", "measured"),
    [
        # One has 5 words, two has 4, three has 1.
        (0, {0: "tlsh", 1: "tlsh", 2: "tlsh"}),
        (10, {0: "tlsh", 1: "tlsh", 2: "tlsh"}),
        (9, {0: "tlsh", 1: "tlsh", 2: "s"}),
        (8, {0: "tlsh", 1: "tlsh", 2: "s"}),
        (5, {0: "tlsh", 1: "s", 2: "s"}),
    ],
)
def test_a_step_is_unmeasured_where_the_reader_saw_none_of_its_passages(
    words: int, measured: dict[int, str]
) -> None:
    """And measured, with the omissions named, where it saw a part of them."""
    evidences = [(), (A,), (B,), (C,), (A, B), (A, C), (B, C), (A, B, C)]
    shown = {tuple(p.key for p in cut(each, words).passages) for each in evidences}
    reader = ReaderByEvidence({keys: [reply("r")] for keys in shown})
    meter = seper.build(reader, JUDGE, samples=1, context_words=words)
    steps = tuple(
        step(i, [p.key], evidence=evidence, shown=tuple(each.key for each in evidence))
        for i, (p, evidence) in enumerate([(A, (A,)), (B, (A, B)), (C, (A, B, C))])
    )
    run = run_of(answers=["g"]).model_copy(update={"steps": steps})
    rules = [trajectory.build(), leave_one_out.build(), solo.build(), shapley.build()]
    credits = appraise(run, [meter], rules, Provenance(reader="by-evidence"))
    letters = {"trajectory": "t", "leave_one_out": "l", "solo": "s", "shapley": "h"}
    found = {(letters[c.rule], c.step): c.measurement for c in credits if c.rule in letters}
    for (rule, number), measurement in found.items():
        assert number is not None
        assert (measurement.value is not None) == (rule in measured[number]), (rule, number)
        if measurement.value is None:
            assert f"cuts the context before {'abc'[number]}" in str(measurement.reason)


def test_evidence_of_which_nothing_is_shown_has_no_value() -> None:
    """It once had that of no evidence, and so a gain of exactly 0."""
    reader = ReaderByEvidence({(): [reply("r"), reply("r")]})
    meters = [
        seper.build(reader, JUDGE, samples=2, context_words=1),
        semantic_entropy.build(reader, JUDGE, samples=2, context_words=1),
    ]
    for meter in meters:
        [unseen, without] = meter.measure(WHO, [(B,), ()])
        assert (unseen.value, unseen.reason) == (None, "context_words=1 leaves none of b")
        assert without.value is not None


def test_real_contexts_are_shown_whole(research_data: Callable[[str], Path]) -> None:
    """The first 512 words hide 52 of the 119 later retrievals that bring something new."""
    by_default = seper.build(ReaderByEvidence({}), JUDGE)
    by_paper = seper.build(ReaderByEvidence({}), JUDGE, context_words=512)
    later = hidden = 0
    for line in research_data("r1searcher_bamboogle_traces.jsonl").read_text().splitlines():
        evidence: dict[str, Passage] = {}
        for glued in BROUGHT.findall(json.loads(line)["gen_text_store"]):
            texts = [p.strip() for p in re.split(r"^\(\d+\)", glued, flags=re.MULTILINE)]
            fresh = {text: Passage(text=text) for text in texts if text and text not in evidence}
            later += bool(evidence and fresh)
            shown = {**evidence, **fresh}
            unseen = {*by_paper.unseen(tuple(shown.values()))}
            hidden += bool(evidence and fresh) and {p.key for p in fresh.values()} <= unseen
            evidence = shown
        assert by_default.unseen(tuple(evidence.values())) == ()
    assert (later, hidden) == (119, 52)


class FullReader(ReaderByEvidence):
    """Takes no passage at all."""

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        if any(request.prompt.shown for request in requests):
            raise ContextOverflowError(self.name, 99, 1, 50)
        return super().generate(requests)


def test_a_context_that_does_not_fit_says_which_passages_were_shown_and_which_dropped() -> None:
    """Not cut further: that would be the belief on another context than was asked about."""
    reader = FullReader({(): [reply("r", entropies=(0.1,))]})
    meter = seper.build(reader, JUDGE, samples=1, context_words=9)
    [found, fits] = meter.measure(WHO, [(A, B, C), ()])
    assert found.value is None
    assert "all of a, b were shown, none was dropped; context_words had dropped c" in str(
        found.reason
    )
    assert fits.value == 1
    [unmeasured] = meter.beliefs(WHO, [(A, B, C)])
    assert isinstance(unmeasured, Unmeasured)
    [found] = grogu.build(reader).measure(WHO, [(A, B)])
    assert "all of a, b were shown, none was dropped" in str(found.reason)


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(UsageError, match="context_words of 0 or more"):
        seper.build(ReaderByEvidence({}), JUDGE, context_words=-1)
