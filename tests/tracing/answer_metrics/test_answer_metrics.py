"""Metrics of answers. Vectors 21 and 23 of the specification, as seen through the metrics."""

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig, BertModel

from hopscope.runtime import components
from hopscope.runtime.errors import MissingExtraError, UsageError
from hopscope.runtime.readers import tiny
from hopscope.runtime.types import Question
from hopscope.tracing import answer_metrics
from hopscope.tracing.answer_metrics import (
    bertscore,
    bleu,
    contains,
    equivalence,
    exact_match,
    f1,
    judge_direct,
    judge_reduction,
    lexical_match,
    rouge_l,
)
from hopscope.tracing.answer_metrics._rating import rating
from hopscope.tracing.entailments import equivalence as embedded
from hopscope.tracing.scoring.metric import AnswerMetric, Case
from tests.fakes import CONTRADICTS, ENTAILS, ScriptedEntailment, ScriptedReader, passage, reply
from tests.models import SHAPE, tokenizer

STRINGS = [exact_match.build(), f1.build(), contains.build(), lexical_match.build()]
STRINGS += [rouge_l.build(), bleu.build()]
TEXTS = st.text(st.sampled_from("aAbé .'-1"), max_size=12)


def case(answer: str | None, *golds: str, evidence: tuple[str, ...] = ()) -> Case:
    question = Question(text="Who?", answers=golds)
    return Case(question, answer, tuple(passage(key) for key in evidence))


def value(metric: AnswerMetric, answer: str | None, *golds: str) -> float | None:
    [found] = metric.score([case(answer, *golds)])
    return found.value


@pytest.mark.parametrize(
    ("metric", "answer", "golds", "expected"),
    [
        (exact_match.build(), "the Beatles!", ["Stones", "Beatles"], 1),
        (exact_match.build(), "Beatles and Stones", ["Beatles"], 0),
        (exact_match.build(), "U.S.", ["US"], 1),
        (exact_match.build(normaliser="spaced"), "U.S.", ["US"], 0),
        (f1.build(), "Linda Davis", ["Davis", "Reba"], 2 / 3),
        (f1.build(), "yes it is", ["yes"], 0),
        (contains.build(), "Parisian", ["paris"], 0),
        (contains.build(), "in Paris, Texas", ["Rome", "Paris"], 1),
        (contains.build(), "U.S. economy", ["US"], 1),
        (lexical_match.build(), "Parisian", ["paris"], 1),
        (rouge_l.build(), "the cat sat on the mat", ["the cat is on the mat"], 5 / 6),
        (rouge_l.build(), "the cat sat on the mat", ["dog", "the cat is on the mat"], 5 / 6),
        # Precisions 5/6, 3/5, 1/4 and, smoothed, 1/6: (1/48) ** .25
        (bleu.build(), "the cat sat on the mat", ["the cat is on the mat"], 0.379918),
        (bleu.build(), "Paris", ["Paris"], 1),
        (bleu.build(), "in Paris", ["Paris"], 0.5),
        (bleu.build(), "paris", ["Paris"], 0),
        (bleu.build(lowercase=True), "paris", ["Paris"], 1),
    ],
)
def test_values(metric: AnswerMetric, answer: str, golds: list[str], expected: float) -> None:
    assert value(metric, answer, *golds) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("metric", STRINGS, ids=lambda metric: metric.name)
def test_an_empty_answer_scores_zero_and_no_answer_or_gold_nothing(metric: AnswerMetric) -> None:
    assert value(metric, " ", "Paris") == 0
    silent, unknown = metric.score([case(None, "Paris"), case("Paris", " ")])
    assert (silent.value, silent.reason) == (None, "there is no answer")
    assert (unknown.value, unknown.reason) == (None, "no gold answer")


@pytest.mark.parametrize("metric", STRINGS, ids=lambda metric: metric.name)
def test_a_gold_that_normalises_to_nothing_matches_nothing(metric: AnswerMetric) -> None:
    """EoR's regular expression finds it in every text. Alone it leaves nothing to compare."""
    assert not value(metric, "anything", "The")
    if "squad" in metric.estimator:
        [found] = metric.score([case("anything", "The")])
        assert found.reason == "no gold answer is left after normalisation (squad)"
        assert value(metric, "paris", "The", "Paris") == 1


@pytest.mark.parametrize("metric", STRINGS, ids=lambda metric: metric.name)
@settings(deadline=None)
@given(answer=TEXTS, golds=st.lists(TEXTS, max_size=3), randomness=st.randoms())
def test_values_lie_in_the_unit_interval_and_golds_are_a_set(
    metric: AnswerMetric, answer: str, golds: list[str], randomness: object
) -> None:
    found = value(metric, answer, *golds)
    assert found is None or 0 <= found <= 1
    if metric.binary:
        assert found in (None, 0, 1)
    shuffled = [*golds, *golds[:2]]
    randomness.shuffle(shuffled)  # type: ignore[attr-defined]
    assert value(metric, answer, *shuffled) == found


def test_every_metric_names_its_normaliser_and_all_are_listed() -> None:
    assert "normaliser=squad" in exact_match.build().estimator
    assert "normaliser=spaced" in f1.build(normaliser="spaced").estimator
    assert "case:mixed" in bleu.build().estimator
    assert "words" in rouge_l.build().estimator
    assert components.names(answer_metrics) == [
        "bertscore",
        "bleu",
        "contains",
        "equivalence",
        "exact_match",
        "f1",
        "judge_direct",
        "judge_reduction",
        "lexical_match",
        "rouge_l",
    ]


def test_bleu_without_its_library_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hopscope\[bleu\]'"):
        bleu.build()


def test_bertscore_of_an_encoder(tmp_path: Path) -> None:
    BertModel(BertConfig(**SHAPE)).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    metric = bertscore.build(model=str(tmp_path))
    assert value(metric, "Rome is big", "Rome is big") == pytest.approx(1, abs=1e-5)
    one, other = value(metric, "Rome", "Paris") or 0, value(metric, "Rome", "Oslo") or 0
    assert value(metric, "Rome", "Paris", "Oslo") == pytest.approx(max(one, other))
    assert value(metric, "", "Paris") == 0
    assert value(metric, None, "Paris") is None
    asked = [
        case("Rome", "Paris", "Oslo"),
        case("Oslo", "Paris", "Oslo"),
        case("x"),
        case("Rome", "Paris"),
    ]
    best, same, missing, alone = metric.score(asked)
    assert (best.value, alone.value) == pytest.approx((max(one, other), one))
    assert (same.value, missing.reason) == (pytest.approx(1, abs=1e-5), "no gold answer")
    assert "layer=" in metric.estimator
    with pytest.raises(UsageError, match="nowhere"):
        bertscore.build(model="/nowhere")


def test_equivalence_by_the_embedded_model() -> None:
    metric = equivalence.build(embedded.build())
    right, wrong = metric.score([case("It was Paris", "Paris"), case("Oslo", "Paris")])
    assert (right.value or 0) > 0.5 > (wrong.value or 0)
    assert value(metric, "Paris", "Paris", "Rome") == value(metric, "Paris", "Rome", "Paris")


def test_equivalence_with_the_best_gold_in_one_call() -> None:
    table = {("Paris, France", "Paris"): ENTAILS, ("Paris, France", "Rome"): CONTRADICTS}
    model = ScriptedEntailment(table)
    metric = equivalence.build(model)
    found = metric.score([case("Paris, France", "Rome", "Paris"), case("", "Rome"), case(None)])
    assert [m.value for m in found] == [1, 0, None]
    assert len(model.calls) == 1
    assert model.calls[0][0].question == "Who?"
    assert "scripted" in metric.estimator


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", 7),
        (" 10\n", 10),
        ("Rating: 8.", 8),
        ("8/10", 8),
        ("3 out of 10", 3),
        ("I say 9, surely 9", 9),
        ("0", None),
        ("11", None),
        ("-3", None),
        ("7.5", None),
        ("between 3 and 5", None),
        ("Lorden", None),
        ("", None),
        ("9" * 5000, None),
    ],
)
def test_a_rating_is_one_whole_number_from_1_to_10(text: str, expected: int | None) -> None:
    assert rating(text) == expected


def test_the_direct_judge_rates_what_the_evidence_contributes() -> None:
    reader = ScriptedReader([[reply("10")], [reply("4")], [reply("good")]])
    metric = judge_direct.build(reader)
    cases = [case(answer, evidence=("a",)) for answer in ("x", "y", "z")]
    found = metric.score([*cases, case("x"), case(None, evidence=("a",))])
    assert [m.value for m in found] == [1, pytest.approx(1 / 3), None, None, None]
    assert found[2].reason == "the judge's reply is no rating from 1 to 10: 'good'"
    assert found[3].reason == "no evidence to judge"
    assert found[4].reason == "there is no answer"
    [[request, *_]] = reader.generated
    assert request.temperature == 0
    assert request.prompt.shown == ("a",)
    assert "text of a" in request.prompt.messages[0].content
    assert "x" in request.prompt.messages[1].content


def test_the_reduction_judge_takes_the_difference_to_no_evidence() -> None:
    reader = ScriptedReader([[reply("10")], [reply("1")], [reply("2")], [reply("5")]])
    metric = judge_reduction.build(reader)
    found = metric.score([case("x", evidence=("a",)), case("y", evidence=("a",)), case(" ")])
    assert [m.value for m in found] == [1, pytest.approx(-1 / 3), None]
    [requests] = reader.generated
    assert [request.prompt.shown for request in requests] == [("a",), (), ("a",), ()]


def test_without_evidence_the_reduction_is_exactly_zero_and_asked_once() -> None:
    reader = ScriptedReader([[reply("7")]])
    [found] = judge_reduction.build(reader).score([case("x")])
    assert found.value == 0


def test_judges_on_the_embedded_reader_measure_or_say_why_not() -> None:
    reader = tiny.build()
    for metric in (judge_direct.build(reader), judge_reduction.build(reader)):
        [found] = metric.score([case("Paris", evidence=("a",))])
        assert (found.value is None) == ("no rating" in (found.reason or ""))
        assert reader.name in metric.estimator
