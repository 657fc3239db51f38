"""BERTScore over a tiny random encoder, and by hand."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel

from hopscope.runtime.errors import UsageError
from hopscope.runtime.similarities import bertscore
from hopscope.runtime.similarities._encoder import BERTScore, EncodedText, TokenEncoder
from tests.models import SHAPE, tokenizer

E, N, W, S = (torch.tensor(v) for v in ([1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.6, 0.8]))


class Table(TokenEncoder):
    """Vectors by word."""

    def __init__(self, vectors: dict[str, torch.Tensor]) -> None:
        self.name = "table"
        self._vectors = vectors

    def encode(self, text: str) -> EncodedText:
        words = text.split()
        ids = tuple(sorted(self._vectors).index(word) for word in words)
        return EncodedText(ids, torch.stack([self._vectors[word] for word in words]))


def test_tokens_are_matched_greedily() -> None:
    """Precision (1 + .6) / 2 and recall 1: "s" is nearest to "e", which stands for both."""
    rows = BERTScore(Table({"e": E, "s": S}), idf=False).compare(["e s", "e"])
    assert rows[0][1] == rows[1][0] == pytest.approx(2 * 0.8 / 1.8)
    assert rows[0][0] == pytest.approx(1)


def test_idf_makes_rare_tokens_count_for_more() -> None:
    """df of e 3, of n 1, of s 1, of three texts: ln(4/4) = 0, ln(4/2). So only n and s count."""
    texts = ["e n", "e s", "e"]
    score = BERTScore(Table({"e": E, "n": N, "s": S}), idf=True)
    rows = score.compare(texts)
    assert rows[0][1] == pytest.approx(0.8)
    assert score.name == "bertscore:table,idf"
    plain = BERTScore(Table({"e": E, "n": N, "s": S}), idf=False).compare(texts)
    assert plain[0][1] == pytest.approx(0.9)


def test_idf_counts_tokens_alike_where_all_texts_share_them() -> None:
    """ln(n+1 / n+1) = 0 for all of them, and 0 / 0 is no weight."""
    rows = BERTScore(Table({"e": E, "n": N}), idf=True).compare(["e n", "n e"])
    assert rows[0][1] == pytest.approx(1)


def test_scores_do_not_fall_below_zero_and_empty_texts_are_like_none() -> None:
    rows = BERTScore(Table({"e": E, "w": W}), idf=False).compare(["e", "w", " ", ""])
    assert rows == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("encoder")
    shape = {key: value for key, value in SHAPE.items() if not key.endswith("token_id")}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        BertModel(BertConfig(**{**shape, "max_position_embeddings": 32})).save_pretrained(where)
    tokenizer(chat=False).save_pretrained(where)
    return where


def test_an_encoder_from_disk(folder: Path) -> None:
    score = bertscore.build(model=str(folder), device="cpu")
    rows = score.compare(["Lisbon", "Lisbon 1951", "Bruno Costa", "", "Lisbon"])
    for one, row in enumerate(rows):
        assert row == pytest.approx([rows[other][one] for other in range(5)])
        assert all(0 <= value <= 1 for value in row)
    assert rows[0][0] == rows[0][4] == pytest.approx(1)
    assert rows[0][1] < 1
    assert rows[3] == [0] * 5
    assert score.name.endswith(",layer=2")


def test_texts_that_read_alike_are_as_like_all_others_and_compared_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One way round the product of two texts is not rounded as the other way round."""
    pairs: list[tuple[int, int]] = []
    f1 = BERTScore._f1

    def counted(encoded: Any, weights: Any, one: int, other: int) -> float:
        pairs.append((one, other))
        return f1(encoded, weights, one, other)

    monkeypatch.setattr(BERTScore, "_f1", staticmethod(counted))
    texts = ["born in Lisbon in 1951", "Bruno Costa", "the director of Alba was born in Lisbon"]
    rows = bertscore.build(model=str(folder), device="cpu").compare(texts * 3)
    assert len(pairs) == 6
    for one in range(9):
        assert rows[one] == rows[one % 3]
        assert [row[one] for row in rows] == rows[one]


def test_a_layer_is_chosen(folder: Path) -> None:
    last = bertscore.build(model=str(folder), device="cpu")
    first = bertscore.build(model=str(folder), layer=1, device="cpu")
    texts = ["Lisbon in 1951", "Lisbon"]
    assert first.compare(texts) != last.compare(texts)
    assert last.compare(texts) == bertscore.build(model=str(folder), layer=2).compare(texts)


@pytest.mark.parametrize("layer", [3, -4])
def test_a_layer_that_is_not_there_is_told(folder: Path, layer: int) -> None:
    with pytest.raises(UsageError, match="choose one from 0 to 2"):
        bertscore.build(model=str(folder), layer=layer)


def test_a_text_longer_than_the_context_loses_its_end(folder: Path) -> None:
    score = bertscore.build(model=str(folder), device="cpu")
    long = "Lisbon " * 100
    assert score.compare([long, long + "Alba"])[0][1] == pytest.approx(1)


def test_a_model_that_is_not_there_is_told() -> None:
    with pytest.raises(UsageError):
        bertscore.build(model="/no/such/folder")
