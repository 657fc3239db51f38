"""Dense search agrees with numpy, and an index that does not fit its encoder is refused."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("faiss", reason="the extra faiss-cpu or faiss-gpu is not installed")

from hopscope.runtime.encoders import naming
from hopscope.runtime.encoders.encoder import Encoded, Encoder, load
from hopscope.runtime.errors import CorpusError, IndexMismatchError, RetrieverError, UsageError
from hopscope.runtime.indexes import index_folder
from hopscope.runtime.retrievers import dense
from hopscope.runtime.retrievers.dense import _vectors
from hopscope.runtime.types import Hit, Passage
from tests import encoders

QUERIES = ["who made alba", "red fox", "born in lisbon", "the hen of the barn", "one two three"]
COUNT = 400


def corpus(count: int = COUNT) -> list[Passage]:
    """Passages of random words, no two alike."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(3, 15, size=count)
    texts = [" ".join(draw.choice(encoders.WORDS, size=length)) for length in lengths]
    return [Passage(id=str(n), title="alba", text=text) for n, text in enumerate(texts)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encoders.bert(tmp_path_factory.mktemp("encoder") / "model")


@pytest.fixture(scope="module")
def flat(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exact index, not to be changed."""
    folder = tmp_path_factory.mktemp("flat") / "index"
    dense.create(corpus(), folder, name="words", encoder=f"contriever:{model}", device="cpu")
    return folder


def opened(index: Path, **options: str) -> dense.Dense:
    found = dense.build(index=index, device="cpu", **options)  # type: ignore[arg-type]
    assert isinstance(found, dense.Dense)
    return found


def exact(model: Path, queries: list[str], k: int) -> tuple[list[list[str]], list[list[float]]]:
    """Ids and scores by numpy."""
    encoder = load(naming.parse(f"contriever:{model}"), device="cpu")
    scores = encoder.queries(queries).vectors @ encoder.passages(corpus()).vectors.T
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    values = np.take_along_axis(scores, order, axis=1)
    return [[str(at) for at in row] for row in order], values.tolist()


def ids(hits: list[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


def test_exact_search_agrees_with_numpy(flat: Path, model: Path) -> None:
    found = opened(flat).search(QUERIES, k=20)
    wanted, scores = exact(model, QUERIES, 20)
    assert [ids(hits) for hits in found] == wanted
    for hits, row in zip(found, scores, strict=True):
        assert [hit.score for hit in hits] == pytest.approx(row, rel=1e-5)


def test_passages_come_back_whole_and_named(flat: Path) -> None:
    found = opened(flat)
    (hits,) = found.search(["red fox"], k=3)
    by_id = {passage.id: passage for passage in corpus()}
    for hit in hits:
        assert hit.passage == by_id[hit.passage.id].model_copy(update={"source": found.name})
    assert found.name.startswith("dense(contriever:model@")
    assert ",Flat):words@" in found.name


def test_edges_of_a_search(flat: Path) -> None:
    found = opened(flat)
    hits = found.search(["", "red fox", "  "], k=2)
    assert [len(h) for h in hits] == [0, 2, 0]
    assert found.search(["red"], k=0) == [[]]
    assert found.search([], k=3) == []
    assert len(found.search(["red"], k=COUNT + 9)[0]) == COUNT
    assert len(found.search(["\ud83d"], k=1)[0]) == 1
    assert found.queries_cut == 0
    found.search(["fox " * 99], k=1)
    assert found.queries_cut == 1


def test_equal_scores_come_in_the_order_of_the_corpus(model: Path, tmp_path: Path) -> None:
    same = [Passage(id=str(n), text="red fox") for n in range(30)]
    dense.create(same, tmp_path / "i", name="same", encoder=f"contriever:{model}", device="cpu")
    assert ids(opened(tmp_path / "i").search(["red fox"], k=30)[0]) == [str(n) for n in range(30)]


def test_a_passage_that_stands_twice_is_encoded_once_however_far_apart(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another window it is computed in other company, and got other last digits: then the later
    one came first, or the same passage stood in two places of a ranking."""
    monkeypatch.setattr(_vectors, "WINDOW", 7)
    computed = []
    passages = Encoder.passages

    def counted(self: Encoder, given: Sequence[Passage]) -> Encoded:
        computed.extend(passage.text for passage in given)
        return passages(self, given)

    monkeypatch.setattr(Encoder, "passages", counted)
    texts = [*(passage.text for passage in corpus(20)), "hen " * 99]
    twice = [Passage(id=str(n), title="t", text=text) for n, text in enumerate(texts * 2)]
    made = dense.create(
        twice, tmp_path / "i", name="twice", encoder=f"contriever:{model}", device="cpu"
    )
    assert computed[1:] == texts  # the first is a trial
    assert made.counts == {"passages": 42, "cut": 2}
    for hits in opened(tmp_path / "i").search(QUERIES, k=42):
        for one, other in zip(hits[::2], hits[1::2], strict=True):
            assert one.score == other.score
            assert int(other.passage.id) == int(one.passage.id) + 21


def test_threads_agree(flat: Path) -> None:
    found = opened(flat)
    alone = [found.search([query], k=5)[0] for query in QUERIES]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            assert list(pool.map(lambda q: found.search([q], k=5)[0], QUERIES)) == alone


@pytest.mark.parametrize(
    ("factory", "least", "settings"),
    [
        ("HNSW16", 0.9, "efSearch=64"),
        ("IVF8,Flat", 0.9, "nprobe=16"),
        ("IVF4,PQ8x4", 0.3, "nprobe"),
    ],
)
def test_approximate_indexes_find_most_of_the_same(
    model: Path, tmp_path: Path, factory: str, least: float, settings: str
) -> None:
    spec = f"contriever:{model}"
    dense.create(corpus(), tmp_path / "i", name="w", encoder=spec, faiss=factory, device="cpu")
    found = opened(tmp_path / "i")
    assert f"{factory},{settings}" in found.name
    wanted, _ = exact(model, QUERIES, 10)
    pairs = zip(found.search(QUERIES, k=10), wanted, strict=True)
    shared = [len(set(ids(hits)) & set(row)) / 10 for hits, row in pairs]
    assert sum(shared) / len(shared) >= least
    assert index_folder.read_manifest(tmp_path / "i").settings["faiss"] == factory


def test_how_thoroughly_to_search_is_chosen(model: Path, tmp_path: Path, flat: Path) -> None:
    spec = f"contriever:{model}"
    dense.create(corpus(), tmp_path / "i", name="w", encoder=spec, faiss="IVF8,Flat", device="cpu")
    one, all_ = (opened(tmp_path / "i", search=f"nprobe={n}") for n in (1, 8))
    wanted, _ = exact(model, QUERIES, 100)
    assert [ids(hits) for hits in all_.search(QUERIES, k=100)] == wanted
    assert [ids(hits) for hits in one.search(QUERIES, k=100)] != wanted
    with pytest.raises(UsageError, match=r"does not take 'nprobe=3' for this index"):
        opened(flat, search="nprobe=3")


@pytest.mark.parametrize(
    ("factory", "told"),
    [
        ("Flet", r"an index 'Flet' of 32 dimensions \(could not parse index string Flet\)"),
        ("IVF4,PQ5", r"'IVF4,PQ5' of 32 dimensions \(The dimension of the vector"),
    ],
)
def test_factory_strings_that_mean_nothing_are_refused_before_the_corpus_is_read(
    model: Path, tmp_path: Path, factory: str, told: str
) -> None:
    def unread() -> Iterator[Passage]:
        raise AssertionError("read")
        yield

    with pytest.raises(UsageError, match=told):
        dense.create(
            unread(), tmp_path / "i", name="w", encoder=f"contriever:{model}", faiss=factory
        )
    assert list(tmp_path.iterdir()) == []


def test_too_few_passages_to_train_on(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'IVF64,Flat' on 9 passages \(Number of training points"):
        dense.create(
            corpus(9), tmp_path / "i", name="w", encoder=f"contriever:{model}", faiss="IVF64,Flat"
        )


def test_long_passages_are_counted(model: Path, tmp_path: Path) -> None:
    long = [Passage(text="fox " * n) for n in (10, 38, 39, 80)]
    manifest = dense.create(long, tmp_path / "i", name="w", encoder=f"contriever:{model}")
    assert manifest.counts == {"passages": 4, "cut": 2}


def test_an_empty_corpus_leaves_nothing(model: Path, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no passages"):
        dense.create([], tmp_path / "i", name="w", encoder=f"contriever:{model}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's list of maps")
@pytest.mark.parametrize("factory", ["Flat", "HNSW16", "IVF8,Flat"])
def test_an_index_is_mapped_not_read(model: Path, tmp_path: Path, factory: str) -> None:
    spec = f"contriever:{model}"
    dense.create(corpus(), tmp_path / "i", name="w", encoder=spec, faiss=factory, device="cpu")
    path = str((tmp_path / "i" / dense.INDEX).resolve())
    assert path not in Path("/proc/self/maps").read_text()
    found = opened(tmp_path / "i")
    assert path in Path("/proc/self/maps").read_text()
    del found


BUILD = """
import sys
from pathlib import Path
from hopscope.runtime.retrievers import dense
from hopscope.runtime.retrievers.dense import _vectors
from tests.runtime.retrievers.test_dense import corpus
_vectors.WINDOW = 64
def wait(phase, count):
    if phase == "encode" and count == 128:
        print("now", flush=True)
        sys.stdin.read()
dense.create(corpus(), Path(sys.argv[1]), name="words", encoder=sys.argv[2], device="cpu",
             progress=wait)
"""


def test_a_killed_build_goes_on_where_it_was(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, target = f"contriever:{model}", tmp_path / "i"
    command = [sys.executable, "-c", BUILD, str(target), spec]
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root
    ) as building:
        assert building.stdout is not None
        assert building.stdout.readline() == b"now\n"
        with pytest.raises(UsageError, match="another process is building"):
            dense.create(corpus(), target, name="words", encoder=spec, device="cpu")
        os.kill(building.pid, signal.SIGKILL)
    assert not target.exists()
    monkeypatch.setattr(_vectors, "WINDOW", 64)
    steps: list[int] = []

    def note(phase: str, count: int) -> None:
        if phase == "encode":
            steps.append(count)

    def build(passages: list[Passage], where: Path) -> None:
        steps.clear()
        dense.create(
            passages, where, name="words", encoder=spec, device="cpu", overwrite=True, progress=note
        )

    build(corpus(), target)
    assert steps == [128, 192, 256, 320, 384, COUNT]
    assert [path.name for path in tmp_path.iterdir()] == ["i"]
    build(corpus(), tmp_path / "whole")
    assert steps[0] == 0
    whole = (tmp_path / "whole" / dense.INDEX).read_bytes()
    assert (target / dense.INDEX).read_bytes() == whole


def test_vectors_of_another_corpus_are_not_taken_up(model: Path, tmp_path: Path) -> None:
    spec = f"contriever:{model}"

    class Stop(Exception):
        pass

    def stop(phase: str, count: int) -> None:
        if phase == "write":
            raise Stop

    with pytest.raises(Stop):
        dense.create(corpus(50), tmp_path / "i", name="w", encoder=spec, progress=stop)
    assert [path.name[:12] for path in tmp_path.iterdir()] == [".i.building-"]
    steps: list[tuple[str, int]] = []
    other = list(reversed(corpus(50)))
    dense.create(
        other, tmp_path / "i", name="w", encoder=spec, progress=lambda *step: steps.append(step)
    )
    assert ("encode", 0) in steps
    encoder = load(naming.parse(spec), device="cpu")
    scores = encoder.queries(["red fox"]).vectors @ encoder.passages(other).vectors.T
    best = other[int(scores.argmax())]
    assert ids(opened(tmp_path / "i").search(["red fox"], k=1)[0]) == [best.id]


def edit(index: Path, **changes: object) -> None:
    path = index / index_folder.MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """An index beside its own encoder, both free to be changed."""
    model = encoders.bert(tmp_path / "model")
    dense.create(corpus(40), tmp_path / "index", name="w", encoder=f"e5:{model}", device="cpu")
    return tmp_path / "index"


def test_another_encoder_is_refused_with_both_names(small: Path, tmp_path: Path) -> None:
    other = encoders.bert(tmp_path / "other", seed=1)
    wide = encoders.bert(tmp_path / "wide", hidden_size=64)
    for given, name in ((f"e5:{other}", "e5:other@"), (f"e5:{wide}", "e5:wide@")):
        with pytest.raises(IndexMismatchError, match=rf"built with encoder e5:model@.*{name}"):
            opened(small, encoder=given)
    with pytest.raises(IndexMismatchError, match=r"built with encoder e5:model@.*bge:model@"):
        opened(small, encoder=f"bge:{tmp_path / 'model'}")


def test_another_tokenizer_is_refused_with_both_names(small: Path, tmp_path: Path) -> None:
    words = [*encoders.WORDS[1:], encoders.WORDS[0]]
    other = encoders.bert(tmp_path / "other", words=words)
    (tmp_path / "model" / "tokenizer.json").write_bytes((other / "tokenizer.json").read_bytes())
    with pytest.raises(
        IndexMismatchError, match=r"built with tokenizer model@.*, but model@.* is here"
    ):
        opened(small)


def test_another_dimension_is_refused_with_both_numbers(small: Path) -> None:
    settings = index_folder.read_manifest(small).settings
    edit(small, settings=settings | {"dimension": 64})
    with pytest.raises(IndexMismatchError, match=r"'dimension': 32.* says .*'dimension': 64"):
        opened(small)


def test_rules_that_have_changed_are_refused(small: Path) -> None:
    settings = index_folder.read_manifest(small).settings
    rules = settings["rules"]
    assert isinstance(rules, dict)
    edit(small, settings=settings | {"rules": rules | {"query": "{text}"}})
    with pytest.raises(IndexMismatchError, match=r"built with rules = .*'query: \{text\}'"):
        opened(small)


def test_an_encoder_that_has_moved_is_given_its_place(small: Path, tmp_path: Path) -> None:
    before = opened(small).search(["red fox"], k=5)[0]
    (tmp_path / "model").rename(tmp_path / "moved")
    with pytest.raises(UsageError, match=r"built with encoder e5:model@"):
        opened(small)
    after = opened(small, encoder=f"e5:{tmp_path / 'moved'}").search(["red fox"], k=5)[0]
    assert ids(after) == ids(before)


def test_damage_is_noticed(small: Path) -> None:
    path = small / dense.INDEX
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(IndexMismatchError, match=f"{dense.INDEX} has {len(whole) - 1} bytes"):
        opened(small)
    path.write_bytes(b"\0" * len(whole))
    with pytest.raises(IndexMismatchError, match="cannot be read by faiss"):
        opened(small)
    with pytest.raises(IndexMismatchError, match="SHA-256"):
        index_folder.verify(small)
    path.write_bytes(whole)
    edit(small, kind="bm25")
    with pytest.raises(IndexMismatchError, match="'bm25', 'dense' is needed"):
        opened(small)


def test_vectors_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    broken = encoders.bert(tmp_path / "broken", initializer_range=1e30)
    with pytest.raises(RetrieverError, match="not finite"):
        dense.create(corpus(3), tmp_path / "i", name="w", encoder=f"e5:{broken}", device="cpu")
