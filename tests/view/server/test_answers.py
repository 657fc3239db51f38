"""The answers behind a run's values: on its page, in its report, and as `hopscope show` prints."""

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hopscope.runtime.budget.prices import ModelPrice, Prices
from hopscope.runtime.types import Question
from hopscope.store.store import Store
from hopscope.tracing.appraisal import share
from hopscope.tracing.credit import trajectory
from hopscope.view import run_page
from hopscope.view.report import report
from hopscope.view.run_figures import RunRecords
from tests.cli.experiment_example import call
from tests.view import experiment

SHOWN = "&lt;script&gt;alert(1)&lt;/script&gt;[U+202E]"


def test_key_tokens_and_sampled_answers_are_on_the_page_and_in_the_report(
    client: TestClient, run: str, store: Store
) -> None:
    """The wrong answers are hostile."""
    for page in (client.get(f"/runs/{run}").text, report(store, run)):
        assert f'<bdi class="tokens">Ada<mark> {SHOWN}' in page
        assert f"key tokens: <bdi>{SHOWN}" in page
        assert re.search(r"0.90 <bdi>Ada Wilby</bdi> <strong class=\"badge new\">right", page)
        assert "<td>after" not in page
        assert len(re.findall(r"<td>(?:yes|no)</td></tr>", page)) >= 8  # the table of tokens
        assert "<script>alert" not in page


def test_the_answer_itself_has_its_key_tokens_marked() -> None:
    """Where the reader's greedy answer is the run's."""
    run = experiment.run(3, Question(text="Who?", answers=("Ada Wilby",)), "naive")
    meter = experiment.named("grogu")
    found = share(run, [meter], [trajectory.build()], experiment.SETTINGS)
    answer = f"Ada {experiment.HOSTILE}"
    for given, marked in ((answer, True), ("Bo", False)):
        told = RunRecords(run.model_copy(update={"answer": given}), found.credits, [], found.games)
        assert bool(run_page.content(told)["answer_tokens"]) == marked


def test_each_step_tells_its_money() -> None:
    run = experiment.run(3, Question(text="Who?", answers=("Ada Wilby",)), "ircot")
    for price, told in ((Prices(models={"hf:small": ModelPrice(input=2, output=10)}), "0.0010 USD"),
                        (Prices(), None)):  # fmt: skip
        records = RunRecords(run, [], [], [], prices=price)
        assert [step["money"] for step in run_page.steps(records)] == [told] * 3
        costs = [step.cost or 0 for step in records.full_report.steps]
        assert sum(costs) == pytest.approx(records.full_report.total.cost or 0)


def test_a_run_of_an_older_version_says_what_stores_its_answers(tmp_path: Path) -> None:
    with Store.open(tmp_path / "old.db") as store:
        [run, *_] = experiment.fill(store)
        with store._database.writing() as connection:
            connection.exec_driver_sql("UPDATE games SET answers = NULL")
        page = report(store, run.id)
    assert "<mark>" not in page
    assert page.count(f"`hopscope credit {run.id[:12]} --again` stores them") == 4


def test_show_prints_key_tokens_in_brackets(
    run: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = call(capsys, "show", run, "--db", str(database))
    assert code == 0
    told = " ".join(out.split())  # the terminal's width decides where lines end
    assert re.search(r" 2 Ada \[<script>[^]]*\[31m[^]]*\] samples Ada Wilby 0\.90, ", told)
    assert not set(out) & set("\x1b\u202e\u2028")
