"""EoR's table: what is compared on what, and how."""

from collections.abc import Sequence

import pytest

from hopscope.lab.suites import worlds
from hopscope.lab.suites.columns import apart, mean
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.table_forms.table import Table
from hopscope.lab.validity.eor import (
    ENSEMBLE,
    KNOWN,
    POOL,
    EnsembleComparison,
    build,
    compare,
    halves,
    losses,
    questions,
    tabulate,
)
from hopscope.runtime.readers import tiny
from hopscope.runtime.types import GenerationRequest, Measurement, Passage, Question
from hopscope.tracing.answer_metrics import exact_match
from hopscope.tracing.entailments import lexical
from hopscope.tracing.error_decomposition.inconsistency import inconsistency
from hopscope.tracing.scoring.metric import Case
from hopscope.tracing.statistics.over_questions import Bootstrap, Difference, Estimate
from tests.probes import Speaker

RIGHT = {"a": (True, True, False, True, False), "b": (True, False, True, False, False)}
RIGHT |= {"c": (True, True, True, False, False)}
MRLR = {"a": 0.5, "b": 0.5, "c": 0.25}  # vector 12


@pytest.mark.parametrize("name", RIGHT)
def test_mrlr_over_questions_is_that_of_tracing(name: str) -> None:
    column = losses(name, RIGHT)
    value = column.above.sum() / column.below.sum()
    assert value == pytest.approx(MRLR[name])
    told = inconsistency(RIGHT).mrlr[list(RIGHT).index(name)].value
    assert value == pytest.approx(told)


def test_ratios_are_apart_by_what_resampling_both_together_gives() -> None:
    """A column is no way from itself, and 1 from none in each resample."""
    one, none = mean([1.0, 1.0, 1.0]), mean([0.0, 0.0, 0.0])
    mixed = mean([0.0, 1.0, 1.0])
    same = apart(mixed, mixed, Bootstrap())
    assert (same.value, same.low, same.high) == (0, None, None)
    assert apart(one, none, Bootstrap()).value == 1
    third = apart(one, mixed, Bootstrap())
    assert third.value == pytest.approx(1 / 3)
    assert (third.low, third.high) == (0, 1)
    assert third.measured == 3
    assert apart(one, mean([None] * 3), Bootstrap()).reason


def cases(*answers: str) -> list[Case]:
    return [Case(Question(text="Who?", answers=("gold",)), answer) for answer in answers]


def test_the_ensemble_is_compared_with_the_best_of_both_kinds() -> None:
    """b is the best here, a was it where the weights were learned."""
    systems = {
        ENSEMBLE: cases("gold", "gold", "gold", "x"),
        "a": cases("gold", "x", "x", "gold"),
        "b": cases("gold", "gold", "x", "gold"),
    }
    trained = {"a": cases("gold", "gold"), "b": cases("gold", "x")}
    made = EnsembleComparison(systems, "a", trained, 5)
    table, gains, bound, splits = tabulate(made, exact_match.build(), seed=0)
    values = {row["system"]: [_value(row[key]) for key in list(row)[1:]] for row in table.rows}
    # The fourth question, the only one that EoR gets wrong, both of the pool get right.
    assert values[ENSEMBLE] == [0.75, 0.75, 1]
    assert values["a"] == [0.5, 0.5, 0.5]
    assert values["b"] == [0.75, 0.75, 0]
    assert "from 2 questions; 4 of 5" in table.notes[0]
    learned, compared = gains.rows
    assert [_value(learned[key]) for key in list(learned)[1:]] == [0.25, 0.25, 0.5]
    assert [_value(compared[key]) for key in list(compared)[1:]] == [0, 0, 1]
    assert "on the training questions: a; on the compared: b" in gains.notes[0]
    # What a gets right, b does, too: together they are right on 3 of 4 questions.
    assert [(row["size"], row["pools"], row["lowest"], row["highest"]) for row in bound.rows] == [
        ("1", 2, 0.5, 0.75),
        ("2", 1, 0.75, 0.75),
    ]
    assert [_value(row["mean"]) for row in bound.rows] == [0.625, 0.75]
    told = {row["retriever"]: [_value(row[key]) for key in list(row)[1:]] for row in splits.rows}
    assert told == {"a": [1, 0.5, 1, 0.5], "b": [0.5, 0.75, 0.5, 0.75]}


def _value(cell: object) -> float | None:
    assert isinstance(cell, Estimate | Difference | Measurement)
    return cell.value


WORLD = [Passage(id=f"p{i}", title=f"Thing {i}", text=f"Thing {i} is zog{i}.") for i in range(40)]


def asked(places: Sequence[int]) -> list[Question]:
    return [Question(text=f"What is Thing {i}?", answers=(f"zog{i}",), id=str(i)) for i in places]


def reading(request: GenerationRequest) -> str:
    """Answers where the passage is shown, and otherwise wrongly in as many ways as there are
    contexts."""
    wanted = next(q for q in asked(range(40)) if q.text in request.prompt.messages[-1].content)
    shown = request.prompt.shown
    return f"zog{wanted.id}" if f"p{wanted.id}" in shown else f"none of {' '.join(shown)}"


def test_each_source_holds_what_the_other_lacks_and_a_third_is_in_both() -> None:
    wiki, engine = halves(WORLD, seed=0)
    assert {*wiki, *engine} == set(WORLD)
    assert 5 <= len(set(wiki) & set(engine)) <= 22
    assert set(wiki) - set(engine)
    assert set(engine) - set(wiki)


def test_the_ensemble_learns_to_hear_those_that_find_the_passage() -> None:
    """The reader gives away what it was shown, so each retriever is as good as what its source
    holds; both sources together are always right, and the ensemble learns to trust them."""
    compared = compare(
        Speaker(reading),
        lexical.build(),
        WORLD,
        learned=asked(range(0, 40, 2)),
        asked=asked(range(1, 40, 2)),
        seed=0,
    )
    assert list(compared.systems) == [ENSEMBLE, *POOL.split(",")]
    wiki, engine = ({passage.id for passage in half} for half in halves(WORLD, seed=0))
    for name, held in (("Wiki@1", wiki), ("SE@1", engine), ("SE@2&Wiki@2", wiki | engine)):
        right = [case.answer in case.question.answers for case in compared.systems[name]]
        assert right == [f"p{i}" in held for i in range(1, 40, 2)]
    assert not any(case.answer in case.question.answers for case in compared.systems["ReFree"])
    together = [case.answer in case.question.answers for case in compared.systems[ENSEMBLE]]
    assert sum(together) > 15
    assert compared.best == "SE@2&Wiki@2"
    assert {len(of) for of in compared.trained.values()} == {20}
    assert compared.asked == 20


def test_what_fails_is_left_out_and_counted() -> None:
    def failing(request: GenerationRequest) -> str:
        if "Thing 3?" in request.prompt.text:
            raise ValueError("no")
        return reading(request)

    compared = compare(
        Speaker(failing),
        lexical.build(),
        WORLD,
        learned=asked(range(10, 16)),
        asked=asked([1, 3, 5]),
        seed=0,
    )
    assert compared.asked == 3
    for found in compared.systems.values():
        assert [case.question.id for case in found] == ["1", "5"]


@pytest.fixture(scope="module")
def inputs() -> SuiteInputs:
    return worlds.make(tiny.build(), seed=5, limit=1)


def test_one_question_in_five_stands_in_every_world(inputs: SuiteInputs) -> None:
    found = questions(inputs, 4 * KNOWN)
    assert len({question.text for question in found}) == 4 * KNOWN
    known = [place for place, question in enumerate(found) if question.id.startswith("known")]
    assert known == [8, 9, 18, 19]
    assert found[:10] == questions(inputs, 10)


def test_the_real_reader_votes_through_the_real_workflow(inputs: SuiteInputs) -> None:
    table, gains, bound, splits = build(inputs)
    assert isinstance(table, Table)
    assert [row["system"] for row in table.rows] == [ENSEMBLE, *POOL.split(",")]
    assert [row["pools"] for row in bound.rows] == [8, 28, 56, 70, 56, 28, 8, 1]
    assert [row["retriever"] for row in splits.rows] == POOL.split(",")
    for row in (*table.rows, *gains.rows):
        for column, cell in row.items():
            if isinstance(cell, Estimate | Difference) and cell.value is None:
                # Of the one question nothing was answered wrongly, so nothing was corrected.
                assert (column, cell.reason) == ("mrlr", "nothing that it did wrong")
            elif isinstance(cell, Estimate | Difference):
                assert cell.measured == 1
                assert cell.value in (-1, 0, 1)
