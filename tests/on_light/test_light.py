"""What goes without the libraries that run models. `make test-light` runs these tests where they
are not installed; elsewhere they are hidden from the commands."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import commands
from tests.commands import Done
from tests.servers import scripted_api

QUESTION, GOLD = "Where is the firm of Elsa based?", "Rovmar"
FOUND = ("Elsa works for Salwin.", "Salwin is based in Rovmar.")


LOCAL = ("torch", "transformers", "tokenizers", "huggingface_hub")

Hopscope = Callable[..., Done]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A transcript of an agent, a corpus, and questions."""
    folder = tmp_path_factory.mktemp("light")
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    for place, text in enumerate(FOUND):
        function = {"name": "search", "arguments": json.dumps({"query": text[:6]})}
        call = {"id": str(place), "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        found = json.dumps([{"id": str(place), "title": "", "text": text}])
        messages.append({"role": "tool", "tool_call_id": str(place), "content": found})
    messages.append({"role": "assistant", "content": GOLD})
    told = json.dumps({"messages": messages, "answers": [GOLD]})
    (folder / "agent.jsonl").write_text(told + "\n")
    lines = (json.dumps({"id": str(i), "text": text}) for i, text in enumerate(FOUND))
    (folder / "corpus.jsonl").write_text("".join(line + "\n" for line in lines))
    asked = {"question": "Where is Salwin based?", "golden_answers": [GOLD]}
    (folder / "asked.jsonl").write_text(json.dumps(asked) + "\n")
    return folder


@pytest.fixture(scope="module")
def reader() -> Iterator[str]:
    with scripted_api.naming(GOLD) as reader:
        yield reader


@pytest.fixture(scope="module")
def hopscope(folder: Path) -> Iterator[Hopscope]:
    """Gives commands in the folder."""
    with commands.started(hidden=LOCAL) as given:
        environment = {**os.environ, "HOPSCOPE_DB": str(folder / "runs.db")}
        yield lambda *words: given(*words, folder=folder, environment=environment)


def test_an_imported_run_is_credited_compared_and_exported(
    hopscope: Hopscope, reader: str, folder: Path
) -> None:
    told = hopscope("import", "agent.jsonl", "--name", "agent")
    assert (told.code, "with 2 retrievals read (messages)" in told.out) == (0, True), told
    measured = ("--reader", reader, "--entailment", "lexical", "--samples", "3", "--json")
    told = hopscope("credit", "agent", *measured, "--rule", "trajectory", "--rule", "shapley")
    assert told.code == 0, told
    shares = {
        row["step"]: row["value"]
        for row in json.loads(told.out)["credits"]
        if (row["meter"], row["rule"]) == ("seper", "shapley")
    }
    assert shares == {0: 0, 1: 0, 2: 0, 3: 1, 4: 0}, "the second search found the place"
    for asked in (("show", "last"), ("ls",), ("compare", "agent"), ("score", "last")):
        told = hopscope(*asked)
        assert (told.code, told.err) == (0, ""), told
    told = hopscope("export", "rows", "agent", "--out", "rows")
    assert told.code == 0, told
    assert ",seper,shapley,1.0" in (folder / "rows" / "credits.csv").read_text()


def test_a_run_with_a_budget_and_an_experiment_are_made_by_a_server(
    hopscope: Hopscope, reader: str
) -> None:
    assert hopscope("index", "build", "corpus.jsonl", "--out", "index").code == 0
    parts = ("--reader", reader, "--corpus", "index", "--entailment", f"judge:{reader}")
    asked = ("-k", "2", "--gold", GOLD, "--meter", "seper", "--samples", "2")
    told = hopscope("run", QUESTION, "-w", "naive", *parts, *asked, "--policy", "fixed:1", "--json")
    assert (told.code, json.loads(told.out)["answer"]) == (0, GOLD), told
    told = hopscope("budget", "explain", "last")
    assert (told.code, "(fixed:1)" in told.out) == (0, True), told
    told = hopscope(
        *("eval", "asked.jsonl", "-w", "naive:k=2", "--name", "first", *parts),
        *("--meter", "seper", "--samples", "2", "--deterministic", "--json"),
    )
    assert told.code == 0, told
    [item] = json.loads(told.out)["items"]
    assert item["run"]["answer"] == GOLD


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("run", "Who?"), "the embedded reader"),
        (("run", "Who?", "--reader", "hf:somewhere"), "the model somewhere"),
        (("run", "Who?", "--entailment", "nli:somewhere"), "the model somewhere"),
    ],
)
def test_what_needs_a_local_model_names_the_extra(
    hopscope: Hopscope, reader: str, words: tuple[str, ...], what: str
) -> None:
    given = () if what == "the embedded reader" or "--reader" in words else ("--reader", reader)
    told = hopscope(*words, *given)
    assert told.code == 2
    said = " ".join(told.err.split())
    assert f"{what} needs an extra: pip install 'hopscope[local]'" in said
    assert "Traceback" not in said
