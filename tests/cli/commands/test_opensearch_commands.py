"""An index on a search service, by name on the command line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hopscope.cli.main import main
from tests.servers.opensearch import Service, running

LINES = '{"id": "a", "title": "A", "text": "red fox"}\n{"id": "b", "title": "B", "text": "hen"}\n'


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in ("OPENSEARCH_USERNAME", "OPENSEARCH_PASSWORD", "OPENSEARCH_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with running(Service()) as service:
        yield service


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    path = tmp_path / "farm.jsonl"
    path.write_text(LINES)
    return str(path)


def invoke(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    said = capsys.readouterr()
    assert isinstance(stop.value.code, int)
    return stop.value.code, said.out, said.err


def test_build_info_search_and_run(
    service: Service, corpus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"{service.url}/farm"
    build = ("index", "build", corpus, "--kind", "opensearch", "--out", url, "--shards", "2")
    code, out, err = invoke(capsys, *build)
    assert code == 0, err
    assert f"index         {url}\ncorpus        farm\nkind          opensearch\n" in out
    assert "shards        2\n" in out
    assert "size" not in out
    code, out, err = invoke(capsys, "index", "info", f"opensearch:{url}", "--verify", "--json")
    assert code == 0, err
    assert json.loads(out)["counts"] == {"passages": 2, "shards": 2}
    assert "2 passages match the manifest" in err
    code, out, err = invoke(capsys, "index", "search", f"opensearch:{url}", "foxes", "--json")
    assert code == 0, err
    assert '"a"' in out
    corpus_spec = f"rrf(opensearch:{url},hopland)@3"
    database = ("--db", str(tmp_path / "runs.db"), "--json")
    code, out, err = invoke(capsys, "run", "What is a fox?", "--corpus", corpus_spec, *database)
    assert code == 0, err
    assert "/farm/" not in out
    assert any(asked.action == "_msearch" for asked in service.asked)


def test_what_goes_wrong_ends_with_a_line_and_a_code(
    service: Service, corpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"{service.url}/farm"
    build = ("index", "build", corpus, "--out")
    for code, told, arguments in (
        (2, "no index at", ("index", "info", f"opensearch:{url}")),
        (2, "no index at", ("run", "Who?", "--corpus", f"opensearch:{url}")),
        (2, "--shards and addresses are for --kind opensearch", (*build, url)),
        (2, "give http://HOST:PORT/INDEX", (*build, "wiki", "--kind", "opensearch")),
        (2, "opensearch needs url: give opensearch:URL", ("index", "search", "opensearch:", "x")),
    ):
        found, out, err = invoke(capsys, *arguments)
        assert (found, out) == (code, ""), err
        assert told in " ".join(err.split())
        assert "Traceback" not in err
    service.wants("me", "secret")
    found, out, err = invoke(capsys, *build, url, "--kind", "opensearch")
    assert (found, out) == (1, "")
    assert "status 401" in err
    assert "Traceback" not in err
