"""Programs of LlamaIndex, Haystack and DSPy, recorded by Hopscope in the environment of
`make test-traces`: each search comes back once, in order, with passages and tokens."""

import json
import os
import site
import subprocess
from pathlib import Path
from typing import Any

import pytest

PYTHON = "HOPSCOPE_TEST_TRACES"
"""Names the Python of that environment."""
PROGRAMS = Path(__file__).parent / "programs"
SOURCE = Path(__file__).parents[2] / "src"
QUESTION = "Who is the mayor of the filming place of Flower of Yalhal?"
QUERIES = ["Flower of Yalhal", "Port Hellon mayor"]
PASSAGES = {
    "Flower of Yalhal was filmed in Port Hellon.",
    "The mayor of Port Hellon is Cleo Marwick.",
}


@pytest.fixture
def python() -> str:
    """The Python of that environment."""
    named = os.environ.get(PYTHON)
    if not named:
        pytest.skip(f"{PYTHON} names no Python with the frameworks: make test-traces")
    return named


def recorded(python: str, framework: str, folder: Path) -> list[dict[str, Any]]:
    """What the runs of a program hold."""
    file = folder / "runs.json"
    script = str(PROGRAMS / f"recorded_{framework}.py")
    command = [python, script, str(file), str(SOURCE), site.getsitepackages()[0]]
    subprocess.run(command, check=True, timeout=300, capture_output=True)
    runs: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
    for run in runs:
        assert run["workflow"] == f"recorded:{framework}"
        assert run["status"] == "failed" or run["question"] == QUESTION
        assert run["status"] == "failed" or set(run["evidence"]) == PASSAGES
        assert run["answer"] == (None if run["status"] == "failed" else "Cleo Marwick")
    return runs


def test_llama_index(python: str, tmp_path: Path) -> None:
    """A retriever that asks another one twice is one search; also where the engine is awaited."""
    plain, reranked, awaited, failed = recorded(python, "llama_index", tmp_path)
    for run in (plain, reranked, awaited):
        assert (run["queries"], run["found"], run["shown"]) == ([QUESTION], [2], [2])
        assert run["tokens"] == [50, 3, 0]
    assert (failed["status"], failed["error"]) == ("failed", "LookupError")
    assert (failed["question"], failed["queries"], failed["found"]) == ("nothing", ["nothing"], [0])


def test_the_example_of_llama_index_tells_the_worth_of_its_passages(python: str) -> None:
    example = Path(__file__).parents[2] / "examples" / "record_llama_index.py"
    code = (
        "import sys, runpy; sys.path.insert(0, sys.argv[1]); sys.path.append(sys.argv[2]); "
        "runpy.run_path(sys.argv[3])"
    )
    # -P: the folder `workflows` here is not the package that LlamaIndex means.
    command = [python, "-P", "-c", code, str(SOURCE), site.getsitepackages()[0], str(example)]
    told = subprocess.run(command, check=True, timeout=300, capture_output=True, text=True)
    useful, useless = told.stdout.splitlines()
    assert float(useful.split()[-1]) > 0.8
    assert abs(float(useless.split()[-1])) < 0.2


def test_haystack(python: str, tmp_path: Path) -> None:
    """The agent's searches are asked for at once, and run in threads."""
    pipeline, agent = recorded(python, "haystack", tmp_path)
    assert (pipeline["queries"], pipeline["found"]) == ([QUESTION], [2])
    assert pipeline["tokens"] == [50, 3, 0]
    assert (sorted(agent["queries"]), agent["found"]) == (QUERIES, [2, 2])
    assert agent["shown"] == [0, 2]
    assert agent["tokens"] == [0, 0, 2]


def test_dspy(python: str, tmp_path: Path) -> None:
    """The tool that ends the agent is none that searches."""
    module, agent = recorded(python, "dspy", tmp_path)
    assert (module["queries"], module["found"], module["shown"]) == (QUERIES, [2, 2], [2])
    assert (agent["queries"], agent["found"]) == (QUERIES, [2, 2])
    assert agent["shown"][0] == 0
    assert agent["shown"][-1] == 2
