"""docs/workflows.md says what there is, and its example runs."""

import re
import sys
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hopscope import workflows
from hopscope.runtime import components
from hopscope.runtime.types import Passage
from tests.probes import Speaker, script
from tests.talk import ScriptedRetriever
from tests.workflows import test_conformance as conformance

TEXT = (Path(__file__).parents[2] / "docs" / "workflows.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##)", TEXT, re.MULTILINE | re.DOTALL))
MODULE, SCRIPT = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
TARN = Passage(id="2", title="Velora Tarn", text="Velora Tarn was born in Miskel.")


@pytest.mark.parametrize("name", components.own(workflows))
def test_each_workflow_is_described_with_all_its_options(name: str) -> None:
    described = SECTIONS.get(name, "")
    options = components.options(components.load(workflows, name).build)
    assert described, f"docs/workflows.md has no section {name}"
    assert [option for option in options if f"`{option}" not in described] == []


@pytest.fixture
def ask_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The file of the example, put where workflows are looked for."""
    (tmp_path / "ask_again.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setattr(workflows, "__path__", [*workflows.__path__, str(tmp_path)])
    assert "ask_again" in components.own(workflows)
    yield components.load(workflows, "ask_again")
    sys.modules.pop("hopscope.workflows.ask_again")


def test_the_example_is_a_workflow_in_one_file(ask_again: ModuleType) -> None:
    names: dict[str, Any] = {}
    exec(SCRIPT, names)
    reader = Speaker(script(["Unknown.", "Velora Tarn birthplace", "Miskel"]))
    retriever = ScriptedRetriever({"Velora Tarn birthplace": [TARN]})
    result = names["answer"](ask_again, reader, retriever, "Where was she born?")
    assert result.status == "ok", result.error
    assert [s.name for s in result.steps] == ["retrieve", "read", "rewrite", "retrieve", "read"]
    assert retriever.queries == ["Where was she born?", "Velora Tarn birthplace"]
    assert (result.answer, result.stop_reason) == ("Miskel", "answered")
    assert result.usage == reader.spent


def test_the_example_stops_at_its_limit(ask_again: ModuleType) -> None:
    names: dict[str, Any] = {}
    exec(SCRIPT, names)
    result = names["answer"](
        ask_again, Speaker(lambda request: "unknown"), ScriptedRetriever({}), "Where?"
    )
    assert result.stop_reason == "max_steps"
    assert [s.name for s in result.steps].count("read") == 2


def test_the_options_of_the_example_are_read_from_text(ask_again: ModuleType) -> None:
    options = components.parse_options(ask_again.build, {"k": "10"})
    assert options == {"k": 10, "max_steps": 3, "max_tokens": 32}


CHECKS = {name: each for name, each in vars(conformance).items() if name.startswith("test_")}
"""What every workflow of the package must do."""


def wrong(check: Callable[..., None], name: str) -> str | None:
    """What a check finds wrong with a workflow and its default options."""
    options = {"options": {}} if "options" in signature(check).parameters else {}
    try:
        check(name, **options)
    except AssertionError as error:
        return str(error)
    return None


def test_the_example_conforms(ask_again: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the one line that the document names, a probe that makes it loop."""
    probe = conformance.Probe(lambda: lambda request: "unknown")
    monkeypatch.setitem(conformance.PROBES, "ask_again", probe)
    found = {check: wrong(each, "ask_again") for check, each in CHECKS.items()}
    assert len(found) > 10
    assert {check: told for check, told in found.items() if told is not None} == {}
    monkeypatch.setattr(ask_again, "__doc__", "Ask again.")
    assert wrong(conformance.test_the_docstring_cites_the_paper_and_draws_every_node, "ask_again")
