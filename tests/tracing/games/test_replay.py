"""Replay: the workflow runs again without what a step found, and reacts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import pytest
from langgraph.graph import START

from hopscope.runtime.errors import RetrieverError, UsageError
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps, Graph, State, Update, merge
from hopscope.runtime.execution.step import step
from hopscope.runtime.ports import Prompts, Reader, Retriever
from hopscope.runtime.stages import StageNote
from hopscope.runtime.types import Decision, GenerationRequest, Hit, Passage, Question, Run
from hopscope.tracing.credit import leave_one_out, shapley
from hopscope.tracing.games.coalitions import EMPTY, Coalitions, EvidenceValues, MissingEvidence
from hopscope.tracing.games.frozen import Counterfactual, over_passages, over_steps
from hopscope.tracing.games.replay import ELSEWHERE, ReplayGame, check
from tests.fakes import FunctionMeter
from tests.probes import Speaker

FINDS = {"A?": "ax", "B": "ba", "Z": "za"}
"""The passages found by each query: the question leads to a, which leads to b, and x is no use."""


@step("retrieve")
def retrieve(state: State, deps: Deps) -> Update:
    query = state.get("thoughts", (state["question"].text,))[-1]
    [hits] = deps.retriever.search([query], k=2)
    return {"evidence": merge(state.get("evidence", ()), hits)}


@step("generate")
def reason(state: State, deps: Deps) -> Update:
    from hopscope.runtime.prompting.prompts import short_answer

    prompt = short_answer(state["question"].text, state["evidence"])
    [[thought]] = deps.reader.generate([GenerationRequest(prompt=prompt)])
    return {"thoughts": (*state.get("thoughts", ()), thought.text)}


def again(state: State) -> Literal["retrieve", "__end__"]:
    return "retrieve" if len(state["thoughts"]) < 2 else "__end__"


def workflow() -> Workflow:
    graph = Graph(State, context_schema=Deps)
    graph.add_node("retrieve", retrieve())
    graph.add_node("reason", reason())
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "reason")
    graph.add_conditional_edges("reason", again)
    return Workflow("two hops", graph, {})


class Finder:
    name = "finder"

    def __init__(self) -> None:
        self.queries: list[str] = []

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        self.queries += queries
        return [[Hit(passage=text(key), score=1) for key in FINDS[query]] for query in queries]


def text(key: str) -> Passage:
    return Passage(id=key, title=key, text=f"text of {key}")


def thinks(request: GenerationRequest) -> str:
    return "B" if "a" in request.prompt.shown else "Z"


Made = tuple[Run, Deps]


def made(think: Callable[[GenerationRequest], str] = thinks) -> Made:
    deps = Deps(reader=Speaker(think), retriever=Finder())
    found = run(workflow(), Question(text="A?", answers=("gold",)), deps)
    assert found.status == "ok", found.error
    return found, deps


def game(made: Made, against: Counterfactual, *, inside: int | None = None) -> ReplayGame:
    record, deps = made
    frozen = (
        over_steps(record, against) if inside is None else over_passages(record, inside, against)
    )
    assert frozen is not None
    return ReplayGame(frozen, record, workflow(), deps, against)


def keys(game: ReplayGame, *players: int) -> str:
    evidence = game.evidence(frozenset(players))
    assert not isinstance(evidence, MissingEvidence), evidence
    return "".join(p.key for p in evidence)


def test_the_workflow_reacts_to_what_is_missing() -> None:
    """Frozen, the second query would still be B and bring b."""
    record, deps = made()
    assert over_steps(record).evidence(frozenset({2})) == (text("b"),)
    replayed = game((record, deps), Counterfactual())
    assert replayed.players == (0, 2)
    assert [keys(replayed, *s) for s in ((0, 2), (2,), (0,), ())] == ["axb", "z", "ax", "z"]


def test_left_out_another_search_may_still_find_it() -> None:
    replayed = game(made(), Counterfactual("leave-out"))
    assert keys(replayed, 2) == "za"
    assert keys(replayed) == ""


def test_stand_ins_take_the_places_in_every_search() -> None:
    against = Counterfactual("random", {key: text(f"r{key}") for key in "axb"})
    replayed = game(made(), against)
    assert keys(replayed, 2) == "rarxz"
    assert keys(replayed, 0) == "axrb"
    assert replayed.remark == ", counterfactual=random(seed=0), mode=replay"


def test_single_passages_can_be_withheld_from_every_search() -> None:
    replayed = game(made(), Counterfactual(), inside=0)
    assert [keys(replayed, *s) for s in ((0, 1), (1,), (0,), ())] == ["axb", "xz", "ab", "z"]


def test_a_single_passage_left_out_is_withheld_from_its_step_only() -> None:
    """Step 2 found a too, so only x can go missing."""
    replayed = game(made(), Counterfactual("leave-out"), inside=0)
    assert replayed.players == (1,)
    assert keys(replayed) == "ab"


def test_each_coalition_is_run_once_and_all_of_them_not_at_all() -> None:
    record, deps = made()
    asked = len(deps.retriever.queries)  # type: ignore[attr-defined]
    replayed = game((record, deps), Counterfactual())
    meter = FunctionMeter(lambda keys: len(keys) / 4)
    coalitions = Coalitions(replayed, EvidenceValues(record.question, meter))
    assert [m.value for m in leave_one_out.build().share(coalitions)] == [0.5, 0, 0.25, 0]
    shared = [m.value for m in shapley.build().share(coalitions)]
    assert sum(shared) == coalitions.value(coalitions.full).value - coalitions.value(EMPTY).value  # type: ignore[operator,arg-type]
    assert len(deps.retriever.queries) == asked + 3 * 2  # type: ignore[attr-defined]


def test_a_repeated_run_that_fails_leaves_its_coalition_unmeasured() -> None:
    def think(request: GenerationRequest) -> str:
        if not request.prompt.shown:
            raise RetrieverError("nothing to read")
        return thinks(request)

    record, deps = made(think)
    meter = FunctionMeter(lambda keys: 0.5)
    replayed = game((record, deps), Counterfactual())
    coalitions = Coalitions(replayed, EvidenceValues(record.question, meter))
    found = leave_one_out.build().share(coalitions)
    assert [m.value for m in found] == [None] * 4  # v(none) needs a run without step 0 as well
    assert "the repeated run failed: nothing to read" in str(found[0].reason)


def test_what_comes_from_elsewhere_cannot_be_withheld() -> None:
    @step("retrieve")
    def remember(state: State, deps: Deps) -> Update:
        return {"evidence": (text("a"),)}

    graph = Graph(State, context_schema=Deps)
    graph.add_node("remember", remember())
    graph.add_node("reason", reason())
    graph.add_edge(START, "remember")
    graph.add_edge("remember", "reason")
    own = Workflow("elsewhere", graph, {})
    deps = Deps(reader=Speaker(thinks), retriever=Finder())
    record = run(own, Question(text="A?"), deps)
    for against in (Counterfactual(), Counterfactual("leave-out")):
        replayed = ReplayGame(over_steps(record, against), record, own, deps, against)
        assert replayed.evidence(EMPTY) == MissingEvidence(ELSEWHERE)


def test_control_c_stops_the_game() -> None:
    thoughts = 0

    def think(request: GenerationRequest) -> str:
        nonlocal thoughts
        thoughts += 1
        if thoughts > 2:
            raise KeyboardInterrupt
        return thinks(request)

    replayed = game(made(think), Counterfactual())
    with pytest.raises(KeyboardInterrupt):
        replayed.evidence(EMPTY)


def test_a_run_that_repeats_itself_passes_the_check() -> None:
    record, deps = made()
    check(record, workflow(), deps)


def test_a_run_that_does_not_repeat_itself_is_refused() -> None:
    record, deps = made()
    other = Deps(reader=Speaker(lambda request: "Z"), retriever=deps.retriever)
    with pytest.raises(UsageError, match="does not repeat itself: step 1 reason differs"):
        check(record, workflow(), other)


@pytest.mark.parametrize("change", [{}, {"stop_reason": "budget_calls"}])
def test_a_run_that_a_policy_or_a_limit_ended_is_told_as_such(change: dict[str, str]) -> None:
    """It was told to give the entailment, which had no part in it."""
    record, deps = made()
    decision = Decision(policy="value:model.json", retrieve=False, reason="not worth it")
    *steps, last = record.steps
    if not change:
        last = last.model_copy(update={"decision": decision})
    stopped = record.model_copy(update={"steps": (*steps[:-1], last), **change})
    by = "a limit" if change else "the policy value:model.json"
    with pytest.raises(UsageError, match=f"; {by} affected it.* use mode='frozen'"):
        check(stopped, workflow(), deps)
    with pytest.raises(UsageError, match="4 now; give the run's own entailment"):
        check(record.model_copy(update={"steps": record.steps[:-1]}), workflow(), deps)


def test_another_reader_or_corpus_is_named() -> None:
    record, deps = made()
    with pytest.raises(UsageError, match=r"used the corpus finder@2, not finder"):
        check(record.model_copy(update={"retriever": "finder@2"}), workflow(), deps)


class Staged(Finder):
    """A retriever with a stage, which tells the step seam what it did."""

    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self.told = told

    def recorded(
        self,
        recording: Callable[[Reader], Reader],
        note: Callable[[StageNote], None],
        *,
        capture: bool,
        prompts: Prompts,
    ) -> Retriever:
        self.told.append("recorded")
        return self


def test_a_retriever_with_stages_keeps_its_record() -> None:
    record, deps = made()
    told: list[str] = []
    staged = replace(deps, retriever=Staged(told))
    replayed = game((record, staged), Counterfactual())
    assert keys(replayed, 2) == "z"
    assert told == ["recorded"] * 4
