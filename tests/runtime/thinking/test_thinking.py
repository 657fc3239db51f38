"""Thoughts of reasoning models: recognised by their marks, limited, kept apart from answers."""

import time
from pathlib import Path
from typing import Any

import pytest
import torch

from hopscope.runtime.errors import (
    CapabilityError,
    ContextOverflowError,
    EntailmentError,
    UsageError,
)
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.generation.draft import Draft
from hopscope.runtime.generation.texts.rendering import Renderer
from hopscope.runtime.ports import BranchRequest, Statement
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf
from hopscope.runtime.thinking.marks import MARKS, Opening, Thinking, Watch, part
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Passage,
    Question,
    ScoreRequest,
    Thought,
)
from hopscope.tracing.asking.asking import Unmeasured
from hopscope.tracing.entailments import lexical
from hopscope.tracing.entailments.judge import Judge
from hopscope.tracing.meters.grogu import GroGU
from hopscope.tracing.meters.semantic_entropy import SemanticEntropy
from hopscope.tracing.meters.seper import SePer
from hopscope.workflows import naive
from tests import models
from tests.fakes import Ending, ScriptedReader, reply
from tests.talk import ScriptedRetriever

EVIDENCE = [Passage(title="Alba", text="Alba is a film directed by Bruno Costa.")]
PROMPT = prompts.short_answer("Where was Bruno Costa born?", EVIDENCE)
BEGUN = prompts.chain_of_thought("Where was Bruno Costa born?", EVIDENCE, ["Alba is a film."])
END_IDS = frozenset({1})
STYLES = list(models.THINKERS)
REPLIES = {
    "qwen3": "<think>\nA film.\n\nyes\n</think>\n\nLisbon",
    "r1": "A film.\n\nyes\n</think>\n\nLisbon",
    "magistral": "[THINK]A film.\n\nyes[/THINK]Lisbon",
    "harmony": "<|channel|>analysis<|message|>A film.\n\nyes<|end_turn|><|start|>assistant"
    "<|channel|>final<|message|>Lisbon",
}
"""What such a model writes."""


def request(**options: Any) -> GenerationRequest:
    return GenerationRequest(**{"prompt": PROMPT, "max_tokens": 10, "stop": ("\n",), **options})


def rendered(style: str, asked: GenerationRequest, thinking: Thinking = "auto") -> str:
    tokenizer: Any = models.thinking_tokenizer(style)
    renderer = Renderer(tokenizer, "reader", END_IDS, thinking)
    text: str = tokenizer.decode(renderer.prompt_ids(asked.prompt, asked.thought))
    start = text.rfind("assistant") + len("assistant")
    return text[start:] if style != "harmony" else text[text.index("<|start|>assistant") :]


def written(
    style: str, reply: str, thinking: Thinking = "auto", *, ends: bool = True, **options: Any
) -> tuple[Generation, Draft]:
    """What comes of a reply that a model writes token by token."""
    tokenizer: Any = models.thinking_tokenizer(style)
    renderer = Renderer(tokenizer, "reader", END_IDS, thinking)
    asked = request(**options)
    prompt = renderer.prompt_ids(asked.prompt, asked.thought)
    opening = renderer.opening(asked, prompt, None)
    draft = Draft(asked, 0, prompt, tokenizer=tokenizer, end_ids=END_IDS, opening=opening)
    ids = [*tokenizer(reply, add_special_tokens=False).input_ids, *([1] if ends else [])]
    left = iter(ids)
    while draft.finished is None:
        token = draft.given[0] if draft.given else next(left)
        draft.add(token, -0.5, 0.25)
    return draft.generation(), draft


# --- recognised and kept apart ----------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES)
def test_the_answer_is_what_stands_behind_the_thought(style: str) -> None:
    """Stop strings within the thought end nothing, and the empty lines behind it are no answer."""
    found, _ = written(style, REPLIES[style])
    assert found.text == "".join(found.tokens) == "Lisbon"
    assert found.thought is not None
    assert found.thought.text.startswith("A film.\n\nyes")
    assert found.thought.end == "closed"
    assert (found.finish_reason, found.unanswered) == ("eos", None)
    assert len(found.logprobs) == len(found.token_ids) == len(found.tokens)
    assert found.usage.output_tokens == found.usage.thinking_tokens + len(found.tokens) + 1
    assert found.usage.thinking_tokens == found.thought.tokens


@pytest.mark.parametrize("style", STYLES)
def test_a_reply_that_would_end_within_its_thought_is_made_to_answer(style: str) -> None:
    """The end token is replaced by what closes the thought, and never read."""
    tokenizer: Any = models.thinking_tokenizer(style)
    renderer = Renderer(tokenizer, "reader", END_IDS)
    prompt = renderer.prompt_ids(PROMPT)
    opening = renderer.opening(request(), prompt, None)
    assert opening is not None
    draft = Draft(request(), 0, prompt, tokenizer=tokenizer, end_ids=END_IDS, opening=opening)
    thought = REPLIES[style].partition("\n\n")[0]
    ids = [*tokenizer(thought, add_special_tokens=False).input_ids, 1]
    went_on = [draft.add(token, -0.5, 0.25) for token in ids]
    assert 1 not in went_on[:-1]
    assert went_on[-1] == opening.bridges[0][0]
    while draft.given:
        draft.add(draft.given[0], 0.0, 0.0)
    for token in [*tokenizer("Lisbon").input_ids, 1]:
        draft.add(token, -0.5, 0.25)
    found = draft.generation()
    assert (found.text, found.unanswered) == ("Lisbon", None)
    assert found.thought is not None
    assert (found.thought.text.removesuffix("<|end|><|start|>assistant"), found.thought.end) == (
        "A film.",
        "forced",
    )


@pytest.mark.parametrize("style", ["qwen3", "magistral", "harmony"])
def test_a_reply_without_a_thought_is_an_answer(style: str) -> None:
    """Also one that begins like a mark."""
    for text in ("Lisbon", "<th", "[TH in"):
        found, _ = written(style, text)
        assert (found.text, found.thought) == (text, None)
    first, _ = written(style, "\nLisbon")
    assert (first.text, first.finish_reason) == ("", "stop")


def test_a_reply_of_nothing_but_white_space_ends() -> None:
    """It was waited for a mark for ever."""
    found, draft = written("qwen3", "\n " * 40, stop=())
    assert (found.thought, found.finish_reason, draft.steps) == (None, "length", 10)
    stopped, draft = written("qwen3", "\n " * 40)
    assert (stopped.text, stopped.finish_reason, draft.steps < 12) == ("", "stop", True)


def test_marks_within_an_answer_are_text() -> None:
    found, _ = written("qwen3", "Lisbon <think> yes </think> no", max_tokens=40)
    assert found.text == "Lisbon <think> yes </think> no"


def test_an_answer_in_the_token_of_the_closing_mark_is_kept() -> None:
    watch = Watch(Opening(MARKS, None, 10))
    for piece in ("<thi", "nk>", " a", " </th", "ink>Lis", "bon"):
        if not watch.answering:
            watch.add(piece)
    assert (watch.thought, watch.rest) == (" a ", "Lis")


def test_whole_replies_are_parted_likewise() -> None:
    assert part("<think>\na\n</think>\n\nLisbon") == ("\na\n", "Lisbon", "closed")
    assert part("a\n</think>\n\nLisbon") == ("a\n", "Lisbon", "closed")
    assert part("[THINK]a") == ("a", "", "open")
    assert part("Lisbon") == (None, "Lisbon", "closed")


@pytest.mark.parametrize(
    "text", ["<think>" + "</think" * 20_000, "<" * 100_000, "<think>" * 15_000, " " * 100_000]
)
def test_looking_for_marks_takes_linear_time(text: str) -> None:
    begun = time.monotonic()
    part(text)
    watch = Watch(Opening(MARKS, None, len(text)))
    for letter in text:
        if not watch.answering:
            watch.add(letter)
    assert time.monotonic() - begun < 5


# --- on, off, auto, a number ------------------------------------------------------------------


def test_the_template_is_told() -> None:
    quiet = "\n<think>\n\n</think>\n\n"
    assert rendered("qwen3", request()) == rendered("qwen3", request(), "on") == "\n"
    assert rendered("qwen3", request(), "off") == rendered("qwen3", request(thought="")) == quiet
    assert rendered("qwen3", request(prompt=BEGUN)) == quiet + BEGUN.prefix
    assert rendered("r1", request()) == "\n<think>\n"


@pytest.mark.parametrize(
    ("style", "behind"),
    [
        ("r1", "\n<think>\n\n</think>\n\n"),
        ("magistral", "\n[THINK][/THINK]"),
        ("harmony", "<|start|>assistant<|channel|>final<|message|>"),
    ],
)
def test_a_template_that_takes_no_notice_gets_an_empty_thought(style: str, behind: str) -> None:
    assert rendered(style, request(), "off").endswith(behind)
    assert rendered(style, request(prompt=BEGUN)).endswith(behind + BEGUN.prefix)
    habit = Renderer(models.thinking_tokenizer(style), "reader", END_IDS, "off").habit
    assert "an empty thought" in str(habit.note)
    assert Renderer(models.thinking_tokenizer("qwen3"), "reader", END_IDS, "off").habit.note is None


@pytest.mark.parametrize("style", STYLES)
def test_a_given_thought_is_laid_out_as_the_model_writes_it(style: str) -> None:
    tokenizer: Any = models.thinking_tokenizer(style)
    renderer = Renderer(tokenizer, "reader", END_IDS)
    reply, _, _ = REPLIES[style].rpartition("Lisbon")
    reply = reply.replace("<|end_turn|>", "<|end|>")
    whole = tokenizer.decode(renderer.prompt_ids(PROMPT)) + reply
    assert tokenizer.decode(renderer.prompt_ids(PROMPT, "A film.\n\nyes")) == whole


def test_models_without_marks_do_not_think(tmp_path: Path) -> None:
    folder = str(models.tiny_llama(tmp_path))
    with pytest.raises(UsageError, match=r"cannot think.*leave out thinking \(--thinking\)"):
        hf.build(model=folder, device="cpu", thinking="on")
    reader: Any = hf.build(model=folder, device="cpu", thinking="off")
    assert reader.name == hf.build(model=folder, device="cpu").name
    [[found]] = reader.generate([request()])
    assert found.thought is None
    with pytest.raises(CapabilityError, match="cannot continue a given thought"):
        reader.generate([request(thought="A film.")])


def test_the_name_says_that_it_thinks(tmp_path: Path) -> None:
    folder = str(models.tiny_thinker(tmp_path, "qwen3"))
    names = {
        t: hf.build(model=folder, device="cpu", thinking=t).name for t in ("auto", "on", "off")
    }
    assert names["auto"] == names["on"] == names["off"] + ":thinking"
    limited = hf.build(model=folder, device="cpu", thinking=7)
    assert limited.name == names["off"] + ":thinking=7"


# --- limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES)
def test_a_thought_ends_at_its_limit_by_force(style: str) -> None:
    """Tokens of the mark are given, not drawn, and the answer has its own limit after them."""
    begun, _, _ = REPLIES[style].partition(" film")
    found, _ = written(style, begun + " film" * 30, 8, ends=False, max_tokens=5)
    assert found.thought is not None
    assert found.thought.end == "forced"
    assert found.finish_reason == "length"
    assert len(found.tokens) == 5
    assert found.thought.tokens >= 8
    assert found.usage.output_tokens == found.thought.tokens + 5


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = models.tiny_thinker(tmp_path_factory.mktemp("r1"), "r1")
    return hf.build(model=str(folder), device="cpu", thinking=6)


def test_a_model_that_never_closes_its_thought_answers_all_the_same(thinker: Any) -> None:
    """A random one; what it answers with is what the model itself gives behind all before it."""
    [samples] = thinker.generate([request(n=4, temperature=1.0, max_tokens=7, stop=())])
    for found in samples:
        assert found.thought is not None
        assert found.thought.end in ("forced", "closed")
        assert 1 <= len(found.tokens) <= 7
    [[alone]] = thinker.generate([request(n=1, temperature=1.0, max_tokens=7, stop=())])
    assert (alone.thought, alone.token_ids) == (samples[0].thought, samples[0].token_ids)


def test_likelihoods_are_those_behind_the_thought(thinker: Any) -> None:
    [[found]] = thinker.generate([request(max_tokens=4, stop=())])
    assert found.thought is not None
    assert found.thought.end == "forced"
    renderer, decoder = thinker._renderer, thinker._decoder
    prompt = renderer.prompt_ids(PROMPT)
    # Greedy: what was thought can be drawn again token by token.
    ids = list(prompt)
    for _ in range(6):
        with torch.inference_mode():
            ids.append(int(decoder._model(torch.tensor([ids])).logits[0, -1].argmax()))
    ids += renderer._tokenize("\n</think>\n\n")
    with torch.inference_mode():
        whole = decoder._model(torch.tensor([[*ids, *found.token_ids]])).logits[0].log_softmax(-1)
    wanted = [float(whole[len(ids) - 1 + i, t]) for i, t in enumerate(found.token_ids)]
    assert found.logprobs == pytest.approx(wanted, abs=1e-4)


def test_answers_after_a_given_thought_do_not_think_again(thinker: Any) -> None:
    [samples] = thinker.generate([request(n=3, temperature=1.0, thought="A film.", stop=())])
    assert [found.thought for found in samples] == [None] * 3
    [[found]] = thinker.generate([request(thought="A film.", stop=())])
    asked = [
        ScoreRequest(prompt=PROMPT, token_ids=found.token_ids, thought=t) for t in ("A film.", "")
    ]
    scored, other = thinker.score(asked)
    assert scored.logprobs == pytest.approx(found.logprobs, abs=1e-4)
    assert other.logprobs != pytest.approx(found.logprobs, abs=1e-2)


def test_replies_that_think_are_not_enumerated(thinker: Any) -> None:
    with pytest.raises(CapabilityError, match="cannot be enumerated"):
        thinker.branch([BranchRequest(request())])
    assert thinker.branch([BranchRequest(request(thought="A film."), least=0.1)])


def test_a_thought_has_to_fit_the_context(tmp_path: Path) -> None:
    folder = str(models.tiny_thinker(tmp_path, "r1"))
    with pytest.raises(ContextOverflowError):
        hf.build(model=folder, device="cpu", thinking=500).generate([request()])
    reader: Any = hf.build(model=folder, device="cpu")  # as much as there is room for
    [[found]] = reader.generate([request()])
    assert found.thought is not None
    assert found.usage.input_tokens + found.usage.output_tokens <= 512


def test_what_fits_without_a_thought_fits(thinker: Any) -> None:
    """Room for a thought that nobody expects was asked for, too, and a context that was full was
    refused."""
    asked = request(thought="", stop=())
    used = thinker.generate([asked])[0][0].usage.input_tokens
    [[found]] = thinker.generate([asked.model_copy(update={"max_tokens": 512 - used})])
    assert found.usage.input_tokens + found.usage.output_tokens <= 512


# --- runs and meters --------------------------------------------------------------------------


OPEN = Generation(text="", thought=Thought(text="Hm", tokens=9, end="open"), finish_reason="length")


def test_a_run_whose_reader_does_not_answer_fails_and_keeps_the_thought() -> None:
    deps = Deps(reader=ScriptedReader([[OPEN]]), retriever=ScriptedRetriever(lambda _: EVIDENCE))
    result = run(Workflow("naive", naive.build(), {}), Question(text="Where?"), deps)
    assert (result.status, result.answer) == ("failed", None)
    assert result.error is not None
    assert result.error.type == "NoAnswerError"
    assert (
        "after 9 tokens: give it more, thinking=TOKENS (--thinking TOKENS)" in result.error.message
    )
    assert result.steps[-1].exchanges[0].generations == (OPEN,)
    assert result.steps[-1].output is None


def test_what_is_not_answered_is_not_measured() -> None:
    """And no reply that thought too long is left out, which would favour the others."""
    question = Question(text="Where?", answers=("Lisbon",))
    meter = SePer(ScriptedReader([[reply("Lisbon"), OPEN]]), lexical.build(), samples=2)
    [measured] = meter.measure(question, [()])
    assert measured.value is None
    assert str(measured.reason).startswith("1 of 2 replies have no answer: the reply ended within")
    [confidence] = GroGU(ScriptedReader([[OPEN]])).confidences(question, [()])
    assert isinstance(confidence, Unmeasured)


def test_a_judge_that_does_not_answer_is_no_judgment() -> None:
    judge = Judge(ScriptedReader([[OPEN]]))
    with pytest.raises(EntailmentError, match="within its thought"):
        judge.classify([Statement("Where?", "Lisbon", "Porto")])


QUESTION = Question(text="Where?", answers=("Lisbon",))


def thought(text: str) -> Thought:
    return Thought(text=text, tokens=3)


def test_one_thought_is_drawn_and_all_answers_behind_it() -> None:
    reader = ScriptedReader(
        [[reply("a", thought=thought("Hm"))], [reply("Lisbon"), reply("Porto")]]
    )
    meter = SePer(reader, lexical.build(), samples=2, weight="uniform", thinking="once")
    [measured] = meter.measure(QUESTION, [()])
    assert (measured.value, measured.n) == (0.5, 2)
    assert "thinking=once" in measured.estimator
    [[first], [asked]] = reader.generated
    assert (first.n, first.thought, first.temperature, first.seed) == (1, None, 1.0, 0)
    assert (asked.n, asked.thought) == (2, "Hm")


def test_one_thought_that_does_not_end_is_no_measurement() -> None:
    reader = ScriptedReader([[OPEN], [reply("a", thought=thought("Hm"))], [reply("Lisbon")] * 2])
    meter = SePer(reader, lexical.build(), samples=2, thinking="once")
    without, within = meter.measure(QUESTION, [(), tuple(EVIDENCE)])
    assert "ended within its thought" in str(without.reason)
    assert within.value == 1.0
    entropy = SemanticEntropy(ScriptedReader([[OPEN]]), lexical.build(), thinking="once")
    [measured] = entropy.measure(QUESTION, [()])
    assert "ended within its thought" in str(measured.reason)


def test_readers_that_do_not_think_are_asked_as_before(tmp_path: Path) -> None:
    reader = hf.build(model=str(models.tiny_llama(tmp_path)), device="cpu")
    levels = [
        SePer(reader, lexical.build(), samples=4, max_tokens=8, thinking=thinking).measure(
            QUESTION, [(), tuple(EVIDENCE)]
        )
        for thinking in ("each", "once")
    ]
    assert [m.value for m in levels[0]] == [m.value for m in levels[1]]


def test_a_reader_that_thinks_is_enumerated_behind_one_thought(thinker: Any) -> None:
    """The thinker is random and seldom ends within two tokens; what is cut off has no meaning."""
    reader = Ending(thinker)
    options: Any = {"method": "enumerate", "max_tokens": 2, "budget": 400, "bound": 0.5}
    [each] = SePer(reader, lexical.build(), **options).measure(QUESTION, [()])
    assert "give it one thought (thinking=once)" in str(each.reason)
    [once] = SePer(reader, lexical.build(), **options, thinking="once").measure(QUESTION, [()])
    assert once.value is not None
    assert once.certain


def test_confidence_is_compared_behind_the_thought_without_documents(thinker: Any) -> None:
    """What was thought with the documents tells of them."""
    meter = GroGU(thinker, max_tokens=6)
    closed, grounded = meter.confidences(QUESTION, [(), tuple(EVIDENCE)])
    assert not isinstance(closed, Unmeasured)
    assert not isinstance(grounded, Unmeasured)
    assert closed.answer.thought is not None
    [scored] = thinker.score(
        [
            ScoreRequest(
                prompt=prompts.short_answer(QUESTION.text),
                token_ids=grounded.answer.token_ids,
                thought=closed.answer.thought.text,
            )
        ]
    )
    assert grounded.ungrounded_entropies == pytest.approx(scored.entropies, abs=1e-4)
