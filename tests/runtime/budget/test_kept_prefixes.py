"""Prompt tokens that a run's reader still has at hand are counted as cached."""

from dataclasses import replace
from functools import cache

from hopscope.api import parts
from hopscope.lab.budget.ends import own_tokens
from hopscope.lab.budget.paths import looked, moments, path, simulate
from hopscope.runtime.budget.kept_prefixes import KeptPrefixes
from hopscope.runtime.corpora import hopland
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Policy, PrefixReader
from hopscope.runtime.prompting.prompts import short_answer
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.types import GenerationRequest, Passage, Question, Run, Usage
from hopscope.runtime.wrappers.forwarding_reader import ForwardingReader
from hopscope.tracing.policies import fixed, margin
from hopscope.tracing.wrappers.cached import CachedReader
from tests.probes import Speaker

LONG = " ".join(f"Town {n} has a mayor." for n in range(12))


@cache
def ports() -> Deps:
    retriever = bm25.from_passages(hopland.corpus(), name="hopland")
    return Deps(reader=CachedReader(parts.reader("tiny")), retriever=retriever)


@cache
def asked() -> Question:
    return [each.question for each in hopland.questions("test") if each.hops == 2][1]


@cache
def ask(policy: Policy | None = None) -> Run:
    return run(parts.workflow("ircot", {}), asked(), replace(ports(), policy=policy))


def request(evidence: str) -> GenerationRequest:
    passage = Passage(id="p", title="Towns", text=evidence)
    return GenerationRequest(prompt=short_answer("Who?", [passage]), max_tokens=2)


def test_a_prompt_shares_what_stood_at_the_beginning_of_an_earlier_one() -> None:
    reader = ports().reader
    assert isinstance(reader, PrefixReader)
    account = KeptPrefixes()
    requests = [request(LONG), request("Short."), request(f"{LONG} More."), request(LONG)]
    replies = account.counted(reader, requests, reader.generate(requests))
    first, other, longer, same = (reply[0].usage for reply in replies)
    assert (first.cached_tokens, other.cached_tokens) == (0, 0), "a few tokens are read again"
    assert 0 < longer.cached_tokens < longer.input_tokens
    assert same.cached_tokens == same.input_tokens - 1, "the last token is read for its logits"
    assert [reply[0].text for reply in replies] == [g.text for [g] in reader.generate(requests)]


def test_a_draft_takes_its_own_tokens_only() -> None:
    """After the first search, whose passages the workflow has read, too."""
    decided = [step.decision for step in ask(margin.build(threshold=1.1)).steps if step.decision]
    assert len(decided) >= 3
    for decision in decided[1:]:
        assert decision.usage.input_tokens > 100
        assert decision.usage.weighed(0) < 30
    assert decided[0].usage.cached_tokens == 0


def test_it_depends_on_the_run_alone() -> None:
    """Not on what else the reader has read, and not on a resumption."""
    fresh = replace(ports(), reader=parts.reader("tiny"))
    again = run(parts.workflow("ircot", {}), asked(), fresh)
    assert [step.usage for step in again.steps] == [step.usage for step in ask().steps]
    assert again.usage.cached_tokens > 100
    later = KeptPrefixes(again.steps[:-1])
    [exchange] = again.steps[-1].exchanges
    bare = [
        each.model_copy(update={"usage": each.usage.model_copy(update={"cached_tokens": 0})})
        for each in exchange.generations
    ]
    [counted] = later.counted(fresh.reader, [exchange.request], [bare])
    assert counted == list(exchange.generations)


def test_nothing_is_kept_without_a_cache_and_servers_count_themselves() -> None:
    bare = parts.reader("tiny,prefix_cache=0")
    account = KeptPrefixes()
    requests = [request(LONG), request(LONG)]
    replies = account.counted(bare, requests, bare.generate(requests))
    assert [reply[0].usage.cached_tokens for reply in replies] == [0, 0]
    server = ForwardingReader(Speaker(lambda _: "x"))
    assert not isinstance(server, PrefixReader)
    told = [
        g.model_copy(update={"usage": Usage(input_tokens=9, cached_tokens=7)}) for [g] in replies
    ]
    assert account.counted(server, requests, [[each] for each in told]) == [[g] for g in told]


def test_a_simulated_gate_pays_for_its_drafts_what_it_pays_in_a_run() -> None:
    """With cached tokens at a tenth, to the last one; much less than at the full count."""
    runs = [ask(fixed.build(k=k)) for k in range(len(ask().retrievals))] + [ask()]
    gate, at = margin.build(threshold=1.1), moments(ask())
    costs = {}
    for weight in (1.0, 0.1):
        found = path(runs, ports().reader, lambda _: 1.0, cached=weight)
        costs[weight] = simulate(gate, found, at, ports().reader, cached=weight).tokens
        assert found.stops[-1].tokens == own_tokens(ask().steps, cached=weight)
        assert abs(costs[weight] - ask(gate).usage.weighed(weight)) < 1e-6
    full = looked(at[-1], ports().reader).asked["draft"]
    assert looked(at[-1], ports().reader, cached=0.0).asked["draft"] < full / 10
