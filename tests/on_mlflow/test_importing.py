"""Traces that a program made with MLflow's own client come back as runs, by a URL."""

import os
import subprocess
from pathlib import Path

import pytest

import hopscope
from hopscope.store.importers import mlflow
from hopscope.store.store import Store
from tests.on_mlflow.conftest import PYTHON

RUNS = 5
PROGRAM = f"""
import sys
import mlflow
from mlflow.entities import Document, SpanType

mlflow.set_tracking_uri(sys.argv[1])
mlflow.set_experiment("an agent")

@mlflow.trace(span_type=SpanType.RETRIEVER)
def search(query):
    return [Document(page_content=f"The {{query}} is Cleo.", id=query, metadata={{}})]

@mlflow.trace(span_type=SpanType.CHAT_MODEL)
def model(messages):
    span = mlflow.get_current_active_span()
    span.set_attribute("mlflow.chat.tokenUsage", {{"input_tokens": 12, "output_tokens": 3}})
    return {{"choices": [{{"message": {{"role": "assistant", "content": "Cleo"}}}}]}}

@mlflow.trace(span_type=SpanType.CHAIN)
def ask(question):
    found = [search("mayor")[0], search("town")[0]]
    model([{{"role": "user", "content": "".join(each.page_content for each in found)}}])
    return "Cleo"

for number in range({RUNS}):
    ask(f"Who is {{number}}?")
mlflow.flush_trace_async_logging()
"""


def test_traces_of_a_program_come_back(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlflow, "PAGE", 2)
    script = tmp_path / "program.py"
    script.write_text(PROGRAM, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(
        [os.environ[PYTHON], str(script), server],
        check=True,
        cwd=tmp_path,
        env=environment,
        timeout=300,
        capture_output=True,
    )
    with Store.open(tmp_path / "runs.db") as store:
        report = hopscope.import_runs(f"{server}/experiments/an%20agent", store=store, name="agent")
        assert (report.stored, report.retrievals, report.unread) == (RUNS, 2 * RUNS, 0)
        runs = list(map(store.load, store.ids()))
        assert sorted(run.question.text for run in runs) == [f"Who is {n}?" for n in range(RUNS)]
        for run in runs:
            assert [step.query for step in run.steps] == ["mayor", "town", None]
            assert run.steps[-1].shown == ("mayor", "town")
            assert (run.steps[-1].output, run.answer) == ("Cleo", "Cleo")
            assert (run.usage.input_tokens, run.usage.output_tokens) == (12, 3)
            assert run.timed
        again = hopscope.import_runs(f"{server}/experiments/an%20agent", store=store, name="agent")
        assert (again.stored, again.known) == (0, RUNS)
        with pytest.raises(hopscope.UsageError, match="there is no such experiment"):
            hopscope.import_runs(f"{server}/experiments/nobody", store=store)
