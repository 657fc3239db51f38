"""Programs of LangChain, LlamaIndex, Haystack and DSPy, traced by OpenInference's instrumentations
in an environment of their own (`make test-traces`): each search comes back once."""

import os
import subprocess
from pathlib import Path

import pytest

from hopscope.runtime.types import Run
from hopscope.store.formats import openinference
from hopscope.store.trajectories.sources import Source

PYTHON = "HOPSCOPE_TEST_TRACES"
"""Names the Python of that environment."""
PROGRAMS = Path(__file__).parent / "programs"
QUESTION = "Who is the mayor of the filming place of Flower of Yalhal?"
QUERIES = ["Flower of Yalhal", "Port Hellon mayor"]


def traced(program: str, folder: Path) -> list[Run]:
    """The runs of a program."""
    python = os.environ.get(PYTHON)
    if not python:
        pytest.skip(f"{PYTHON} names no Python with the frameworks: make test-traces")
    file = folder / "spans.jsonl"
    script = str(PROGRAMS / f"{program}.py")
    subprocess.run([python, script, str(file)], check=True, timeout=300, capture_output=True)
    source = Source(file)
    format = openinference.build()
    assert format.fits(source)
    found = list(format.runs([source]))
    runs = [each for each in found if isinstance(each, Run)]
    assert runs == found
    assert {run.question.text for run in runs} == {QUESTION}
    assert {run.status for run in runs} == {"ok"}
    return runs


def searched(run: Run) -> list[str | None]:
    return [step.query for step in run.steps if step.kind == "retrieve"]


def replies(run: Run) -> list[int]:
    """The number of passages that each reply of the model saw."""
    return [len(step.shown) for step in run.steps if step.kind == "generate"]


def test_langchain(tmp_path: Path) -> None:
    """The agent's tool holds a retriever, which counts and the tool does not."""
    chain, agent = traced("langchain_program", tmp_path)
    assert searched(chain) == searched(agent) == QUERIES
    assert replies(chain) == [2]
    assert replies(agent) == [0, 2]
    assert chain.answer == agent.answer == "Cleo Marwick"
    assert all(len(step.ranked) == 2 for run in (chain, agent) for step in run.steps if step.query)


def test_llama_index(tmp_path: Path) -> None:
    """A retriever that asks another one twice is one search."""
    one, composed = traced("llama_index_program", tmp_path)
    assert searched(one) == searched(composed) == [QUESTION]
    assert [passage.id for passage in one.evidence] == ["film", "town"]
    assert replies(one) == replies(composed) == [2]


def test_haystack(tmp_path: Path) -> None:
    """The prompt's builder is called an LLM in the trace, and calls none."""
    [run] = traced("haystack_program", tmp_path)
    assert searched(run) == [QUESTION]
    assert {passage.id for passage in run.evidence} == {"film", "town"}
    assert replies(run) == [2]
    assert run.answer == "Cleo Marwick"


def test_dspy(tmp_path: Path) -> None:
    [run] = traced("dspy_program", tmp_path)
    assert searched(run) == QUERIES
    assert replies(run) == [2]
    assert run.answer == "Cleo Marwick"
