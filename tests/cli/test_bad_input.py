"""What a user can do wrong on the command line, and what the command says."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hopscope.cli.main import main
from hopscope.runtime.errors import StoreError
from hopscope.store.store import Store

QUESTION = "Where was the director of Moon Harbor born?"


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command."""
    try:
        main(list(arguments))
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "  "], "the question is empty"),
        (["run", QUESTION, "-w", "irrcot"], "choose from closed_book"),
        (["run", QUESTION, "-o", "depth=3"], "unknown option 'depth': the options are k"),
        (["run", QUESTION, "-o", "k=many"], "option k=many"),
        (["run", QUESTION, "-o", "k"], "not of the form key=value"),
        (["run", QUESTION, "-w", "closed_book", "-k", "3"], "closed_book retrieves nothing"),
        (["run", QUESTION, "-o", "seper.wait=1"], "unknown option 'wait'"),
        (["run", QUESTION, "-o", "sepper.weight=uniform"], "of no meter or rule chosen: seper"),
        (["run", QUESTION, "--corpus", "/nowhere"], "no index at /nowhere"),
        (["run", QUESTION, "--reader", "hf:/nowhere/model"], "/nowhere/model"),
        (["run", QUESTION, "--corpus", "x" * 300], "File name too long"),
        (["index", "search", "x" * 300, "q"], "File name too long"),
        (["index", "info", "x" * 300], "File name too long"),
        (["index", "info", "."], "is no index: it has no manifest.json; make one with"),
        (["run", QUESTION, "--reader", "hf:"], "hf needs model: give hf:MODEL"),
        (["run", QUESTION, "-w", "naive", "-w", "ircot"], "compare several with `hopscope eval"),
        (["run", QUESTION, "--workflow=naive", "-w", "naive"], "is given 2 times"),
        (["ls", "-w", "naive", "-w", "ircot"], "takes one workflow"),
        (["run", QUESTION, "--reader", "tiny,fast"], "character 6: expected an option"),
        (["run", QUESTION, "--reader", "tiny,device=gpu"], "device=gpu: choose 'auto', 'cpu'"),
        (["run", QUESTION, "--reader", "gpt"], "choose from"),
        (["run", QUESTION, "--entailment", "nli:/nowhere/model"], "/nowhere/model"),
        (["run", QUESTION, "--samples", "0"], "samples"),
        (["ls", "--db", "mysql://me:secret@host/x"], "postgresql://USER@HOST/NAME"),
        (["frobnicate"], "frobnicate"),
        (["index", "search", "hopland", " "], "a query is empty: give what to search for"),
        (["figure", "beleif"], "'failures'; did you mean belief?"),
        (["new", "reader", "mine"], "Invalid value for 'kind': 'reader' is not one of 'workflow'"),
        (["run", QUESTION, "--reader", "tiny:serch"], "'read' or 'search'; did you mean search?"),
        (["run", QUESTION, "-w", "irctt"], "; did you mean ircot?"),
        (["run", QUESTION, "-o", "max_step=3"], "; did you mean max_steps?"),
        (["score", "-m", "f2"], "no 'f2' among metrics: choose from bertscore"),
    ],
)
def test_wrong_use_exits_2_with_one_message_and_no_traceback(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    database = ["--db", str(tmp_path / "runs.db")] if arguments[0] == "run" else []
    code, out, err = call(capsys, *arguments, *database)
    assert code == 2, err
    assert said in " ".join(err.split())
    assert "Traceback" not in err
    assert out == ""


def test_a_database_that_cannot_be_written_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    code, _, err = call(capsys, "run", QUESTION, "--db", str(blocked / "runs.db"))
    assert code == 2
    assert str(blocked) in err
    assert "Traceback" not in err


def test_help_answers_without_loading_a_model_library() -> None:
    """`--help` must answer at once: torch alone takes seconds to import."""
    code = (
        "import sys\n"
        "from hopscope.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'transformers', 'langgraph', 'sqlalchemy', 'opentelemetry.sdk',"
        " 'bm25s', 'scipy', 'alembic'}\n"
        "loaded = heavy & set(sys.modules)\n"
        "sys.exit(f'loaded {loaded}' if loaded else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "doctor" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", QUESTION, "--a\u202eb\x1b[2J"],
        ["run", QUESTION, f"--{'a' * 4200}"],
        ["\u202efrobnicate\x1b[2J"],
        ["index", f"\x1b[2J{'a' * 4200}"],
        ["run", QUESTION, "-o", f"k={'9' * 5000}"],
        ["run", QUESTION, "-o", f"seper.weight={'9' * 4200}"],
        ["run", QUESTION, "--max-calls", "9" * 4200],
        ["run", QUESTION, "--max-calls", f"{'9' * 5000}"],
        ["run", QUESTION, "-k", f"{'9' * 5000}"],
        ["eval", "hopland:dev", "--threads", "9" * 5000],
        ["run", QUESTION, "--thinking", "9" * 5000],
        ["credit", "last", "--credit-budget", f"calls={'9' * 5000}"],
    ],
)
def test_an_error_repeats_little_of_what_was_given_and_nothing_that_a_terminal_obeys(
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOPSCOPE_DB", str(tmp_path / "runs.db"))
    code, _, err = call(capsys, *arguments)
    assert code == 2
    assert err.replace("\n", "").isprintable()
    assert len(err) < 1000


def test_variables_of_several_values_hold_one_a_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Split at spaces, "Ada Example" would be two wrong gold answers."""
    monkeypatch.setenv("HOPSCOPE_GOLD", "Ada Example\nA. Example")
    monkeypatch.setenv("HOPSCOPE_OPTIONS", "max_tokens=8")
    monkeypatch.setenv("HOPSCOPE_K", "2")
    code, out, err = call(
        capsys, "run", QUESTION, "-w", "closed_book", "--db", str(tmp_path / "r.db"), "--json"
    )
    assert code == 0, err
    assert json.loads(out)["golds"] == ["Ada Example", "A. Example"]


def test_a_run_that_cannot_be_stored_is_printed_all_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Store, run: object) -> None:
        raise StoreError("no space left on the device")

    monkeypatch.setattr(Store, "save", full)
    code, out, err = call(
        capsys, "run", QUESTION, "-w", "closed_book", "--db", str(tmp_path / "r.db"), "--json"
    )
    assert code == 1
    assert "not stored: no space left" in err
    assert json.loads(out)["question"] == QUESTION


def test_doctor_says_where_spans_go_without_the_password(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:s3cret@localhost:4318")
    assert "s3cret" not in call(capsys, "doctor")[1]
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    rows = json.loads(call(capsys, "doctor", "--json")[1])
    assert next(row["status"] for row in rows if row["name"] == "spans sent to") == "off"


def test_another_programs_database_is_told_from_an_empty_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ls` said that no runs are kept there, and to make one with `run`, which then refused it."""
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE customers (id)")
    code, _, err = call(capsys, "ls", "--db", str(other))
    assert (code, "belongs to another program" in err) == (2, True)
    empty = tmp_path / "empty.db"
    empty.touch()
    code, _, err = call(capsys, "ls", "--db", str(empty))
    assert (code, "no runs are kept in" in err) == (2, True)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("mysql://host/x", "no support for mysql databases"),
        ("postgresql://:::x", "the database URL cannot be read"),
        ("sqlite://runs.db", "the database URL cannot be read, as sqlite has no host"),
        ("{}/nowhere/runs.db", "nowhere"),
        ("{}", "is a folder: name a file in it"),
        ("{}/notes.txt", "notes.txt is not a database: choose another"),
        ("{}/notes.txt/runs.db", "notes.txt"),
    ],
)
@pytest.mark.parametrize(
    "command", [("run", QUESTION, "-w", "naive", "--meter", "none"), ("ls",), ("compare", "e")]
)
def test_what_cannot_be_a_database_is_wrong_use_of_every_command(
    place: str,
    said: str,
    command: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A folder or another file ended with 1, what a failed database ends with."""
    (tmp_path / "notes.txt").write_text("These are only notes. " * 100)
    code, _, err = call(capsys, *command, "--db", place.format(tmp_path))
    assert (code, said in err) == (2, True), err


def test_a_short_file_that_is_no_database_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SQLite takes a file of less than a page for an empty database."""
    notes = tmp_path / "notes.txt"
    notes.write_text("x")
    run = ("run", QUESTION, "-w", "naive", "--meter", "none")
    code, _, err = call(capsys, *run, "--db", str(notes))
    assert (code, "is not a database" in err) == (2, True), err
    assert notes.read_text() == "x"


def test_a_corpus_without_passages_and_a_server_that_is_not_there_say_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.touch()
    code, _, err = call(capsys, "index", "build", str(corpus), "--out", str(tmp_path / "index"))
    assert (code, "give a file or folder that holds some" in " ".join(err.split())) == (2, True)
    reader = "openai:http://127.0.0.1:9/v1#m,retries=0"
    database = str(tmp_path / "runs.db")
    code, _, err = call(capsys, "run", QUESTION, "--reader", reader, "--db", database)
    assert (code, "start the server, or correct the address" in " ".join(err.split())) == (1, True)


def test_the_embedded_reader_over_real_text_is_warned_of_by_eval_as_by_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus, questions = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl"
    corpus.write_text('{"id": "a", "title": "Alba", "text": "Alba is a film."}\n', "utf-8")
    questions.write_text('{"question": "What is Alba?", "answers": ["a film"]}\n', "utf-8")
    index, database = str(tmp_path / "index"), str(tmp_path / "runs.db")
    assert call(capsys, "index", "build", str(corpus), "--out", index)[0] == 0
    asked = ("-w", "naive", "--meter", "none", "--db", database)
    code, _, err = call(capsys, "eval", str(questions), "--corpus", index, *asked)
    assert (code, "expect nonsense" in " ".join(err.split())) == (0, True)
    code, _, err = call(capsys, "eval", str(questions), "--name", "hopland", *asked)
    assert (code, "expect nonsense" in " ".join(err.split())) == (0, False)
