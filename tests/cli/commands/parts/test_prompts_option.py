"""`--prompts` in the commands: from a copy of the default to runs that are told apart."""

import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import hopscope
from hopscope.cli.main import main
from hopscope.runtime.errors import UsageError
from hopscope.store.store import Store
from hopscope.view.server.app import application
from hopscope.view.server.guarding import names

PORT = 7717
SHORT = """{% include "shared/documents.jinja" %}
{% user %}
Question: {{ question }}
Briefly: give only the answer.
{% enduser %}
"""


def call(*arguments: str) -> int:
    try:
        main(list(arguments))
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOPSCOPE_DB", str(tmp_path / "runs.db"))
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "mine" / "naive"
    home.mkdir(parents=True)
    (home / "answer.jinja").write_text(SHORT, "utf-8")
    return tmp_path / "mine"


def test_a_copy_is_written_edited_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("new", "prompts", "copied") == 0
    assert "--prompts ./copied" in capsys.readouterr().out
    assert (tmp_path / "copied" / "ircot" / "reason.jinja").is_file()
    assert call("new", "prompts", "copied") == 2
    assert "exists" in capsys.readouterr().err
    assert call("new", "prompts", "other", "--like", "none") == 2
    assert "choose from default" in capsys.readouterr().err
    assert call("new", "workflow", "other", "--like", "default") == 2


def test_a_run_is_asked_with_them_and_shows_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = ["run", "Who directed it?", "-w", "naive", "--meter", "none", "--prompts"]
    assert call(*question, str(folder)) == 0
    shown = capsys.readouterr().out
    assert f"prompts {folder}#" in shown
    assert call("show", "--json") == 0
    told = json.loads(capsys.readouterr().out)["prompts"]
    assert told.startswith(f"{folder}#")
    with Store.open() as store:
        run = store.latest()
        address = f"http://127.0.0.1:{PORT}"
        client = TestClient(application(store, hosts=names("127.0.0.1", PORT)), base_url=address)
        assert client.get(f"/api/runs/{run.id}").json()["prompts"] == told == run.prompts
        assert f"<code>{told}</code>" in client.get(f"/runs/{run.id}").text
    capsys.readouterr()
    (folder / "naive" / "answer.jinja").write_text("{% user %}\n{{ who }}\n{% enduser %}", "utf-8")
    assert call(*question, str(folder)) == 2
    told = capsys.readouterr().err
    assert "answer.jinja, line 2: 'who' is no value of this prompt" in told
    assert call("run", "Who?", "-w", "naive", "-o", "prompts=nowhere") == 2
    assert "no folder of prompts at" in capsys.readouterr().err


def test_experiments_with_different_prompts_are_told_apart(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["eval", "hopland:dev", "--limit", "1", "--meter", "none", "--name", "e"]
    both = ["-w", "naive", "-w", f"naive:prompts={folder}"]
    assert call(*asked, *both, "--json") == 0
    capsys.readouterr()
    assert call(*asked, *both, "--json") == 0  # finished: nothing is asked again
    capsys.readouterr()
    text = SHORT.replace("Briefly", "In short")
    (folder / "naive" / "answer.jinja").write_text(text, "utf-8")
    assert call(*asked, *both) == 2
    assert "naive:prompts=" in capsys.readouterr().err
    assert call(*asked, "-w", "naive", "--prompts", str(folder)) == 2


def test_a_session_takes_them_for_runs_and_meters(folder: Path) -> None:
    (folder / "meter").mkdir()
    (folder / "meter" / "answer.jinja").write_text(SHORT, "utf-8")
    session = hopscope.Session(store="sqlite://", workflow="naive", samples=2, prompts=folder)
    with session:
        run = session.ask("Who directed it?", gold="X").record
        name = str(run.options["prompts"])
        assert session.ask("Who?", options={"prompts": "default"}).prompts is None
        assert name.startswith(f"{folder}#")
        [asked] = run.steps[-1].exchanges
        assert "Briefly" in asked.request.prompt.messages[-1].content
        provenance = session.store.appraisals(run.id)[-1].provenance
        assert provenance.settings["seper.prompts"] == name
        found = session.store.credits(run.id)
        digits = name.partition("#")[2]
        assert found
        assert all(f"prompt={digits}" in (c.measurement.estimator or "") for c in found)
        assert len(session.credit(run, rules=["leave_one_out"], mode="replay"))
    with pytest.raises(UsageError, match="no folder of prompts"):
        hopscope.Session(prompts=folder / "none")


def test_credit_measures_with_them_and_by_default_with_those_of_the_experiment(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "meter").mkdir()
    (folder / "meter" / "answer.jinja").write_text(SHORT, "utf-8")
    asked = ["eval", "hopland:dev", "--limit", "1", "--samples", "1", "--meter", "seper"]
    assert call(*asked, "-w", "naive", "--name", "e", "--prompts", str(folder), "--json") == 0

    def measured(*arguments: str) -> tuple[str, set[str]]:
        """The set among the settings, and the prompts that estimators name."""
        capsys.readouterr()
        again = ["credit", "e", "--rule", "leave_one_out", *arguments]
        assert call(*again, "--json") == 0, capsys.readouterr().err
        rows = json.loads(capsys.readouterr().out)["credits"]
        with Store.open() as store:
            [run] = store.experiments.items("e")
            assert run.outcome
            settings = store.appraisals(run.outcome.run_id)[-1].provenance.settings
        named = {row["estimator"].partition("prompt=")[2].split(",")[0] for row in rows}
        return str(settings.get("seper.prompts", "")), named

    own, prompts = measured()
    assert own.startswith(f"{folder}#")
    assert prompts == {own.partition("#")[2]}
    other = folder.parent / "other"
    (other / "meter").mkdir(parents=True)
    text = SHORT.replace("Briefly", "In short")
    (other / "meter" / "answer.jinja").write_text(text, "utf-8")
    given, prompts = measured("--prompts", str(other))
    assert given.startswith(f"{other}#")
    assert prompts == {given.partition("#")[2]}
    _, prompts = measured("--prompts", str(other), "-o", f"seper.prompts={folder}")
    assert prompts == {own.partition("#")[2]}
    for unchanged in ("default", "ircot-authors"):  # both have the default prompt of the meters
        assert measured("--prompts", unchanged) == ("", {"short_answer"})
    assert call("credit", "e", "--prompts", "nowhere") == 2
    assert "no folder of prompts at" in capsys.readouterr().err


def test_the_configuration_tells_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = folder.parent / "hopscope.toml"
    config.write_text(f"prompts = {json.dumps(str(folder))}\n", "utf-8")
    assert call("--config", str(config), "config", "show", "run") == 0
    assert "mine" in capsys.readouterr().out
    assert call("run", "Who?", "-w", "naive", "--meter", "none") == 2  # found, not named
    assert "hopscope.toml" in capsys.readouterr().err
