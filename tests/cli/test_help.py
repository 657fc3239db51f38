"""Help can be read at 80 columns, and ends in an example that can be given."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from hopscope.cli.commands import COMMANDS, mounted
from hopscope.cli.options.help import EXAMPLES, ORDER
from tests.cli.experiment_example import call

APP = get_command(mounted(COMMANDS))


def commands(of: Any = APP, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group of commands, with the words that name it."""
    yield path, of
    for name, each in getattr(of, "commands", {}).items():
        yield from commands(each, *path, name)


ALL = {" ".join(path): command for path, command in commands()}


@pytest.mark.parametrize("width", ["60", "80", "120"])
@pytest.mark.parametrize("name", ALL)
def test_no_name_is_cut(
    name: str, width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 80 columns `--corpus,--retri…` and `HOPSCOPE_WORKFL…` stood there."""
    monkeypatch.setenv("COLUMNS", width)
    code, out, _ = call(capsys, *name.split(), "--help")
    assert code == 0
    assert "…" not in out
    assert out.isascii()
    if int(width) < 80:
        return
    assert [line for line in out.splitlines() if len(line) > int(width)] == []
    words = " ".join(out.split())
    for parameter in ALL[name].params:
        for flag in (*parameter.opts, *parameter.secondary_opts):
            assert parameter.param_type_name == "argument" or flag in words
        assert not isinstance(parameter.envvar, str) or parameter.envvar in words


@pytest.mark.parametrize("name", ALL)
def test_a_command_ends_its_help_with_an_example_that_can_be_given(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = call(capsys, *name.split(), "--help")
    assert code == 0
    assert out.endswith(f"Example:\n  {EXAMPLES[name]}\n")
    program, *arguments = shlex.split(EXAMPLES[name])
    words = name.split()
    assert (program, arguments[: len(words)]) == ("hopscope", words)
    command = ALL[name]
    rest = arguments[len(words) :]
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    # Raises for unknown options and values.
    command.make_context(name, rest)


def test_examples_are_of_commands() -> None:
    assert EXAMPLES.keys() == ALL.keys()


def test_help_names_every_kind_of_reader(capsys: pytest.CaptureFixture[str]) -> None:
    """`tiny|hf:MODEL` hid the others."""
    _, out, _ = call(capsys, "run", "--help")
    words = " ".join(out.split())
    for kind in ("tiny", "hf:MODEL", "vllm:MODEL", "fid:MODEL", "openai:URL#MODEL"):
        assert kind in words


def test_options_stand_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "run", "--help")
    headings = [line[:-1] for line in out.splitlines() if line.endswith(":") and line[0] != " "]
    shown = [heading for heading in ORDER if heading in headings]
    assert headings == [*shown, "Example"]
    assert len(shown) > 4


def test_summaries_are_short() -> None:
    """The summary of `list` took four lines of `hopscope --help`."""
    long = {
        name: of.help for name, of in ALL.items() if len((of.help or "").split("\n\n")[0]) > 100
    }
    assert long == {}


def test_usage_names_arguments_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    """`{QUESTION}` and `[[RUN]]` stood there."""
    for name in ALL:
        _, out, _ = call(capsys, *name.split(), "--help")
        usage = out.partition("\n\n")[0]
        assert "{" not in usage
        assert "[[" not in usage
