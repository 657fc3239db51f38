"""The NLI adapter over tiny random classifiers of two architectures."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
)

from hopscope.runtime.errors import UsageError
from hopscope.runtime.models import linear
from hopscope.runtime.models.checkpoint import locate
from hopscope.runtime.ports import Entailment, Statement
from hopscope.tracing.entailments import bem, nli
from hopscope.tracing.pairs import classifier
from hopscope.tracing.pairs.classifier import class_order, equivalent_class
from tests.models import tokenizer

LABELS = {0: "CONTRADICTION", 1: "Entailment", 2: "neutral"}
SHAPE: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "initializer_range": 0.5,
    "pad_token_id": 1,
}
STATEMENTS = [
    Statement("Where was Alba born", "Lisbon", "in Lisbon, where the director lived"),
    Statement("Where was Alba born", "in Lisbon, where the director lived", "Lisbon"),
    Statement("Who?", "Bruno", "no"),
]


def save(folder: Path, kind: str, labels: dict[int, str] = LABELS) -> Path:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if kind == "bert":
            model: Any = BertForSequenceClassification(BertConfig(**SHAPE, num_labels=len(labels)))
        else:
            config = DebertaV2Config(
                **SHAPE, num_labels=len(labels), relative_attention=True, type_vocab_size=0
            )
            model = DebertaV2ForSequenceClassification(config)
    model.config.id2label = labels
    model.config.label2id = {label: i for i, label in labels.items()}
    model.save_pretrained(folder)
    fast = tokenizer(chat=False)
    fast.pad_token = "<|end|>"
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=["bert", "deberta"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp(request.param), request.param)


def unbatched(folder: Path, statement: Statement) -> list[float]:
    """Entailment, neutral, contradiction straight from the model."""
    kind = json.loads((folder / "config.json").read_text())["model_type"]
    classes: Any = {
        "bert": BertForSequenceClassification,
        "deberta-v2": DebertaV2ForSequenceClassification,
    }
    model = classes[kind].from_pretrained(folder).eval()
    question = statement.question.removesuffix("?") + "?"
    encoded = AutoTokenizer.from_pretrained(folder)(
        f"{question} {statement.premise}", f"{question} {statement.hypothesis}", return_tensors="pt"
    )
    with torch.inference_mode():
        row = model(**encoded).logits.softmax(-1)[0].tolist()
    return [row[1], row[2], row[0]]


def test_classes_are_read_from_the_model_and_batches_change_nothing(folder: Path) -> None:
    for area in (16_384, 1):
        found = nli.build(model=str(folder), max_batch_tokens=area).classify(STATEMENTS)
        for probabilities, statement in zip(found, STATEMENTS, strict=True):
            assert list(probabilities) == pytest.approx(unbatched(folder, statement), abs=1e-4)
            assert sum(probabilities) == pytest.approx(1)


@pytest.mark.parametrize("precision", ["bfloat16", "eight-bits"])
def test_approximations_are_named_and_refused_where_there_are_none(
    folder: Path, precision: Literal["bfloat16", "eight-bits"]
) -> None:
    if not linear.multiplies(precision):
        pytest.skip(f"a processor without {precision}")

    def build() -> Entailment:
        return nli.build(model=str(folder), device="cpu", precision=precision)

    if "bert" in json.loads((folder / "config.json").read_text())["architectures"][0].lower()[:4]:
        with pytest.raises(UsageError, match=f"precision={precision} is for a DeBERTa"):
            build()
        return
    entailment = build()
    assert entailment.name.endswith(f",precision={precision}")
    exact = nli.build(model=str(folder), device="cpu").classify(STATEMENTS)
    for one, other in zip(entailment.classify(STATEMENTS), exact, strict=True):
        assert one != other
        assert list(one) == pytest.approx(list(other), abs=0.1)


@pytest.mark.parametrize(
    ("precision", "other"), [("bfloat16", "eight-bits"), ("eight-bits", "bfloat16")]
)
def test_a_processor_without_a_precision_names_what_it_has(
    folder: Path,
    precision: Literal["bfloat16", "eight-bits"],
    other: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if "Deberta" not in (folder / "config.json").read_text():
        pytest.skip("no other model has approximations")
    monkeypatch.setattr(linear, "multiplies", lambda asked: asked != precision)
    with pytest.raises(UsageError, match=f"precision={precision}.*leave it out or take {other}$"):
        nli.build(model=str(folder), device="cpu", precision=precision)
    monkeypatch.setattr(linear, "multiplies", lambda asked: asked == "single")
    with pytest.raises(UsageError, match=f"precision={precision}.*leave it out$"):
        nli.build(model=str(folder), device="cpu", precision=precision)


def test_the_directions_are_not_the_same(folder: Path) -> None:
    forward, backward, _ = nli.build(model=str(folder)).classify(STATEMENTS)
    assert forward != backward


def rows_computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of each batch that a classifier computes from here on."""
    seen: list[int] = []
    for kind in (BertForSequenceClassification, DebertaV2ForSequenceClassification):
        forward = kind.forward

        def counted(self: Any, *args: Any, forward: Any = forward, **inputs: Any) -> Any:
            seen.append(len(inputs["input_ids"]))
            return forward(self, *args, **inputs)

        monkeypatch.setattr(kind, "forward", counted)
    return seen


def test_pairs_that_read_alike_are_computed_once_and_judged_alike(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that only the model's own reading makes equal, as they part behind its limit."""
    seen = rows_computed(monkeypatch)
    checkpoint = locate(str(folder), None)
    model = classifier.load(
        checkpoint, texts=nli.statement_texts, device="cpu", max_batch_tokens=16_384
    )
    long = [Statement("Where?", "Lisbon " * 200 + end, "Lisbon") for end in ("in", "of", "a")]
    found = model.classify([*STATEMENTS, *long, *STATEMENTS])
    assert sum(seen) == len(STATEMENTS) + 1
    assert found[:3] == found[6:]
    assert found[3] == found[4] == found[5]


def test_identical_pairs_are_computed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = rows_computed(monkeypatch)
    entailment = nli.build(model=str(folder))
    first = entailment.classify([*STATEMENTS, *STATEMENTS])
    assert first[:3] == first[3:]
    assert sum(seen) == 3
    entailment.classify(STATEMENTS)
    assert sum(seen) == 3
    assert entailment.name.startswith("nli:")


def test_a_pair_that_is_too_long_loses_its_end(folder: Path) -> None:
    long = Statement("Where?", "Lisbon " * 200, "Lisbon")
    [found] = nli.build(model=str(folder)).classify([long])
    assert sum(found) == pytest.approx(1)


@pytest.mark.parametrize(
    "labels",
    [
        {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"},
        {0: "entailment", 1: "not_entailment"},
        {0: "entailment", 1: "neutral", 2: "contradiction", 3: "other"},
    ],
)
def test_other_classes_are_refused_with_their_names(labels: dict[int, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"its classes are {labels[0]}"):
        nli.build(model=str(save(tmp_path / "model", "bert", labels)))


def test_a_model_without_a_trained_classifier_is_refused(tmp_path: Path) -> None:
    """transformers would give it a random one and only warn."""
    folder = save(tmp_path / "model", "bert")
    model: Any = BertForSequenceClassification.from_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    model.bert.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UsageError, match="lacks classifier"):
        nli.build(model=str(folder))


def test_a_missing_folder_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        nli.build(model=str(tmp_path))


def test_question_marks_are_added_once() -> None:
    assert nli.statement_texts(Statement("Who", "a", "b")) == ("Who? a", "Who? b")
    assert nli.statement_texts(Statement("Who? ", "a", "b")) == ("Who? a", "Who? b")
    assert nli.statement_texts(Statement("", "a", "b")) == ("a", "b")


def test_label_order() -> None:
    assert class_order({0: "contradiction", 1: "NEUTRAL", 2: " Entailment"}, "m") == [2, 1, 0]


PAIRED = {0: "not_equivalent", 1: "equivalent"}


UNNAMED = {0: "LABEL_0", 1: "LABEL_1"}


@pytest.mark.parametrize("labels", [PAIRED, {0: "equivalent", 1: "not_equivalent"}, UNNAMED])
def test_bem_reads_answer_then_gold_and_question(labels: dict[int, str], tmp_path: Path) -> None:
    """With the labels turned round the same output must mean the opposite."""
    folder = save(tmp_path / "model", "bert", labels)
    [found] = bem.build(model=str(folder)).classify(STATEMENTS[:1])
    model: Any = BertForSequenceClassification.from_pretrained(folder).eval()
    statement = STATEMENTS[0]
    separator = AutoTokenizer.from_pretrained(folder).sep_token or ""
    second = " ".join(f"{statement.hypothesis} {separator} {statement.question}".split())
    encoded = AutoTokenizer.from_pretrained(folder)(
        statement.premise, second, return_tensors="pt", truncation=True, max_length=64
    )
    with torch.inference_mode():
        row = model(**encoded).logits.softmax(-1)[0].tolist()
    right = next(index for index, label in labels.items() if label in ("equivalent", "LABEL_1"))
    assert list(found) == pytest.approx([row[right], 0, row[1 - right]], abs=1e-4)


def test_bem_can_be_told_which_class_is_equivalent(tmp_path: Path) -> None:
    folder = str(save(tmp_path / "model", "bert", UNNAMED))
    one, other = (bem.build(model=folder, equivalent=number) for number in (1, 0))
    [found], [turned] = one.classify(STATEMENTS[:1]), other.classify(STATEMENTS[:1])
    assert tuple(found) == pytest.approx((turned.contradiction, 0, turned.entailment))
    assert one.name != other.name  # what is kept of one must not be taken for the other
    with pytest.raises(UsageError, match="equivalent=2 is no class"):
        bem.build(model=folder, equivalent=2)


def test_of_a_long_pair_bem_cuts_the_answer_only(tmp_path: Path) -> None:
    """The gold and the question were cut, too; the authors' code cuts the answer."""
    folder = save(tmp_path / "model", "bert", UNNAMED)
    judge, tokens = bem.build(model=str(folder)), AutoTokenizer.from_pretrained(folder)
    question, gold = "Who is it?", "in Lisbon, where the director lived " * 2
    answer = "red blue " * 20
    rest = len(tokens("", f"{gold} {tokens.sep_token or ''} {question}").input_ids)
    assert 32 < rest < 60  # more than its half of the 64 that the model reads
    [whole] = judge.classify([Statement(question, answer, gold)])
    [longer] = judge.classify([Statement(question, answer * 2, gold)])
    [another] = judge.classify([Statement(question.replace("it", "he"), answer, gold)])
    assert whole == longer != another
    # Where the others leave no room, the longer one is cut.
    assert judge.classify([Statement(question, "red", answer * 2)])


@pytest.mark.parametrize("labels", [{0: "yes", 1: "same"}, {0: "LABEL_1", 1: "LABEL_0"}, LABELS])
def test_bem_refuses_classes_that_do_not_tell(labels: dict[int, str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"its classes are {labels[0]}"):
        bem.build(model=str(save(tmp_path / "model", "bert", labels)))


def test_the_equivalent_class() -> None:
    assert equivalent_class({0: "Equivalent ", 1: "other"}, "m") == 0
