"""What models, servers, files and names hold is shown, never obeyed; nobody gets a traceback."""

import ast
import csv
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from rich.text import Text

import hopscope.cli
from hopscope.api.views import render
from hopscope.api.views.grid import Column, Grid
from hopscope.cli import commands
from hopscope.cli.main import main
from hopscope.lab.export.sheets import sheet
from hopscope.lab.table_forms.csv import comma_separated
from hopscope.lab.table_forms.latex import latex
from hopscope.lab.table_forms.markdown import markdown
from hopscope.lab.table_forms.table import Table
from hopscope.runtime.texts.storable import lines

HOSTILE = "a\x1b]8;;http://e.vil\x07b\x1b[2J\x9b31mc\u202ed\u2028e\rf\x00\u200eg\x7f"
FORBIDDEN = {character for character in HOSTILE if not character.isprintable()}


def harmless(text: str) -> bool:
    return not FORBIDDEN & set(text)


def test_every_way_to_the_terminal_leaves_out_what_a_terminal_would_obey(
    capsys: pytest.CaptureFixture[str],
) -> None:
    render.say(HOSTILE)
    render.note(HOSTILE)
    render.print_json({HOSTILE: [HOSTILE]})
    render.out().print(Text(HOSTILE), HOSTILE)
    render.out().print(Grid([Column(HOSTILE)], [[HOSTILE], [Text(HOSTILE)]]))
    render.err().print(HOSTILE)
    told = capsys.readouterr()
    assert harmless(told.out + told.err)
    assert "\\u009b" in told.out
    assert "\\u202e" in told.out


def test_markup_and_links_of_a_title_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    """They were carried out, and a closing tag alone raised a MarkupError."""
    title = "[link=http://e.vil][bold]here[/bold][/link][/red]"
    linked = Text("there", style="link http://e.vil")
    render.out().print(Grid([Column(title)], [[title], [linked]]))
    told = capsys.readouterr().out
    assert told.count(title) == 2
    assert "\x1b" not in told


def test_a_message_of_several_lines_cannot_look_like_two(
    capsys: pytest.CaptureFixture[str],
) -> None:
    render.note("one\nhopscope: two")
    assert capsys.readouterr().err == "hopscope: one\n  hopscope: two\n"


def test_lines_keeps_ordinary_text() -> None:
    assert lines("  a\n b  é → \U0001f600") == "  a\n b  é → \U0001f600"
    assert lines("a\tb\xa0c") == "a b c"


def test_an_error_about_a_hostile_name_is_harmless(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["index", "info", str(tmp_path / HOSTILE.replace("\0", ""))])
    assert ended.value.code == 2
    assert harmless(capsys.readouterr().err)


def test_an_id_forges_no_line_of_a_ranking(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    corpus, index = tmp_path / "corpus.jsonl", tmp_path / "index"
    corpus.write_text('{"id": "a 1\\n2 Q0 b\\u001b[31m", "text": "Lyon is a town"}\n')
    for command in (["build", str(corpus), "--out", str(index)], ["search", str(index), "Lyon"]):
        with pytest.raises(SystemExit):
            main(["index", *command, *(["--trec"] if command[0] == "search" else [])])
    [line] = capsys.readouterr().out.splitlines()[-1:]
    assert line.startswith("1 Q0 a%201%0A2%20Q0%20b[31m 1 ")
    assert len(line.split()) == 6


def printing(tree: ast.AST) -> Iterable[str]:
    """The calls in a module that print by themselves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("print", "typer.echo", "Console", "sys.stdout.write", "sys.stderr.write"):
                yield called


def test_nothing_is_printed_but_by_render() -> None:
    folder = Path(hopscope.cli.__file__).resolve().parent
    found = {
        (path.name, call)
        for path in folder.glob("*.py")
        for call in printing(ast.parse(path.read_text(encoding="utf-8")))
    }
    allowed = {("main.py", "print"), ("commands.py", "typer.echo")}  # both say what is our own
    assert {each for each in found if each[0] != "render.py"} <= allowed


CELL = "![i](http://e.vil/i.png) [l](http://e.vil) <http://e.vil> http://e.vil www.e.vil <b>x</b> |"


def table(cell: str) -> Table:
    return Table(name="t", title=cell, columns={"a": cell, "b": "b"}, rows=({"a": cell, "b": 1.5},),
                 notes=(cell,))  # fmt: skip


def test_markdown_holds_neither_images_nor_links() -> None:
    written = MarkdownIt("commonmark").enable("table").render(markdown([table(CELL)]))
    assert "<table>" in written
    assert not any(tag in written for tag in ("<img", "<a ", "<b>"))
    assert "![i](http://e.vil/i.png)" in written
    # Addresses that stand alone become links on GitHub.
    assert "http://" not in markdown([table(CELL)])


@pytest.mark.parametrize(
    "text",
    ["mailto:a@b.c a@b.com", "xmpp:a@b.com/x", "a@_b.com", "@me", "see #1", "me/it#1", "gh-1"],
)
def test_markdown_mentions_nobody_and_refers_to_nothing(text: str) -> None:
    """GitHub looks for these in the text that it shows, where an escape or an entity is undone:
    nothing but an element or a comment parts them. With cmark-gfm, whose `autolink` it is, tried
    by hand."""
    cell = markdown([table(text)]).splitlines()[4]
    shown = re.sub(r"\\(?=[^a-z\s])", "", cell)
    assert text in shown.replace("<!-- -->", "")
    assert not re.search(r"@(?!<!-- -->)|#\w|gh-\d", shown)


def test_latex_carries_no_command_out() -> None:
    written = latex([table(r"\input{x} $y$ %z ^ ~ # & _")])
    assert r"\input" not in written.replace(r"\textbackslash{}input", "")
    assert "*" not in latex([table("*a")]).split(r"\midrule")[1].split("{*a}")[0]


FORMULAS = ["=1+1", "+a", "-a", "@a", "\t=1", "\r=1"]


def test_csv_holds_no_formula_and_numbers_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for raw in (False, True):
        with sheet(path, {"text": "text", "number": "number"}, "csv", raw=raw) as write:
            for formula in [*FORMULAS, "-1.5", "a"]:
                write({"text": formula, "number": -1.5})
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        wanted = FORMULAS if raw else [f"'{formula}" for formula in FORMULAS]
        assert [row["text"] for row in rows] == [*wanted, "-1.5", "a"]
        assert {row["number"] for row in rows} == {"-1.5"}
    assert ",'=1+1,1.5" in comma_separated([table("=1+1")])


def test_an_unexpected_exception_is_told_without_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(names: Iterable[str]) -> None:
        raise ZeroDivisionError(HOSTILE)

    monkeypatch.setattr(commands, "mounted", broken)
    with pytest.raises(ZeroDivisionError):
        main(["ls"])
    monkeypatch.delenv("HOPSCOPE_TRACEBACK")
    with pytest.raises(SystemExit) as ended:
        main(["ls"])
    told = capsys.readouterr().err
    assert ended.value.code == 1
    assert told.startswith("hopscope: unexpected ZeroDivisionError: a")
    assert "HOPSCOPE_TRACEBACK=1" in told
    assert harmless(told)


@pytest.mark.parametrize("limit", ["--max-cost", "--max-seconds"])
@pytest.mark.parametrize("value", ["inf", "nan"])
def test_a_limit_without_end_is_refused(
    limit: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "Who?", limit, value])
    assert ended.value.code == 2
    assert limit in capsys.readouterr().err


def told_by(arguments: list[str], *, stdout: int | None, **variables: str) -> tuple[int, str, str]:
    environment = {k: v for k, v in os.environ.items() if k != "HOPSCOPE_TRACEBACK"} | variables
    ran = subprocess.run(
        [sys.executable, "-m", "hopscope.cli", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        encoding="latin-1",
        env=environment,
        timeout=120,
    )
    return ran.returncode, ran.stdout or "", ran.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this machine has no full device")
@pytest.mark.parametrize("arguments", [["list", "workflows"], ["--help"]])
def test_a_full_disk_behind_stdout_is_told_in_one_line(arguments: list[str]) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        code, _, told = told_by(arguments, stdout=full)
    finally:
        os.close(full)
    assert code == 1
    said = "the output cannot be written: No space left on device; make room, then try again"
    assert told.splitlines() == [f"hopscope: {said}"]


@pytest.mark.parametrize("arguments", [["list", "workflows"], ["run", "--help"], ["run", "--x"]])
def test_no_color_leaves_no_code_at_all(arguments: list[str]) -> None:
    """Bold and dim were left."""
    _, out, err = told_by(arguments, stdout=subprocess.PIPE, NO_COLOR="1", FORCE_COLOR="1")
    assert "\x1b" not in out + err


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_other_encodings_end_in_no_traceback(encoding: str) -> None:
    code, out, err = told_by(
        ["list", "workflows"], stdout=subprocess.PIPE, PYTHONIOENCODING=encoding
    )
    assert (code, err) == (0, "")
    assert "closed_book" in out


def test_ctrl_c_while_modules_are_imported_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(names: Iterable[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "mounted", stopped)
    with pytest.raises(SystemExit) as ended:
        main(["ls"])
    assert ended.value.code == 130
    assert capsys.readouterr().err == "hopscope: stopped\n"
