"""A reader that was trained to think (tests/reasoner), in workflows, meters and on a server."""

from pathlib import Path
from typing import Any

import pytest

from hopscope.lab.hopland.cases import Case, cases
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf, openai
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.types import GenerationRequest, Question
from hopscope.tracing.entailments import lexical
from hopscope.tracing.meters.seper import SePer
from hopscope.workflows import ircot
from tests.servers import openai_api
from tests.servers.openai_api import Service

FOLDER = Path(__file__).parents[2] / "reasoner" / "model"
COUNT = 12


@pytest.fixture(scope="module")
def thinking() -> Any:
    return hf.build(model=str(FOLDER), device="cpu")


@pytest.fixture(scope="module")
def asked() -> list[Case]:
    return cases(2, COUNT)


def request(case: Case, **options: Any) -> GenerationRequest:
    prompt = prompts.short_answer(case.asked.text, case.full)
    return GenerationRequest(**{"prompt": prompt, "max_tokens": 16, "stop": ("\n",), **options})


def test_it_thinks_of_the_link_and_then_answers(thinking: Any, asked: list[Case]) -> None:
    replies = [samples[0] for samples in thinking.generate([request(case) for case in asked])]
    right = [g.text.strip() == c.asked.answer for g, c in zip(replies, asked, strict=True)]
    linked = [
        c.asked.steps[0].object in g.thought.text for g, c in zip(replies, asked, strict=True)
    ]
    assert min(sum(right), sum(linked)) >= COUNT - 2
    assert all("think" not in g.text for g in replies)


def test_thinking_costs_and_can_be_spared(thinking: Any, asked: list[Case]) -> None:
    quick: Any = hf.build(model=str(FOLDER), device="cpu", thinking="off")
    asks = [request(case) for case in asked]
    long, short = (
        sum(samples[0].usage.output_tokens for samples in reader.generate(asks))
        for reader in (thinking, quick)
    )
    assert long > 3 * short
    assert thinking.name == quick.name + ":thinking"


def test_a_workflow_neither_asks_nor_answers_with_thoughts(thinking: Any) -> None:
    world = bm25.from_passages(hopland.corpus(), name="hopland")
    question = next(q for q in hopland.questions("dev") if q.kind == "chain" and q.hops == 2)
    golds = Question(text=question.question.text, answers=question.question.answers)
    deps = Deps(reader=thinking, retriever=world)
    found = run(Workflow("ircot", ircot.build(k=4), {}), golds, deps)
    assert found.status == "ok"
    assert found.answer == golds.answers[0]
    assert found.usage.thinking_tokens > 0
    assert all("think" not in (step.query or "") + (step.output or "") for step in found.steps)


def test_belief_is_that_of_the_answers(thinking: Any, asked: list[Case]) -> None:
    """With all passages the reader is sure, whether each sample thinks or one thought is kept."""
    case = asked[0]
    question = Question(text=case.asked.text, answers=(case.asked.answer,))
    for way in ("each", "once"):
        meter = SePer(thinking, lexical.build(), samples=6, max_tokens=16, thinking=way)
        without, within = meter.measure(question, [case.bare, case.full])
        assert within.value is not None
        assert without.value is not None
        assert within.value > 0.5 > without.value


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_a_server_s_chat_answers_alike(thinking: Any, asked: list[Case], field: str) -> None:
    """The server parts the reply; asked as usual first, it stops within the thought."""

    def part(choice: dict[str, Any]) -> None:
        message = choice["message"]
        thought, closed, answer = message["content"].removeprefix("<think>").partition("</think>")
        message |= {"content": answer if closed else None, field: thought}

    with openai_api.running(Service(FOLDER)) as service:
        service.change = part
        service.context = 2048
        reader = openai.build(model=f"{service.url}#{openai_api.MODEL}", retries=0)
        [[wanted]] = thinking.generate([request(asked[0])])
        [[found]] = reader.generate([request(asked[0], max_tokens=16)])
    assert found.text.strip() == wanted.text.strip() == asked[0].asked.answer
    assert found.thought is not None
    assert found.thought.text == wanted.thought.text
    assert found.usage.thinking_tokens > 0
