"""How much of the evidence SePer shows, and that it says what it did not show."""

from collections.abc import Sequence
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
from hopscope.tracing.credit import solo, trajectory
from hopscope.tracing.meters import grogu, seper
from hopscope.tracing.reports.records import StepUtility, TotalUtility
from hopscope.tracing.reports.report import report
from tests.fakes import ENTAILS, ReaderByEvidence, ScriptedEntailment, reply, run_of, step

WHO = Question(text="Who?", answers=("g",))
A = Passage(id="a", title="One", text="two  three\nfour five.")
B = Passage(id="b", title="six seven", text="eight nine")
C = Passage(id="c", text="ten")
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
    assert "context_words=512" in seper.build(reader, JUDGE).estimator


def test_contexts_that_are_equal_once_cut_are_measured_once() -> None:
    reader = ReaderByEvidence({("a",): [reply("r")]})
    meter = seper.build(reader, JUDGE, samples=1, context_words=5)
    found = meter.beliefs(WHO, [(A, B), (A, C)])
    assert [each.dropped for each in found if isinstance(each, Belief)] == [("b",), ("c",)]
    assert len(reader.generated[0]) == 1


def test_what_was_dropped_is_stored_with_every_credit_it_concerns(tmp_path: Path) -> None:
    """And with which limit, though that is the default here."""
    long = Passage(id="long", text="word " * 600)
    replies = {(): [reply("r")], ("long",): [reply("r")], ("a",): [reply("r")]}
    meter = seper.build(ReaderByEvidence(replies), JUDGE, samples=1)
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
    assert found["total", None] == found["trajectory", 1] == ("long", "a")
    assert found["solo", 1] is None
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
