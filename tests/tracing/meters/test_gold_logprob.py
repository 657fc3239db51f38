"""The reader's log-probability of the gold answer: the arithmetic by hand, the readers against a
plain forward pass of transformers, and what cannot be scored."""

from collections.abc import Sequence
from itertools import combinations
from math import exp, log
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from hopscope.runtime.corpora import hopland
from hopscope.runtime.errors import CapabilityError, ContextOverflowError
from hopscope.runtime.prompting.prompts import short_answer
from hopscope.runtime.readers import hf, openai, tiny
from hopscope.runtime.types import (
    Measurement,
    Passage,
    Provenance,
    Question,
    Scored,
    ScoreRequest,
)
from hopscope.tracing.appraisal import appraise
from hopscope.tracing.asking.asking import Unmeasured
from hopscope.tracing.credit import leave_one_out, shapley, solo, trajectory
from hopscope.tracing.meters import gold_logprob
from hopscope.tracing.meters.gold_logprob import GoldScores
from hopscope.tracing.wrappers.cached import CachedReader
from tests import models
from tests.fakes import ScriptedReader, run_of, scored
from tests.servers import openai_api
from tests.servers.openai_api import Service

RELATIVE = 1e-5
A, B = Passage(id="a", title="A", text="one"), Passage(id="b", title="B", text="two")
RULES = [trajectory.build(), leave_one_out.build(), shapley.build(), solo.build()]


def likelihood(*logprobs: float) -> Scored:
    return scored((0.5,) * len(logprobs), logprobs)


def test_the_value_is_the_best_golds_mean_over_its_tokens() -> None:
    """Of sums the shorter gold would win here, of single tokens the first."""
    who = Question(text="Who?", answers=("first", "second", "third"))
    spelled = [likelihood(-0.9), likelihood(-0.1, -0.7, -0.1), likelihood(-2.0, -0.02)]
    for scale, expected in (("logprob", -0.3), ("probability", exp(-0.3))):
        reader = ScriptedReader(scores=spelled)
        meter = gold_logprob.build(reader, scale=scale)  # type: ignore[arg-type]
        [found] = meter.measure(who, [(A,)])
        assert found.value == pytest.approx(expected, rel=1e-12)
        assert (found.n, found.seed, found.low, found.high) == (1, None, None, None)
        assert meter.name == f"gold_{scale}"
        assert found.estimator.startswith(f"gold_{scale}(tokens=mean, golds=max")
    [detail] = gold_logprob.build(ScriptedReader(scores=spelled)).scores(who, [(A,)])
    assert isinstance(detail, GoldScores)
    assert (detail.best, detail.golds["third"].logprobs) == ("second", (-2.0, -0.02))


def test_everything_is_asked_in_one_call_and_nothing_twice() -> None:
    """Golds are scored as they are spelled; blanks and repetitions are not."""
    who = Question(text="Who?", answers=("The Alba", " ", "Alba", "Alba "))
    reader = ScriptedReader(scores=[likelihood(-n / 8) for n in range(1, 7)])
    found = gold_logprob.build(reader).measure(who, [(), (A,), (A, B), (A,)])
    assert [m.value for m in found] == [-1 / 8, -3 / 8, -5 / 8, -3 / 8]
    [asked] = reader.scored
    assert [(r.prompt.shown, r.continuation) for r in asked] == [
        (shown, gold) for shown in ((), ("a",), ("a", "b")) for gold in ("The Alba", "Alba")
    ]
    assert asked[2].prompt == short_answer("Who?", (A,))
    assert reader.generated == []


def test_a_question_without_gold_is_not_measured_and_costs_nothing() -> None:
    for answers in ((), (" ",)):
        [found] = gold_logprob.build(ScriptedReader()).measure(
            Question(text="Who?", answers=answers), [(A,)]
        )
        assert (found.value, found.reason) == (None, "no gold answer to score")


class Silent(ScriptedReader):
    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        raise CapabilityError("this server cannot score a given text")


class Narrow(ScriptedReader):
    """Takes at most two passages, and counts its calls."""

    calls = 0

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        self.calls += 1
        if any(len(request.prompt.shown) > 2 for request in requests):
            raise ContextOverflowError(self.name, 99, 0, 50)
        return [likelihood(-len(request.prompt.shown) / 4) for request in requests]


def test_a_reader_that_cannot_score_gives_a_reason() -> None:
    who = Question(text="Who?", answers=("g",))
    [found] = gold_logprob.build(Silent()).measure(who, [(A,)])
    assert (found.value, found.reason) == (None, "this server cannot score a given text")
    [found] = gold_logprob.build(ScriptedReader(scores=[likelihood()])).measure(who, [(A,)])
    assert (found.value, found.reason) == (
        None,
        "the reader gives no log-probabilities of the gold 'g'",
    )


def test_contexts_that_do_not_fit_are_unmeasured_and_the_others_are_not() -> None:
    who = Question(text="Who?", answers=("g",))
    passages = tuple(Passage(id=str(i), text=f"p{i}") for i in range(4))
    subsets = [each for size in range(5) for each in combinations(passages, size)]
    reader = Narrow()
    found = gold_logprob.build(reader).measure(who, subsets)
    for subset, measured in zip(subsets, found, strict=True):
        if len(subset) <= 2:
            assert measured.value == -len(subset) / 4
        else:
            shown = ", ".join(p.key for p in subset)
            assert measured.value is None
            assert f"all of {shown} were shown, none was dropped" in str(measured.reason)
    assert reader.calls < 2 * len(subsets)


def test_the_credits_of_all_rules_are_those_of_the_values() -> None:
    run = run_of("a", "b", answers=["g"])
    values = {(): -4.0, ("a",): -2.0, ("b",): -3.5, ("a", "b"): -1.0}

    class ByEvidence(ScriptedReader):
        def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
            return [likelihood(values[tuple(r.prompt.shown)]) for r in requests]

    meter = gold_logprob.build(ByEvidence())
    credits = appraise(run, [meter], RULES, Provenance(reader="by-evidence"))
    found = {(c.rule, c.step): c.measurement.value for c in credits}
    assert found == {
        ("level", None): -4, ("level", 0): -2, ("level", 1): -1, ("total", None): 3,
        ("trajectory", 0): 2, ("trajectory", 1): 1,
        ("leave_one_out", 0): 2.5, ("leave_one_out", 1): 1,
        ("solo", 0): 2, ("solo", 1): 0.5,
        ("shapley", 0): 2.25, ("shapley", 1): 0.75,
    }  # fmt: skip


def by_hand(model: Any, tokenizer: Any, question: Question, evidence: tuple[Passage, ...]) -> float:
    """One forward pass for each gold, of the whole text, unbatched and without a cache."""
    messages = [m.model_dump() for m in short_answer(question.text, evidence).messages]
    begun = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    prompt = tokenizer(begun, add_special_tokens=False).input_ids
    means = []
    for gold in question.answers:
        given = tokenizer(gold, add_special_tokens=False).input_ids
        with torch.inference_mode():
            logits = model(torch.tensor([[*prompt, *given]])).logits[0].double()
        logprobs = torch.log_softmax(logits, dim=-1)
        steps = [logprobs[len(prompt) - 1 + t, token].item() for t, token in enumerate(given)]
        means.append(sum(steps) / len(steps))
    return max(means)


@pytest.fixture(scope="module")
def asked() -> tuple[Question, list[tuple[Passage, ...]]]:
    """A two-hop question with all sets of its gold passages and another one, and two aliases."""
    row = next(q for q in hopland.questions("test") if q.kind == "chain" and q.hops == 2)
    gold = [passage for passage in hopland.corpus() if passage.id in row.gold_passages]
    held = [*gold, next(passage for passage in hopland.corpus() if passage not in gold)]
    subsets = [each for size in range(4) for each in combinations(held, size)]
    golds = (*row.question.answers, "Nobody Atall")
    return row.question.model_copy(update={"answers": golds}), subsets


@pytest.mark.parametrize("kind", ["tiny", "chat"])
def test_it_is_what_a_plain_forward_pass_says(
    kind: str, tmp_path: Path, asked: tuple[Question, list[tuple[Passage, ...]]]
) -> None:
    """All contexts batched, with shared beginnings, against one sequence at a time."""
    question, evidences = asked
    folder = Path(tiny.FOLDER) if kind == "tiny" else models.tiny_llama(tmp_path / "chat")
    reader = tiny.build() if kind == "tiny" else hf.build(model=str(folder), device="cpu")
    found = [m.value for m in gold_logprob.build(reader).measure(question, evidences)]
    model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    truth = [by_hand(model, tokenizer, question, evidence) for evidence in evidences]
    assert found == pytest.approx(truth, rel=RELATIVE)
    probabilities = gold_logprob.build(reader, scale="probability").measure(question, evidences)
    assert [log(m.value or 0) for m in probabilities] == pytest.approx(found, rel=RELATIVE)
    if kind == "tiny":  # it knows the answer from both gold passages, and from neither alone
        assert exp(found[-1] or 0) > 0.5 > exp(found[0] or 0)


def test_a_server_that_scores_given_text_says_the_same(tmp_path: Path) -> None:
    folder = models.tiny_llama(tmp_path / "llama")
    local = gold_logprob.build(hf.build(model=str(folder), device="cpu"))
    who = Question(text="Who?", answers=("Lisbon", "Bruno Costa"))
    with openai_api.running(Service(folder, "vllm")) as service:
        remote = openai.build(model=f"{service.url}#model", tokenizer=str(folder), retries=0)
        there = gold_logprob.build(remote).measure(who, [(), (A,), (A, B)])
    with openai_api.running(Service(folder)) as service:
        plain = openai.build(model=f"{service.url}#model", retries=0)
        [unmeasured] = gold_logprob.build(plain).measure(who, [(A,)])
    here = local.measure(who, [(), (A,), (A, B)])
    assert [m.value for m in there] == pytest.approx([m.value for m in here], rel=RELATIVE)
    assert unmeasured.value is None
    assert "cannot score a given text" in str(unmeasured.reason)


def test_the_value_does_not_depend_on_the_contexts_beside_it(
    asked: tuple[Question, list[tuple[Passage, ...]]],
) -> None:
    question, evidences = asked
    reader = tiny.build()
    together = gold_logprob.build(CachedReader(reader)).measure(question, evidences)
    alone = [m for e in evidences for m in gold_logprob.build(reader).measure(question, [e])]
    assert [m.value for m in together] == pytest.approx([m.value for m in alone], rel=RELATIVE)
    assert [m.model_copy(update={"value": 0}) for m in together] == [
        Measurement(value=0, n=1, estimator=together[0].estimator)
    ] * len(alone)


def test_details_of_what_is_not_measured_are_reasons() -> None:
    [found] = gold_logprob.build(Silent()).scores(Question(text="Who?", answers=("g",)), [(A,)])
    assert found == Unmeasured("this server cannot score a given text")
