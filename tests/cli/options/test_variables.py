"""Environment variables: each means one thing, and a misspelt one is told."""

from typing import Any

import pytest
from typer.main import get_command

from hopscope.cli import variables
from hopscope.cli.commands import COMMANDS, mounted
from tests.cli.experiment_example import call


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("HOPSCOPE_REEDER", "HOPSCOPE_REEDER is not known: did you mean HOPSCOPE_READER?"),
        ("HOPSCOPE_METER_OPTION", "did you mean HOPSCOPE_METER_OPTIONS?"),
        ("HOPSCOPE_QQQQ", "HOPSCOPE_QQQQ is not known\n"),
    ],
)
def test_a_misspelt_variable_is_told(
    name: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was ignored without a word."""
    monkeypatch.setenv(name, "x")
    code, _, err = call(capsys, "list", "readers")
    assert code == 0
    assert said in err


def test_variables_that_commands_read_are_not_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also those of other commands, those of several lines, and those that readers read."""
    for name in ("HOPSCOPE_READER", "HOPSCOPE_OPTIONS", "HOPSCOPE_API_KEY", "HOPSCOPE_TEST_VLLM"):
        monkeypatch.setenv(name, "")
    code, _, err = call(capsys, "list", "readers")
    assert (code, err) == (0, "")


def _of(command: Any, found: dict[str, set[str]]) -> None:
    for parameter in command.params:
        if isinstance(parameter.envvar, str):
            found.setdefault(parameter.envvar, set()).add(parameter.opts[0])
    for inner in getattr(command, "commands", {}).values():
        _of(inner, found)


def test_a_variable_sets_one_option() -> None:
    """HOPSCOPE_MAX_TOKENS was the budget of a run and the length of eRAG's answers."""
    found: dict[str, set[str]] = {}
    _of(get_command(mounted(COMMANDS)), found)
    assert found.pop("HOPSCOPE_EXPERIMENT") == {"--name", "experiment"}  # eval's and export's
    assert {name: flags for name, flags in found.items() if len(flags) > 1} == {}
    assert "HOPSCOPE_ERAG_MAX_TOKENS" in found
    assert found.keys() <= variables.names()
