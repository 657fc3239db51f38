"""Rows, frames and HTML of runs: complete, and harmless whatever the texts hold."""

import builtins
from html.parser import HTMLParser
from typing import Any

import pytest

import hopscope
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Appraisal, Credit, Hit, Passage, Provenance, Question
from tests.fakes import NOW, Measurement, run_of, step

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)><a href='javascript:x'>\x1b[31m"


def measured_run(text: str = "Alba") -> hopscope.MeasuredRun:
    passage = Passage(id="a", title=text, text=text)
    first = step(0, ["a"], query=text, evidence=(passage,), ranked=(Hit(passage=passage, score=1),))
    run = run_of(["a"]).model_copy(
        update={"question": Question(text=text, answers=(text,)), "answer": text, "steps": (first,)}
    )
    provenance = Provenance(reader="fake")
    given: list[tuple[int | None, str, Measurement]] = [
        (None, "level", Measurement(value=0.25, n=4, low=0.0, high=0.5)),
        (0, "level", Measurement(value=1.0, n=4)),
        (0, "trajectory", Measurement(value=0.75, n=4)),
        (0, "shapley", Measurement(value=None, reason=text)),
        (None, "total", Measurement(value=0.75, n=4)),
    ]
    credits = [
        Credit(
            run_id=run.id,
            step=index,
            rule=rule,
            meter="seper",
            measurement=measured,
            provenance=provenance,
        )
        for index, rule, measured in given
    ]
    appraisal = Appraisal(run_id=run.id, provenance=provenance, measured=NOW)
    return hopscope.MeasuredRun(run, credits, [appraisal])


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("part", ["run", "credits"])
def test_html_holds_no_tag_or_attribute_of_a_text(part: str) -> None:
    run = measured_run(HOSTILE)
    shown: Any = run if part == "run" else run.credits
    page = shown._repr_html_()
    found = _Tags()
    found.feed(page)
    assert found.tags <= {"pre", "span"}
    assert found.attributes <= {"style"}
    assert "<script>" in found.text.replace("\n", "")
    assert "\x1b" not in page


def test_html_is_the_table() -> None:
    found = _Tags()
    found.feed(measured_run()._repr_html_())
    assert "ΔSePer" in found.text
    assert "0.25 → 1.00" in found.text


def test_rows_say_what_was_measured_and_what_not() -> None:
    rows = measured_run().credits
    assert len(rows) == 5
    assert (rows[0].step, rows[0].value, rows[0].low, rows[0].high) == (None, 0.25, 0.0, 0.5)
    assert rows[3].value is None
    assert rows[3].reason == "Alba"
    assert [row.rule for row in rows[1:3]] == ["level", "trajectory"]
    assert rows.to_dicts()[2]["value"] == 0.75
    assert list(rows.to_dicts()[0]) == list(hopscope.CreditRow.model_fields)


def test_rows_become_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = measured_run().credits.to_frame()
    assert list(frame.columns) == list(hopscope.CreditRow.model_fields)
    assert frame["value"].isna().tolist() == [False, False, False, True, False]
    assert frame["value"].dtype == pandas.Series([0.5]).dtype
    empty = hopscope.MeasuredRun(run_of(["a"])).credits.to_frame()
    assert list(empty.columns) == list(frame.columns)
    assert len(empty) == 0


def test_without_pandas_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match="pip install pandas"):
        measured_run().credits.to_frame()


def test_only_the_last_measuring_is_shown() -> None:
    once = measured_run()
    other = Provenance(reader="fake", settings={"samples": 40})
    more = [c.model_copy(update={"provenance": other}) for c in once.credits.records]
    both = hopscope.MeasuredRun(once.record, [*once.credits.records, *more])
    assert both.credits.records == tuple(more)
    assert both.credits.appraisal is None
    assert "shapley" in both.credits._repr_html_()


def test_a_run_without_credits_says_so() -> None:
    run = hopscope.MeasuredRun(run_of(["a"]))
    assert "nothing was measured" in run.credits._repr_html_()
