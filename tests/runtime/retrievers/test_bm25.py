"""BM25 ranks as worked out by hand, and an index on disk is whole or refused."""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from hopscope.runtime.errors import CorpusError, IndexMismatchError, UsageError
from hopscope.runtime.indexes import index_folder, passage_file
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.retrievers.bm25 import _english, _scores
from hopscope.runtime.types import Passage

CATS = (
    Passage(id="0", title="Cat", text="the cat sat"),
    Passage(id="1", title="Dog", text="a dog and a cat ran"),
    Passage(id="2", title="Birds", text="birds sing, birds fly and cats"),
)


def by_hand(f: int, length: int, n: int, k1: float = 0.9, b: float = 0.4) -> float:
    """One term's score in the corpus above: 3 passages of 3, 4 and 6 terms, mean 13/3."""
    idf = math.log(1 + (3 - n + 0.5) / (n + 0.5))
    return idf * f / (f + k1 * (1 - b + b * length / (13 / 3)))


def ranking(retriever: bm25.Retriever, query: str, k: int = 10) -> list[tuple[str, float]]:
    return [(hit.passage.id, hit.score) for hit in retriever.search([query], k=k)[0]]


def test_scores_are_those_of_lucenes_formula() -> None:
    """Title and text count as one field: "cat" stands twice in passage 0."""
    found = bm25.from_passages(CATS, name="cats")
    expected = [("0", by_hand(2, 3, 3)), ("1", by_hand(1, 4, 3)), ("2", by_hand(1, 6, 3))]
    assert ranking(found, "cats") == [(id, pytest.approx(s, rel=1e-6)) for id, s in expected]
    # ln(1 + 0.5/3.5) = 0.133531; 2 / (2 + 0.9 * (0.6 + 0.4 * 9/13)) = 0.717044
    assert expected[0][1] == pytest.approx(0.133531 * 0.717044, abs=1e-6)
    both = by_hand(2, 4, 1) + by_hand(1, 4, 3)
    assert ranking(found, "dog cat")[0] == ("1", pytest.approx(both, rel=1e-6))
    assert ranking(found, "dog dog") == [("1", pytest.approx(2 * by_hand(2, 4, 1), rel=1e-6))]


def test_parameters_of_ones_own_are_used_and_named() -> None:
    found = bm25.from_passages(CATS, name="cats", k1=1.2, b=0.75)
    assert ranking(found, "cat")[0][1] == pytest.approx(by_hand(2, 3, 3, 1.2, 0.75), rel=1e-6)
    assert found.name.startswith("bm25(k1=1.2,b=0.75):cats@")


@pytest.mark.parametrize("query", ["", "  ", "the and of", "zebra", "?!", "\ud83d"])
def test_a_query_without_known_terms_finds_nothing(query: str) -> None:
    assert bm25.from_passages(CATS, name="cats").search([query], k=5) == [[]]


def test_only_matching_passages_are_found_however_many_are_asked_for() -> None:
    found = bm25.from_passages(CATS, name="cats")
    assert [len(hits) for hits in found.search(["birds", "cat"], k=99)] == [1, 3]
    assert [len(hits) for hits in found.search(["birds", "cat"], k=2)] == [1, 2]
    assert found.search(["cat"], k=0) == [[]]
    assert found.search([], k=5) == []


def test_equal_scores_come_in_the_order_of_the_corpus() -> None:
    same = [Passage(id=str(i), text="a red house") for i in range(50)]
    found = bm25.from_passages([*same, Passage(id="x", text="red red")], name="same")
    assert [id for id, _ in ranking(found, "red", k=4)] == ["x", "0", "1", "2"]


def test_hits_name_their_source_and_threads_agree() -> None:
    found = bm25.from_passages(CATS, name="cats")
    assert {h.passage.source for h in found.search(["cat"], k=3)[0]} == {found.name}
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: found.search(["dog cat", "birds"], k=3), range(40)))
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Don't stop the U.S.A. at 10,000!", ["don't", "stop", "u.s.a", "10,000"]),
        ("St. Maurice's, O'Neil\u2019s", ["st", "mauric", "o'neil"]),
        ("e-mail AT&T 3:4 a1.b2 v1.2.3", ["e", "mail", "t", "3", "4", "a1", "b2", "v1.2.3"]),
        ("École naïve हिन्दी 日本", ["école", "naïv", "हिन्दी", "日", "本"]),
        ("us vs technology possibly", ["us", "vs", "technolog", "possibl"]),
    ],
)
def test_terms_are_those_of_lucenes_english_analyzer(text: str, terms: list[str]) -> None:
    """Expected values are Lucene's own, from Anserini 1.7.1."""
    assert _english.terms(text) == terms


@pytest.fixture
def index(tmp_path: Path) -> Path:
    bm25.create(CATS, tmp_path / "cats", name="cats")
    return tmp_path / "cats"


def test_an_index_on_disk_ranks_as_one_in_memory(index: Path) -> None:
    held, opened = bm25.from_passages(CATS, name="cats"), bm25.build(index=index)
    assert opened.name == held.name
    queries = ["cat", "birds fly", "a dog", "nothing"]
    assert opened.search(queries, k=3) == held.search(queries, k=3)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's list of maps")
def test_an_index_is_mapped_not_read(index: Path) -> None:
    """Scores, their places and the passages: all that grows with the corpus but the terms."""
    found = bm25.build(index=index)
    assert found.search(["cat"], k=1)[0]
    maps = Path("/proc/self/maps").read_text()
    for name in ("data.csc.index.npy", "indices.csc.index.npy", "indptr.csc.index.npy"):
        assert str((index / name).resolve()) in maps, name
    assert str((index / "passages.jsonl").resolve()) in maps


def test_the_manifest_says_what_is_there(index: Path) -> None:
    manifest = index_folder.verify(index)
    assert manifest.counts == {"passages": 3, "empty": 0, "tokens": 13, "terms": 7}
    assert manifest.settings["k1"] == 0.9
    assert set(manifest.files) == {p.name for p in index.iterdir()} - {index_folder.MANIFEST}


def test_the_same_corpus_gives_the_same_bytes(index: Path, tmp_path: Path) -> None:
    bm25.create(iter(CATS), tmp_path / "again", name="cats")
    for path in index.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


def test_passages_without_terms_are_kept_and_counted(tmp_path: Path) -> None:
    passages = [Passage(id="0", text="the"), *CATS[1:]]
    manifest = bm25.create(passages, tmp_path / "i", name="i")
    assert (manifest.counts["passages"], manifest.counts["empty"]) == (3, 1)
    assert len(bm25.build(index=tmp_path / "i").search(["cats"], k=3)[0]) == 2


@pytest.mark.parametrize("passages", [[], [Passage(id="0", text="the ...")]])
def test_a_corpus_with_nothing_to_find_leaves_no_index(
    tmp_path: Path, passages: list[Passage]
) -> None:
    with pytest.raises(CorpusError):
        bm25.create(passages, tmp_path / "i", name="i")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_build_keeps_the_index_that_was_there(index: Path) -> None:
    def broken() -> Iterator[Passage]:
        yield CATS[0]
        raise CorpusError("line 2")

    with pytest.raises(CorpusError, match="line 2"):
        bm25.create(broken(), index, name="cats", overwrite=True)
    assert index_folder.verify(index).counts["passages"] == 3
    assert list(index.parent.iterdir()) == [index]


def test_of_two_builds_the_second_to_finish_replaces_nothing_unasked(tmp_path: Path) -> None:
    """Both had found the place free when they began; the first one's index went."""
    place = tmp_path / "i"

    def slow() -> Iterator[Passage]:
        yield CATS[0]
        bm25.create(CATS, place, name="first")
        yield CATS[1]

    with pytest.raises(UsageError, match="is an index already"):
        bm25.create(slow(), place, name="second")
    assert index_folder.verify(place).name == "first"
    assert list(tmp_path.iterdir()) == [place]
    bm25.create(CATS[:2], place, name="third", overwrite=True)
    assert index_folder.verify(place).name == "third"
    (tmp_path / "empty").mkdir()
    bm25.create(CATS, tmp_path / "empty", name="fourth")
    assert index_folder.verify(tmp_path / "empty").name == "fourth"


def test_damage_is_told_and_never_a_traceback(index: Path) -> None:
    """Sizes still fit after a flipped bit; postings then point beyond the passages."""
    for path in sorted(index.iterdir()):
        whole = path.read_bytes()
        for at in range(0, len(whole), max(1, len(whole) // 40)):
            damaged = bytearray(whole)
            damaged[at] ^= 0x80
            path.write_bytes(damaged)
            with suppress(IndexMismatchError):
                bm25.build(index=index).search(["cat", "birds fly", "dog"], k=3)
        path.write_bytes(whole)
    assert len(bm25.build(index=index).search(["cat"], k=3)[0]) == 3
    indices = index / "indices.csc.index.npy"
    data = bytearray(indices.read_bytes())
    data[-1] ^= 0x40
    indices.write_bytes(data)
    with pytest.raises(IndexMismatchError, match=r"is damaged.*--verify"):
        bm25.build(index=index).search(["cat", "birds", "fly", "dog", "ran", "sat"], k=3)


@pytest.mark.parametrize("score", [math.nan, -1.0, 0.0])
def test_scores_that_would_lose_hits_are_damage(index: Path, score: float) -> None:
    """A NaN made the passage, and with many passages other ones, vanish without a word."""
    path = index / "data.csc.index.npy"
    scores = np.load(path)
    np.save(path, np.full_like(scores, score))
    for queries in (["cat"], ["cat", "cat birds", "cat"]):
        with pytest.raises(IndexMismatchError, match=r"is damaged.*not above zero.*--verify"):
            bm25.build(index=index).search(queries, k=3)


def test_passages_read_together_are_those_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any order, more than once, in several chunks; text that looks like JSON stays text."""
    texts = ['"},{"id":"x","text":"y"', "a\nb\u2028c", "\\", "naïve 日本 \U0001f600", ""]
    texts += [f"red {at}" for at in range(20)]
    kept = [Passage(id=str(at), title="T", text=text) for at, text in enumerate(texts)]
    bm25.create(kept, tmp_path / "i", name="i")
    file = passage_file.PassageFile(tmp_path / "i", source="here")
    expected = [passage.model_copy(update={"source": "here"}) for passage in kept]
    monkeypatch.setattr(passage_file, "CHUNK", 7)
    assert list(file) == expected
    places = [3, 0, 24, 24, *reversed(range(25))]
    assert file.read(places) == [expected[at] for at in places]
    assert file.read([]) == []
    with pytest.raises(IndexError):
        file.read([0, 25])


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"id":"1","title":"T","text":"a"},{"text":"bc"}\n',
        b'{"id":"1","title":"T","text":"abcdefghijklmno }\n',
        b'{"id":"1","title":"T","text":["abcdefghijklm"]}\n',
        b'{"id":"1","title":"T","other":"abcdefghijklmn"}\n',
        b'{"id":"1","title":"T","text":"abcdefghijklm\xff\xff"}\n',
        b" " * 46 + b"}\n",
    ],
)
def test_a_damaged_passage_among_others_is_named(tmp_path: Path, damaged: bytes) -> None:
    """One that reads as two, as the beginning of the next, or as none, moved the others' places."""
    length = len(damaged) - len(b'{"id":"1","title":"T","text":""}\n')
    kept = [Passage(id=str(at), title="T", text="x" * length) for at in range(3)]
    bm25.create(kept, tmp_path / "i", name="i")
    path = tmp_path / "i" / passage_file.TEXTS
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines[1]) == len(damaged)
    path.write_bytes(lines[0] + damaged + lines[2])
    file = passage_file.PassageFile(tmp_path / "i")
    assert [passage.id for passage in file.read([0, 2])] == ["0", "2"]
    for places in ([1], [0, 1, 2], [2, 1, 0]):
        with pytest.raises(IndexMismatchError, match="passage 1 is damaged"):
            file.read(places)


def test_overwriting_is_asked_for_and_spares_what_is_no_index(index: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--overwrite"):
        bm25.create(CATS, index, name="cats")
    bm25.create(CATS[:2], index, name="two", overwrite=True)
    assert index_folder.verify(index).name == "two"
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="no index"):
        bm25.create(CATS, mine, name="cats", overwrite=True)
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]


BUILD_FOR_EVER = """
import itertools, sys
from pathlib import Path
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.types import Passage
def passages():
    for i in itertools.count():
        if i == 500 and sys.argv[2] == "read": print("now", flush=True)
        if i == 501 and sys.argv[2] != "read": break
        yield Passage(id=str(i), text=f"passage {i}")
def wait(phase, count):
    if phase == sys.argv[2] != "read":
        print("now", flush=True)
        sys.stdin.read()
bm25.create(passages(), Path(sys.argv[1]), name="x", progress=wait)
"""


@pytest.mark.parametrize("phase", ["read", "write"])
def test_a_killed_build_leaves_nothing_that_loads(tmp_path: Path, phase: str) -> None:
    command = [sys.executable, "-c", BUILD_FOR_EVER, str(tmp_path / "i"), phase]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as building:
        assert building.stdout is not None
        assert building.stdout.readline() == b"now\n"
        os.kill(building.pid, signal.SIGKILL)
    assert not (tmp_path / "i").exists()
    left = list(tmp_path.iterdir())
    assert left, "the build was under way"
    for folder in left:
        with pytest.raises(UsageError, match="no index"):
            bm25.build(index=folder)
    bm25.create(CATS, tmp_path / "i", name="i")
    assert len(bm25.build(index=tmp_path / "i").search(["cat"], k=9)[0]) == 3


def edit(index: Path, **changes: object) -> None:
    path = index / index_folder.MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_manifest_of_something_else_is_refused_naming_both_sides(index: Path) -> None:
    settings = index_folder.read_manifest(index).settings
    edit(index, settings=settings | {"tokenizer": "lucene-english-0"})
    with pytest.raises(
        IndexMismatchError, match=r"tokenizer = 'lucene-english-0'.* 'lucene-english-1'"
    ):
        bm25.build(index=index)
    edit(index, settings={k: v for k, v in settings.items() if k != "k1"})
    with pytest.raises(IndexMismatchError, match="k1 = None"):
        bm25.build(index=index)
    edit(index, settings=settings, counts={"passages": 4, "terms": 7})
    with pytest.raises(IndexMismatchError, match=r"'passages': 3.* says .*'passages': 4"):
        bm25.build(index=index)
    edit(index, kind="dense")
    with pytest.raises(IndexMismatchError, match="'dense', 'bm25' is needed"):
        bm25.build(index=index)
    edit(index, format=2)
    with pytest.raises(IndexMismatchError, match="format"):
        bm25.build(index=index)


@pytest.mark.parametrize("name", ["passages.jsonl", "data.csc.index.npy", "vocab.index.json"])
def test_damage_is_noticed(index: Path, name: str) -> None:
    path = index / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(
        IndexMismatchError, match=f"{name} has {len(whole) - 1} bytes.*{len(whole)}"
    ):
        bm25.build(index=index)
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    with pytest.raises(IndexMismatchError, match=f"{name} has SHA-256"):
        index_folder.verify(index)
    path.unlink()
    with pytest.raises(IndexMismatchError, match=f"{name} is missing"):
        bm25.build(index=index)


def test_recall_on_real_text_is_lucenes(research_data: Callable[[str], Path]) -> None:
    """2WikiMultiHopQA: recall of the supporting titles within .005 of .570, .663 and .713."""
    corpus = research_data("2wiki_corpus_6119.json")
    questions = research_data("2wiki_corpus_questions_354.jsonl")
    passages = [Passage(**entry) for entry in json.loads(corpus.read_text(encoding="utf-8"))]
    rows = [json.loads(line) for line in questions.read_text(encoding="utf-8").splitlines()]
    found = bm25.from_passages(passages, name="2wiki").search([r["question"] for r in rows], k=10)
    for k, expected in ((2, 0.570), (5, 0.663), (10, 0.713)):
        recalls = []
        for row, hits in zip(rows, found, strict=True):
            wanted = set(row["supporting_titles"])
            recalls.append(len(wanted & {h.passage.title for h in hits[:k]}) / len(wanted))
        assert sum(recalls) / len(recalls) == pytest.approx(expected, abs=0.005)


def test_a_batch_ranks_as_its_queries_one_by_one() -> None:
    """To the last bit: common terms are added another way in a batch, and scores lie in an array
    that the query before used."""
    draw = np.random.default_rng(7)
    ranks = np.minimum(draw.zipf(1.3, (900, 12)), 300)
    texts = [" ".join(f"w{rank}" for rank in row) for row in ranks]
    found = bm25.from_passages(
        [Passage(id=str(at), text=text) for at, text in enumerate(texts)], name="zipf"
    )
    queries = [" ".join(text.split()[:5]) for text in texts[:60]] + ["", "w1 w1 w2", "unknown"]
    for k in (1, 10, 30, 2000):
        alone = [found.search([query], k=k)[0] for query in queries]
        assert found.search(queries, k=k) == alone
        assert found.search(queries[:2], k=k) == alone[:2]


@pytest.mark.parametrize("together", [0, 40, 1_000_000])
def test_scores_do_not_depend_on_which_postings_are_put_together(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums are added in the order of the terms, else they differ in the last bit."""
    draw = np.random.default_rng(8)
    texts = [" ".join(f"w{rank}" for rank in draw.zipf(1.3, 12) % 300) for _ in range(400)]
    passages = [Passage(id=str(at), text=text) for at, text in enumerate(texts)]
    found = bm25.from_passages(passages, name="zipf")
    expected = found.search(texts[:40], k=20)
    monkeypatch.setattr(_scores, "TOGETHER", together)
    assert found.search(texts[:40], k=20) == expected
    in_order: dict[str, np.float32] = {}
    for word in texts[0].split():
        for hit in found.search([word], k=400)[0]:
            id = hit.passage.id
            in_order[id] = in_order.get(id, np.float32(0)) + np.float32(hit.score)
    assert {h.passage.id: h.score for h in expected[0]}.items() <= in_order.items()


@pytest.mark.parametrize("levels", [2, 9, 1_000_000])
@pytest.mark.parametrize("size", [1, 64, 65, 640, 5000, 6400])
@pytest.mark.parametrize("k", [1, 10, 78, 6000])
def test_the_best_are_those_that_sorting_all_gives(levels: int, size: int, k: int) -> None:
    """From few and from many passages, many of equal score or none."""
    scores = np.random.default_rng(size).integers(0, levels, size).astype(np.float32)
    every = sorted(np.flatnonzero(scores), key=lambda at: (-scores[at], at))
    assert _scores.best(scores, k).tolist() == every[:k]
