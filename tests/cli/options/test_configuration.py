"""Configuration files: what precedes what, what is refused, and where a value comes from."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from hopscope.cli.commands import COMMANDS, mounted
from hopscope.cli.options import configuration
from tests.cli.experiment_example import call


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of each test, in a repository."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    for name in ("HOPSCOPE_CONFIG", "HOPSCOPE_PROFILE", "HOPSCOPE_SAMPLES", "HOPSCOPE_SEED"):
        monkeypatch.delenv(name, raising=False)
    return folder


def users(text: str) -> None:
    """Writes the user's own file."""
    from platformdirs import user_config_path

    folder = user_config_path("hopscope")
    folder.mkdir(parents=True)
    (folder / configuration.NAME).write_text(text)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, tuple[Any, str]]:
    """Each option's value and place."""
    code, out, err = call(capsys, "config", "show", *words, "--json")
    assert code == 0, err
    return {row["option"]: (row["value"], row["place"]) for row in json.loads(out)["options"]}


def test_flags_precede_variables_and_these_files(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "hopscope.toml").write_text("[index.search]\nk = 3\n")

    def hits(*words: str) -> int:
        code, out, err = call(capsys, "index", "search", "hopland", "born in", "--json", *words)
        assert code == 0, err
        return len(json.loads(out.splitlines()[0])["hits"])

    assert hits() == 3
    monkeypatch.setenv("HOPSCOPE_INDEX_K", "4")
    assert hits() == 4
    assert hits("-k", "2") == 2


def test_tables_precede_the_top_and_profiles_both(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    users("samples = 1\nthinking = 'off'\n")
    (project / "pyproject.toml").write_text(
        """
        [tool.hopscope]
        samples = 2
        seed = 2
        [tool.hopscope.run]
        samples = 3
        k = 3
        [tool.hopscope.profile.lab]
        samples = 4
        [tool.hopscope.profile.lab.run]
        meter = "seper"
        """
    )
    found = shown(capsys, "run")
    assert found["samples"] == (3, "pyproject.toml [run]")
    assert found["seed"] == (2, "pyproject.toml")
    assert found["thinking"][0] == "off"
    assert found["meter"] == (None, "default")
    assert shown(capsys, "credit")["samples"] == (2, "pyproject.toml")
    found = shown(capsys, "run", "--profile", "lab")
    assert found["samples"] == (4, "pyproject.toml [profile.lab]")
    assert found["meter"] == (["seper"], "pyproject.toml [profile.lab.run]")
    assert found["k"] == (3, "pyproject.toml [run]")


def test_a_key_at_the_top_means_one_thing(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workflow that `run` uses would be a filter of `ls`."""
    (project / "hopscope.toml").write_text("workflow = 'naive'\n[eval]\nworkflow = 'flare'\n")
    assert shown(capsys, "run")["workflow"][0] == "naive"
    assert shown(capsys, "ls")["workflow"][0] is None
    assert shown(capsys, "eval")["workflow"][0] == ["flare"]
    monkeypatch.setenv("HOPSCOPE_WORKFLOWS", "crag")  # which holds several, one a line
    assert shown(capsys, "eval")["workflow"] == ("crag", "HOPSCOPE_WORKFLOWS")


def test_a_key_at_the_top_may_have_the_name_of_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    users("db = 'mine.db'\nbudget = 'tokens=9'\n")
    assert shown(capsys, "run")["db"][0] == "mine.db"
    assert shown(capsys, "db", "check")["db"][0] == "mine.db"
    assert shown(capsys, "budget", "fit")["budget"][0] == "tokens=9"


def test_the_common_keys_are_those_with_a_variable_of_their_name() -> None:
    found: set[str] = set()

    def look(command: Any) -> None:
        for key, parameter in configuration.keys(command).items():
            if f"HOPSCOPE_{key.upper().replace('-', '_')}" in configuration.variables(parameter):
                found.add(key)
        for inner in getattr(command, "commands", {}).values():
            look(inner)

    for command in get_command(mounted(COMMANDS)).commands.values():  # type: ignore[attr-defined]
        look(command)
    assert found == configuration.COMMON


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sampels = 3", "hopscope.toml: unknown key sampels; did you mean samples?"),
        ("[run]\nmetre = 'x'", "hopscope.toml [run]: unknown key metre; did you mean meter?"),
        ("[rnu]\nk = 3", "hopscope.toml: unknown table rnu; did you mean run?"),
        ("checkpoints = 'x'", "did you mean checkpoint?"),
        ("samples = '3'", "hopscope.toml: samples: '3' is not a whole number"),
        ("samples = true", "hopscope.toml: samples: True is not a whole number"),
        ("json = 1", "hopscope.toml: json: 1 is not true or false"),
        ("[run]\nk = [1]", "hopscope.toml [run]: k: [1] is not a whole number"),
        ("[run]\nmeter = [1]", "hopscope.toml [run]: meter: 1 is not a text in quotes"),
        ("samples = 0", "hopscope.toml: samples: "),
        ("run = 3", "unknown key run; run is a table, as in [run]"),
        ("[profile]\nlab = 3", "hopscope.toml: profiles are tables, as in [profile.lab]"),
        ("samples = ", "hopscope.toml: Invalid value"),
        ("x = " + "[" * 3000 + "]" * 3000, "hopscope.toml: TOML that is nested too deep"),
        ("max-tokens = " + "9" * 5000, "hopscope.toml: a number with more than 4,300 digits"),
    ],
)
def test_a_wrong_file_is_told(
    text: str, said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "hopscope.toml").write_text(text)
    code, _, err = call(capsys, "run", "Who?")
    assert code == 2
    assert said in " ".join(err.split())
    assert call(capsys, "run", "--help")[0] == 0


@pytest.mark.parametrize(
    "text",
    [
        "reader = 'openai:http://example.org#m'",
        "entailment = 'judge:openai:http://example.org#m'",
        "corpus = 'searxng:http://example.org'",
        "db = 'postgresql://example.org/x'",
        "trace-file = '/tmp/x'",
        "trace-content = true",
        "[run]\nworkflow = './evil.py'",
        "[run]\nworkflow = 'evil.py'",
        "[run]\nmeter = ['seper', 'x/evil.py']",
        "[run]\no = ['judge=openai:http://example.org#m']",
        "[run]\npolicy = 'ircot:file=evil.py'",
        "prices = 'prices.toml'",
        "thinking = 'http://example.org'",
    ],
)
def test_a_found_file_cannot_run_code_or_send_anything(
    text: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cloned repository may bring one."""
    (project / "evil.py").write_text("open('ran', 'w').close()")
    (project / "hopscope.toml").write_text(text)
    code, _, err = call(capsys, "run", "Who?")
    assert code == 2
    assert "a file that is found, not named, may not say this" in " ".join(err.split())
    assert not (project / "ran").exists()
    options = configuration.keys(get_command(mounted(["run"])).commands["run"])
    key = text.rpartition("\n")[2].partition(" ")[0]
    assert key in options
    found = shown(capsys, "run", "--config", "hopscope.toml")
    assert found[key][1].startswith("hopscope.toml")


def test_only_what_is_used_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "hopscope.toml").write_text("reader = 'openai:http://example.org#m'\n")
    code, _, _ = call(capsys, "list", "readers")
    assert code == 0
    code, _, err = call(capsys, "run", "Who?", "--reader", "nonsense")
    assert "nonsense" in err
    assert "found" not in err


def test_a_found_file_may_lower_the_users_limits_and_not_raise_them(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else a repository that somebody cloned could spend what they did not want to."""
    users("max-cost = 1.0\nmax-calls = 50\n")
    (project / "hopscope.toml").write_text(
        "max-cost = 1000\nmax-calls = 9\n[run]\nmax-cost = 999\nmax-calls = 40\nmax-tokens = 7\n"
    )
    found = shown(capsys, "run")
    assert [found[key][0] for key in ("max-cost", "max-calls", "max-tokens")] == [1.0, 40, 7]
    named = shown(capsys, "run", "--config", str(project / "hopscope.toml"))
    assert named["max-cost"][0] == 999


def test_files_above_the_repository_are_not_found(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.parent / "hopscope.toml").write_text("samples = 9\n")
    below = project / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert shown(capsys, "run")["samples"] == (10, "default")
    (project / "hopscope.toml").write_text("samples = 8\n")
    assert shown(capsys, "run")["samples"][0] == 8
    (project / "a" / "pyproject.toml").write_text("broken, and not about us")
    assert shown(capsys, "run")["samples"][0] == 8


@pytest.mark.parametrize("text", ["[tool]\nhopscope = 5", "tool = 5"])
def test_a_table_that_is_none_is_told(
    text: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pyproject.toml").write_text(f"{text}  # tool.hopscope\n")
    code, _, err = call(capsys, "ls")
    assert code == 2
    assert "is a table, as in [tool.hopscope]" in " ".join(err.split())


def test_an_unknown_profile_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "hopscope.toml").write_text("[profile.lab]\nsamples = 4\n")
    code, _, err = call(capsys, "--profile", "lap", "ls")
    assert code == 2
    assert "no profile lap in hopscope.toml; did you mean lab?" in err


def test_passwords_and_tokens_are_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    users(
        "[serve.search]\ntoken = 'secret'\n[run]\nreader = 'openai:http://me:secret@host#m'\n"
        "o = ['a=https://me:secret@host', 'api_key=secret']\n"
    )
    monkeypatch.setenv("HOPSCOPE_DB", "postgresql://me:secret@host/runs?password=secret")
    for words in ((), ("run",), ("serve", "search")):
        code, out, err = call(capsys, "config", "show", *words)
        assert code == 0
        assert "secret" not in out + err
    assert "me:***@host" in call(capsys, "config", "show", "run")[1]


def test_the_faults_of_another_programs_file_stop_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "pyproject.toml").write_bytes(b"name = '\xff'")
    assert all(place == "default" for _, place in shown(capsys, "run").values())


def test_a_byte_order_mark_is_no_text(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "hopscope.toml").write_bytes(b"\xef\xbb\xbfsamples = 7\n")
    assert shown(capsys, "run")["samples"] == (7, "hopscope.toml")
