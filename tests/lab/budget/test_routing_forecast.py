"""A month's budget over expected questions, by a router made by hand."""

import json
from datetime import date
from pathlib import Path

import pytest

from hopscope.cli.main import main
from hopscope.lab.budget.routing.forecast import expected, month, plan, share_out
from hopscope.runtime.errors import CorpusError, UsageError
from hopscope.tracing.learned.route_file import Asked, RouteFile
from tests.tracing.policies.routers import route

DRAFTS = ("Ina", "Ina Dorn", "it is not known here", "there is no information")
"""By the router, two are right at once; two take three steps, which gain 0.8."""
FIRST, LAST = date(2026, 11, 11), date(2026, 11, 30)


@pytest.fixture
def file(tmp_path: Path) -> RouteFile:
    return RouteFile.model_validate_json(Path(route(tmp_path).partition(":")[2]).read_bytes())


def sample() -> list[Asked]:
    return [Asked("Who founded the town?", draft=draft) for draft in DRAFTS]


def test_the_price_spends_what_is_left(file: RouteFile) -> None:
    """Half of the questions are worth three steps each while the price is below 0.8 / 3."""
    made = plan(sample(), file, first=FIRST, last=LAST, questions=100, left=200)
    assert (made.price, made.cost, made.spends) == (0.0, pytest.approx(1.5), pytest.approx(150))
    assert made.arms == {"none": 0.5, "one": 0.0, "ircot": 0.5}
    less = plan(sample(), file, first=FIRST, last=LAST, questions=100, left=149)
    assert less.spends <= 149
    assert less.price > made.price
    assert less.accuracy < made.accuracy


def test_a_router_that_keeps_no_promise_takes_the_dearest_arm_in_plans_too(file: RouteFile) -> None:
    always = file.model_copy(update={"always": True})
    made = plan(sample(), always, first=FIRST, last=LAST, questions=100, left=300)
    assert (made.arms["ircot"], made.spends) == (1.0, 300)


@pytest.mark.parametrize("text", ["[" * 30_000, '{"date": "2026-11-11", "questions": 1%s}'])
def test_a_forecast_that_is_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "days.jsonl"
    path.write_text(text.replace("%s", "0" * 400))
    with pytest.raises(CorpusError, match=r'days\.jsonl, line 1: expected .* "questions": 400}$'):
        expected(path)


def test_what_cannot_be_planned(file: RouteFile) -> None:
    with pytest.raises(UsageError, match="no question is expected"):
        plan(sample(), file, first=FIRST, last=LAST, questions=0, left=9)
    with pytest.raises(UsageError, match=r"^1 steps more than the total are already spent"):
        plan(sample(), file, first=FIRST, last=LAST, questions=9, left=-1)


def test_a_total_is_divided_among_a_batch(file: RouteFile) -> None:
    shared = share_out(sample(), file, 3)
    assert sorted(option.retrievals for option in shared.chosen) == [0, 0, 0, 2]
    assert shared.cost == 3


def test_months_and_forecasts(tmp_path: Path) -> None:
    assert month("month=2028-02") == (date(2028, 2, 1), date(2028, 2, 29))
    for text in ("2026-11", "month=2026", "month=2026-13", "day=2026-11"):
        with pytest.raises(UsageError, match="give a month as in month=2026-11"):
            month(text)
    path = tmp_path / "days.jsonl"
    path.write_text('{"date": "2026-11-11", "questions": 4}\n\n')
    assert expected(path) == {FIRST: 4.0}
    for line in ("5", '{"date": "11/11", "questions": 4}', '{"date": "2026-11-11"}'):
        path.write_text(line)
        with pytest.raises(CorpusError, match="line 1: expected an object"):
            expected(path)


def test_a_month_is_planned_again_from_what_was_spent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, days = tmp_path / "sample.jsonl", tmp_path / "days.jsonl"
    rows = ({"question": "Who founded the town?", "draft": draft} for draft in DRAFTS)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    days.write_text(
        '{"date": "2026-11-10", "questions": 7}\n{"date": "2026-11-30", "questions": 4}'
    )
    given = ["budget", "allocate", str(path), "--policy", route(tmp_path), "--total", "100"]
    when = ["--per", "month=2026-11", "--today", "2026-11-11", "--json"]
    for more, questions, left in (
        (["--rate", "2", "--spent", "30"], 40, 70),
        (["--forecast", str(days)], 4, 100),
    ):
        with pytest.raises(SystemExit) as stop:
            main([*given, *when, *more])
        assert not stop.value.code
        made = json.loads(capsys.readouterr().out)
        assert (made["questions"], made["left"]) == (questions, left)
    with pytest.raises(SystemExit) as stop:
        main([*given, *when])
    assert stop.value.code == 2
    assert "--rate N a day, or as --forecast" in capsys.readouterr().err
