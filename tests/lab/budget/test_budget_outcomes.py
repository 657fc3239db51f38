"""Rows of outcomes as people have them: with nulls, fields of their own, and gaps."""

import json
from pathlib import Path

import pytest

from hopscope.lab.budget.outcomes import Cost, cost, read
from hopscope.runtime.budget.prices import ModelPrice, Price
from hopscope.runtime.errors import CorpusError, UsageError

ROW = {
    "question": "Who founded Ravo?",
    "dataset": "hotpotqa",
    "answers": ["Ina Dorn"],
    "predictions": {"none": "Tom Hale", "one": "It was Ina Dorn.", "ircot": None},
    "accurate": {"ircot": 0.5, "none": None},
    "steps": {"ircot": 4},
    "closed_book_reasoning": None,
    "another": {"field": 1},
}


def written(tmp_path: Path, *rows: object) -> Path:
    path = tmp_path / "outcomes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_scores_come_from_the_row_or_from_its_answers(tmp_path: Path) -> None:
    found = read([written(tmp_path, ROW)])
    assert found.arms == ("none", "one", "ircot"), "by cost"
    assert found.scores.tolist() == [[0.0, 1.0, 0.5]]
    assert found.costs.tolist() == [[0.0, 1.0, 4.0]]
    assert found.rows[0].draft == "Tom Hale"
    assert found.rows[0].set == "hotpotqa"


def test_one_answer_and_numbers_are_taken_as_texts(tmp_path: Path) -> None:
    row = {"question": "q", "answers": "7", "predictions": {"none": 7, "one": 8}}
    assert read([written(tmp_path, row)]).scores.tolist() == [[1.0, 0.0]]


def test_costs_that_rows_do_not_tell(tmp_path: Path) -> None:
    """The nearest source counts: given for the set, for all, learned, published."""
    row = {**ROW, "steps": None}
    path = written(tmp_path, row, {**row, "dataset": "nq"})
    assert read([path]).costs[:, 2].tolist() == [3.4, 2.8]
    assert read([path], known={(None, "ircot"): 5.0}).costs[:, 2].tolist() == [5.0, 5.0]
    given = [Cost("ircot", 2.0), Cost("ircot", 3.0, "nq")]
    assert read([path], costs=given).costs[:, 2].tolist() == [2.0, 3.0]
    other = written(tmp_path, {**row, "dataset": "mine"})
    with pytest.raises(UsageError, match="ircot's cost in steps is not known in mine: give"):
        read([other])


def test_money_follows_from_tokens_and_prices(tmp_path: Path) -> None:
    """By hand: 900 prompt tokens at 2, 100 cached at 1 and 50 generated at 4 a million, and two
    queries at .001."""
    row = {
        "question": "q",
        "accurate": {"none": 0, "one": 1},
        "input_tokens": {"one": 1000, "none": 10},
        "cached_tokens": {"one": 100},
        "output_tokens": {"one": 50, "none": None},
        "retrievals": {"one": 2},
        "money": {"none": 0.5},
    }
    path = written(tmp_path, row)
    assert read([path], unit="tokens").costs.tolist() == [[10.0, 1050.0]]
    price = Price(model=ModelPrice(input=2, cached=1, output=4), retrieval=0.001)
    found = read([path], unit="money", price=price)
    assert found.arms == ("one", "none"), "by cost"
    assert found.costs[0].tolist() == pytest.approx([0.0041, 0.5])
    with pytest.raises(UsageError, match=r"one's cost in money is not known.*--model NAME"):
        read([path], unit="money")


def test_rows_that_lack_an_arm_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, ROW, {"question": "q", "accurate": {"none": 1, "one": 1}})
    found = read([path])
    assert (len(found.rows), found.left_out) == (1, 1)
    assert len(read([path], arms=["none", "one"]).rows) == 2
    with pytest.raises(UsageError, match="no row has the arm two"):
        read([path], arms=["two"])


def test_token_probabilities_become_signals(tmp_path: Path) -> None:
    row = {**ROW, "logprobs": [0.0, -0.6931471805599453], "signals": {"own": 2, "none": None}}
    signals = read([written(tmp_path, row)]).rows[0].signals
    assert signals["least_prob"] == pytest.approx(0.5)
    assert signals["margin"] == pytest.approx(0.5)
    assert signals["own"] == 2
    assert "none" not in signals


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"question": "q"}, "no arm has a score: give `accurate` by arm"),
        ({"accurate": {"none": 1}}, "question: it is missing"),
        ({"question": "q", "accurate": {"none": 2}}, "accurate.none: give 1.0 or less"),
        ({**ROW, "logprobs": [1000]}, "logprobs.*: give 0.001 or less"),
        ("text", "line 1: expected one JSON object a line"),
        ([ROW], "line 1: expected one JSON object a line"),
    ],
)
def test_a_line_that_is_no_row(row: object, told: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=told):
        read([written(tmp_path, row)])


@pytest.mark.parametrize("text", ["ircot", "=3", "ircot=x", "ircot=-1", "ircot=inf"])
def test_a_cost_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="give ARM=N or SET:ARM=N"):
        cost(text)
    assert cost("a:ircot=3") == Cost("ircot", 3.0, "a")
