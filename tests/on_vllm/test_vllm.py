"""vLLM itself, on the embedded reader's weights: as a server and in process, against transformers.

Nothing here depends on what the reader says, but on both saying the same.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from hopscope.runtime.corpora import hopland
from hopscope.runtime.errors import ContextOverflowError
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import openai, tiny
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Message,
    Prompt,
    Scored,
    ScoreRequest,
)
from hopscope.tracing.entailments import lexical
from hopscope.tracing.meters import gold_logprob
from hopscope.tracing.meters.grogu import GroGU
from hopscope.tracing.meters.seper import SePer

LOGPROB, ENTROPY = 1e-3, 1e-2
PASSAGES = tuple(islice(hopland.corpus(), 4))
ASKED = [
    GenerationRequest(prompt=prompts.short_answer(row.question.text, shown), max_tokens=24)
    for row, shown in zip(
        islice(hopland.questions("dev"), 3), ((), PASSAGES[:1], PASSAGES), strict=True
    )
]
BEGUN = prompts.chain_of_thought(
    hopland.questions("dev")[0].question.text, PASSAGES[:2], ["It begins here."]
)
STOPPED = GenerationRequest(prompt=BEGUN, max_tokens=40, stop=(".", " in"))
SAMPLED = GenerationRequest(
    prompt=ASKED[1].prompt, n=6, temperature=1.0, max_tokens=16, stop=("\n",)
)
GIVEN = [
    ScoreRequest(prompt=ASKED[0].prompt, continuation=" Bruno Costa, in 1951."),
    ScoreRequest(prompt=BEGUN, continuation="So the answer is"),
    ScoreRequest(prompt=ASKED[2].prompt, continuation=""),
]


@pytest.fixture(scope="module")
def local() -> Any:
    return tiny.build()


@pytest.fixture(scope="module")
def remote(served: str) -> Any:
    return openai.build(model=served, tokenizer=str(tiny.FOLDER), alternatives="all", timeout=300)


def assert_same(here: Generation | Scored, there: Generation | Scored) -> None:
    assert there.token_ids == here.token_ids
    assert there.tokens == here.tokens
    assert there.logprobs == pytest.approx(here.logprobs, abs=LOGPROB)
    assert there.entropies == pytest.approx(here.entropies, abs=ENTROPY)
    assert there.usage == here.usage
    assert not there.approx


def assert_same_reply(here: Generation, there: Generation) -> None:
    assert_same(here, there)
    assert (there.text, there.finish_reason) == (here.text, here.finish_reason)
    assert there.end_logprob == pytest.approx(here.end_logprob, abs=LOGPROB)


def test_the_server_says_what_transformers_says(local: Any, remote: Any) -> None:
    asked = [*ASKED, STOPPED]
    for [here], [there] in zip(local.generate(asked), remote.generate(asked), strict=True):
        assert_same_reply(here, there)


def test_the_server_scores_as_transformers_does(local: Any, remote: Any) -> None:
    """Asked twice, so that all of the second prompt lies in the server's prefix cache."""
    for _ in range(2):
        for here, there in zip(local.score(GIVEN), remote.score(GIVEN), strict=True):
            assert_same(here, there)


def test_drawn_tokens_have_their_raw_probabilities(local: Any, remote: Any) -> None:
    """At a temperature, and drawn from the whole vocabulary."""
    hot = SAMPLED.model_copy(update={"temperature": 1.5})
    for drawn in remote.generate([hot])[0]:
        [scored] = local.score([ScoreRequest(prompt=hot.prompt, token_ids=drawn.token_ids)])
        assert drawn.logprobs == pytest.approx(scored.logprobs, abs=LOGPROB)
        assert drawn.entropies == pytest.approx(scored.entropies, abs=ENTROPY)


def test_later_samples_are_those_that_more_would_have_been(remote: Any) -> None:
    six = remote.generate([SAMPLED])[0]
    later = remote.more([SAMPLED.model_copy(update={"n": 4})], first=2)[0]
    assert [g.token_ids for g in later] == [g.token_ids for g in six[2:]]


def test_a_chat_says_what_tokens_say(served: str, remote: Any) -> None:
    """The server lays messages out by the model's template, and a begun answer is continued."""
    chat = openai.build(model=served, timeout=300)
    asked = [ASKED[2], GenerationRequest(prompt=BEGUN, max_tokens=12)]
    for [by_chat], [by_tokens] in zip(chat.generate(asked), remote.generate(asked), strict=True):
        assert by_chat.text == by_tokens.text
        assert by_chat.token_ids == by_tokens.token_ids
        assert by_chat.tokens == by_tokens.tokens
        assert by_chat.logprobs == pytest.approx(by_tokens.logprobs, abs=LOGPROB)
        assert by_chat.approx or not by_chat.tokens  # of an empty reply nothing is estimated
        for low, true in zip(by_chat.entropies, by_tokens.entropies, strict=True):
            assert low <= true + ENTROPY


def test_running_text_spells_itself(served: str) -> None:
    text = openai.build(model=served, api="completions", timeout=300)
    for one in text.generate([SAMPLED])[0]:
        assert "".join(one.tokens).startswith(one.text)
        assert len(one.logprobs) == len(one.tokens)


@pytest.mark.parametrize("tokens", [False, True])
def test_a_prompt_that_is_too_long_is_told_as_such(served: str, tokens: bool) -> None:
    options = {"tokenizer": str(tiny.FOLDER)} if tokens else {}
    one: Any = openai.build(model=served, **options)
    long = Prompt(messages=(Message(role="user", content="word " * 3000),))
    with pytest.raises(ContextOverflowError) as caught:
        one.generate([GenerationRequest(prompt=long)])
    assert caught.value.tokens > caught.value.allowed > 1000


def test_the_meters_agree(local: Any, remote: Any) -> None:
    row = hopland.questions("dev")[0]
    gold = [p for p in hopland.corpus() if p.id in row.gold_passages]
    evidences = [(), PASSAGES[:2], tuple(gold)]
    here, there = (
        SePer(one, lexical.build(), samples=30).measure(row.question, evidences)
        for one in (local, remote)
    )
    for one, other in zip(here, there, strict=True):
        assert one.low is not None
        assert other.low is not None
        assert one.high is not None
        assert other.high is not None
        assert max(one.low, other.low) <= min(one.high, other.high)
    exact, there = (
        gold_logprob.build(one).measure(row.question, evidences) for one in (local, remote)
    )
    for one, other in zip(exact, there, strict=True):
        assert other.value == pytest.approx(one.value, abs=LOGPROB)
    sure, also = (GroGU(one).measure(row.question, evidences) for one in (local, remote))
    for one, other in zip(sure, also, strict=True):
        assert other.value == pytest.approx(one.value, abs=ENTROPY)
        assert other.estimator == one.estimator


def test_in_process_it_says_and_scores_what_transformers_does(
    local: Any, in_process: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    asked = [*ASKED, STOPPED]
    sampled = SAMPLED.model_copy(update={"n": 2})
    told = in_process(
        {
            "generate": [one.model_dump() for one in (*asked, sampled)],
            "score": [one.model_dump() for one in GIVEN],
        }
    )
    assert told["name"] == f"{local.name}:vllm"
    *greedy, drawn = [[Generation.model_validate(g) for g in each] for each in told["generated"]]
    for [here], [there] in zip(local.generate(asked), greedy, strict=True):
        assert_same_reply(here, there)
    for here, there in zip(local.score(GIVEN), told["scored"], strict=True):
        assert_same(here, Scored.model_validate(there))
    [later] = told["later"][-1]
    assert tuple(later["token_ids"]) == drawn[1].token_ids
    for one in drawn:
        [scored] = local.score([ScoreRequest(prompt=sampled.prompt, token_ids=one.token_ids)])
        assert one.logprobs == pytest.approx(scored.logprobs, abs=LOGPROB)
