"""`hopscope index` builds and describes indexes: data on stdout, the rest on stderr."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hopscope.cli.index import app
from hopscope.runtime.errors import CorpusError, IndexMismatch, UsageError
from hopscope.runtime.retrievers import bm25

LINES = '{"id": "a", "title": "A", "text": "red fox"}\n{"id": "b", "title": "B", "text": "hen"}\n'


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "farm.jsonl"
    path.write_text(LINES)
    return path


def invoke(*arguments: object, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], env=env, catch_exceptions=False)


def test_build_then_info(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "index"
    built = invoke("build", corpus, "--out", out, "--json")
    assert built.exit_code == 0
    manifest = json.loads(built.stdout)
    assert (manifest["name"], manifest["counts"]["passages"]) == ("farm", 2)
    assert "2 passages indexed" in built.stderr
    shown = invoke("info", out, "--json", "--verify")
    assert json.loads(shown.stdout) == manifest
    assert "files are as the manifest says" in shown.stderr
    table = invoke("info", out).stdout
    for told in ("farm", "bm25", manifest["fingerprint"][:12], "lucene, k1 0.9, b 0.4"):
        assert told in table
    assert bm25.build(index=out).search(["foxes"], k=2)[0][0].passage.id == "a"


def test_every_flag_has_an_environment_variable(corpus: Path, tmp_path: Path) -> None:
    env = {
        "HOPSCOPE_INDEX_CORPUS": str(corpus),
        "HOPSCOPE_INDEX_OUT": str(tmp_path / "i"),
        "HOPSCOPE_INDEX_NAME": "barn",
        "HOPSCOPE_JSON": "1",
    }
    assert json.loads(invoke("build", env=env).stdout)["name"] == "barn"
    again = env | {"HOPSCOPE_INDEX_OVERWRITE": "1", "HOPSCOPE_INDEX_NAME": "shed"}
    assert json.loads(invoke("build", env=again).stdout)["name"] == "shed"
    info = {"HOPSCOPE_INDEX_FOLDER": str(tmp_path / "i"), "HOPSCOPE_INDEX_VERIFY": "1"}
    assert "shed" in invoke("info", env=info).stdout


def test_repeated_passages_are_mentioned(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps([{"title": "A", "text": "x"}] * 3))
    assert "2 passages left out" in invoke("build", path, "--out", tmp_path / "i").stderr


def test_bad_input_raises_what_the_main_command_reports(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="does not exist"):
        invoke("build", tmp_path / "none.jsonl", "--out", tmp_path / "i")
    corpus.write_text(LINES + '{"id": "c", "text": ')
    with pytest.raises(CorpusError, match="line 3"):
        invoke("build", corpus, "--out", tmp_path / "i")
    assert not (tmp_path / "i").exists()
    with pytest.raises(UsageError, match="no index at"):
        invoke("info", tmp_path / "none")
    with pytest.raises(IndexMismatch, match="no index"):
        invoke("info", tmp_path)
    assert invoke("build", corpus).exit_code == 2


def test_help_needs_none_of_the_heavy_modules() -> None:
    code = "import sys, hopscope.cli.index; print([m for m in ('numpy', 'bm25s', 'rich.progress', "
    code += "'pydantic') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
