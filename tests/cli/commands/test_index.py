"""`hopscope index` builds and describes indexes: data on stdout, the rest on stderr."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hopscope.cli.commands.index import app
from hopscope.cli.main import main
from hopscope.runtime.errors import CorpusError, IndexMismatchError, UsageError
from hopscope.runtime.retrievers import bm25
from tests import encoders

LINES = '{"id": "a", "title": "A", "text": "red fox"}\n{"id": "b", "title": "B", "text": "hen"}\n'


def test_questions_with_their_passages_are_a_corpus(tmp_path: Path) -> None:
    """Files of HotpotQA, 2Wiki and MuSiQue were refused: no 'text' among the keys."""
    context = [["Alba", ["Alba is a film.", " It is by Bruno."]], ["Bora", ["A town."]]]
    record = {"_id": "q", "question": "Who?", "answer": "Bruno", "context": context}
    path = tmp_path / "hotpot.json"
    path.write_text(json.dumps([record, {**record, "_id": "r", "context": context[:1]}]))
    done = invoke("build", path, "--out", tmp_path / "i", "--chunk", "words:4", "--json")
    assert "2 passages left out as repetitions" in done.stderr
    assert json.loads(done.stdout)["counts"]["passages"] == 3
    found = invoke("search", tmp_path / "i", "Bruno", "--json")
    assert "It is by Bruno." in found.stdout
    with pytest.raises(UsageError, match=r"no format 'hotpot': choose from auto, csv, .*hotpotqa"):
        invoke("build", path, "--out", tmp_path / "j", "--format", "hotpot")


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
    assert "files match the manifest" in shown.stderr
    table = invoke("info", out).stdout
    for told in ("farm", "bm25", manifest["fingerprint"][:12], "lucene, k1 0.9, b 0.4"):
        assert told in table
    assert bm25.build(index=out).search(["foxes"], k=2)[0][0].passage.id == "a"


def test_a_small_index_has_a_size(corpus: Path, tmp_path: Path) -> None:
    """That of a few passages was told as 0.0 MB."""
    told = invoke("build", corpus, "--out", tmp_path / "index").output
    [line] = [each for each in told.splitlines() if each.startswith("size")]
    assert line.endswith(" kB")
    assert float(line.split()[1]) > 0


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_failed_build_tells_its_reason_alone(
    text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A line "Scoring 0 passages 100%" stood before it."""
    (tmp_path / "corpus.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["index", "build", str(tmp_path / "corpus.jsonl"), "--out", str(tmp_path / "index")])
    assert ended.value.code == 2
    told = capfd.readouterr().err.strip()
    assert told.startswith("hopscope: the corpus has no passages")
    assert "Scoring" not in told


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
    with pytest.raises(UsageError, match="is no index: it has no manifest"):
        invoke("info", tmp_path)
    assert invoke("build", corpus).exit_code == 2


def test_help_needs_none_of_the_heavy_modules() -> None:
    code = "import sys, hopscope.cli.commands.index; print([m for m in ('numpy', 'bm25s', "
    code += "'rich.progress', 'pydantic') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


BROKEN = LINES + '{"id": "a", "text": "again"}\n{"id": "c", "text": " "}\n'


def test_broken_records_are_left_out_when_asked_and_told_by_line(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(BROKEN.encode() + b'{"id": "d", "text": "caf\xe9"}\n' * 20)
    with pytest.raises(CorpusError, match="line 3"):
        invoke("build", path, "--out", tmp_path / "i")
    built = invoke("build", path, "--out", tmp_path / "i", "--skip-broken", "--json")
    assert json.loads(built.stdout)["counts"]["passages"] == 2
    assert f"left out: {path}, line 3: id 'a' was already given on line 1" in built.stderr
    assert f"left out: {path}, line 4: 'text' is empty" in built.stderr
    assert f"left out: {path}, line 5: byte 0xe9 is not UTF-8" in built.stderr
    assert "22 broken records left out, 12 of them not shown" in built.stderr


def test_a_dense_index_from_the_command_line(corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="the extra faiss-cpu or faiss-gpu is not installed")
    model = encoders.bert(tmp_path / "model")
    corpus.write_text(LINES + json.dumps({"id": "long", "text": "fox " * 99}) + "\n")
    options = ("--kind", "dense", "--encoder", f"e5:{model}", "--device", "cpu")
    built = invoke("build", corpus, "--out", tmp_path / "i", *options)
    assert "1 of 3 passages are longer than the encoder reads" in built.stderr
    for told in ("dense", "e5:model@", "Flat, 32 dimensions", "cut           1"):
        assert told in built.stdout
    found = invoke("search", tmp_path / "i", "red fox", "-k", 3, "--json")
    assert len(json.loads(found.stdout)["hits"]) == 3
    assert "longer" not in found.stderr
    found = invoke("search", tmp_path / "i", "red fox", "hen " * 99, "--trec")
    assert "1 query is longer than the encoder reads; the end was left out" in found.stderr


def test_options_that_do_not_go_together(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--kind dense needs an --encoder"):
        invoke("build", corpus, "--out", tmp_path / "i", "--kind", "dense")
    with pytest.raises(UsageError, match="for --kind dense, not bm25"):
        invoke("build", corpus, "--out", tmp_path / "i", "--faiss", "Flat")
    assert invoke("build", corpus, "--out", tmp_path / "i", "--kind", "solr").exit_code == 2


def test_searching_prints_a_table_a_trec_run_or_json(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "i"
    invoke("build", corpus, "--out", out)
    shown = invoke("search", out, "foxes", "zebra").stdout.splitlines()
    assert shown[0] == "1  foxes"
    assert shown[1].split() == ["1", shown[1].split()[1], "a", "A:", "red", "fox"]
    assert shown[2:] == ["2  zebra", "      nothing found"]
    topics = tmp_path / "topics.tsv"
    topics.write_text("q7\tred fox hen\n\nq8\tzebra\n")
    printed = invoke("search", out, "--queries", topics, "--trec").stdout
    run = [line.split() for line in printed.splitlines()]
    assert [(row[0], row[1], row[2], row[3], row[5]) for row in run] == [
        ("q7", "Q0", "a", "1", "hopscope"),
        ("q7", "Q0", "b", "2", "hopscope"),
    ]
    assert float(run[0][4]) > float(run[1][4]) > 0
    hits = json.loads(invoke("search", out, "hen", "--json").stdout)["hits"]
    assert [(hit["id"], hit["text"]) for hit in hits] == [("b", "hen")]
    with pytest.raises(UsageError, match="give queries, or a file"):
        invoke("search", out)
    topics.write_text("red hen\n")
    with pytest.raises(UsageError, match="line 1: an id, a tab and a query"):
        invoke("search", out, "--queries", topics)


def test_judgments_turn_rankings_into_measures(corpus: Path, tmp_path: Path) -> None:
    invoke("build", corpus, "--out", tmp_path / "i")
    queries, qrels = tmp_path / "queries.tsv", tmp_path / "qrels"
    queries.write_text("1\tfox\n2\tfox\n3\thorse\n4\then\n")
    qrels.write_text("1 0 a 2\n2 0 b 1\n3 0 a 1\n")
    asked = ("search", tmp_path / "i", "--queries", queries, "--qrels", qrels)
    [table] = json.loads(invoke(*asked, "-k", 10, "--json").stdout)
    found = {row["measure"]: row["mean"]["value"] for row in table["rows"]}
    # The second query's passage is not found, nor anything for the third; the fourth has none.
    assert found == pytest.approx(
        dict.fromkeys(["MRR", "R@1", "R@5", "R@10", "NDCG@1", "NDCG@3", "NDCG@5", "NDCG@10"], 1 / 3)
    )
    assert table["notes"][:2] == [
        "3 queries, 10 passages each",
        "1 query left out: no relevant passage in the judgments",
    ]
    assert "R@10" in invoke(*asked, "-k", 10).stdout
    with pytest.raises(UsageError, match="--qrels prints measures and --trec rankings"):
        invoke(*asked, "--trec")
    queries.write_text("1\tfox\n1\then\n")
    with pytest.raises(UsageError, match="two queries have the id '1'"):
        invoke(*asked)
    queries.write_text("7\tfox\n")
    with pytest.raises(
        UsageError, match="whose queries are like 1, 2, 3: the ids must be the same"
    ):
        invoke(*asked)


def test_an_index_is_opened_by_what_built_it(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "i"
    invoke("build", corpus, "--out", out)
    manifest = out / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"kind": "bm25"', '"kind": "solr"'))
    with pytest.raises(IndexMismatchError, match=r"of kind 'solr'; this version reads bm25, dense"):
        invoke("search", out, "hen")


def test_several_indexes_are_searched_as_an_expression_says(tmp_path: Path) -> None:
    for name, record in (("one", "red fox"), ("two", "brown hen")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": name, "text": record}) + "\n")
        invoke("build", tmp_path / f"{name}.jsonl", "--out", tmp_path / name)
    spec = f"rrf({tmp_path / 'one'},2*{tmp_path / 'two'})@1"
    printed = invoke("search", spec, "fox or hen", "--trec").stdout.splitlines()
    assert [line.split()[:5] for line in printed] == [["1", "Q0", "two", "1", "0.032787"]]
    with pytest.raises(UsageError, match="expected @, & or the end"):
        invoke("search", f"{tmp_path / 'one'} {tmp_path / 'two'}", "fox")


@pytest.mark.parametrize("command", ["search", "info"])
def test_an_index_that_was_cut_short_is_told_in_one_message(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    invoke("build", corpus, "--out", tmp_path / "i")
    texts = tmp_path / "i" / "passages.jsonl"
    whole = texts.read_bytes()
    texts.write_bytes(whole[:-1])
    query = ["fox"] if command == "search" else ["--verify"]
    with pytest.raises(SystemExit) as stop:
        main(["index", command, str(tmp_path / "i"), *query])
    said = capsys.readouterr()
    assert stop.value.code == 1
    assert "Traceback" not in said.err
    assert f"passages.jsonl has {len(whole) - 1} bytes" in " ".join(said.err.split())
