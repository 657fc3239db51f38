"""The whole path through the command line, on real parts: the embedded world and reader, a real
index, a real database, real spans."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from hopscope.cli.main import main
from tests.models import tiny_llama

HOPSCOPE = [sys.executable, "-m", "hopscope.cli"]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and stdout of one command."""
    try:
        main(list(arguments))
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(bool(stop.code))
    return code, capsys.readouterr().out


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, out = call(capsys, *arguments, "--json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.fixture
def database(tmp_path: Path) -> list[str]:
    return ["--db", str(tmp_path / "runs.db")]


def without_times(report: dict[str, Any]) -> dict[str, Any]:
    steps = [{k: v for k, v in step.items() if k != "seconds"} for step in report["steps"]]
    total = {k: v for k, v in report["total"].items() if k != "seconds"}
    measured = {**report["appraisal"], "measured": "", "seconds": 0}
    return {**report, "id": "", "steps": steps, "total": total, "appraisal": measured}


def test_the_demo_credits_every_retrieval_and_show_repeats_it_from_sql(
    capsys: pytest.CaptureFixture[str], database: list[str], tmp_path: Path
) -> None:
    spans = tmp_path / "spans.jsonl"
    demo = ask(capsys, "demo", *database, "--trace-file", str(spans))
    assert demo["status"] == "ok"
    retrievals = [step for step in demo["steps"] if step["kind"] == "retrieve"]
    assert len(retrievals) >= 2
    for step in retrievals:
        seper, grogu = step["credit"]["seper"], step["credit"]["grogu"]
        assert seper["low"] <= seper["delta"] <= seper["high"]
        assert 0 <= seper["value"] <= 1
        assert seper["n"] in (0, 10)
        assert isinstance(seper["shapley"], float)
        assert isinstance(seper["leave_one_out"], float)
        assert isinstance(grogu["delta"], float)
        assert {"id", "title", "score", "new", "credit"} == set(step["passages"][0])
    total = demo["total"]["seper"]["delta"]
    assert sum(s["credit"]["seper"]["delta"] for s in demo["steps"]) == pytest.approx(total)
    assert sum(s["credit"]["seper"]["shapley"] for s in demo["steps"]) == pytest.approx(total)
    spent = [step["usage"] for step in demo["steps"]]
    assert sum(u["input_tokens"] for u in spent) == demo["total"]["usage"]["input_tokens"]

    assert ask(capsys, "show", *database) == demo
    assert ask(capsys, "show", demo["id"][:8], *database) == demo
    code, out = call(capsys, "ls", "--json", *database)
    assert code == 0
    [listed] = json.loads(out)
    assert listed["id"] == demo["id"]
    assert listed["seper_delta"] == pytest.approx(total)

    names = [
        span["name"]
        for line in spans.read_text().splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    assert "invoke_workflow ircot" in names
    assert sum(name.startswith("evaluation step") for name in names) == len(demo["steps"])


def test_the_same_seed_gives_the_same_run(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    one = ask(capsys, "demo", "2", "--seed", "3", *database)
    other = ask(capsys, "demo", "2", "--seed", "3", *database)
    assert without_times(one) == without_times(other)
    assert one["id"] != other["id"]


def test_the_table_is_printed_for_people(
    capsys: pytest.CaptureFixture[str], database: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    code, out = call(capsys, "demo", *database)
    assert code == 0
    assert "ΔSePer [95 %]" in out
    assert "total" in out
    assert "\x1b" not in out


def test_without_gold_seper_says_why_it_is_missing_and_grogu_is_there(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    found = ask(capsys, "run", "Where was Rosis Wallo born?", "-w", "naive", *database)
    [step, _] = found["steps"]
    assert step["credit"]["seper"]["delta"] is None
    assert "gold" in step["credit"]["seper"]["reason"]
    assert isinstance(step["credit"]["grogu"]["value"], float)


def test_closed_book_has_nothing_to_credit(
    capsys: pytest.CaptureFixture[str], database: list[str]
) -> None:
    found = ask(capsys, "run", "Where was Rosis Wallo born?", "-w", "closed_book",
                "--gold", "Zana", *database)  # fmt: skip
    assert found["total"]["seper"]["delta"] == 0
    assert found["total"]["retrievals"] == 0


def test_ones_own_corpus_and_model(
    capsys: pytest.CaptureFixture[str], database: list[str], tmp_path: Path
) -> None:
    """A corpus indexed from JSON lines, a causal language model from a folder. It ends its replies,
    as those that are cut off have no known meaning."""
    lines = [
        {"id": "a", "title": "Moon Harbor", "text": "Moon Harbor was directed by Velora Tarn."},
        {"id": "b", "title": "Velora Tarn", "text": "Velora Tarn was born in Miskel."},
    ]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
    index = str(tmp_path / "index")
    assert call(capsys, "index", "build", str(corpus), "--out", index)[0] == 0
    model = files("hopscope.lab.hopland") / "small"
    found = ask(
        capsys, "run", "Who directed Moon Harbor?", "-w", "naive", "--corpus", index,
        "--reader", f"hf:{model}", "--gold", "Velora Tarn", "--samples", "3", *database,
    )  # fmt: skip
    assert [p["id"] for p in found["steps"][0]["passages"]] == ["a"]
    assert found["steps"][0]["credit"]["seper"]["n"] == 3


def test_the_embedded_reader_is_said_to_be_no_model_for_real_text(
    capsys: pytest.CaptureFixture[str], database: list[str], tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"id": "a", "title": "Rome", "text": "Rome is the capital of Italy."}\n')
    index = str(tmp_path / "index")
    call(capsys, "index", "build", str(corpus), "--out", index)
    with pytest.raises(SystemExit):
        main(["run", "What is Rome?", "-w", "naive", "--corpus", index, *database])
    assert "no model for real text" in capsys.readouterr().err


def _retrievals(spans: Path) -> int:
    """How many retrieving steps a trace file holds."""
    return spans.read_text().replace(" ", "").count('"name":"retrieve"') if spans.exists() else 0


def test_control_c_keeps_the_run_and_marks_it_interrupted(tmp_path: Path) -> None:
    model = tiny_llama(tmp_path / "model", max_position_embeddings=16_384)
    spans, database = tmp_path / "spans.jsonl", str(tmp_path / "runs.db")
    command = [
        *HOPSCOPE, "run", "Where was Rosis Wallo born?", "-w", "ircot", "-o", "max_steps=500",
        "--reader", f"hf:{model}", "--trace-file", str(spans), "--db", database,
    ]  # fmt: skip
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts background jobs with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    # A second retrieval: by then the first step is in the state, however slow the machine is.
    while _retrievals(spans) < 2:
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=120)
    assert running.returncode == 130, err
    assert "Traceback" not in err
    shown = subprocess.run(
        [*HOPSCOPE, "show", "--json", "--db", database],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    kept = json.loads(shown.stdout)
    assert kept["status"] == "interrupted"
    assert kept["steps"][0]["name"] == "retrieve"
