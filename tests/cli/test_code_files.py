"""Files of code on the command line: named by path they run, named by a record they do not."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hopscope.api.checkpoints import CheckpointSettings
from hopscope.api.session import Session
from hopscope.cli.main import main
from hopscope.runtime.execution.checkpoints import Checkpoints
from hopscope.runtime.types import Question

WORKFLOW = '''"""Read nothing, answer."""

from langgraph.graph import START

from hopscope.runtime.execution.state import Deps, Graph, State, Update
from hopscope.runtime.execution.step import step
from hopscope.runtime.types import GenerationRequest, Message, Prompt


@step("generate")
def answer(state: State, deps: Deps, *, max_tokens: int) -> Update:
    prompt = Prompt(messages=(Message(role="user", content=state["question"].text),))
    request = GenerationRequest(prompt=prompt, max_tokens=max_tokens, seed=deps.seed)
    [[reply]] = deps.reader.generate([request])
    return {"answer": reply.text, "stop_reason": "answered"}


def build(*, max_tokens: int = 4) -> Graph:
    graph = Graph(State, context_schema=Deps)
    graph.add_node("answer", answer(max_tokens=max_tokens))
    graph.add_edge(START, "answer")
    return graph
'''


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a workflow, in which commands are given; each as if in a process of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOPSCOPE_DB", "runs.db")
    (tmp_path / "plain.py").write_text(WORKFLOW)
    yield tmp_path
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.startswith("hopscope_file_")]:
        del sys.modules[name]


def hopscope(*command: str) -> int:
    forget()
    with pytest.raises(SystemExit) as stop:
        main(list(command))
    code = stop.value.code
    assert isinstance(code, int)
    return code


EVAL = ("eval", "hopland:dev", "--limit", "1", "--samples", "1", "--name", "first")


def test_a_run_by_a_file_shows_the_files_name(capsys: pytest.CaptureFixture[str]) -> None:
    run = ("run", "Who?", "--samples", "1")
    assert hopscope(*run, "-w", "./plain.py:max_tokens=2", "-o", "max_tokens=5") == 0
    printed = capsys.readouterr().out
    assert re.search(r"^run [0-9a-f]{12}  plain\.py  ended by answered$", printed, re.MULTILINE)
    assert hopscope("ls", "-w", "plain.py") == 0
    assert "plain.py" in capsys.readouterr().out


def test_a_variable_may_name_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOPSCOPE_WORKFLOW", "plain.py")
    assert hopscope("run", "Who?", "--samples", "1") == 0
    assert " plain.py " in capsys.readouterr().out


def test_help_and_other_commands_run_no_file(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "plain.py").write_text("raise SystemExit(77)")
    monkeypatch.setenv("HOPSCOPE_WORKFLOW", "plain.py")
    assert hopscope("run", "--help") == 0
    assert hopscope("list", "workflows") == 0
    assert hopscope("run", "Who?") == 2
    assert "plain.py, line 1, cannot be run: SystemExit: 77" in capsys.readouterr().err


def test_an_experiment_goes_on_with_the_same_file_only(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hopscope(*EVAL, "-w", "./plain.py:max_tokens=2") == 0
    assert "plain.py:max_tokens=2" in capsys.readouterr().out
    (place / "elsewhere").mkdir()
    (place / "plain.py").rename(place / "elsewhere" / "plain.py")
    assert hopscope(*EVAL, "-w", "elsewhere/plain.py:max_tokens=2") == 0
    assert "nothing is left to do" in capsys.readouterr().err

    assert hopscope(*EVAL, "-w", "./plain.py:max_tokens=2") == 2
    assert "plain.py names no file that this command has run" in capsys.readouterr().err

    (place / "plain.py").write_text(WORKFLOW.replace("int = 4", "int = 5"))
    assert hopscope(*EVAL, "-w", "./plain.py:max_tokens=2") == 2
    told = capsys.readouterr().err
    assert re.search(r"began with hash of the file '\w{16}' and cannot continue with hash", told)


def test_an_experiment_is_not_repeated_with_a_file_that_only_it_names(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hopscope(*EVAL, "-w", "plain.py") == 0
    again = ("eval", "--from", "first", "--name", "second")
    assert hopscope(*again) == 2
    assert "add --file PATH/plain.py" in capsys.readouterr().err
    assert hopscope(*again, "--file", "plain.py") == 0
    assert "plain.py" in capsys.readouterr().out
    (place / "plain.py").write_text(WORKFLOW + "\n")
    assert hopscope("eval", "--from", "first", "--name", "third", "--file", "plain.py") == 2
    assert "is not the plain.py that was recorded" in capsys.readouterr().err


def test_a_run_is_resumed_with_the_same_file_only(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = WORKFLOW.replace("    prompt =", "    assert Path('ready').exists()\n    prompt =")
    (place / "plain.py").write_text(
        broken.replace("from langgraph", "from pathlib import Path\nfrom langgraph", 1)
    )
    assert hopscope("run", "Who?", "-w", "plain.py", "--samples", "1", "--checkpoint", "c.db") == 1
    told = capsys.readouterr().err
    assert re.search(r"hopscope resume \w{12} --checkpoint c.db --file \S+/plain.py\n", told)
    (place / "ready").touch()
    assert hopscope("resume", "--checkpoint", "c.db") == 2
    assert "add --file PATH/plain.py" in capsys.readouterr().err
    assert hopscope("resume", "--checkpoint", "c.db", "--file", "plain.py") == 0
    assert "ended by answered" in capsys.readouterr().out


def test_a_checkpoint_that_names_a_path_runs_nothing(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours never do: somebody else may have written it."""
    (place / "plain.py").write_text(f"open('ran', 'w')\n{WORKFLOW}")
    settings = CheckpointSettings(
        question=Question(text="Who?"),
        workflow="./plain.py",
        options={},
        corpus="hopland",
        reader="tiny",
        entailment="lexical",
        samples=1,
        seed=0,
        meters=(),
        rules=(),
    )
    with Checkpoints.open(place / "c.db") as checkpoints:
        checkpoints.begin(settings.model_dump_json())
    assert hopscope("resume", "--checkpoint", "c.db") == 2
    assert "./plain.py is a path in a record" in capsys.readouterr().err
    assert not (place / "ran").exists()


def test_a_session_takes_files_as_the_command_line_does(place: Path) -> None:
    forget()
    with Session(workflow="./plain.py", samples=1, meters=()) as session:
        run = session.ask("Who?", options={"max_tokens": 2})
    assert run.record.workflow == "plain.py"
    assert run.status == "ok"


def test_a_replay_runs_the_file_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert hopscope("run", "Who?", "-w", "plain.py", "--samples", "1") == 0
    replay = ("credit", "--mode", "replay", "--samples", "1")
    assert hopscope(*replay) == 2
    assert "add --file PATH/plain.py where a stored run is by it" in capsys.readouterr().err
    assert hopscope(*replay, "--file", "plain.py") == 0
