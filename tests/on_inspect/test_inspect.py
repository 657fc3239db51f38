"""The logs are read by inspect_ai, and bundled for its viewer."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.views.screens_example import ARMS, ENTRIES, run_of


@pytest.fixture(scope="module")
def logs(exported: Path) -> dict[str, Any]:
    """By workflow."""
    from inspect_ai.log import list_eval_logs, read_eval_log

    found = [read_eval_log(info) for info in list_eval_logs(str(exported / "inspect"))]
    return {log.eval.solver: log for log in found}


def test_a_log_is_a_workflow_and_a_sample_a_question(logs: dict[str, Any]) -> None:
    assert set(logs) == set(ARMS)
    for log in logs.values():
        assert (log.status, log.eval.task, log.eval.dataset.samples) == ("success", "towns", 2)
        assert log.eval.model == "hf:models/Qwen3-8B@9c925d64"
        assert [sample.id for sample in log.samples] == ["q1", "q2"]
        assert [sample.target for sample in log.samples] == [
            list(entry.question.answers) for entry in ENTRIES
        ]


def test_scores_are_ours_and_unmeasured_ones_are_left_out(logs: dict[str, Any]) -> None:
    log = logs["naive"]
    first = log.samples[0]
    assert first.scores["exact_match"].value == 0.0
    assert first.scores["seper"].value == pytest.approx(0.25 + 1 / 8)
    assert first.scores["seper_delta"].value == pytest.approx(1 / 8)
    assert first.scores["exact_match"].answer == "Salwin Pictures"
    assert "grogu" not in first.scores
    assert first.metadata["unmeasured"] == {"grogu": "not appraised"}
    means = {score.name: score for score in log.results.scores}
    # Gains of naive are 1/8 and 3/8.
    assert means["seper_delta"].metrics["mean"].value == pytest.approx(0.25)
    assert (means["f1"].scored_samples, means["f1"].unscored_samples) == (2, 0)
    assert "grogu" not in means


def test_searches_are_calls_with_their_credit(logs: dict[str, Any]) -> None:
    sample = logs["naive"].samples[0]
    run = run_of(0)
    assert [message.role for message in sample.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    _, call, found, reply = sample.messages
    assert call.tool_calls[0].function == "search"
    assert call.tool_calls[0].arguments == {"query": run.question.text}
    assert found.tool_call_id == call.tool_calls[0].id
    assert "Salwin Pictures is a name." in found.text
    assert reply.text == run.steps[1].output
    search, model = sample.events
    assert (search.event, search.timestamp, model.event) == ("tool", run.started, "model")
    credits = {(row["meter"], row["rule"]): row for row in search.metadata["credits"]}
    assert credits["seper", "shapley"]["value"] == pytest.approx(1 / 8)
    assert credits["seper", "shapley"]["low"] == pytest.approx(1 / 8 - 0.25)
    assert sample.metadata["run"] == run.id
    assert len(sample.metadata["credits"]) == 10
    assert sample.model_usage[run.reader].total_tokens == 1234


def test_the_viewer_takes_them(exported: Path, tmp_path: Path) -> None:
    """A name with `%` in it was not found."""
    command = [str(Path(sys.executable).parent / "inspect"), "view", "bundle"]
    places = ["--log-dir", str(exported / "inspect"), "--output-dir", str(tmp_path / "bundle")]
    subprocess.run([*command, *places], check=True, capture_output=True, timeout=300)
    assert (tmp_path / "bundle" / "index.html").is_file()
    listed = json.loads((tmp_path / "bundle" / "logs" / "listing.json").read_text())
    assert len(listed) == 2


# Of what ragas imports.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ragas_reads_its_evaluation_set(exported: Path) -> None:
    from ragas import EvaluationDataset

    found = EvaluationDataset.from_jsonl(str(exported / "ragas" / "naive.jsonl"))
    first = found[0]
    assert len(found) == 2
    assert first.user_input == ENTRIES[0].question.text
    assert (first.response, first.reference) == ("Salwin Pictures", "Grand Rovmar")
    assert first.retrieved_contexts[0] == "Elsa Wilby\nElsa Wilby is a name."


def test_flashrag_reads_its_intermediate_data(exported: Path) -> None:
    from flashrag.dataset.dataset import Dataset, Item

    text = (exported / "flashrag" / "naive" / "intermediate_data.json").read_text()
    found = Dataset({"dataset_name": "towns"}, data=[Item(record) for record in json.loads(text)])
    assert found.pred == ["Salwin Pictures", "Grand Rovmar"]
    assert found.golden_answers == [["Grand Rovmar"], ["Ada Ølberg"]]
    assert [doc["id"] for doc in found.retrieval_result[0]] == ["0", "1", "2"]
