"""The cross-encoder over tiny random checkpoints, against pairs laid out by hand and computed one
by one."""

import re
from pathlib import Path
from string import ascii_letters
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    PreTrainedTokenizerFast,
    XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
)

from hopscope.runtime.errors import UsageError
from hopscope.runtime.rerankers import cross_encoder
from hopscope.runtime.stages import Candidates, Reranking
from hopscope.runtime.types import Hit, Passage
from tests.fakes import passage
from tests.models import TEXT

SHAPE: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "initializer_range": 0.5,
    "num_labels": 1,
}
LAYOUT = {"bert": "[CLS] {} [SEP] {} [SEP]", "xlm-roberta": "[CLS] {} [SEP] [SEP] {} [SEP]"}
MARKS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
PAD, CLS, SEP = 0, 1, 2
# Given and not learned: the trainer of word pieces breaks ties by chance, so each process would
# have other pieces, ask the same weights about other inputs, and now and then find one where
# rounding exceeds the tolerance.
PIECES = [*MARKS, *sorted(set(re.findall(r"\w+|[^\w\s]", TEXT)) | set(ascii_letters))]
PIECES += [f"##{letter}" for letter in ascii_letters]
CLOSE = 1e-4
"""Padding changes the order of sums in single precision, by 3e-6 of logits of about 3 here;
a title left out or the order turned around, by .04 or more."""
QUERIES = ["Where was the director of Alba born?", "Who?"]
PASSAGES = [
    Passage(id="alba", title="Alba", text="Alba is a film directed by Bruno Costa."),
    Passage(id="bruno", title="Bruno Costa", text="Bruno Costa was born in Lisbon in 1951."),
    Passage(id="untitled", text="yes"),
]


def save(folder: Path, kind: str, *, positions: int = 64, **options: Any) -> Path:
    vocabulary = {piece: number for number, piece in enumerate(PIECES)}
    words = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    second = "[SEP] [SEP] $B [SEP]" if kind == "xlm-roberta" else "[SEP] $B:1 [SEP]:1"
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair=f"[CLS] $A {second}",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )
    names = ["input_ids", "attention_mask"] + ["token_type_ids"] * (kind == "bert")
    PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", model_input_names=names,
    ).save_pretrained(folder)  # fmt: skip
    shape = {**SHAPE, "max_position_embeddings": positions, "pad_token_id": PAD, **options}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: Any = (
            BertForSequenceClassification(BertConfig(**shape))
            if kind == "bert"
            else XLMRobertaForSequenceClassification(XLMRobertaConfig(**shape, type_vocab_size=1))
        )
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=["bert", "xlm-roberta"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("cross") / request.param, request.param)


def candidates(query: str, passages: list[Passage] = PASSAGES) -> Candidates:
    return Candidates(query, tuple(Hit(passage=p, score=1.0) for p in passages))


def logit(folder: Path, query: str, text: str, *, query_room: int = 99, total: int = 999) -> float:
    """One pair, laid out by hand, alone and without padding."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    one, other = (tokenizer.tokenize(part) for part in (query, text))
    one = one[:query_room]
    other = other[: total - special(folder) - len(one)]
    laid = LAYOUT[folder.name].format(" ".join(one), " ".join(other)).split()
    ids = torch.tensor([tokenizer.convert_tokens_to_ids(laid)])
    auto: Any = AutoModelForSequenceClassification
    model = auto.from_pretrained(folder).eval()
    fields: dict[str, Any] = {"input_ids": ids}
    if folder.name == "bert":
        first = len(one) + 2
        fields["token_type_ids"] = torch.tensor([[0] * first + [1] * (ids.shape[1] - first)])
    with torch.inference_mode():
        return float(model(**fields).logits[0, 0])


def special(folder: Path) -> int:
    """Tokens of a pair that are in neither text."""
    return LAYOUT[folder.name].count("[")


def scores(reranked: Reranking) -> dict[str, float]:
    return {hit.passage.key: hit.score for hit in reranked.hits}


@pytest.mark.parametrize("max_batch_tokens", [16_384, 1])
def test_the_score_is_the_logit_of_the_pair(folder: Path, max_batch_tokens: int) -> None:
    """Query first, then title and text; neither padding nor the batch changes a score."""
    reranker = cross_encoder.build(
        model=str(folder), device="cpu", max_batch_tokens=max_batch_tokens
    )
    found = reranker.rerank([candidates(query) for query in QUERIES])
    for query, reranked in zip(QUERIES, found, strict=True):
        expected = {p.key: logit(folder, query, f"{p.title} {p.text}".strip()) for p in PASSAGES}
        assert scores(reranked) == pytest.approx(expected, abs=CLOSE)
        ordered = [hit.score for hit in reranked.hits]
        assert ordered == sorted(ordered, reverse=True)
        assert (reranked.ok, reranked.cut) == (None, 0)


def test_titles_can_be_left_out(folder: Path) -> None:
    reranker = cross_encoder.build(model=str(folder), device="cpu", title=False)
    [found] = reranker.rerank([candidates(QUERIES[0])])
    expected = logit(folder, QUERIES[0], PASSAGES[0].text)
    assert scores(found)["alba"] == pytest.approx(expected, abs=CLOSE)


def test_a_passage_that_is_too_long_loses_its_end_and_is_counted(folder: Path) -> None:
    long = Passage(id="long", text=" ".join(["Lisbon born in film"] * 10))
    short = Passage(id="short", text="yes")
    reranker = cross_encoder.build(model=str(folder), device="cpu", max_length=16)
    [found] = reranker.rerank([candidates("Who?", [long, short])])
    expected = logit(folder, "Who?", long.text, total=16)
    assert scores(found)["long"] == pytest.approx(expected, abs=CLOSE)
    assert found.cut == 1


def test_a_query_that_is_too_long_leaves_a_quarter_to_the_passage(folder: Path) -> None:
    query = " ".join(["born"] * 40)
    reranker = cross_encoder.build(model=str(folder), device="cpu", max_length=20)
    [found] = reranker.rerank([candidates(query, [PASSAGES[1]])])
    asked = (20 - special(folder)) * 3 // 4
    text = f"{PASSAGES[1].title} {PASSAGES[1].text}"
    expected = logit(folder, query, text, query_room=asked, total=20)
    assert scores(found)["bruno"] == pytest.approx(expected, abs=CLOSE)
    assert found.cut == 1


def test_the_model_s_own_positions_bound_a_pair(tmp_path: Path) -> None:
    """Relatives of RoBERTa have fewer positions than they say."""
    folder = save(tmp_path / "xlm-roberta", "xlm-roberta", positions=24)
    reranker = cross_encoder.build(model=str(folder), device="cpu")
    long = Passage(id="long", text=" ".join(["born"] * 60))
    [found] = reranker.rerank([candidates("Who?", [long])])
    assert found.cut == 1
    expected = logit(folder, "Who?", long.text, total=24 - 1)
    assert scores(found)["long"] == pytest.approx(expected, abs=CLOSE)


def test_no_candidates_are_no_work(folder: Path) -> None:
    reranker = cross_encoder.build(model=str(folder), device="cpu")
    assert reranker.rerank([]) == []
    assert reranker.rerank([candidates("Who?", [])]) == [Reranking(())]


def test_equal_scores_keep_their_order(folder: Path) -> None:
    twins = [passage("x").model_copy(update={"id": key}) for key in "abc"]
    reranker = cross_encoder.build(model=str(folder), device="cpu")
    [found] = reranker.rerank([candidates("Who?", twins)])
    assert [hit.passage.id for hit in found.hits] == ["a", "b", "c"]


def test_passages_that_read_alike_are_computed_once_and_score_alike(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one batch are not all rounded alike, so equal passages had last digits of their own,
    and the order that these gave them."""
    seen: list[int] = []
    kind: Any = BertForSequenceClassification
    if folder.name == "xlm-roberta":
        kind = XLMRobertaForSequenceClassification
    forward = kind.forward

    def counted(self: Any, *args: Any, **inputs: Any) -> Any:
        seen.append(len(inputs["input_ids"]))
        return forward(self, *args, **inputs)

    monkeypatch.setattr(kind, "forward", counted)
    reranker = cross_encoder.build(model=str(folder), device="cpu", max_length=24)
    twins = [PASSAGES[n % 3].model_copy(update={"id": str(n)}) for n in range(20)]
    long = " ".join(["Lisbon born in film"] * 10)
    cut = [Passage(id=end, text=f"{long} {end}") for end in ("in", "of", "a")]
    found = reranker.rerank([candidates("Who?", [*twins, *cut]), candidates("Who?", twins)])
    assert sum(seen) == len(PASSAGES) + 1
    for reranked in found:
        by_score: dict[float, list[int]] = {}
        for hit in reranked.hits:
            if hit.passage.id.isdigit():
                by_score.setdefault(hit.score, []).append(int(hit.passage.id))
        assert sorted(by_score.values()) == [list(range(n, 20, 3)) for n in range(3)]


def test_the_name_tells_the_checkpoint(folder: Path) -> None:
    name = cross_encoder.build(model=str(folder), device="cpu").name
    assert name.startswith("cross_encoder:")
    assert folder.name in name


def test_a_classifier_of_several_classes_is_no_reranker(tmp_path: Path) -> None:
    folder = save(tmp_path / "bert", "bert", num_labels=3)
    with pytest.raises(UsageError, match="has 3 outputs; a cross-encoder that reranks has one"):
        cross_encoder.build(model=str(folder))


def test_an_encoder_without_a_classifier_is_refused(tmp_path: Path) -> None:
    """transformers would give it a random one."""
    folder = save(tmp_path / "bert", "bert")
    BertModel(BertConfig(**SHAPE, pad_token_id=PAD)).save_pretrained(folder)
    with pytest.raises(UsageError, match="is no trained reranker, it lacks classifier"):
        cross_encoder.build(model=str(folder))


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        cross_encoder.build(model=str(tmp_path / "nowhere"))


def test_a_pair_needs_some_room(folder: Path) -> None:
    with pytest.raises(UsageError, match="16 tokens or more"):
        cross_encoder.build(model=str(folder), max_length=8)
