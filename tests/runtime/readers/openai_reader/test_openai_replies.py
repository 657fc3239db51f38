"""The reader over servers of OpenAI's API, against a server on this machine with a real model, and
against the transformers reader on the same weights."""

from pathlib import Path
from typing import Any

import pytest

from hopscope.runtime.errors import CapabilityError
from hopscope.runtime.readers import hf
from hopscope.runtime.types import (
    GenerationRequest,
    Prompt,
    Question,
    ScoreRequest,
)
from hopscope.tracing.meters.grogu import GroGU
from tests.runtime.readers.openai_reader.asking import (
    BEGUN,
    EVIDENCE,
    PROMPT,
    exact,
    reader,
    request,
)
from tests.servers.openai_api import Service


@pytest.mark.parametrize("prompt", [PROMPT, BEGUN])
def test_by_tokens_it_says_and_scores_what_transformers_does(
    vllm: Service, folder: Path, local: Any, prompt: Prompt
) -> None:
    asked = request(prompt, max_tokens=12)
    [[here]], [[there]] = local.generate([asked]), exact(vllm, folder).generate([asked])
    assert there.text == here.text
    assert there.token_ids == here.token_ids
    assert there.tokens == here.tokens
    assert there.finish_reason == here.finish_reason
    assert there.logprobs == pytest.approx(here.logprobs, abs=1e-4)
    assert there.entropies == pytest.approx(here.entropies, abs=1e-4)
    assert there.end_logprob == pytest.approx(here.end_logprob, abs=1e-4)
    assert not there.approx
    assert there.usage == here.usage


def test_scores_are_those_of_transformers(vllm: Service, folder: Path, local: Any) -> None:
    asked = [
        ScoreRequest(prompt=PROMPT, continuation=" Bruno Costa."),
        ScoreRequest(prompt=BEGUN, continuation="no"),
        ScoreRequest(prompt=PROMPT, continuation=""),
        ScoreRequest(prompt=PROMPT, token_ids=(5, 1, 300)),
    ]
    remote = exact(vllm, folder)
    for here, there in zip(local.score(asked), remote.score(asked), strict=True):
        assert there.token_ids == here.token_ids
        assert there.tokens == here.tokens
        assert there.logprobs == pytest.approx(here.logprobs, abs=1e-4)
        assert there.entropies == pytest.approx(here.entropies, abs=1e-4)
        assert there.usage == here.usage
        assert not there.approx


def test_stop_strings_cut_as_transformers_does(vllm: Service, folder: Path, local: Any) -> None:
    """Servers list the tokens that wrote the stop string, which a record must not hold."""
    [[free]] = local.generate([request(max_tokens=30)])
    stops = [piece for piece in dict.fromkeys(free.tokens) if piece.strip() and piece.isascii()]
    assert len(stops) > 2, "the model is to write enough to be stopped"
    for stop in [*stops[:3], stops[-1] + stops[0]]:
        asked = request(max_tokens=30, stop=(stop, "never written"))
        [[here]], [[there]] = local.generate([asked]), exact(vllm, folder).generate([asked])
        assert (there.text, there.tokens, there.token_ids) == (
            here.text,
            here.tokens,
            here.token_ids,
        )
        assert there.finish_reason == here.finish_reason
        assert there.logprobs == pytest.approx(here.logprobs, abs=1e-4)
        assert there.end_logprob == pytest.approx(here.end_logprob, abs=1e-4)


@pytest.mark.parametrize("kind", ["plain", "vllm"])
@pytest.mark.parametrize("api", ["chat", "completions"])
def test_without_a_tokenizer_tokens_spell_the_text(
    kind: str, api: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    service: Service = request.getfixturevalue(kind)
    asked = GenerationRequest(prompt=PROMPT, n=6, temperature=1.0, max_tokens=12, stop=("e",))
    for one in reader(service, api=api).generate([asked])[0]:
        if not one.tokens and one.text:  # the API told half characters, in completions
            assert api == "completions"
            continue
        assert "".join(one.tokens).startswith(one.text)
        assert "e" not in one.text
        assert len(one.tokens) == len(one.logprobs) == len(one.entropies)
        assert one.approx == bool(one.tokens)
        assert all(logprob <= 0 for logprob in one.logprobs)


def test_chat_and_tokens_give_the_same_where_the_template_is_the_same(
    vllm: Service, folder: Path
) -> None:
    for prompt in (PROMPT, BEGUN):
        asked = request(prompt, n=4, temperature=1.0)
        by_chat = reader(vllm, alternatives=320).generate([asked])[0]
        by_tokens = reader(vllm, tokenizer=str(folder), alternatives=320).generate([asked])[0]
        assert [g.token_ids for g in by_chat] == [g.token_ids for g in by_tokens]
        assert [g.text for g in by_chat] == [g.text for g in by_tokens]


def test_a_truncated_distribution_is_marked_and_bounds_the_entropy(
    vllm: Service, folder: Path
) -> None:
    [[whole]] = exact(vllm, folder).generate([request()])
    [[part]] = reader(vllm, tokenizer=str(folder), alternatives=5).generate([request()])
    [[none]] = reader(vllm, tokenizer=str(folder), alternatives=0).generate([request()])
    assert part.approx
    assert part.logprobs == whole.logprobs == none.logprobs
    for low, true in zip(part.entropies, whole.entropies, strict=True):
        assert 0 < low < true
    assert none.approx
    [[silent]] = reader(vllm, alternatives="none").generate([request()])
    assert (silent.logprobs, silent.entropies, silent.tokens) == ((), (), ())
    assert silent.text
    assert all("logprobs" not in body for body in vllm.asked[-1:])


def test_samples_are_drawn_in_several_goes(vllm: Service) -> None:
    asked = request(n=5, temperature=1.0)
    remote = reader(vllm)
    five = remote.generate([asked])[0]
    assert len({g.text for g in five}) > 1
    three = remote.more([asked.model_copy(update={"n": 3})], first=2)[0]
    assert [g.text for g in three] == [g.text for g in five[2:]]
    other = remote.generate([asked.model_copy(update={"seed": 1})])[0]
    assert [g.text for g in other] != [g.text for g in five]


def test_a_server_of_one_sample_at_a_time_is_asked_again(vllm: Service, folder: Path) -> None:
    asked = request(n=4, temperature=1.0)
    four = reader(vllm).generate([asked])[0]
    vllm.asked.clear()
    vllm.one_each = True
    one_by_one = reader(vllm).generate([asked])[0]
    assert [g.text for g in one_by_one] == [g.text for g in four]
    assert len(vllm.asked) == 4
    assert sum(g.usage.calls for g in one_by_one) == 4
    assert sum(g.usage.output_tokens for g in one_by_one) == sum(
        g.usage.output_tokens for g in four
    )


def test_greedy_copies_are_asked_for_once(vllm: Service) -> None:
    """vLLM refuses several samples at temperature 0."""
    replies = reader(vllm).generate([request(n=3)])[0]
    assert len({g.text for g in replies}) == 1
    assert [g.usage.calls for g in replies] == [1, 0, 0]
    assert [body["n"] for body in vllm.asked] == [1]


def test_an_ordinary_server_is_sent_nothing_but_the_common_fields(plain: Service) -> None:
    """The server refuses unknown ones; a begun answer is the last turn."""
    reader(plain).generate([request(BEGUN, n=2, temperature=0.5, stop=("x",))])
    assert plain.asked[0]["messages"][-1] == {"role": "assistant", "content": BEGUN.prefix}
    assert plain.asked[0]["top_p"] == 1.0


def test_it_does_not_score_where_nothing_tells_how(plain: Service, vllm: Service) -> None:
    for service in (plain, vllm):
        with pytest.raises(CapabilityError, match="tokenizer="):
            reader(service).score([ScoreRequest(prompt=PROMPT, continuation="x")])


def test_a_meter_that_needs_scores_says_why_there_is_no_value(vllm: Service, folder: Path) -> None:
    by_chat = GroGU(reader(vllm), max_tokens=8)
    [nothing, value] = by_chat.measure(Question(text="Who?"), [(), tuple(EVIDENCE)])
    assert nothing.value == 0
    assert value.value is None
    assert "cannot score a given text" in str(value.reason)
    by_tokens = GroGU(exact(vllm, folder), max_tokens=8)
    [measured] = by_tokens.measure(Question(text="Who?"), [tuple(EVIDENCE)])
    [there] = GroGU(hf.build(model=str(folder), device="cpu"), max_tokens=8).measure(
        Question(text="Who?"), [tuple(EVIDENCE)]
    )
    assert measured.value == pytest.approx(there.value, abs=1e-2)
    assert "approx" not in measured.estimator
    truncated = GroGU(reader(vllm, tokenizer=str(folder)), max_tokens=8)
    [marked] = truncated.measure(Question(text="Who?"), [tuple(EVIDENCE)])
    assert marked.estimator.endswith("approx")
