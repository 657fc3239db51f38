"""A server that refuses options of a request is asked without them, and the record tells."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from hopscope.runtime.errors import ContextOverflowError, ReaderError, UsageError
from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import openai
from hopscope.runtime.servers.endpoint import ErrorDescription, RefusedRequestError
from hopscope.runtime.servers.refused_options import Terms
from hopscope.runtime.types import GenerationRequest, Measurement, Passage, Prompt, Question
from hopscope.tracing.entailments import lexical
from hopscope.tracing.meters.grogu import GroGU
from hopscope.tracing.meters.semantic_entropy import SemanticEntropy
from hopscope.tracing.meters.seper import SePer
from tests.fakes import Ending
from tests.servers import openai_api
from tests.servers.openai_api import Reply, Service

EVIDENCE = [Passage(title="Alba", text="Alba is a film directed by Bruno Costa.")]
PROMPT = prompts.short_answer("Who?", EVIDENCE)
BEGUN = prompts.chain_of_thought("Who directed Alba?", EVIDENCE, ["Alba is a film."])


@pytest.fixture
def notes(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING, logger="hopscope")
    return lambda: [r.getMessage() for r in caplog.records if r.name.startswith("hopscope")]


def reader(service: Service, **options: Any) -> Any:
    return openai.build(model=f"{service.url}#{openai_api.MODEL}", **{"retries": 0, **options})


def request(prompt: Prompt = PROMPT, **options: Any) -> GenerationRequest:
    return GenerationRequest(prompt=prompt, **{"max_tokens": 8, **options})


def test_a_reasoning_model_is_asked_as_it_wants_and_learned_once(
    server: Service, notes: Callable[[], list[str]]
) -> None:
    server.refuses = openai_api.reasoning
    one = reader(server)
    [[greedy]] = one.generate([request(stop=("\n",))])
    assert greedy.text
    assert greedy.refused == ("logprobs", "temperature", "top_p")
    assert greedy.logprobs == ()
    assert len(server.asked) == 6, "five refusals and the answer"
    assert server.asked[-1].keys() == {"model", "messages", "n", "seed", "max_completion_tokens"}
    assert server.asked[-1]["max_completion_tokens"] == 8
    server.asked.clear()
    [samples] = one.generate([request(n=3, temperature=1.0)])
    assert len(server.asked) == 1, "what was learned holds"
    assert server.asked[0]["temperature"] == 1, "only 0 was refused"
    assert {sample.refused for sample in samples} == {("logprobs", "top_p")}
    [told] = notes()
    assert told.startswith(f"{one.name} refuses a part of the request: ")
    for part in ("max_completion_tokens", "not greedy", "cut here", "weight=uniform", "top_p"):
        assert part in told
    assert "\n" not in told


def test_replies_that_cannot_be_greedy_are_not_copies(server: Service) -> None:
    """Three greedy replies are one reply; three drawn ones are three."""
    server.refuses = openai_api.reasoning
    [samples] = reader(server).generate([request(n=3)])
    assert len({sample.text for sample in samples}) > 1
    server.refuses = None
    [copies] = reader(server).generate([request(n=3)])
    assert len({copy.text for copy in copies}) == 1
    assert copies[0].refused == ()


def test_where_stop_strings_are_refused_replies_are_cut_as_the_server_would(
    server: Service,
) -> None:
    [[free]] = reader(server).generate([request(max_tokens=20)])
    stop = next(p for p in free.tokens if p.strip() and p.isascii() and not free.text.startswith(p))
    asked = request(max_tokens=20, stop=(stop, "never written"))
    [[by_server]] = reader(server).generate([asked])
    server.refuses = openai_api.forbidding("stop")
    [[cut]] = reader(server).generate([asked])
    assert "stop" not in server.asked[-1]
    assert cut.text == by_server.text
    assert cut.finish_reason == by_server.finish_reason == "stop"
    assert cut.tokens == by_server.tokens
    assert cut.logprobs == pytest.approx(by_server.logprobs)
    assert cut.refused == (), "it holds all the same"


def test_unknown_fields_are_learned_from_a_list(server: Service) -> None:
    server.refuses = openai_api.forbidding("seed", "logprobs", "top_logprobs", "n", "max_tokens")
    one = reader(server)
    [samples] = one.generate([request(n=2, temperature=1.0)])
    assert len(samples) == 2
    assert samples[0].refused == ("logprobs", "seed")
    assert "n" not in server.asked[-1]
    assert server.asked[-1]["temperature"] == 1.0
    assert server.asked[-1]["max_completion_tokens"] == 8


def test_of_two_that_do_not_go_together_the_neutral_one_goes(server: Service) -> None:
    server.refuses = openai_api.either
    [[reply]] = reader(server).generate([request(BEGUN)])
    assert reply.refused == ("prefix", "top_p")
    last = server.asked[-1]
    assert last["temperature"] == 0
    assert [message["role"] for message in last["messages"]][-1] == "user"
    assert last["messages"][-1]["content"].endswith(BEGUN.prefix)


def test_fewer_alternatives_are_asked_for(server: Service, notes: Callable[[], list[str]]) -> None:
    server.refuses = openai_api.at_most(5)
    [[reply]] = reader(server).generate([request()])
    assert reply.refused == ("top_logprobs",)
    assert reply.logprobs
    assert reply.approx
    assert [body["top_logprobs"] for body in server.asked] == [20, 5]
    assert "top_logprobs above 5" in notes()[0]


def test_what_an_error_names_is_tried_out(server: Service) -> None:
    """Naming is not being the reason: what did not help is asked for again."""
    server.refuses = openai_api.without("logprobs", "seed")
    [[reply]] = reader(server).generate([request()])
    assert reply.refused == ("logprobs", "seed")
    assert server.asked[-1]["temperature"] == 0

    def never(body: dict[str, Any]) -> Reply:
        return Reply(status=400, body={"detail": "the seed of temperature and stop is bad"})

    server.refuses = never
    other = reader(server)
    with pytest.raises(ReaderError, match=r"status 400: the seed.*omit=temperature\+seed"):
        other.generate([request(stop=("x",))])
    server.refuses = None
    [[whole]] = other.generate([request(stop=("x",))])
    assert whole.refused == ()
    assert server.asked[-1].keys() >= {"seed", "temperature", "stop"}


def test_a_limit_of_tokens_is_never_given_up(server: Service) -> None:
    server.refuses = openai_api.forbidding("max_tokens", "max_completion_tokens")
    with pytest.raises(ReaderError, match="status 422"):
        reader(server).generate([request()])
    assert all(b.keys() & {"max_tokens", "max_completion_tokens"} for b in server.asked)

    def least(body: dict[str, Any]) -> Reply | None:
        said = "max_tokens must be at least 16"
        return Reply(status=400, body={"detail": said}) if body.get("max_tokens", 16) < 16 else None

    server.refuses = least
    with pytest.raises(ReaderError, match="at least 16"):
        reader(server).generate([request()])


def test_a_prompt_that_is_too_long_is_still_told_as_such(server: Service) -> None:
    server.context = 20
    with pytest.raises(ContextOverflowError):
        reader(server).generate([request()])
    assert len(server.asked) == 1


def test_threads_learn_together(server: Service, notes: Callable[[], list[str]]) -> None:
    server.refuses = openai_api.reasoning
    one = reader(server, concurrency=8)
    asked = [request(seed=seed) for seed in range(16)]
    replies = one.generate(asked)
    assert {reply.refused for [reply] in replies} == {("logprobs", "temperature", "top_p")}
    parts = [part for told in notes() for part in told.partition(": ")[2].split("; ")]
    assert len(parts) == len(set(parts)), "each is told once"
    server.asked.clear()
    one.generate(asked)
    assert len(server.asked) == 16


def test_a_value_says_that_it_was_had_on_other_terms(server: Service) -> None:
    """Samples at a temperature of the server's own are not those that were asked for."""
    question, evidence = Question(text="Who?", answers=("Bo",)), tuple(EVIDENCE)

    def values(one: Any) -> list[Measurement]:
        seper = SePer(one, lexical.build(), samples=2, max_tokens=4)
        meanings = SemanticEntropy(one, lexical.build(), samples=2, max_tokens=4)
        sure = GroGU(one, score="entropy", max_tokens=4)
        return [meter.measure(question, [evidence])[0] for meter in (seper, meanings, sure)]

    plain = [value.estimator for value in values(Ending(reader(server)))]
    server.refuses = openai_api.forbidding("temperature", "seed")
    for value, before in zip(values(Ending(reader(server))), plain, strict=True):
        approx = " approx" if before.endswith(" approx") else ""
        assert value.estimator == f"{before.removesuffix(approx)} without seed+temperature{approx}"


def test_missing_log_probabilities_are_the_reason_and_the_remedy_is_named(server: Service) -> None:
    """GroGU said that the answer is empty, and SePer named no command."""
    question, evidence = Question(text="Who?", answers=("Bo",)), tuple(EVIDENCE)
    server.refuses = openai_api.forbidding("logprobs", "top_logprobs")
    one = reader(server)
    [value] = SePer(one, lexical.build(), samples=2).measure(question, [evidence])
    assert "-o seper.weight=uniform" in str(value.reason)
    [value] = SemanticEntropy(one, lexical.build(), samples=2).measure(question, [evidence])
    assert "-o semantic_entropy.weight=uniform" in str(value.reason)
    [value] = GroGU(one).measure(question, [evidence])
    assert "gives no entropies, which GroGU is made of" in str(value.reason)


def test_what_another_thread_learns_meanwhile_is_not_put_down_to_a_guess() -> None:
    """A seed was given up for good because a temperature was learned at that moment."""
    terms = Terms("model")
    asked = {"temperature": 0.0, "seed": 1}
    others: list[Any] = []

    def refused(said: str) -> RefusedRequestError:
        return RefusedRequestError(said, status=400, told=ErrorDescription(said))

    def other(sent: dict[str, Any]) -> str:
        if "temperature" in sent:
            raise refused("no temperature")
        return "other"

    def post(sent: dict[str, Any]) -> str:
        if "temperature" in sent:
            if not others:
                others.append(terms.ask(other, asked))
            raise refused("a seed or a temperature is bad")
        return "answer"

    assert terms.ask(post, asked) == ("answer", ("temperature",))
    assert others == [("other", ("temperature",))]
    assert terms.ask(post, asked) == ("answer", ("temperature",))


def test_a_user_can_leave_options_out(server: Service) -> None:
    one = reader(server, omit="seed+temperature+logprobs")
    [[reply]] = one.generate([request()])
    assert reply.refused == ("logprobs", "seed", "temperature")
    assert not server.asked[0].keys() & {"seed", "temperature", "logprobs", "top_logprobs"}
    with pytest.raises(UsageError, match="omit=colour: choose from top_p"):
        reader(server, omit="seed+colour")
