"""A run that is killed goes on from its checkpoints, in a new process, as if it had not been."""

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hopscope.cli.main import main
from tests.models import tiny_llama

STEPS = 5
STOPPED = """
import os, sys
from hopscope.cli.main import main
from hopscope.runtime.execution.checkpoints import LastState
stop, *arguments = sys.argv[1:]
put, left = LastState.put, iter(range(2 + 2))
def counted(*given):
    kept = put(*given)
    if next(left, None) == 3:
        os.kill(os.getpid(), int(stop))
    return kept
LastState.put = counted
main(arguments)
"""
"""`hopscope`, to which a signal is sent once two steps are kept: who watches it from outside may
look too late on a busy machine."""


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command, in this process."""
    code = 0
    try:
        main(list(arguments))
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    return code, *capsys.readouterr()


def taken(checkpoints: Path) -> int:
    """States written so far, of which the file has the last: two come before the first step."""
    if not checkpoints.exists():
        return 0
    with closing(sqlite3.connect(checkpoints)) as connection:
        try:
            query = "SELECT max(CAST(metadata AS TEXT) ->> 'step') FROM checkpoints"
            [(last,)] = connection.execute(query)
        except sqlite3.OperationalError:  # not there yet
            return 0
    return 0 if last is None else int(last) + 2


def facts(report: dict[str, Any]) -> dict[str, Any]:
    steps = [{k: v for k, v in step.items() if k != "seconds"} for step in report["steps"]]
    total = {k: v for k, v in report["total"].items() if k != "seconds"}
    measured = {**report["appraisal"], "measured": "", "seconds": 0}
    return {**report, "id": "", "steps": steps, "total": total, "appraisal": measured}


def exchanges(database: Path, run_id: str) -> list[tuple[Any, ...]]:
    """What was asked and said: ids, texts and likelihoods of every generation of the run."""
    with closing(sqlite3.connect(database)) as connection:
        query = (
            "SELECT step, exchange, g.position, text, tokens, token_ids, logprobs, entropies "
            "FROM generations g JOIN runs r ON r.number = g.run WHERE r.id = ? ORDER BY 1, 2, 3"
        )
        return connection.execute(query, (run_id,)).fetchall()


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_run_goes_on_and_ends_like_an_unbroken_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stop: signal.Signals
) -> None:
    model = tiny_llama(tmp_path / "model", max_position_embeddings=4096)
    database, checkpoints = tmp_path / "runs.db", tmp_path / "checkpoints"
    asked = [
        "run", "Where was Rosis Wallo born?", "--gold", "Zana", "-w", "iter_retgen",
        "-o", f"iterations={STEPS}", "-o", "max_tokens=80", "-o", "k=2", "--samples", "2",
        # To the last digit numbers depend on which prefixes the process has read before.
        "--reader", f"hf:{model},prefix_cache=0", "--seed", "3", "--db", str(database),
    ]  # fmt: skip
    code, out, _ = call(capsys, *asked, "--json")
    assert code == 0
    whole = json.loads(out)

    kept = ["--checkpoint", str(checkpoints)]
    broken = subprocess.run(
        [sys.executable, "-c", STOPPED, str(int(stop)), *asked, *kept],
        capture_output=True,
        text=True,
        # A shell starts background jobs with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert broken.returncode == (130 if stop is signal.SIGINT else -stop), broken.stderr
    assert 2 + 2 <= taken(checkpoints) < 2 + 2 * STEPS
    if stop is signal.SIGINT:
        assert "hopscope resume" in broken.stderr

    options = [*kept, "--db", str(database)]
    code, out, _ = call(capsys, "resume", "--json", *options)
    assert code == 0
    resumed = json.loads(out)
    assert facts(resumed) == facts(whole)
    assert exchanges(database, resumed["id"]) == exchanges(database, whole["id"])
    listed = json.loads(call(capsys, "ls", "--json", "--db", str(database))[1])
    assert sorted(row["id"] for row in listed) == sorted([resumed["id"], whole["id"]])

    written = taken(checkpoints)
    _, out, err = call(capsys, "resume", resumed["id"][:8], *options, "--json")
    assert json.loads(out) == resumed
    assert "finished" in err
    assert taken(checkpoints) == written


def test_a_run_goes_on_only_with_the_corpus_and_reader_it_was_begun_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An index that was built again with other passages answers other queries differently."""

    def index(text: str) -> None:
        corpus = tmp_path / "corpus.jsonl"
        corpus.write_text(json.dumps({"id": "a", "title": "Moon Harbor", "text": text}) + "\n")
        built = ["--out", str(tmp_path / "index"), "--overwrite"]
        assert call(capsys, "index", "build", str(corpus), *built)[0] == 0

    model = tiny_llama(tmp_path / "model", max_position_embeddings=64)
    index("Moon Harbor was directed by Velora Tarn.")
    options = ["--db", str(tmp_path / "runs.db"), "--checkpoint", str(tmp_path / "checkpoints")]
    asked = [
        "run", "Who directed Moon Harbor? " + "Who? " * 40, "-w", "naive",
        "--corpus", str(tmp_path / "index"), "--reader", f"hf:{model}", *options,
    ]  # fmt: skip
    assert call(capsys, *asked)[0] == 1, "the prompt is too long for the model"

    index("Moon Harbor was directed by somebody else.")
    code, _, told = call(capsys, "resume", *options)
    assert (code, told.count("bm25:")) == (2, 2), told

    index("Moon Harbor was directed by Velora Tarn.")
    tiny_llama(tmp_path / "model", seed=1, max_position_embeddings=1024)
    code, _, told = call(capsys, "resume", *options)
    assert (code, told.count("model@")) == (2, 2), told


def test_without_checkpoints_there_is_nothing_to_resume(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, told = call(capsys, "resume", "--checkpoint", str(tmp_path / "none"))
    assert (code, "no checkpoints at" in told) == (2, True)
