"""Tables of a small experiment, worked out on paper."""

import csv
from dataclasses import replace
from io import StringIO

import pytest

from hopscope.lab.experiments.results import Results
from hopscope.lab.table_forms.csv import comma_separated
from hopscope.lab.table_forms.latex import latex
from hopscope.lab.table_forms.markdown import markdown
from hopscope.lab.table_forms.table import Cell, Table, stacked
from hopscope.lab.table_forms.text import cell_text
from hopscope.lab.tables import (
    correlations,
    credit_by_step,
    credit_per_tokens,
    differences,
    flipped,
    overview,
    seper_benchmark,
    upper_bound,
    win_ratios,
)
from hopscope.runtime.budget.prices import ModelPrice, Price
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Measurement
from hopscope.store.experiments.result_rows import ResultRow, Utility, Value
from hopscope.tracing.statistics.over_questions import Difference, Estimate, mcnemar
from tests.lab.tables.tables_example import QUESTIONS, TWO, experiment, figures, results, retrievals


def figure(cell: Cell) -> tuple[float | None, int, int]:
    assert isinstance(cell, Estimate | Difference)
    value = None if cell.value is None else round(cell.value, 10)
    return value, cell.measured, cell.total


def test_the_overview_has_means_over_what_was_measured() -> None:
    [table] = overview.build(results())
    one, two = table.rows
    assert (one["system"], one["questions"], one["failed"]) == ("one", 4, 1)
    # The failed item is in no mean, whatever it cost.
    assert figure(one["exact_match"]) == (1.0, 3, 4)
    assert figure(two["exact_match"]) == (0.25, 4, 4)
    # "up north" shares one of two words: F1 is 2/3.
    assert figure(two["f1"]) == (pytest.approx((1 + 2 / 3) / 4), 4, 4)
    assert figure(one["seper_delta"]) == (0.3, 3, 4)
    assert figure(two["seper_delta"]) == (0.1, 2, 4)
    assert figure(two["tokens"]) == (650, 4, 4)
    assert figure(two["calls"]) == (4, 4, 4)
    assert figure(one["grogu"]) == (None, 0, 4)
    assert isinstance(one["exact_match"], Estimate)
    assert one["exact_match"].interval == "clopper-pearson"
    assert "GroGU of two: not appraised" in table.notes
    assert any(note.startswith("95 % intervals: clopper-pearson; boot") for note in table.notes)


def test_money_is_counted_where_a_price_is_known() -> None:
    model = ModelPrice(input=10.0, output=100.0)
    known = results(prices=lambda _: Price(model=model, retrieval=0.5))
    [table] = overview.build(known)
    # 90 tokens read, 10 written, one query.
    assert figure(table.rows[0]["cost"]) == (90 * 1e-5 + 10 * 1e-4 + 0.5, 3, 4)
    assert table.columns["cost"] == "USD"
    [unknown] = overview.build(results())
    assert figure(unknown.rows[0]["cost"]) == (None, 0, 4)
    assert "no price is known of tiny@1" in " ".join(unknown.notes)


def test_differences_are_on_the_same_questions() -> None:
    [table] = differences.build(results())
    rows = {row["measure"]: row for row in table.rows}
    # Over q0, q1 and q2, where `one` did not fail: 1, 0 and 1.
    assert figure(rows["EM"]["difference"]) == (pytest.approx(2 / 3), 3, 4)
    assert rows["EM"]["p"] == pytest.approx(mcnemar(2, 0))
    # Over q0 and q1, the only ones where `two` has a belief: .1 and .2.
    assert figure(rows["ΔSePer"]["difference"]) == (0.15, 2, 4)
    assert figure(rows["tokens"]["difference"]) == (-500, 3, 4)
    assert "GroGU" not in rows


def test_the_pairs_of_a_measure_are_one_family() -> None:
    """With three systems p-values of 1/2, 1/4 and 1 become 1, 3/4 and 1."""
    extra = [
        row._replace(arm="three", answer="south" if i < 3 else "north")
        for i, row in enumerate(r for r in figures() if r.arm == "one")
    ]
    whole = [row._replace(error=None, answer=row.answer or "north") for row in figures()]
    extra = [row._replace(error=None) for row in extra]
    [table] = differences.build(results(rows=[*whole, *extra]))
    rows = [row for row in table.rows if row["measure"] == "EM"]
    assert [(row["system"], row["versus"]) for row in rows] == [
        ("one", "two"),
        ("one", "three"),
        ("two", "three"),
    ]
    p = [row["p"] for row in rows]
    # Disagreements: 3 to 0, 3 to 0, 1 to 1.
    assert p == pytest.approx([0.25, 0.25, 1.0])
    assert [row["adjusted"] for row in rows] == pytest.approx([0.75, 0.75, 1.0])


def test_credit_by_retrieval() -> None:
    [table] = credit_by_step.build(results())
    first, second = table.rows
    assert (first["system"], first["retrieval"], first["runs"]) == ("two", 1, 3)
    assert figure(first["trajectory"]) == (0.2, 2, 3)
    assert figure(first["shapley"]) == (0.15, 2, 3)
    assert figure(first["tokens"]) == (150, 3, 3)
    assert figure(second["trajectory"]) == (-0.2, 1, 1)
    assert figure(second["leave_one_out"]) == (None, 0, 1)


def test_credit_per_1000_tokens_is_a_ratio_of_sums() -> None:
    [table] = credit_per_tokens.build(results())
    rows = {(row["system"], row["part"]): figure(row["credit"]) for row in table.rows}
    # ΔSePer .2 + .3 + .4 for 3 · 100 tokens.
    assert rows["one", "whole run"] == (3.0, 3, 4)
    # .1 + .1 for 500 + 600 tokens: those of runs without a belief do not count.
    assert rows["two", "whole run"] == (pytest.approx(0.2 / 1.1), 2, 4)
    assert rows["two", "retrieval 1"] == (1.0, 2, 3)
    assert rows["two", "retrieval 2"] == (pytest.approx(-1 / 3), 1, 1)


def test_the_layout_of_sepers_benchmark() -> None:
    """k=10 comes after k=3, as in the paper."""
    naive, ircot = experiment().arms
    arms = {"arms": (naive.model_copy(update={"settings": {"options": {"k": 10}}}), ircot)}
    given = (experiment("a", data="data/nq.jsonl"), experiment("b", reader="big@2"))
    both = [each.model_copy(update=arms) for each in given]
    level, change = seper_benchmark.build(results(*both))
    assert (level.name, change.name) == ("seper_benchmark_seper", "seper_benchmark_seper_delta")
    heads = ["k=3, big@2", "k=3, tiny@1", "k=10, big@2", "k=10, tiny@1"]
    assert list(level.columns) == ["dataset", "workflow", *heads]
    rows = {(row["dataset"], row["workflow"]): row for row in level.rows}
    assert set(rows) == {("nq", "naive"), ("nq", "ircot"), ("b", "naive"), ("b", "ircot")}
    assert figure(rows["nq", "naive"]["k=10, tiny@1"]) == (0.6, 3, 4)
    assert "k=10, big@2" not in rows["nq", "naive"]


def test_relative_win_ratios() -> None:
    """Over q0, q1 and q2: `two` is wrong twice, both of which `one` gets right; `one` never is."""
    [table] = win_ratios.build(results())
    one, two = table.rows
    won = one["over two"]
    assert isinstance(won, Measurement)
    assert (won.value, won.n) == (1.0, 2)
    assert one["over one"] is None
    lost = two["over one"]
    assert isinstance(lost, Measurement)
    assert lost.reason == "nothing that the other did wrong"
    assert table.notes[-1] == "any of them right: 1.00"
    assert table.notes[0] == "over 3 questions"


def test_the_upper_bound_of_pools() -> None:
    """Over q0, q1 and q2: `one` is right on all, `two` on q1 only."""
    [table] = upper_bound.build(results())
    alone, both = table.rows
    assert (alone["size"], alone["pools"]) == ("1", 2)
    assert (alone["lowest"], alone["highest"]) == (pytest.approx(1 / 3), 1)
    assert (both["size"], both["pools"], both["lowest"], both["highest"]) == ("2", 1, 1, 1)
    assert figure(alone["mean"]) == (pytest.approx(2 / 3), 3, 3)
    assert table.notes[:2] == ("over 3 questions", "highest with one; one, two")


def test_one_question_is_no_plural() -> None:
    won = win_ratios.heat_map("n", "t", ["one"], [[None]], questions=1)
    bound = upper_bound.tabulate("n", {"one": [True]}, results().bootstrap)
    assert won.notes[0] == bound.notes[0] == "over 1 question"


def test_flipped_questions() -> None:
    counts, listed = flipped.build(results())
    [row] = counts.rows
    assert (row["both"], row["only_system"], row["only_versus"], row["neither"]) == (1, 2, 0, 0)
    assert row["p"] == row["adjusted"] == pytest.approx(0.5)
    assert [(r["right"], r["wrong"], r["id"]) for r in listed.rows] == [
        ("one", "two", "q0"),
        ("one", "two", "q2"),
    ]
    assert listed.rows[0]["said_wrong"] == "south"
    assert listed.rows[0]["golds"] == "north | the north"


def test_utilities_are_correlated_with_answers() -> None:
    """SePer of `two` over q0 and q1 is constant; that of `one` rises where its answers are right,
    if q2's is taken for wrong: ranks (1, 2, 3) by (2.5, 2.5, 1) have τ-b = -2/√6."""
    rows = [row._replace(answer="south") if row.run_id == "one-2" else row for row in figures()]
    [table] = correlations.build(results(rows=rows))
    found = {(row["system"], row["measure"]): row for row in table.rows}
    tau = found["one", "SePer"]["kendall"]
    assert isinstance(tau, Measurement)
    assert tau.value == pytest.approx(-2 / 6**0.5)
    assert found["one", "SePer"]["questions"] == 3
    constant = found["two", "SePer"]["spearman"]
    assert isinstance(constant, Measurement)
    assert constant.reason == "a constant series has no order"
    assert "no correlation, a constant series has no order: two, SePer; two, ΔSePer" in table.notes


def test_tables_by_a_property_of_the_questions() -> None:
    parts = results(by="hops").strata()
    assert [name for name, _ in parts] == ["1", "2"]
    [table] = stacked([(name, overview.build(part)) for name, part in parts], "hops")
    assert list(table.columns)[:2] == ["hops", "system"]
    [won] = stacked([(name, win_ratios.build(part)) for name, part in parts], "hops")
    assert won.notes[:2] == ("hops 1: over 2 questions", "95 % intervals: clopper-pearson")
    rows = {(row["hops"], row["system"]): row for row in table.rows}
    assert figure(rows["1", "two"]["exact_match"]) == (0.5, 2, 2)
    assert figure(rows["2", "one"]["exact_match"]) == (1.0, 1, 2)


def test_several_experiments_are_told_apart_or_pooled_by_question() -> None:
    both = (experiment("a"), experiment("b", reader="big@2"))
    assert results(*both, by="experiment").systems == ("a: one", "a: two", "b: one", "b: two")
    assert results(*both, by="reader").systems[0] == "one, tiny@1"
    pooled: Results = results(*both, by="workflow")
    [table] = overview.build(pooled)
    found = table.rows[1]["exact_match"]
    assert isinstance(found, Estimate)
    # Two runs on each of four questions, which are not eight questions.
    assert (found.measured, found.questions) == (8, 4)
    assert found.interval.startswith("bootstrap over questions")


def test_a_small_p_is_not_nothing() -> None:
    assert cell_text(0.00001, 4).value == "<0.0001"
    assert cell_text(0.0, 4).value == "0.0000"
    assert cell_text(0.00006, 4).value == "0.0001"


def test_an_unknown_measure_is_told() -> None:
    with pytest.raises(UsageError, match="choose from exact_match, f1, seper"):
        results().measure("accuracy")


def strange(text: str) -> Table:
    row: dict[str, Cell] = {"system": text, "share": Measurement(value=0.5, n=4, low=0.1, high=0.9)}
    return Table(
        name="t",
        title="50 % of_all",
        columns={"system": "system", "share": "τ|share"},
        rows=(row, {"system": "bare"}),
        shaded=("share",),
    )


def test_markdown_keeps_its_columns_whatever_models_say() -> None:
    said = markdown([strange("a|b\n*c* \x1b[31m")])
    assert said.splitlines() == [
        "**50 % of\\_all**",
        "",
        "| system | τ\\|share |",
        "| --- | --- |",
        "| a\\|b \\*c\\* [31m | 0.50 [0.10, 0.90] |",
        "| bare |  |",
        "",
    ]


def test_latex_is_escaped_and_heat_maps_are_shaded() -> None:
    said = latex([strange(r"a&b_c\d {50 %}")])
    assert r"\caption{50 \% of\_all}" in said
    assert r"system & $\tau$|share \\" in said
    assert (
        r"a\&b\_c\textbackslash{}d \{50 \%\} & "
        r"\cellcolor{blue!30}0.50 {\scriptsize [0.10, 0.90]} \\"
    ) in said


def test_csv_has_all_parts_of_figures_in_full() -> None:
    [table] = overview.build(results())
    rows = list(csv.DictReader(StringIO(comma_separated([table]))))
    assert [row["system"] for row in rows] == ["one", "two"]
    assert float(rows[1]["f1"]) == (1 + 2 / 3) / 4
    assert (rows[1]["f1_measured"], rows[1]["f1_total"]) == ("4", "4")
    assert rows[0]["grogu"] == ""
    assert rows[0]["grogu_reason"] == "not appraised"
    assert rows[0]["exact_match_interval"] == "clopper-pearson"


def test_equal_answers_are_judged_as_they_are() -> None:
    """`two` says "south" twice: what is remembered of one answer must not be another's."""
    found: list[ResultRow] = results().by_system["two"]
    assert [results().right(row) for row in found] == [answer == "north" for answer in TWO]
    assert len(QUESTIONS) == len(found)


def test_a_third_meter_has_columns_and_a_table_of_its_shares() -> None:
    """Also one that is not installed any more, and by a rule of others."""
    utilities = {"third": Utility(0.75, 0.5), "seper": Utility(0.5, 0.25)}
    rows = [each._replace(utilities=utilities) for each in figures()]
    shares: dict[str, dict[str, Value]] = {"third": {"trajectory": 0.5, "equal_shares": 0.125}}
    made = [each._replace(shares={**each.shares, **shares}) for each in retrievals()]
    found = replace(results(rows=rows), load_retrievals=lambda: made)
    [table] = overview.build(found)
    assert table.columns["third"] == "third"
    assert table.columns["third_delta"] == "Δthird"
    assert figure(table.rows[1]["third_delta"])[0] == 0.5
    seper, third = credit_by_step.build(found)
    assert (seper.name, third.name) == ("credit_by_step", "credit_by_step_third")
    assert third.columns["equal_shares"] == "equal-shares"
    assert figure(third.rows[0]["equal_shares"])[0] == 0.125
    assert "equal_shares" not in seper.columns


def test_a_meter_stands_in_for_seper_where_that_was_not_measured() -> None:
    rows = [each._replace(utilities={"third": Utility(3.0, 1.0)}) for each in figures()]
    found = replace(results(rows=rows), load_retrievals=tuple)
    [table] = credit_per_tokens.build(found)
    assert table.columns["credit"] == "third per 1,000 tokens"
    [table] = credit_by_step.build(found)
    assert table.columns["trajectory"] == "Δthird"
