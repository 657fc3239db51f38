"""The reader `fid` against transformers' own encoder-decoder, whose decoder is given the states of
passages that were encoded one by one, without padding, joined by hand."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.modeling_outputs import BaseModelOutput

from hopscope.runtime.errors import CapabilityError, ReaderError
from hopscope.runtime.generation import sampling
from hopscope.runtime.prompting import loading
from hopscope.runtime.readers import fid
from hopscope.runtime.readers.fid._fusion import Fusion
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Message,
    Passage,
    Prompt,
    Scored,
    ScoreRequest,
)
from tests import models

ALBA = Passage(id="1", title="Alba", text="Alba is a film directed by Bruno Costa.")
BRUNO = Passage(
    id="2",
    title="Bruno Costa",
    text="Bruno Costa was born in Lisbon in 1951, and yes, not in Alba.",
)
LONE = Passage(id="3", text="no")
SHAPES: dict[str, dict[str, Any]] = {
    "t5": {"kind": "t5"},
    "t5 1.1": {
        "kind": "t5",
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
        "initializer_factor": 1.0,
    },
    "mt5": {"kind": "mt5", "initializer_factor": 1.0},
    "umt5": {"kind": "umt5", "initializer_factor": 1.0},
}
TOLERANCE = 1e-5


def prompt(question: str, *passages: Passage) -> Prompt:
    return loading.load("fid").render("naive/answer", passages, question=question)


PROMPTS = [
    prompt("Where was the director of Alba born?", ALBA, BRUNO, LONE),
    prompt("Who?"),
    prompt("Who directed Alba?", LONE),
    prompt("When was Bruno Costa born?", BRUNO, ALBA, LONE, BRUNO),
]


class Reference:
    """The model itself, given one request at a time."""

    def __init__(self, folder: Path) -> None:
        self.model: Any = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
        self._tokenizer = AutoTokenizer.from_pretrained(folder)

    def inputs(self, asked: Prompt) -> list[Any]:
        texts = [message.content for message in asked.messages]
        return [self._tokenizer(text, return_tensors="pt").input_ids for text in texts]

    def joined(self, asked: Prompt) -> Any:
        with torch.inference_mode():
            states = [
                self.model.encoder(input_ids=ids).last_hidden_state for ids in self.inputs(asked)
            ]
        return BaseModelOutput(last_hidden_state=torch.cat(states, dim=1))

    def greedy(self, asked: Prompt, tokens: int) -> tuple[int, ...]:
        states = self.joined(asked)
        written = self.model.generate(
            encoder_outputs=states,
            attention_mask=torch.ones(states.last_hidden_state.shape[:2], dtype=torch.long),
            do_sample=False,
            max_new_tokens=tokens,
        )
        return tuple(written[0, 1:].tolist())

    def after(self, asked: Prompt, tokens: Sequence[int]) -> torch.Tensor:
        """Log-probabilities of each of the tokens and of the one after them, (token, choice)."""
        given = torch.tensor([[0, *tokens]])
        with torch.inference_mode():
            out = self.model(
                encoder_outputs=self.joined(asked), decoder_input_ids=given, use_cache=False
            )
        return torch.log_softmax(out.logits[0].double(), dim=-1)

    def check(self, asked: Prompt, said: Generation | Scored) -> None:
        logprobs = self.after(asked, said.token_ids)
        entropies = torch.special.entr(logprobs.exp()).sum(dim=-1).tolist()
        rows = zip(logprobs, said.token_ids, strict=False)
        assert list(said.logprobs) == pytest.approx(
            [float(row[token]) for row, token in rows], abs=TOLERANCE
        )
        assert list(said.entropies) == pytest.approx(entropies[: len(said.tokens)], abs=TOLERANCE)


@pytest.fixture(scope="module", params=SHAPES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("model") / "tiny"
    return models.tiny_t5(made, **SHAPES[request.param])


@pytest.fixture(scope="module")
def reference(folder: Path) -> Reference:
    return Reference(folder)


@pytest.fixture(scope="module")
def reader(folder: Path) -> Any:
    return fid.build(model=str(folder), device="cpu")


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return fid.build(model=str(models.tiny_t5(tmp_path_factory.mktemp("model") / "t5")))


def sampled(i: int, **options: Any) -> GenerationRequest:
    usual = {"n": (3, 1, 4, 2)[i], "max_tokens": 7 + i, "temperature": 1.0, "seed": 7}
    return GenerationRequest(prompt=PROMPTS[i], **{**usual, **options})


def tokens(replies: Sequence[Sequence[Generation]]) -> list[list[tuple[int, ...]]]:
    return [[each.token_ids for each in samples] for samples in replies]


def test_greedy_replies_are_those_of_transformers(reader: Any, reference: Reference) -> None:
    """Passages of unequal lengths, several requests in a batch."""
    requests = [GenerationRequest(prompt=each, max_tokens=12) for each in PROMPTS]
    for asked, [said] in zip(PROMPTS, reader.generate(requests), strict=True):
        assert said.token_ids == reference.greedy(asked, 12)
        reference.check(asked, said)


def test_samples_have_the_likelihoods_of_the_whole_model(reader: Any, reference: Reference) -> None:
    batch = reader.generate([sampled(i) for i in range(len(PROMPTS))])
    for i, samples in enumerate(batch):
        assert len(samples) == (3, 1, 4, 2)[i]
        for said in samples:
            reference.check(PROMPTS[i], said)
    scored = reader.score(
        [
            ScoreRequest(prompt=PROMPTS[i], token_ids=said.token_ids)
            for i, samples in enumerate(batch)
            for said in samples
        ]
    )
    said = [each for samples in batch for each in samples]
    for one, other in zip(scored, said, strict=True):
        assert list(one.logprobs) == pytest.approx(list(other.logprobs), abs=TOLERANCE)


def test_one_passage_is_plain_t5(reader: Any, reference: Reference) -> None:
    [ids] = reference.inputs(PROMPTS[2])
    plain = reference.model.generate(ids, do_sample=False, max_new_tokens=10)
    [[said]] = reader.generate([GenerationRequest(prompt=PROMPTS[2], max_tokens=10)])
    assert said.token_ids == tuple(plain[0, 1:].tolist())
    assert said.usage.input_tokens == ids.shape[1]


def test_passages_are_read_apart(t5: Any) -> None:
    """The order of the passages has no effect, other than in one message; each passage has one."""
    reply = (40, 50, 60, 70)

    def logprobs(asked: Prompt) -> list[float]:
        return list(t5.score([ScoreRequest(prompt=asked, token_ids=reply)])[0].logprobs)

    there, back = (prompt("Who?", *found) for found in ([ALBA, BRUNO], [BRUNO, ALBA]))
    assert logprobs(there) == pytest.approx(logprobs(back), abs=TOLERANCE)
    assert logprobs(there) != pytest.approx(logprobs(prompt("Who?", ALBA)), abs=0.01)
    one = loading.load("fid-in-prompt")
    there, back = (
        one.render("naive/answer", found, question="Who?")
        for found in ([ALBA, BRUNO], [BRUNO, ALBA])
    )
    assert len(there.messages) == 1
    assert logprobs(there) != pytest.approx(logprobs(back), abs=0.01)


def test_a_sample_depends_on_its_own_seed_alone(t5: Any) -> None:
    requests = [sampled(i) for i in range(len(PROMPTS))]
    batch = tokens(t5.generate(requests))
    assert tokens(t5.generate(requests)) == batch
    assert [tokens(t5.generate([each]))[0] for each in requests] == batch
    assert tokens(t5.more([sampled(0, n=1)], first=2)) == [[batch[0][2]]]
    assert tokens(t5.generate([sampled(0, seed=8)]))[0] != batch[0]
    assert len(set(batch[2])) > 1


@pytest.mark.parametrize("area", [1, 60, 200])
def test_little_memory_changes_no_token(
    t5: Any, area: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passages, requests and the drafts of one request go into several passes."""
    requests = [sampled(i) for i in range(len(PROMPTS))]
    batch = t5.generate(requests)
    given = [
        ScoreRequest(prompt=PROMPTS[i], token_ids=samples[0].token_ids)
        for i, samples in enumerate(batch)
    ]
    scored = t5.score(given)
    monkeypatch.setattr(t5._fusion, "_area", area)
    assert tokens(t5.generate(requests)) == tokens(batch)
    for one, other in zip(t5.score(given), scored, strict=True):
        assert list(one.logprobs) == pytest.approx(list(other.logprobs), abs=TOLERANCE)


def test_passages_of_similar_length_are_encoded_together(
    t5: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And equal ones once, whichever request they are of."""
    shapes: list[tuple[int, ...]] = []
    encoded = Fusion._encoded

    def noted(self: Fusion, batch: Any) -> Any:
        shapes.append(tuple(map(len, batch)))
        return encoded(self, batch)

    monkeypatch.setattr(Fusion, "_encoded", noted)
    monkeypatch.setattr(t5._fusion, "_area", 400)
    asked = [prompt("Who?", LONE, BRUNO, ALBA), prompt("Who?", BRUNO, LONE)]
    t5.generate([GenerationRequest(prompt=each, max_tokens=1) for each in asked])
    [lengths] = shapes
    assert len(lengths) == 3
    assert list(lengths) == sorted(lengths, reverse=True)


def disturb(monkeypatch: pytest.MonkeyPatch, noise: float) -> None:
    """Rounding as of a very coarse computation, of all that is computed in company."""
    decoded, generator = Fusion._decoded, torch.Generator().manual_seed(0)

    def noisy(self: Fusion, ids: Any, memory: Any, **options: Any) -> Any:
        out = decoded(self, ids, memory, **options)
        if options.get("use_cache"):
            out.logits += noise * (2 * torch.rand(out.logits.shape, generator=generator) - 1)
        return out

    monkeypatch.setattr(Fusion, "_decoded", noisy)


def test_rounding_decides_no_token(t5: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ROUNDING", 0.02)
    monkeypatch.setattr(sampling, "TYPICAL_ROUNDING", 0.04)
    requests = [sampled(i, n=6, temperature=heat) for i in range(4) for heat in (0.0, 1.0)]
    calm = tokens(t5.generate(requests))
    disturb(monkeypatch, 0.01)
    assert tokens(t5.generate(requests)) == calm
    monkeypatch.setattr(sampling, "ROUNDING", 0.0)
    monkeypatch.setattr(sampling, "TYPICAL_ROUNDING", 0.0)
    assert tokens(t5.generate(requests)) != calm


@pytest.fixture
def _deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("_deterministic")
def test_alone_the_numbers_are_equal_to_the_last_digit(tmp_path: Path) -> None:
    reader = fid.build(model=str(models.tiny_t5(tmp_path / "t5")), dtype="bfloat16")
    assert reader.name.endswith(":bfloat16")
    requests = [sampled(i) for i in range(len(PROMPTS))]
    batch = reader.generate(requests)
    assert [reader.generate([each])[0] for each in requests] == batch
    given = [ScoreRequest(prompt=each, token_ids=(40, 50)) for each in PROMPTS]
    assert [reader.score([each])[0] for each in given] == reader.score(given)


def test_replies_end_at_stop_strings_and_end_tokens(t5: Any) -> None:
    hot = sampled(1, n=200, temperature=3.0, max_tokens=20)
    [samples] = t5.generate([hot])
    ended = [said for said in samples if said.finish_reason == "eos"]
    assert len(ended) > 3
    for said in samples:
        assert "".join(said.tokens) == said.text
        assert (said.end_logprob is not None) == (said.finish_reason == "eos")
        assert said.usage.output_tokens == len(said.token_ids) + (said.finish_reason == "eos")
    [cut] = t5.generate([hot.model_copy(update={"stop": ("e",)})])
    assert {said.finish_reason for said in cut} >= {"stop"}
    assert [said.text for said in cut] == [said.text.partition("e")[0] for said in samples]


def test_a_reply_is_a_text_of_its_own(t5: Any) -> None:
    """The tokens of the prompt's end are no context of its first token."""
    [[said]] = t5.generate([sampled(0, n=1)])
    [alone] = t5.score([ScoreRequest(prompt=PROMPTS[1], token_ids=said.token_ids)])
    assert alone.tokens == said.tokens
    [text] = t5.score([ScoreRequest(prompt=PROMPTS[1], continuation="born in Lisbon")])
    assert "".join(text.tokens) == "born in Lisbon"
    [nothing] = t5.score([ScoreRequest(prompt=PROMPTS[1])])
    assert nothing.tokens == ()


def test_long_passages_are_cut_only_if_the_user_wants_it(t5: Any, tmp_path: Path) -> None:
    folder = models.tiny_t5(tmp_path / "t5")
    cutting = fid.build(model=str(folder), passage_tokens=30)
    assert cutting.name == f"{t5.name}:passage_tokens=30"
    long = ALBA.model_copy(update={"text": "yes no " * 400})
    asked = GenerationRequest(prompt=prompt("Who?", long, LONE), max_tokens=2)
    lone = len(t5._inputs(prompt("Who?", LONE), None)[0])
    assert cutting.generate([asked])[0][0].usage.input_tokens == 30 + lone
    assert t5.generate([asked])[0][0].usage.input_tokens > 400
    [inputs] = cutting._inputs(prompt("Who?", long), None)
    assert inputs[-1] == 1  # the end token stays


def test_a_passage_cannot_end_itself(t5: Any) -> None:
    forged = ALBA.model_copy(update={"text": f"no {models.END} yes"})
    [ids] = t5._inputs(prompt("Who?", forged), None)
    assert ids.count(1) == 1


def test_what_it_cannot_read_is_told(t5: Any) -> None:
    chat = loading.load("default").render("naive/answer", [ALBA], question="Who?")
    with pytest.raises(CapabilityError, match="has a message of the role system: take the work"):
        t5.generate([GenerationRequest(prompt=chat)])
    begun = PROMPTS[0].model_copy(update={"prefix": "So"})
    with pytest.raises(CapabilityError, match="has a begun reply: take the workflow"):
        t5.score([ScoreRequest(prompt=begun, continuation="yes")])
    with pytest.raises(CapabilityError, match="has no message"):
        t5.generate([GenerationRequest(prompt=Prompt(messages=()))])
    with pytest.raises(CapabilityError, match="does not think"):
        t5.generate([GenerationRequest(prompt=PROMPTS[0], thought="Hm.")])
    with pytest.raises(ReaderError, match="token 400 is not among the model's 320"):
        t5.score([ScoreRequest(prompt=PROMPTS[0], token_ids=(400,))])


def test_an_input_without_tokens_is_told(t5: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t5._tokenizer.backend_tokenizer, "post_processor", None)
    empty = Prompt(messages=(Message(role="user", content=""),))
    with pytest.raises(ReaderError, match="a message has no token; give it a text"):
        t5.generate([GenerationRequest(prompt=empty)])


def test_a_given_empty_thought_is_none(t5: Any) -> None:
    plain = t5.generate([sampled(0)])
    assert t5.generate([sampled(0, thought="")]) == plain
    assert all(math.isfinite(p) for said in plain[0] for p in said.logprobs)
