"""EoR's errors and relative win ratios. Vectors 12 and 16 of the specification are in here."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.runtime.types import Exchange, GenerationRequest, Measurement, Passage, Prompt, Run
from hopscope.tracing.error_decomposition.errors import (
    AnswerErrors,
    brief,
    indicators,
    of_answer,
    of_run,
    profile,
)
from hopscope.tracing.error_decomposition.inconsistency import Matrix, error_ratios, inconsistency
from hopscope.tracing.statistics.intervals import clopper_pearson
from tests.fakes import run_of, step

RIGHT, WRONG = Measurement(value=1.0), Measurement(value=0.0)
OBSERVED = st.builds(
    lambda gold, answer, correct: indicators(
        gold_in_document=gold, answer_in_document=answer, correct=correct
    ),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


def values(matrix: Matrix) -> list[list[float | None]]:
    return [[cell.value if cell else None for cell in row] for row in matrix]


def bits(text: str) -> list[bool]:
    return [character == "1" for character in text]


def errors(retriever: str, extraction: str) -> list[AnswerErrors]:
    """Questions with these errors and no other."""
    return [
        AnswerErrors(
            retriever=r, hallucination=False, extraction=e, lucky_guess=False, correct=False
        )
        for r, e in zip(bits(retriever), bits(extraction), strict=True)
    ]


def test_vector_12_relative_win_ratios() -> None:
    found = inconsistency({"a": bits("11010"), "b": bits("10100"), "c": bits("11100")})
    third = pytest.approx(1 / 3)
    assert values(found.rwr) == [
        [None, pytest.approx(2 / 3), 0.5],
        [0.5, None, 0],
        [0.5, third, None],
    ]
    wins = [m.value for m in found.mrwr]
    assert wins == pytest.approx([0.583333, 0.25, 0.416667], abs=1e-6)
    assert [m.value for m in found.mrlr] == pytest.approx([0.5, 0.5, 0.25])
    assert found.oracle.value == 0.8
    assert [m.value for m in found.accuracy] == [0.6, 0.4, 0.6]


def test_ratios_are_shares_with_their_counts_and_intervals() -> None:
    [[_, cell, _], *_] = inconsistency(
        {"a": bits("11010"), "b": bits("10100"), "c": bits("11100")}
    ).rwr
    assert cell is not None
    assert cell.n == 3
    assert (cell.low, cell.high) == clopper_pearson(2 / 3, 3)


def test_vector_16_ratios_of_errors_are_taken_where_the_error_is_defined() -> None:
    found = error_ratios({"a": errors("00010", "10100"), "b": errors("00100", "11001")})
    assert values(found["extraction"]) == [[None, pytest.approx(2 / 3)], [0, None]]
    assert values(found["retriever"]) == [[None, 1], [1, None]]


def test_lucky_guesses_are_compared_where_neither_system_had_the_document() -> None:
    def guess(lucky: bool) -> AnswerErrors:
        return indicators(gold_in_document=False, answer_in_document=False, correct=lucky)

    grounded = indicators(gold_in_document=True, answer_in_document=True, correct=True)
    one, other = [guess(True), guess(True), guess(True)], [guess(False), guess(True), grounded]
    found = error_ratios({"one": one, "other": other})
    assert values(found["lucky_guess"]) == [[None, 0], [0.5, None]]


def test_with_nothing_wrong_there_is_no_ratio_and_means_skip_it() -> None:
    """The paper draws -1."""
    found = inconsistency({"a": bits("11"), "b": bits("10"), "c": bits("00")})
    assert values(found.rwr)[1][0] is None
    assert found.rwr[1][0] is not None
    assert found.rwr[1][0].reason == "nothing that the other did wrong"
    assert [m.value for m in found.mrwr] == [1, 0.5, 0]
    assert [m.value for m in found.mrlr] == [None, 0.5, 0.75]
    assert found.mrlr[0].reason


def test_one_system_alone_and_no_question() -> None:
    alone = inconsistency({"a": bits("10")})
    assert alone.mrwr[0].value is None
    assert alone.oracle.value == 0.5
    empty = inconsistency({"a": [], "b": []})
    assert empty.oracle.reason == "no question that all answered"
    assert empty.mrwr[0].value is None
    with pytest.raises(ValueError, match=r"\[1, 2\] questions"):
        inconsistency({"a": bits("1"), "b": bits("10")})


def test_means_have_an_interval_that_covers() -> None:
    """20 worlds of two systems that err apart: RWR is the winner's accuracy. Nominal coverage
    fails this with p < .003."""
    rng, covered = np.random.default_rng(1), 0
    for seed in range(20):
        one, other = rng.random((2, 120)) < np.array([[0.6], [0.4]])
        [m, _] = inconsistency({"a": one.tolist(), "b": other.tolist()}, seed=seed).mrwr
        covered += (m.low or 1) <= 0.6 <= (m.high or 0)
    assert covered >= 16


def test_all_eight_cases() -> None:
    def seen(gold: bool, answer: bool, correct: bool) -> AnswerErrors:
        return indicators(gold_in_document=gold, answer_in_document=answer, correct=correct)

    assert seen(True, True, False).extraction
    assert seen(False, False, True).lucky_guess
    assert seen(True, False, True).residual == "right, in no document"
    assert seen(False, True, True).residual == "right, in a document without gold"
    cases = [seen(*case) for case in product([True, False], repeat=3)]
    assert sum(e.extraction for e in cases) == sum(e.lucky_guess for e in cases) == 1
    assert sum(e.residual is not None for e in cases) == 2


@settings(deadline=None)
@given(st.lists(OBSERVED, min_size=1, max_size=40))
def test_failures_and_residual_are_what_equation_4_adds_up_to(found: list[AnswerErrors]) -> None:
    shares = {name: m.value for name, m in profile(found).items()}
    retriever = shares["retriever"] or 0
    with_gold = (shares["hallucination_given_gold"] or 0) + (shares["extraction_given_gold"] or 0)
    lost = [e for e in found if e.retriever]
    invented = sum(e.hallucination for e in lost) / len(lost) if lost else 0
    without_gold = 1 - (shares["lucky_guess_given_neither"] or 0) * invented
    total = (1 - retriever) * with_gold + retriever * without_gold
    assert (shares["failure"] or 0) + (shares["residual"] or 0) == pytest.approx(total)


def test_a_profile_of_nothing_has_reasons() -> None:
    assert {m.value for m in profile([]).values()} == {None}
    [sole] = [indicators(gold_in_document=False, answer_in_document=False, correct=False)]
    found = profile([sole])
    assert found["extraction_given_gold"].reason == "no answer with gold shown"
    assert found["failure"].high == 1
    assert found["failure"].n == 1


def test_errors_of_an_answer_are_read_from_titles_and_texts_by_whole_words() -> None:
    page = Passage(title="Moon Harbor", text="Directed by Velora Tarn of Parisia.")
    assert of_answer([page], ["Velora Tarn"], "Velora Tarn.", correct=True) == indicators(
        gold_in_document=True, answer_in_document=True, correct=True
    )
    assert of_answer([page], ["the moon harbor"], "Paris", correct=False) == indicators(
        gold_in_document=True, answer_in_document=False, correct=False
    )
    # A name that ends a title and begins its text is in neither.
    assert of_answer([page], ["Harbor directed"], "", correct=False).retriever
    # A gold that normalises to nothing is in no document: EoR's expression finds it everywhere.
    assert of_answer([page], ["The"], "x", correct=False).retriever


def asked(index: int, shown: list[str], **fields: object) -> object:
    exchange = Exchange(
        request=GenerationRequest(prompt=Prompt(messages=())), generations=(), seconds=0
    )
    values = {"name": "answer", "kind": "generate", "shown": tuple(shown)}
    return step(index, **{**values, "exchanges": (exchange,), **fields})  # type: ignore[arg-type]


def two_hops() -> Run:
    """The first answer is asked for with "a" only, the last with "a" and "b"; "c" is dangling."""
    found = run_of(["a"], ["b", "c"], answers=["text of b"])
    first, second = found.steps
    steps = (
        asked(0, []),
        first.model_copy(update={"index": 1, "shown": ()}),
        asked(2, ["a"]),
        second.model_copy(update={"index": 3, "shown": ()}),
        asked(4, ["a", "b"]),
    )
    return found.model_copy(update={"steps": steps, "answer": "text of c"})


def test_each_step_is_judged_by_what_it_showed_and_the_final_answer() -> None:
    found = of_run(two_hops(), WRONG)
    assert [located.step for located in found] == [None, 0, 1, 2, 3, 4]
    run, closed_book, retrieval, one, _, both = found
    assert run.errors == both.errors
    assert run.errors == indicators(gold_in_document=True, answer_in_document=False, correct=False)
    assert closed_book.errors == indicators(
        gold_in_document=False, answer_in_document=False, correct=False
    )
    assert (retrieval.errors, retrieval.reason) == (None, "the step asked no model")
    assert one.errors is not None
    assert one.errors.retriever


def test_an_answer_is_right_from_the_threshold_on() -> None:
    run = two_hops()
    for value, right in [(0.8, True), (0.79, False)]:
        whole = of_run(run, Measurement(value=value), threshold=0.8)[0]
        assert whole.errors is not None
        assert whole.errors.correct is right


def test_without_verdict_or_answer_there_is_a_reason_for_each_step() -> None:
    run = two_hops()
    found = of_run(run, Measurement(value=None, reason="no gold answer"))
    assert {located.reason for located in found} == {"no gold answer"}
    silent = of_run(run.model_copy(update={"answer": None}), RIGHT)
    assert {(located.errors, located.reason) for located in silent} == {
        (None, "there is no answer")
    }


def test_long_answers_are_told_apart() -> None:
    assert brief("one two three four five")
    assert not brief("one two three four five six")
