"""Reports in one file: whole, closed to the network, and deaf to hostile text."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hopscope.runtime.errors import UsageError
from hopscope.store.store import Store
from hopscope.view import drawing, html, texts
from hopscope.view import report as reports
from tests.cli.experiment_example import call
from tests.view import experiment


class Page(HTMLParser):
    """The elements of a page, and the text of its data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data: list[str] = []
        self._within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._within = dict(attrs).get("type") or ""

    def handle_data(self, data: str) -> None:
        if self._within == "application/json" and data.strip():
            self.data.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


@pytest.fixture(autouse=True)
def small_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundling Vega takes seconds; tests in a browser use the real script."""
    monkeypatch.setattr(reports, "script", lambda: "var vegaEmbed = '</script>';")


def written(database: Path, source: str) -> str:
    with Store.open(database, reading=True) as store:
        return reports.report(store, source)


@pytest.mark.parametrize("source", ["last", experiment.NAME])
def test_a_report_holds_its_pictures_with_a_table_and_a_text_each(
    source: str, database: Path
) -> None:
    page = Page(written(database, source))
    figures = page.count("figure")
    assert figures == (4 if source == "last" else 5)
    assert len(page.data) == figures
    assert all("$schema" in json.loads(each) for each in page.data)
    assert page.count("details") >= figures
    charts = [values for _, values in page.tags if values.get("class") == "chart"]
    assert all(values["aria-label"] and values["role"] == "img" for values in charts)


def test_a_report_loads_nothing_and_runs_only_its_own_scripts(database: Path) -> None:
    text = written(database, experiment.NAME)
    page = Page(text)
    assert [v for _, v in page.tags if "src" in v or (v.get("href") or "#")[0] != "#"] == []
    [policy] = [v["content"] or "" for tag, v in page.tags if "content" in v and "http-equiv" in v]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert len(scripts) == 2
    for code in (*scripts, *styles):
        assert reports._hash(code) in policy


@pytest.mark.parametrize("source", ["last", "hostile"])
def test_hostile_text_is_shown_and_not_obeyed(source: str, database: Path) -> None:
    """The last run's question holds a script, a template, marks of direction and an escape."""
    text = written(database, source)
    page = Page(text)
    assert sum(tag == "script" for tag, _ in page.tags) == 2 + len(page.data)
    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert "\u2028" not in text
    assert "49" not in re.findall(r"<h1>.*?</h1>", text, re.DOTALL)[0]
    for each in page.data:
        json.loads(each)


def test_a_long_text_is_cut_with_a_note() -> None:
    told = texts.visible("x" * 1_000_000)
    assert len(told) < texts.LONGEST + 100
    assert "20,000 of 1,000,000 characters" in told


def test_json_of_a_script_cannot_end_it() -> None:
    told = texts.script_json({"a": "</script><!-- \u2028 &"})
    assert not set("<>&\u2028") & set(told)
    assert json.loads(told) == {"a": "</script><!-- \u2028 &"}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (1234.5, "1,234"),
        (0.12345, "0.123"),
        (None, "-"),
        (True, "yes"),
        ({"value": 0.5, "low": 0.25, "high": 1.0}, "0.5 [0.25, 1]"),
        ({"value": None, "reason": "the run failed"}, "- the run failed"),
    ],
)
def test_cells_tell_numbers_with_intervals_and_reasons(value: object, told: str) -> None:
    assert html.cell(value) == told


def test_the_command_writes_the_file(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.html"
    code, _, err = call(capsys, "report", "last", "--out", str(out), "--db", str(database))
    assert code == 0, err
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    out.write_text("mine")
    code, _, err = call(capsys, "report", "last", "--out", str(out), "--db", str(database))
    assert (code, out.read_text()) == (2, "mine")
    assert "report.html is there already: give --overwrite" in err
    command = ("report", "last", "--out", str(out), "--overwrite", "--db", str(database))
    assert call(capsys, *command)[0] == 0
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    out.unlink()
    code, _, err = call(capsys, "report", "nothere", "--out", str(out), "--db", str(database))
    assert code == 2
    assert "experiments: " in err
    text = tmp_path / "report.txt"
    code, _, err = call(capsys, "report", "last", "--out", str(text), "--db", str(database))
    assert (code, text.exists()) == (2, False)
    assert "must end in .html" in err


def test_the_bundled_script_is_kept_between_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bundling takes seconds."""
    made = []

    class Converter:
        @staticmethod
        def javascript_bundle(*, vl_version: str) -> str:
            made.append(vl_version)
            return "script"

    monkeypatch.setattr(drawing, "converter", lambda: Converter)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert [drawing.script(), drawing.script()] == ["script", "script"]
    assert made == [drawing.VEGA_LITE]


def test_without_jinja_the_install_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    html._environment.cache_clear()
    with pytest.raises(UsageError, match=r"pip install 'hopscope\[view\]'"):
        html.render("report.html")
    html._environment.cache_clear()


@pytest.mark.parametrize("command", [["report", "last"], ["figure", "belief", "last"]])
def test_a_place_that_cannot_be_written_is_told_first(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ending = ".html" if command[0] == "report" else ".svg"
    out = tmp_path / "missing" / f"x{ending}"
    database = str(tmp_path / "none.db")
    code, _, err = call(capsys, *command, "--out", str(out), "--db", database)
    assert code == 2
    assert f"x{ending} cannot be written" in " ".join(err.split())
