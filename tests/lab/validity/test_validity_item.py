"""ITEM's table: which passages were chosen, and how choices are counted."""

import re
from collections.abc import Callable

import pytest

from hopscope.lab.suites import worlds
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.table_forms.table import Table
from hopscope.lab.validity.item import GOLDEN, GUESS, build, by_grade, listed, tabulate
from hopscope.lab.validity.item.selections import macro_f1, micro
from hopscope.lab.validity.item.ways import (
    BASELINE,
    FEWEST,
    MOST,
    ROUNDS,
    FixedRetriever,
    Listed,
    choices,
    judge,
    ways,
)
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.readers import tiny
from hopscope.runtime.types import GenerationRequest, Passage, Question
from hopscope.tracing.statistics.over_questions import Difference, Estimate
from hopscope.workflows import item
from tests.probes import Speaker, task

LISTED = [
    Listed(
        Question(text=f"Question {number}?", answers=("x",)),
        tuple(Passage(id=f"{number}{letter}", text=f"Text {letter}.") for letter in "abcdef"),
        frozenset({f"{number}b", f"{number}e"}),
        {f"{number}b": 3, f"{number}e": 1},
    )
    for number in (1, 2)
]
NAMES = [
    "Vanilla",
    "UJ-ExpA",
    "UJ-ImpA",
    "k-sampling",
    *(f"ITEM-As ({m})" for m in range(1, 6)),
    *(f"ITEM-As implicit ({m})" for m in range(1, 6)),
    *(f"ITEM-ARs ({m})" for m in range(1, 6)),
]


def selecting(wanted: Callable[[str], bool]) -> Speaker:
    """A reader that selects the listed passages of these keys, and else says next to nothing."""

    def say(request: GenerationRequest) -> str:
        if "My selection" not in task(request):
            return "x"
        shown = request.prompt.shown
        numbers = [f"[{place}]" for place, key in enumerate(shown, start=1) if wanted(key)]
        return f"My selection:[{','.join(numbers)}]."

    return Speaker(say)


def test_micro_counts_passages_and_macro_questions() -> None:
    """Three right, one wrong and two missed are vector 17; a failed run counts in neither."""
    made = [["a", "b", "x"], ["c"], None]
    golds = [{"a", "b"}, {"c", "d", "e"}, {"f"}]
    found, macro = micro(made, golds), macro_f1(made, golds)
    values = {key: each.above.sum() / each.below.sum() for key, each in found.items()}
    assert values == pytest.approx({"precision": 3 / 4, "recall": 3 / 5, "micro_f1": 2 / 3})
    assert macro.above.sum() / macro.below.sum() == pytest.approx((0.8 + 0.5) / 2)
    assert found["micro_f1"].measured.sum() == macro.measured.sum() == 2
    assert found["micro_f1"].asked.sum() == 3


def test_a_question_for_which_nothing_is_chosen_is_missed_not_left_out() -> None:
    macro = macro_f1([[], ["a"]], [{"a"}, {"a"}])
    assert macro.above.sum() / macro.below.sum() == 0.5


def test_a_reader_that_knows_the_gold_has_f1_1_by_every_way() -> None:
    made = judge(selecting(lambda key: key[1] in "be"), LISTED, ways(), seed=0)
    assert list(made) == NAMES
    for chosen in made.values():
        assert [set(choice or ()) for choice in chosen] == [row.gold for row in LISTED]


def test_what_cannot_be_read_chooses_nothing() -> None:
    made = judge(Speaker(lambda request: "x"), LISTED, ways(), seed=0)
    assert all(choice == [] for chosen in made.values() for choice in chosen)


def narrowing(request: GenerationRequest) -> str:
    """Drafts how many passages it sees, and selects one fewer than the draft says, two at least:
    the choice depends on the round."""
    if "My selection" not in task(request):
        return f"sees {len(request.prompt.shown)}"
    said = re.search(r"sees (\d)", task(request))
    count = max(2, int(said.group(1)) - 1) if said else 6
    return f"My selection:[{','.join(f'[{place}]' for place in range(1, count + 1))}]."


@pytest.mark.parametrize("m", range(1, ROUNDS + 1))
def test_one_run_tells_what_every_smaller_m_would_choose(m: int) -> None:
    """A loop that had settled is told of too: with six passages the fourth round changes
    nothing and there is no fifth."""
    reader, row = Speaker(narrowing), LISTED[0]
    way = next(way for way in ways() if way.name == "ITEM-As")
    deps = Deps(reader, FixedRetriever(row.candidates))
    told = choices(run(Workflow("item", way.over(MOST), {}), row.question, deps), way)
    assert [len(choice or ()) for choice in told] == [5, 4, 3, 2, 2]
    alone = run(Workflow("item", item.build(m=m), {}), row.question, deps)
    assert choices(alone, way)[m - 1] == told[m - 1]
    assert sum(step.name == "judge_utility" for step in alone.steps) <= m


def test_a_run_that_failed_chose_nothing_that_could_count() -> None:
    def fail(request: GenerationRequest) -> str:
        raise ValueError("no")

    made = judge(Speaker(fail), LISTED, ways(), seed=0)
    assert list(made) == NAMES
    assert all(choice is None for chosen in made.values() for choice in chosen)
    made = {GUESS: [row.gold for row in LISTED]} | made
    [_, vanilla, expa, *_] = tabulate(made, LISTED, seed=0).rows
    assert isinstance(vanilla["micro_f1"], Estimate)
    assert vanilla["micro_f1"].value is None
    assert vanilla["micro_f1"].reason
    assert isinstance(expa["gain"], Difference)
    assert expa["gain"].value is None
    assert expa["gain"].reason


def test_ways_are_compared_with_vanilla_on_the_same_questions() -> None:
    """Vanilla has half of the first question's gold and all of the second's: 6 of 7. Who has
    everything is above it by 1/7, by 1/3 to 0 in resamples of one question only."""
    golds = [sorted(row.gold) for row in LISTED]
    made = {BASELINE: [golds[0][:1], golds[1]], "perfect": golds}
    first, second = tabulate(made, LISTED, seed=0).rows
    assert "gain" not in first
    gain = second["gain"]
    assert isinstance(gain, Difference)
    assert gain.value == pytest.approx(1 / 7)
    assert (gain.low, gain.high) == pytest.approx((0, 1 / 3))
    assert gain.measured == 2


def test_precision_by_the_grade_that_counts() -> None:
    """Of four chosen passages one has grade 3, two have 1 and one has none."""
    made = {GUESS: [["1b", "1e", "1a"], ["2e"]], "failed": [None, None]}
    table = by_grade(made, LISTED, seed=0)
    guess, failed = table.rows
    assert list(table.columns) == ["way", "grade_1", "grade_3"]
    values = [cell.value for cell in guess.values() if isinstance(cell, Estimate)]
    assert values == [3 / 4, 1 / 4]
    assert isinstance(failed["grade_1"], Estimate)
    assert failed["grade_1"].reason == "no run came to an end"


def test_pointwise_judgment_leaves_out_what_cannot_do_it() -> None:
    pointwise = {name: {"judgment": "pointwise"} for name in ("vanilla", "item")}
    asked: list[str] = []

    def say(request: GenerationRequest) -> str:
        asked.append(task(request))
        return "My judgment: Yes, it has utility." if "My judgment" in asked[-1] else "x"

    made = judge(Speaker(say), LISTED, ways(pointwise), seed=0)
    names = [name for name in NAMES if "ARs" not in name and name != "k-sampling"]
    assert list(made) == names
    assert [len(choice or ()) for choice in made["Vanilla"]] == [6, 6]
    assert [len(choice or ()) for choice in made["ITEM-As (1)"]] == [6, 6]


@pytest.fixture(scope="module")
def inputs() -> SuiteInputs:
    return worlds.make(tiny.build(), seed=3, limit=5)


def test_candidates_are_the_gold_passages_among_others(inputs: SuiteInputs) -> None:
    sizes = set()
    first = 0
    for asked in (*inputs.questions(1, 12), *inputs.questions(2, 12)):
        row = listed(inputs, asked)
        keys = [passage.key for passage in row.candidates]
        assert FEWEST <= len(keys) == len(set(keys)) <= MOST
        assert row.gold == {passage.key for passage in asked.gold} <= set(keys)
        assert row == listed(inputs, asked)
        sizes.add(len(keys))
        first += keys[0] in row.gold
    assert len(sizes) > 2
    assert first < 20


def test_the_real_reader_judges_through_the_real_workflows(inputs: SuiteInputs) -> None:
    """Of five questions three are asked; choosing everything misses nothing of the four gold
    passages, which stand among 15 to 30."""
    made, told = build(inputs)
    assert isinstance(made, Table)
    assert [row["way"] for row in made.rows] == [GUESS, *NAMES]
    for row in made.rows:
        micro = row["micro_f1"]
        assert isinstance(micro, Estimate)
        assert micro.value is not None
        assert 0 <= micro.value <= 1
        assert micro.questions == 3
    guess = made.rows[0]["micro_f1"]
    assert isinstance(guess, Estimate)
    assert guess.value is not None
    assert 2 * 4 / (4 + 30) <= guess.value <= 2 * 4 / (4 + 15)
    assert [row["way"] for row in told.rows] == [GOLDEN, GUESS, *NAMES]
    for row in told.rows:
        for score in (row["em"], row["f1"]):
            assert isinstance(score, Estimate)
            assert score.measured == 3


def test_an_interruption_ends_the_suite_and_is_no_failed_run() -> None:
    """`run` catches Ctrl-C to keep its record, so a loop over runs would go on."""

    def interrupt(request: GenerationRequest) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(Speaker(interrupt), LISTED, ways(), seed=0)
