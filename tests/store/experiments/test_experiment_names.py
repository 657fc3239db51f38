"""Names of experiments: what can be seen, told and typed."""

from pathlib import Path

import pytest

from hopscope.cli.main import main
from hopscope.runtime.errors import UsageError
from hopscope.store.experiments.naming import named
from hopscope.store.store import Store

UNSEEN = ["a\u202eb", "a\u200bb", "a\xadb", "a\xa0b", "a\ud800b", "a\ue000b"]
"""Marks of direction and others that output drops, so that a message named another experiment."""


@pytest.mark.parametrize("name", ["first", "2wiki k=3", "Zürich 東京", "a/b", "-"])
def test_a_name_is_any_visible_line(name: str) -> None:
    assert named(name) == name


@pytest.mark.parametrize("name", ["", "  ", "\t", "a\nb", "a\x1b[31m", "a\u2028b", "\x00", *UNSEEN])
def test_other_names_are_refused(name: str, store: Store) -> None:
    with pytest.raises(UsageError, match=r"the experiment's name .* (is blank|control character)"):
        named(name)
    with pytest.raises(UsageError, match="the experiment's name"):
        store.experiments.begin_import(name)


@pytest.mark.parametrize("name", ["", " ", "a\nb"])
def test_eval_refuses_them_before_it_loads_a_model(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """An empty name, as of a variable that is not set, was taken for that of the data; one of
    blanks was stored."""
    database = tmp_path / "runs.db"
    with pytest.raises(SystemExit) as ended:
        main(["eval", "hopland:dev", "--limit", "1", "--name", name, "--db", str(database)])
    assert ended.value.code == 2
    assert "the experiment's name" in capfd.readouterr().err
    assert not database.exists()


def test_import_refuses_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rollouts = tmp_path / "rollouts.jsonl"
    rollouts.write_text('{"question": "Who?", "output": "<answer>Ada</answer>"}\n')
    with pytest.raises(SystemExit) as ended:
        main(["import", str(rollouts), "--name", " ", "--db", str(tmp_path / "runs.db")])
    assert ended.value.code == 2
    assert "the experiment's name" in capfd.readouterr().err
