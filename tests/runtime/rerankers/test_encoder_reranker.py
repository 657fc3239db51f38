"""Reranking by vectors: against products computed from the encoder's own, and what it counts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hopscope.runtime.encoders import naming
from hopscope.runtime.encoders.encoder import Encoded, load
from hopscope.runtime.errors import ReaderError, RetrieverError, UsageError
from hopscope.runtime.rerankers import encoder
from hopscope.runtime.rerankers.encoder import ByEncoder
from hopscope.runtime.stages import Candidates, Reranking
from hopscope.runtime.types import Hit, Passage
from tests import encoders

PASSAGES = [
    Passage(id="fox", title="fox", text="the red fox of the barn"),
    Passage(id="alba", title="alba", text="alba a film by costa"),
    Passage(id="long", text="hen " * 99),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encoders.bert(tmp_path_factory.mktemp("encoder") / "model")


def candidates(query: str, passages: list[Passage] = PASSAGES) -> Candidates:
    return Candidates(query, tuple(Hit(passage=p, score=1.0) for p in passages))


def test_the_score_is_the_inner_product_by_the_encoder_s_rules(model: Path) -> None:
    """E5 writes `query: ` and `passage: `; another encoder's rules would give other scores."""
    reranker = encoder.build(model=f"e5:{model}", device="cpu")
    asked = [
        candidates("who made alba"),
        candidates("red fox", PASSAGES[:2]),
        candidates("hen", []),
    ]
    found = reranker.rerank(asked)
    alone = load(naming.parse(f"e5:{model}"), device="cpu")
    vectors = alone.passages(PASSAGES).vectors
    for query, reranked in zip(("who made alba", "red fox"), found, strict=False):
        (wanted,) = alone.queries([query]).vectors
        scores = {hit.passage.id: hit.score for hit in reranked.hits}
        for passage, score in zip(PASSAGES, vectors @ wanted, strict=True):
            if passage.id in scores:
                assert scores[passage.id] == pytest.approx(score, abs=1e-5)
        ordered = [hit.score for hit in reranked.hits]
        assert ordered == sorted(ordered, reverse=True)
    assert [len(reranked.hits) for reranked in found] == [3, 2, 0]
    assert [reranked.cut for reranked in found] == [1, 0, 0]
    assert reranker.name.startswith("encoder:e5:model@")


class Scripted:
    """Vectors by hand; a query is (1, 0)."""

    name = "scripted"

    def queries(self, texts: Sequence[str]) -> Encoded:
        return Encoded(np.array([[1.0, 0.0]] * len(texts), dtype=np.float32), (False,) * len(texts))

    def passages(self, passages: Sequence[Passage]) -> Encoded:
        if any(passage.text == "fail" for passage in passages):
            raise RetrieverError("out of memory")
        rows = [[float(passage.text), 9.0] for passage in passages]
        return Encoded(np.array(rows, dtype=np.float32), (False,) * len(rows))


def ranked(*texts: str) -> list[str]:
    given = [Passage(id=f"p{n}", text=text) for n, text in enumerate(texts)]
    [found] = ByEncoder(Scripted()).rerank([candidates("?", given)])
    return [hit.passage.id for hit in found.hits]


def test_the_nearest_comes_first_and_equal_ones_keep_their_order() -> None:
    assert ranked("0.5", "-1", "2", "0.5") == ["p2", "p0", "p3", "p1"]


def test_passages_that_read_alike_are_computed_once_and_score_alike(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the rows of a batch nor those of a product are all rounded alike, so equal passages
    had last digits of their own, and the order that these gave them."""
    made = load(naming.parse(f"e5:{model}"), device="cpu")
    seen = []
    compute = made._compute

    def counted(side: Any, rows: Any) -> Any:
        seen.append(len(rows))
        return compute(side, rows)

    monkeypatch.setattr(made, "_compute", counted)
    twins = [PASSAGES[n % 3].model_copy(update={"id": str(n)}) for n in range(23)]
    asked = [candidates(query, twins) for query in ("who made alba", "red fox", "red fox")]
    found = ByEncoder(made).rerank(asked)
    assert sum(seen) == 2 + len(PASSAGES)
    for reranked in found:
        by_score: dict[float, list[int]] = {}
        for hit in reranked.hits:
            by_score.setdefault(hit.score, []).append(int(hit.passage.id))
        assert sorted(by_score.values()) == [list(range(n, 23, 3)) for n in range(3)]
        assert reranked.cut == 7
    assert found[1] == found[2]


def test_an_encoder_that_fails_is_a_failed_stage() -> None:
    with pytest.raises(ReaderError, match="out of memory"):
        ranked("1", "fail")


def test_no_candidates_ask_nothing() -> None:
    reranker = ByEncoder(None)  # type: ignore[arg-type]
    assert reranker.rerank([]) == []
    assert reranker.rerank([candidates("who", [])]) == [Reranking(())]


def test_half_of_a_surrogate_pair_is_no_reason_to_fail(model: Path) -> None:
    [found] = encoder.build(model=f"e5:{model}", device="cpu").rerank([candidates("fox \ud83d")])
    assert len(found.hits) == 3


def test_what_is_no_encoder_is_told_before_anything_is_loaded() -> None:
    with pytest.raises(UsageError, match="no encoder convention 'word2vec'"):
        encoder.build(model="word2vec:x")
