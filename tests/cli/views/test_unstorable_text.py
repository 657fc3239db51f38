"""Half of a surrogate pair in a reply, a file or an argument: a mark in the text, no more."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopscope.cli.main import main
from hopscope.store.store import Store
from tests import models
from tests.servers import openai_api


@pytest.fixture
def service(tmp_path: Path) -> Iterator[openai_api.Service]:
    with openai_api.running(openai_api.Service(models.tiny_llama(tmp_path / "llama"))) as running:
        yield running


@pytest.fixture
def database(tmp_path: Path) -> str:
    """With nothing in it."""
    path = tmp_path / "empty.db"
    Store.open(path).close()
    return str(path)


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0), *capsys.readouterr()


def test_a_reply_that_is_no_text_is_kept_and_the_experiment_goes_on(
    service: openai_api.Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`eval` ended in a UnicodeEncodeError, and met it again each time it was repeated."""

    def odd(choice: dict[str, Any]) -> None:
        if "message" in choice:
            choice["message"]["content"] = "Bruno \ud800"
        else:
            choice["text"] = "Bruno \ud800"

    service.change = odd
    data, corpus = tmp_path / "asked.jsonl", tmp_path / "corpus.jsonl"
    data.write_text(
        '{"question": "Who made Alba \\ud83d?", "answers": ["Bruno"]}\n{"question": "When?"}\n'
    )
    corpus.write_text('{"id": "a", "title": "Alba \\udc00", "text": "Alba is by Bruno \\ud800."}\n')
    index, database = tmp_path / "index", tmp_path / "runs.db"
    code, _, told = call(capsys, "index", "build", str(corpus), "--out", str(index))
    assert code == 0
    assert "1 record holds half of a surrogate pair" in told
    code, _, told = call(
        capsys, "eval", str(data), "-w", "naive:k=1", "--corpus", str(index), "--db", str(database),
        "--reader", f"openai:{service.url}#{openai_api.MODEL}", "--samples", "2", "--name", "e",
        "-o", "seper.weight=uniform",
    )  # fmt: skip
    assert code == 0, told
    assert "asked.jsonl: 1 question holds half of a surrogate pair" in told
    with Store.open(database) as store:
        assert store.experiments.progress("e").ok == 2
        items = store.experiments.items("e")
        assert items[0].entry.question.text == "Who made Alba \ufffd?"
        run = store.load(items[0].outcome.run_id) if items[0].outcome else None
        assert run
        assert run.answer == "Bruno \ufffd"
        assert [(p.title, p.text) for p in run.evidence] == [
            ("Alba \ufffd", "Alba is by Bruno \ufffd.")
        ]
        assert store.verify() == []


ODD = b"x\xff".decode(errors="surrogateescape")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["show", ODD], "no run 'x\ufffd'"),
        (["labels", ODD], "x\ufffd"),
        (["push", "phoenix", ODD, "--dry-run"], "x\ufffd"),
        (["budget", "explain", ODD], "x\ufffd"),
        (["compare", ODD], "x\ufffd"),
    ],
)
def test_a_name_that_is_not_utf8_is_looked_up_as_it_would_be_stored(
    command: list[str], told: str, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The database was said to have failed: 'utf-8' codec can't encode character."""
    code, _, err = call(capsys, *command, "--db", database)
    assert code == 2
    last = err.splitlines()[-1]
    assert told in last
    assert "codec" not in last


def test_the_hint_of_an_experiment_names_it_as_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = str(tmp_path / "runs.db")
    code, _, err = call(
        capsys, "eval", "hopland:dev", "-w", "closed_book", "--limit", "1", "--samples", "1",
        "--name", f"my {ODD}", "--db", database,
    )  # fmt: skip
    assert code == 0, err
    hint = err.rpartition("`hopscope ")[2].partition("`")[0]
    assert hint == "compare 'my x\ufffd'"
    assert call(capsys, *shlex.split(hint), "--db", database)[0] == 0


def test_a_path_of_what_is_there_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ODD
    folder.mkdir()
    (folder / "runs.db").touch()
    given = str(folder / "runs.db")
    code, _, _ = call(capsys, "ls", f"--db={given}")
    assert code == 2, "no database yet"
    code, _, err = call(capsys, "run", "Who?", "-w", "closed_book", "--samples", "1", "--db", given)
    assert code == 0, err
    assert (folder / "runs.db").stat().st_size


def test_a_variable_that_is_not_utf8_is_told_without_its_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOPSCOPE_WORKFLOW", ODD)
    monkeypatch.setenv("HOPSCOPE_API_KEY", f"sk-{ODD}")
    code, _, err = call(capsys, "run", "Who?")
    assert code == 2
    assert "the environment variable HOPSCOPE_WORKFLOW is not UTF-8; U+FFFD stands" in err
    assert "the environment variable HOPSCOPE_API_KEY is not UTF-8" in err
    assert "sk-" not in err
    assert "x\ufffd" in err.splitlines()[-1]


def test_an_argument_that_is_not_utf8_is_told_and_marked(
    service: openai_api.Service, tmp_path: Path
) -> None:
    database = tmp_path / "runs.db"
    done = subprocess.run(
        [
            *map(os.fsencode, [sys.executable, "-m", "hopscope.cli", "run"]), b"Who made caf\xe9?",
            *map(os.fsencode, ["-w", "closed_book", "--samples", "1", "--json"]),
            *map(os.fsencode, ["--reader", f"openai:{service.url}#{openai_api.MODEL}"]),
            *map(os.fsencode, ["--db", str(database), "-o", "seper.weight=uniform"]),
        ],
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"'Who made caf\\ufffd?' is not UTF-8" in done.stderr
    assert "Who made caf\\ufffd?" in ascii(done.stdout.decode())
    with Store.open(database) as store:
        assert store.latest().question.text == "Who made caf\ufffd?"
