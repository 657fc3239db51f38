"""A set of prompts that replaces none of a workflow's is told: its runs are labelled with it."""

from pathlib import Path

import pytest

from hopscope import workflows
from hopscope.api.presets import unused_prompts
from hopscope.runtime import components
from hopscope.runtime.prompting.prompt_set import PromptSet
from hopscope.runtime.specs import Spec
from tests.cli.experiment_example import call
from tests.workflows.prompts.sent import ARMS, arm

IDLE = "ircot-authors replaces no prompt of the workflow naive (naive/answer): its runs"


@pytest.mark.parametrize("text", ARMS)
def test_a_workflow_asks_in_no_prompt_but_those_it_is_known_by(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    render = PromptSet.render

    def noting(self: PromptSet, name: str, *args: object, **values: object) -> object:
        asked.add(name)
        return render(self, name, *args, **values)  # type: ignore[arg-type]

    monkeypatch.setattr(PromptSet, "render", noting)
    arm(text)
    assert asked
    assert asked <= {*unused_prompts.asked_in(Spec.parse(text, argument=False).name)}


def test_every_workflow_is_known_by_some_prompts() -> None:
    assert all(map(unused_prompts.asked_in, components.names(workflows)))


def test_a_part_that_a_prompt_includes_counts(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "answer.jinja").write_text("{% user %}{{ question }}{% enduser %}\n")
    assert unused_prompts.told(str(tmp_path), "naive") == ""
    assert unused_prompts.told(str(tmp_path), "react")
    assert unused_prompts.told("default", "react") == "", "no run is recorded with it"


def test_run_and_eval_tell_each_workflow_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ("--prompts", "ircot-authors", "--meter", "none")
    run = ("run", "Who?", *given, "--max-tokens", "100")
    assert IDLE in call(capsys, *run, "-w", "naive")[2]
    for options in (("-w", "ircot"), ("-w", "naive", "-o", "prompts=seper-authors")):
        assert "replaces no prompt" not in call(capsys, *run, *options)[2]
    arms = ("-w", "naive:k=1", "-w", "naive:k=2", "-w", "ircot", "-w", "eor:prompts=fid")
    _, _, err = call(capsys, "eval", "hopland:dev", "--limit", "1", "--dry-run", *given, *arms)
    assert err.count("replaces no prompt") == err.count(IDLE) == 1
