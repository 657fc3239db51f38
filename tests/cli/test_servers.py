"""Commands over a model on a server that behaves as servers do."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopscope.api.appraiser import Appraiser
from hopscope.api.views import run_table
from hopscope.cli.main import main
from hopscope.lab.export import rows
from hopscope.store.store import Store
from tests.models import tiny_llama
from tests.servers import openai_api
from tests.servers.openai_api import Service


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llama(tmp_path_factory.mktemp("model") / "llama")


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in ("OPENAI_API_KEY", "HOPSCOPE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with openai_api.running(Service(folder)) as service:
        service.context = 4000
        yield service


class Commands:
    """Runs commands against one server and one database."""

    def __init__(self, server: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.reader = f"openai:{server.url}#{openai_api.MODEL},retries=0"
        self.db = ["--db", str(tmp_path / "runs.db")]
        self.prices = tmp_path / "prices.toml"
        self.prices.write_text(
            '[models]\n"model@*" = { input = 2.0, output = 8.0, cached = 1.0 }\n'
        )
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        try:
            main([*arguments, *self.db])
            code: Any = 0
        except SystemExit as stop:
            code = stop.code
        told = self._capsys.readouterr()
        return code, told.out, told.err

    def run(self, *options: str, reader: str = "") -> tuple[int, str, str]:
        named = ["--reader", self.reader + reader, "--samples", "2"]
        return self("run", "Who?", "-w", "naive", "-k", "1", "--gold", "Bo", *named, *options)


@pytest.fixture
def commands(server: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(server, tmp_path, capsys)


def test_a_fault_while_measuring_does_not_cost_the_run(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: Any) -> None:
        raise RecursionError("deep\x1b[31m")

    monkeypatch.setattr(Appraiser, "appraise", fault)
    code, out, err = commands.run()
    assert code == 1
    assert "answer  " in out
    assert "the run is not appraised: RecursionError: deep[31m; this is a fault" in err
    assert commands("ls")[1].count("naive") == 1


def test_a_server_that_refuses_options_is_used_and_one_line_tells(
    commands: Commands, server: Service
) -> None:
    """It was a failed run that quoted the 400."""
    server.refuses = openai_api.reasoning
    # A random model seldom ends by itself, and a reply that was cut off has no known meaning.
    server.change = lambda choice: choice.update(finish_reason="stop")
    code, out, err = commands.run("-o", "seper.weight=uniform")
    assert code == 0
    assert "SePer " in out
    [line] = [line for line in err.splitlines() if "refuses a part of the request" in line]
    assert line.startswith("hopscope: model@127.0.0.1:")
    for part in ("max_completion_tokens", "temperature=0", "top_p", "logprobs"):
        assert part in line
    steps = json.loads(commands("show", "--json")[1])["steps"]
    assert [step["refused"] for step in steps if step["usage"]["calls"]] == [
        ["logprobs", "temperature", "top_p"]
    ]
    told = commands("show")[1]
    assert told.count("the server refused logprobs, temperature, top_p") == 1


def test_tokens_that_nobody_told_are_unknown_and_not_none(
    commands: Commands, server: Service
) -> None:
    server.counts = lambda usage: None
    code, out, err = commands.run(reader=",alternatives=none")
    assert code == 0
    assert "1 call, 0 + 0 tokens counted, 1 call without a count" in out
    assert " ? " in commands("ls")[1]
    assert "cannot hold" not in err
    with Store.open(commands.db[1]) as store:
        [step] = [row for row in rows.step_rows(store.latest()) if row["calls"]]
    assert (step["input_tokens"], step["output_tokens"]) == (None, None)
    for limit in ("--max-tokens=500", "--max-cost=1"):
        code, out, err = commands.run(limit, "--prices", str(commands.prices), reader="")
        assert code == 1
        kind = limit[6:].partition("=")[0]
        assert f"the limit of {kind} cannot hold" in " ".join(out.split())


def test_run_and_show_tell_the_cost(commands: Commands) -> None:
    """`run --prices` never did."""
    code, out, _ = commands.run("--prices", str(commands.prices))
    assert code == 0
    report = json.loads(commands("show", "--json", "--prices", str(commands.prices))[1])
    for part in (report["total"], report["appraisal"]):
        usage = part["usage"]
        expected = (2 * usage["input_tokens"] + 8 * usage["output_tokens"]) / 1e6
        assert part["cost"] == pytest.approx(expected)
        assert run_table.money(part["cost"], "USD") in out
    assert "USD" not in commands("show")[1], "the shipped table does not know the model"
