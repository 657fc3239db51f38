"""Thoughts in the replies of servers: apart from answers wherever they come."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopscope.runtime.errors import CapabilityError
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import hf, openai
from hopscope.runtime.servers.reasoning import counts
from hopscope.runtime.servers.replies import CompletionChoice
from hopscope.runtime.types import GenerationRequest, Passage, Usage
from hopscope.tracing.asking.asking import Unmeasured, generate, thought_once
from tests import models
from tests.servers import openai_api
from tests.servers.openai_api import CONTEXT, Reply, Service

EVIDENCE = [Passage(title="Alba", text="Alba is a film directed by Bruno Costa.")]
PROMPT = prompts.short_answer("Where was Bruno Costa born?", EVIDENCE)
BEGUN = prompts.chain_of_thought("Where was Bruno Costa born?", EVIDENCE, ["Alba is a film."])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.tiny_thinker(tmp_path_factory.mktemp("model") / "r1", "r1")


@pytest.fixture
def plain(folder: Path) -> Iterator[Service]:
    with openai_api.running(Service(folder)) as service:
        yield service


@pytest.fixture
def vllm(folder: Path) -> Iterator[Service]:
    with openai_api.running(Service(folder, "vllm")) as service:
        yield service


def reader(service: Service, **options: Any) -> Any:
    return openai.build(model=f"{service.url}#{openai_api.MODEL}", **{"retries": 0, **options})


def request(**options: Any) -> GenerationRequest:
    return GenerationRequest(**{"prompt": PROMPT, "max_tokens": 10, "stop": ("\n",), **options})


def told(
    message: dict[str, Any],
    pieces: tuple[str, ...] = (),
    *,
    finish: str = "stop",
    reasoning: int | None = None,
) -> Reply:
    """A reply as a server tells it, with the log-probabilities of these tokens."""
    entries = [{"token": piece, "logprob": -0.1 * at} for at, piece in enumerate(pieces)]
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    usage: dict[str, Any] = {"prompt_tokens": 20, "completion_tokens": 40}
    if reasoning is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return Reply(
        body={"choices": [choice | {"logprobs": {"content": entries or None}}], "usage": usage}
    )


MESSAGES: dict[str, dict[str, Any]] = {
    "reasoning_content": {"content": "\n\nLisbon", "reasoning_content": "A film.\nyes"},
    "reasoning": {"content": "Lisbon", "reasoning": "A film.\nyes"},
    "parts": {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "A film.\nyes"}]},
            {"type": "text", "text": "Lisbon"},
        ]
    },
    "marks": {"content": "<think>\nA film.\nyes\n</think>\n\nLisbon"},
    "a mark": {"content": "A film.\nyes\n</think>\n\nLisbon"},
}


@pytest.mark.parametrize("form", list(MESSAGES))
def test_a_thought_is_apart_wherever_it_comes(plain: Service, form: str) -> None:
    """Also where the tokens told are those of both, of which the answer keeps its own."""
    pieces = ("<think>", "A film.", "\nyes", "</think>", "\n\n", "Lis", "bon", "</s>")
    plain.planned = [told(MESSAGES[form], pieces, reasoning=30)]
    [[found]] = reader(plain, thinking="on").generate([request()])
    assert (found.text, found.finish_reason, found.tokens) == ("Lisbon", "eos", ("Lis", "bon"))
    assert found.logprobs == pytest.approx((-0.5, -0.6))
    assert found.end_logprob == pytest.approx(-0.7)
    assert found.thought is not None
    assert (found.thought.text, found.thought.tokens) == ("A film.\nyes", 30)
    assert (found.thought.end, found.unanswered) == ("closed", None)
    assert found.usage == Usage(input_tokens=20, output_tokens=40, calls=1, thinking_tokens=30)


def test_stop_strings_and_max_tokens_hold_for_the_answer_only(plain: Service) -> None:
    """The server is not told of them, as it would find them in the thought."""
    message = {"content": "Lisbon\nin Portugal", "reasoning_content": "A film.\nyes"}
    plain.planned = [told(message, ("Lis", "bon", "\n", "in Por", "tugal", "</s>"))]
    client = reader(plain, thinking=50)
    [[found]] = client.generate([request()])
    assert "stop" not in plain.asked[0]
    assert plain.asked[0]["max_tokens"] == 60
    assert (found.text, found.tokens, found.finish_reason) == ("Lisbon", ("Lis", "bon"), "stop")
    plain.planned = [told(message, ("Lis", "bon", "\n", "in Por", "tugal", "</s>"))]
    [[found]] = client.generate([request(max_tokens=4, stop=())])
    assert (found.text, found.finish_reason) == ("Lisbon\nin Por", "length")
    assert client.name.endswith(":chat:thinking=50")


def test_limits_hold_for_a_reply_without_a_thought(plain: Service) -> None:
    """The server was given room for one."""
    pieces = ("Lis", "bon", " in Por", "tugal", "</s>")
    plain.planned = [told({"content": "Lisbon in Portugal"}, pieces)]
    [[found]] = reader(plain, thinking="on").generate([request(max_tokens=3)])
    assert (found.text, found.tokens) == ("Lisbon in Por", pieces[:3])
    assert (found.finish_reason, found.thought) == ("length", None)


def test_tokens_of_thoughts_are_shared_out_whole() -> None:
    """None is below 0, as the first was that had the shortest thought of ten."""
    thoughts = ["", *["a film by Bruno Costa"] * 9]
    choices = [CompletionChoice("Lisbon", "stop", None, False, (), thought) for thought in thoughts]
    usage = {"completion_tokens_details": {"reasoning_tokens": 905}}
    found = counts(usage, choices, [Usage(output_tokens=120)] * 10)
    assert (found[0], sum(found)) == (0, 905)
    assert set(found[1:]) == {100, 101}


def test_a_server_that_thinks_unexpectedly_is_asked_again(plain: Service) -> None:
    """Its thought was cut at a stop string and at the answer's limit: both are for answers."""
    cut = {"content": None, "reasoning_content": "A film."}
    whole = {"content": "Lisbon", "reasoning_content": "A film.\nyes"}
    plain.planned = [told(cut), told(whole), told(whole)]
    client = reader(plain)
    [[found]] = client.generate([request()])
    assert (plain.asked[0]["stop"], plain.asked[0]["max_tokens"]) == (["\n"], 10)
    assert ("stop" in plain.asked[1], plain.asked[1]["max_tokens"]) == (False, 10 + 4096)
    assert found.text == "Lisbon"
    assert (found.usage.calls, found.usage.output_tokens) == (2, 80)
    client.generate([request()])  # from now on it is known
    assert len(plain.asked) == 3


@pytest.mark.parametrize(
    ("message", "reasoning"),
    [
        ({"content": None, "reasoning_content": "A film"}, None),
        ({"content": "", "reasoning": "A film"}, None),
        ({"content": "<think>A film"}, None),
        ({"content": ""}, 40),
    ],
)
def test_a_reply_that_ends_within_its_thought_is_no_answer(
    plain: Service, message: dict[str, Any], reasoning: int | None
) -> None:
    plain.planned = [told(message, finish="length", reasoning=reasoning)]
    [[found]] = reader(plain, thinking="on").generate([request()])
    assert found.text == ""
    assert str(found.unanswered).startswith("the reply ended within its thought, after 40 tokens")


def test_what_is_begun_is_not_thought_about(vllm: Service) -> None:
    reader(vllm).generate([request(prompt=BEGUN)])
    [asked] = vllm.asked
    assert asked["chat_template_kwargs"]["enable_thinking"] is False
    assert asked["stop"] == ["\n"]


def test_servers_are_told_whether_to_think(vllm: Service, plain: Service) -> None:
    for thinking in ("auto", "on", "off"):
        reader(vllm, thinking=thinking).generate([request()])
    told = [asked["chat_template_kwargs"].get("enable_thinking") for asked in vllm.asked]
    assert [value for value in told if value is not True] == [None, False]
    room = [asked["max_tokens"] - 10 for asked in vllm.asked]
    assert room[0] == room[-1] == 0
    assert room[1:-1] == [4096 // 2**i for i in range(len(room) - 2)]  # until it fitted
    assert room[-2] < CONTEXT
    plain.planned = [told_nothing(), told_nothing()]
    reader(plain, thinking="off").generate([request()])
    reader(plain).generate([request()])
    assert [asked.get("reasoning_effort") for asked in plain.asked] == ["none", None]


def told_nothing() -> Reply:
    return told({"content": "Lisbon"})


def test_a_chat_cannot_be_given_a_thought_that_is_kept_secret(plain: Service) -> None:
    """Each sample had a thought of its own, and was measured as if there were one for all."""
    secret = {"content": "Lisbon"}
    plain.planned = [told(secret, reasoning=30) for _ in range(9)]
    asked = {("evidence",): request(n=3)}
    ready, failed = thought_once(reader(plain), asked)
    assert failed == {}
    [found] = generate(reader(plain), list(ready.values()))
    assert isinstance(found, Unmeasured)
    assert "cannot continue a given thought" in found.reason


def test_a_chat_cannot_be_given_a_thought(plain: Service) -> None:
    with pytest.raises(CapabilityError, match="tokenizer="):
        reader(plain).generate([request(thought="A film.")])


def test_by_tokens_a_thought_is_asked_for_first(vllm: Service, folder: Path) -> None:
    """It is ended by force at its limit, and the answer is what transformers gives behind it."""
    local: Any = hf.build(model=str(folder), device="cpu")
    client = reader(vllm, tokenizer=str(folder), alternatives="all", thinking=6)
    [[found]] = client.generate([request(stop=())])
    thoughts, answer = vllm.asked
    assert (thoughts["max_tokens"], thoughts["stop"]) == (6, ["</think>"])
    assert (answer["max_tokens"], "stop" in answer) == (10, False)
    assert found.thought is not None
    assert (found.thought.end, found.thought.tokens) == ("forced", 6)
    [[wanted]] = local.generate([request(stop=(), thought=found.thought.text)])
    assert (found.text, found.token_ids) == (wanted.text, wanted.token_ids)
    assert found.logprobs == pytest.approx(wanted.logprobs, abs=1e-3)
    assert (found.usage.calls, found.usage.thinking_tokens) == (2, 6)
    assert client.name.endswith(":tokens:thinking=6")


def test_by_tokens_every_sample_thinks(vllm: Service, folder: Path) -> None:
    client = reader(vllm, tokenizer=str(folder), thinking=5)
    [samples] = client.generate([request(n=3, temperature=1.0)])
    assert len({sample.thought.text for sample in samples}) == 3
    assert sum(sample.usage.calls for sample in samples) == 4
    [later] = client.more([request(n=2, temperature=1.0)], first=1)
    assert [sample.thought.text for sample in later] == [s.thought.text for s in samples[1:]]
