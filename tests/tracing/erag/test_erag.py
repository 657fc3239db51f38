"""eRAG: labels of passages by what a reader answers from each alone."""

from collections.abc import Sequence

import pytest

from hopscope.runtime.errors import ContextOverflowError, ReaderError, UsageError
from hopscope.runtime.readers import tiny
from hopscope.runtime.types import Generation, GenerationRequest, Hit, Passage, Question
from hopscope.tracing.answer_metrics import exact_match, f1
from hopscope.tracing.erag.labels import ERAG
from hopscope.tracing.erag.report import erag_report
from tests.fakes import ReaderByEvidence, passage, reply, run_of, step

QUESTION = Question(text="Who?", answers=("Ada Fox",))
RIGHT, HALF, WRONG = [reply("Ada Fox")], [reply("Ada Owl")], [reply("Bo")]


def reader_of(**replies: list[Generation]) -> ReaderByEvidence:
    return ReaderByEvidence({(key,): reply for key, reply in replies.items()})


def passages(keys: str) -> list[Passage]:
    return [passage(key) for key in keys]


def test_binary_labels_get_the_measures_of_trec_eval() -> None:
    reader = reader_of(a=WRONG, b=RIGHT)
    [found] = ERAG(reader, exact_match.build(), cutoffs=(1,)).rank(QUESTION, [passages("ab")])
    assert [label.value for label in found.labels] == [0, 1]
    values = {name: m.value for name, m in found.measures.items()}
    assert values["P"] == values["AP"] == values["RR"] == 0.5
    assert values["Hit"] == values["R"] == 1
    assert values["P@1"] == values["Hit@1"] == 0
    assert "exact-match" in found.measures["P"].estimator
    assert reader.name in found.measures["P"].estimator


def test_continuous_labels_have_precision_and_hit_only() -> None:
    [found] = ERAG(reader_of(a=HALF, b=WRONG), f1.build()).rank(QUESTION, [passages("ab")])
    assert found.measures["P"].value == 0.25
    assert found.measures["Hit"].value == 0.5
    assert found.measures["AP"].value is None
    assert "not defined for labels between 0 and 1" in (found.measures["AP"].reason or "")


def test_a_passage_that_stands_twice_is_read_once_and_counts_twice() -> None:
    """eRAG's own code keys by text, so duplicates merge."""
    reader = reader_of(a=RIGHT, b=WRONG)
    erag = ERAG(reader, exact_match.build())
    twice, once = erag.rank(QUESTION, [passages("aba"), passages("b")])
    assert [label.value for label in twice.labels] == [1, 0, 1]
    assert twice.measures["P"].value == pytest.approx(2 / 3)
    assert once.measures["P"].value == 0
    [asked] = reader.generated
    assert len(asked) == 2


def test_an_empty_ranking_is_unmeasured() -> None:
    [found] = ERAG(reader_of(), exact_match.build()).rank(QUESTION, [[]])
    assert {m.value for m in found.measures.values()} == {None}
    assert found.measures["P"].reason == "no passage was retrieved and shown"


def test_without_gold_no_label_and_no_measure() -> None:
    reader = reader_of(a=RIGHT)
    [found] = ERAG(reader, exact_match.build()).rank(Question(text="Who?"), [passages("a")])
    assert found.labels[0].reason == "no gold answer"
    assert found.measures["P"].reason == "1 of 1 passages have no label: no gold answer"


class Overflowing(ReaderByEvidence):
    """Has no room for passage "b"."""

    def generate(self, requests: list[GenerationRequest]) -> list[list[Generation]]:  # type: ignore[override]
        if any(request.prompt.shown == ("b",) for request in requests):
            raise ContextOverflowError("small", 100, 10, 50)
        return super().generate(requests)


def test_a_passage_that_does_not_fit_is_unmeasured_and_so_is_its_ranking() -> None:
    reader = Overflowing({("a",): RIGHT})
    [found] = ERAG(reader, exact_match.build()).rank(QUESTION, [passages("ab")])
    assert found.labels[0].value == 1
    assert "exceed the context of small" in (found.labels[1].reason or "")
    assert "1 of 2 passages have no label" in (found.measures["P"].reason or "")


def hop(index: int, ranked: str, shown: str, evidence: str, query: str | None = "q") -> object:
    return step(
        index,
        shown=tuple(shown),
        query=query,
        ranked=tuple(Hit(passage=passage(key), score=1.0) for key in ranked),
        evidence=tuple(passage(key) for key in evidence),
    )


def test_each_retrieval_and_the_whole_run_are_labelled_by_what_was_shown() -> None:
    """The second hop finds "a" again and "d", which no model was shown."""
    steps = (
        hop(0, "ab", "", "ab"),
        hop(1, "", "ab", "ab", query=None),
        hop(2, "cad", "", "abcd"),
        hop(3, "", "abc", "abcd", query=None),
    )
    run = run_of(answers=["Ada Fox"]).model_copy(update={"steps": steps})
    erag = ERAG(reader_of(a=WRONG, b=WRONG, c=RIGHT), exact_match.build())
    first, second, whole = erag.appraise(run)
    assert [(r.step, r.passages) for r in (first, second, whole)] == [
        (0, ("a", "b")),
        (2, ("c", "a")),
        (None, ("a", "b", "c")),
    ]
    assert [r.measures["P"].value for r in (first, second, whole)] == [0, 0.5, pytest.approx(1 / 3)]


def test_a_run_without_retrieval_has_only_its_own_empty_ranking() -> None:
    [whole] = ERAG(reader_of(), exact_match.build()).appraise(run_of())
    assert (whole.step, whole.passages) == (None, ())
    assert whole.measures["P"].value is None


class Failing(ReaderByEvidence):
    """Breaks on passage b."""

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        if any("b" in request.prompt.shown for request in requests):
            raise ReaderError("the model is gone")
        return super().generate(requests)


def test_a_run_that_a_model_fails_on_does_not_cost_the_others() -> None:
    erag = ERAG(Failing({("a",): RIGHT}), exact_match.build())
    runs = [run_of(keys, answers=["Ada Fox"]) for keys in ("b", "a")]
    found = erag_report(runs, erag)
    assert [row.error for row in found.runs] == ["the model is gone", None]
    assert found.runs[0].rankings[-1].measures["P"].reason == "the model is gone"
    assert (found.averages["P"].value, found.averages["P"].measured) == (1, 1)
    assert found.averages["P"].total == 2


@pytest.mark.parametrize("options", [{"max_tokens": 0}, {"cutoffs": (0,)}])
def test_options_that_nothing_can_come_of_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="eRAG needs"):
        ERAG(reader_of(), exact_match.build(), **options)  # type: ignore[arg-type]


def test_the_embedded_reader_labels_each_passage() -> None:
    reader = tiny.build()
    page = Passage(id="1", title="Alba", text="Alba was directed by Bruno Costa.")
    other = Passage(id="2", title="Oslo", text="Oslo lies in Norway.")
    question = Question(text="Who directed Alba?", answers=("Bruno Costa",))
    erag = ERAG(reader, f1.build(), max_tokens=8)
    [found] = erag.rank(question, [[page, other, page]])
    assert all(0 <= (label.value or 0) <= 1 for label in found.labels)
    assert found.labels[0] == found.labels[2]
    assert found.measures["P"].value == pytest.approx(
        sum(label.value or 0 for label in found.labels) / 3
    )
    assert erag.rank(question, [[page, other, page]]) == [found]
