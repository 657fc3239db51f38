"""Retrievers made of others: how many go where, and what is recorded."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope import workflows
from hopscope.runtime import components
from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution import state
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.pipelines.composition import Parts, check, compose
from hopscope.runtime.pipelines.expression_parser import parse
from hopscope.runtime.ports import Reader, Retriever
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.types import Hit, Question, Run
from hopscope.tracing.entailments import lexical
from tests.fakes import FunctionMeter, passage
from tests.probes import Speaker
from tests.talk import Talker

QUESTION = Question(text="Who directed Alba?", answers=("Costa",))


@dataclass
class Numbered:
    """Has a hundred passages, NAME1 first; remembers how many were asked for."""

    name: str
    held: int = 100
    asked: list[int] = field(default_factory=list)

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        self.asked += [k] * len(queries)
        count = min(k, self.held)
        hits = [Hit(passage=passage(f"{self.name}{i}"), score=1 / i) for i in range(1, count + 1)]
        return [hits for _ in queries]


@dataclass
class World:
    """Sources by name, and the reader."""

    reader: Reader = field(default_factory=lambda: Talker([]))
    sources: dict[str, Numbered] = field(default_factory=dict)

    def open(self, name: str) -> Retriever:
        assert name not in self.sources, f"{name} is opened twice"
        self.sources[name] = Numbered(name)
        return self.sources[name]

    def retriever(self, text: str) -> Retriever:
        return compose(
            parse(text),
            Parts(
                source=self.open,
                reader=self.reader,
                other_reader=lambda spec: Talker([f"{spec} says [2]"]),
                meter=lambda reader, prompts: FunctionMeter(
                    lambda keys: float(keys[0].strip("abcd"))
                ),
            ),
        )

    def find(self, text: str, k: int) -> list[str]:
        [hits] = self.retriever(text).search(["Who?"], k=k)
        return [hit.passage.key for hit in hits]


def test_a_source_alone_is_that_source() -> None:
    world = World()
    assert world.retriever("a") is world.sources["a"]


@pytest.mark.parametrize(
    ("text", "k", "found", "asked"),
    [
        ("ReFree", 5, "", {}),
        ("a@3", 5, "a1 a2 a3", {"a": [3]}),
        ("a@3", 2, "a1 a2", {"a": [2]}),
        ("a@2&b@1", 9, "a1 a2 b1", {"a": [2], "b": [1]}),
        ("a@2&b@1", 2, "a1 a2", {"a": [2], "b": [1]}),
        ("a&b", 5, "a1 a2 a3 b1 b2", {"a": [3], "b": [2]}),
        ("a&b@2", 5, "a1 a2 a3 b1 b2", {"a": [3], "b": [2]}),
        ("a@4&b", 3, "a1 a2 a3", {"a": [4]}),
        ("(a&b)@2", 5, "a1 b1", {"a": [1], "b": [1]}),
        ("a@2&a@3", 9, "a1 a2 a3", {"a": [2, 3]}),
        ("rrf(a,b)", 3, "a1 b1 a2", {"a": [100], "b": [100]}),
        ("rrf(a,b)@3", 5, "a1 b1 a2", {"a": [100], "b": [100]}),
        ("rrf(a@2,2*b@1)", 9, "b1 a1 a2", {"a": [2], "b": [1]}),
        ("weighted(a@2,b@1&c)", 200, "a1 b1 c1 c2", {"a": [2], "b": [1], "c": [199]}),
        ("a@RR(utility)", 2, "a20 a19", {"a": [20]}),
        ("a@RR(utility)", 30, "a30 a29", {"a": [30]}),
        ("a@50@RR(utility)@2", 5, "a50 a49", {"a": [50]}),
        ("a@3@RR(utility)", 5, "a3 a2 a1", {"a": [3]}),
        ("(a@2&b@1)@RR(utility)", 9, "a2 a1 b1", {"a": [2], "b": [1]}),
        ("rrf(a,b)@RR(utility)@1", 5, "a10", {"a": [100], "b": [100]}),
    ],
)
def test_how_many_go_where(text: str, k: int, found: str, asked: dict[str, list[int]]) -> None:
    world = World()
    keys = world.find(text, k)
    expected = found.split()
    assert keys[: len(expected)] == expected
    assert len(keys) <= k
    assert {name: source.asked for name, source in world.sources.items() if source.asked} == asked


def test_a_hundred_are_fused_of_each_and_twenty_reranked() -> None:
    world = World()
    [hits] = world.retriever("rrf(a,b)@RR(utility)").search(["Who?"], k=50)
    assert len(hits) == 50  # k where that is more than twenty
    [hits] = world.retriever("rrf(c,d)@RR(utility)").search(["Who?"], k=1)
    assert hits[0].passage.key == "c10"  # the tenth of each is among the first twenty


EXPRESSIONS = st.recursive(
    st.sampled_from(["a", "b", "c"]),
    lambda inner: (
        st.builds("({})@{}".format, inner, st.integers(1, 7))
        | st.builds("({})&({})".format, inner, inner)
        | st.builds("rrf({},{})".format, inner, inner)
        | st.builds("({})@RR(utility)".format, inner)
    ),
    max_leaves=4,
)


@given(EXPRESSIONS, st.integers(1, 30), st.integers(0, 12))
def test_never_more_than_k_and_never_twice(text: str, k: int, held: int) -> None:
    world = World()
    retriever = world.retriever(text)
    for source in world.sources.values():
        source.held = held
    one, other = retriever.search(["Who?", "Where?"], k=k)
    keys = [hit.passage.key for hit in one]
    assert len(keys) == len(set(keys)) <= k
    assert one == other
    assert bool(keys) == bool(held)


def test_the_name_is_the_canonical_expression_and_what_it_stands_for() -> None:
    name = World().retriever("rrf(a, 2 * b)@RR (listwise,window=15)@3@CP").name
    assert name == (
        "rrf(a,2*b)@RR(listwise,window=15)@3@CP "
        "[a; b; summary(words=200); listwise(window=15,stride=10); rrf(k=60)]"
    )


def test_a_stage_may_have_a_reader_of_its_own() -> None:
    world = World()
    retriever = world.retriever("a@3@RR(listwise,reader=hf:other)")
    assert "listwise(window=20,stride=10) by scripted" in retriever.name
    [hits] = retriever.search(["Who?"], k=3)
    assert [hit.passage.key for hit in hits] == ["a2", "a1", "a3"]


def test_what_finds_nothing_asks_no_model() -> None:
    world = World()  # whose reader raises when it is asked
    retriever = world.retriever("a@RR@3@CP")
    world.sources["a"].held = 0
    assert retriever.search(["Who?", "Where?"], k=5) == [[], []]


def ask(text: str, replies: list[str], workflow: str = "naive") -> Run:
    world = World(Talker(replies))
    module = components.load(workflows, workflow)
    deps = Deps(reader=world.reader, retriever=world.retriever(text))
    return run(Workflow(workflow, module.build(), {}), QUESTION, deps)


def test_what_stages_ask_is_in_the_step_and_counted() -> None:
    result = ask("a@2@RR&b@1@CP", ["[2] > [1]", "A summary of it.", "Costa"])
    assert result.status == "ok", result.error
    retrieve, answer = result.steps
    assert [e.generations[0].text for e in retrieve.exchanges] == ["[2] > [1]", "A summary of it."]
    assert (retrieve.usage.calls, retrieve.usage.input_tokens) == (2, 20)
    assert (answer.usage.calls, result.usage.calls) == (1, 3)
    ranked, compressed = json.loads(retrieve.output or "")
    asked = {"query": QUESTION.text}
    assert ranked == asked | {
        "stage": "@RR", "before": ["a1", "a2"], "after": ["a2", "a1"], "parse_ok": True
    }  # fmt: skip
    assert compressed == asked | {
        "stage": "@CP", "before": ["a2", "a1", "b1"], "after": [retrieve.ranked[0].passage.key],
        "tokens_before": 10, "tokens_after": 4,
    }  # fmt: skip
    assert retrieve.parse_ok is True
    assert retrieve.shown == ("a1", "a2", "b1")
    assert retrieve.new == answer.shown == (retrieve.ranked[0].passage.key,)
    assert result.answer == "Costa"


def test_a_reply_that_ranks_nothing_is_told_by_the_step() -> None:
    result = ask("a@2@RR", ["I cannot.", "Costa"])
    assert result.steps[0].parse_ok is False
    assert [hit.passage.key for hit in result.steps[0].ranked] == ["a1", "a2"]


def test_a_step_that_asks_the_reader_itself_says_what_that_said() -> None:
    result = ask("a@2@RR", ["[2] > [1]", "Costa"])
    assert result.steps[1].output == "Costa"
    assert result.steps[1].parse_ok is None


def test_a_stage_that_fails_ends_the_run_with_its_reason() -> None:
    result = ask("a@2@RR", [])
    assert result.status == "failed"
    assert result.error is not None
    assert "no reply left" in result.error.message


@pytest.mark.parametrize("name", components.own(workflows))
def test_every_workflow_runs_on_it_and_accounts_for_all_it_asks(name: str) -> None:
    searches = (
        '[Search(Alba)] <search> Alba </search> {"name": "search", "arguments": {"query": "a"}}'
    )
    reader = Speaker(lambda request: f"[2] > [1]. {searches} So the answer is: Costa.")
    world = World(reader)
    deps = Deps(
        reader=reader,
        retriever=world.retriever("rrf(a@4,b@4)@RR(listwise,window=3,stride=2)@2&c@1@CP"),
        entailment=lexical.build(),
    )
    module = components.load(workflows, name)
    result = run(Workflow(name, module.build(), {}), QUESTION, deps)
    assert result.status == "ok", result.error
    assert result.usage == reader.spent
    assert result.retriever.startswith("rrf(a@4,b@4)@RR(listwise,window=3,stride=2)@2&c@1@CP [")
    retrieved = [step for step in result.steps if step.ranked]
    assert bool(retrieved) == (name != "closed_book")
    found = [hit.passage.title for step in retrieved for hit in step.ranked]
    assert ("Summary" in found) == (name != "closed_book")


def test_the_retriever_itself_keeps_nothing_of_a_run() -> None:
    """The same one serves runs in several threads."""
    world = World(Talker(["[2] > [1]", "[1] > [2]"]))
    retriever = world.retriever("a@2@RR")
    notes: list[object] = []
    seen = retriever.recorded(  # type: ignore[attr-defined]
        lambda reader: reader, notes.append, capture=True, prompts=DEFAULT_PROMPTS
    )
    seen.search(["Who?"], k=2)
    retriever.search(["Who?"], k=2)
    assert len(notes) == 1


@pytest.mark.parametrize("text", ["a@RR(nothing)", "blend(a,b)", "a@CP(summary,word=3)"])
def test_mistakes_are_told_before_anything_is_opened(text: str) -> None:
    world = World()
    with pytest.raises(UsageError):
        check(parse(text))
    with pytest.raises(UsageError):
        world.retriever(text)
    assert world.sources == {}


def test_merged_evidence_is_what_was_retrieved() -> None:
    world = World()
    [hits] = world.retriever("a@2&b@1").search(["Who?"], k=9)
    assert [p.key for p in state.merge((), hits)] == ["a1", "a2", "b1"]
