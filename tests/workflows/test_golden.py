"""A short recorded run of each workflow, which no change may alter unnoticed.

The question and the corpus are Hopland's; the reader is an oracle, so that retraining the embedded
one changes nothing here. `pytest tests/workflows/test_golden.py --update-golden` records anew; the
change then shows in the diff of `golden/`.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from hopscope import workflows
from hopscope.runtime import components
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Retriever
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.types import Run, Step
from hopscope.tracing.entailments import lexical
from tests.oracle import UNKNOWN, Oracle
from tests.probes import Speaker

FOLDER = Path(__file__).parent / "golden"
COMMAND = "python -m pytest tests/workflows/test_golden.py --update-golden"
NAMES = components.own(workflows)
ASKED = next(q for q in hopland.questions("test") if q.kind == "chain" and q.hops == 2)


@pytest.fixture(scope="module")
def world() -> Retriever:
    return bm25.from_passages(hopland.corpus(), name="hopland")


def record(result: Run) -> dict[str, Any]:
    """What must stay: no times, no scores (their last digits differ between machines)."""
    return {
        "workflow": result.workflow,
        "question": result.question.text,
        "gold": list(result.question.answers),
        "answer": result.answer,
        "stop_reason": result.stop_reason,
        "steps": [describe(step) for step in result.steps],
    }


def describe(step: Step) -> dict[str, Any]:
    told = {
        "query": step.query,
        "ranked": [hit.passage.key for hit in step.ranked],
        "new": list(step.new),
        "shown": list(step.shown),
        "output": step.output,
        "parse_ok": step.parse_ok,
        "stop_reason": step.stop_reason,
        "dangling": list(step.dangling),
    }
    return {
        "name": step.name,
        **{key: value for key, value in told.items() if value or value is False},
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_run_is_as_recorded(name: str, world: Retriever, pytestconfig: pytest.Config) -> None:
    reader = Speaker(Oracle(ASKED).speak, unsure=(UNKNOWN,))
    deps = Deps(reader=reader, retriever=world, entailment=lexical.build())
    built = Workflow(name, components.load(workflows, name).build(), {})
    result = run(built, ASKED.question, deps)
    assert result.status == "ok", result.error
    found = record(result)
    path = FOLDER / f"{name}.json"
    if pytestconfig.getoption("--update-golden"):
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert path.is_file(), f"no recorded run of {name}: make one with `{COMMAND}`"
    told = f"{name} runs otherwise than recorded; if that is meant, `{COMMAND}`"
    assert found == json.loads(path.read_text(encoding="utf-8")), told


def test_every_recorded_run_is_of_a_workflow_that_there_is() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} <= set(NAMES)


@pytest.mark.parametrize(
    "name", ["flare", "flare_instruct", "ircot", "react", "search_agent", "self_ask"]
)
def test_a_workflow_that_searches_hop_by_hop_finds_the_answer(name: str) -> None:
    """A recorded run that goes nowhere would prove little."""
    recorded = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert [recorded["answer"]] == recorded["gold"]
