"""Each search of an agent is a player of its own in the games that share credit, and a workflow
that runs again without one reacts."""

import json

import pytest

from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps, Graph
from hopscope.runtime.prompting import tool_calls
from hopscope.runtime.types import GenerationRequest, Passage, Question, Run
from hopscope.tracing.credit import shapley
from hopscope.tracing.games.coalitions import Coalitions, EvidenceValues, MissingEvidence
from hopscope.tracing.games.frozen import Counterfactual, FrozenGame, over_steps
from hopscope.tracing.games.replay import ReplayGame
from hopscope.workflows import react, search_agent
from tests.fakes import FunctionMeter
from tests.probes import Speaker
from tests.talk import ScriptedRetriever

QUESTION = Question(text="Where was the director of Moon Harbor born?", answers=("Miskel",))
HARBOR = Passage(id="a", title="Moon Harbor", text="Velora Tarn directed it.")
TARN = Passage(id="b", title="Velora Tarn", text="She was born in Miskel.")
NOISE = Passage(id="x", title="Town", text="A town is old.")
FOUND = {"film": [HARBOR], "person": [TARN], "town": [NOISE], "lost": [NOISE]}


def by_tags(request: GenerationRequest) -> str:
    shown = request.prompt.shown
    searches = request.prompt.prefix.count("</search>")
    if searches == 0:
        return "<search> film </search>"
    if searches == 1:
        return f"<search> {'person' if 'a' in shown else 'lost'} </search>"
    return f"<answer> {'Miskel' if 'b' in shown else 'unknown'} </answer>"


def by_calls(request: GenerationRequest) -> str:
    shown = request.prompt.shown
    turns = sum(message.role == "calls" for message in request.prompt.messages)
    if turns == 0:
        return _calls("film", "town")
    if turns == 1:
        return _calls("person" if "a" in shown else "lost")
    return "Miskel" if "b" in shown else "unknown"


def _calls(*queries: str) -> str:
    return tool_calls.write("", [("search", json.dumps({"query": query})) for query in queries])


def made(name: str) -> tuple[Run, Workflow, Deps]:
    graphs: dict[str, tuple[Graph, object]] = {
        "search_agent": (search_agent.build(), by_tags),
        "react": (react.build(), by_calls),
    }
    graph, say = graphs[name]
    deps = Deps(reader=Speaker(say), retriever=ScriptedRetriever(FOUND))  # type: ignore[arg-type]
    workflow = Workflow(name, graph, {})
    result = run(workflow, QUESTION, deps)
    assert (result.status, result.answer) == ("ok", "Miskel")
    return result, workflow, deps


def keys(game: FrozenGame | ReplayGame, *players: int) -> str:
    evidence = game.evidence(frozenset(players))
    assert not isinstance(evidence, MissingEvidence), evidence
    return "".join(passage.key for passage in evidence)


@pytest.mark.parametrize(("name", "steps"), [("search_agent", [1, 3]), ("react", [1, 2, 4])])
def test_every_search_is_a_player(name: str, steps: list[int]) -> None:
    record, _, _ = made(name)
    game = over_steps(record)
    assert game is not None
    assert list(game.players) == steps
    meter = FunctionMeter(lambda found: float({"a", "b"} <= set(found)))
    coalitions = Coalitions(game, EvidenceValues(record.question, meter))
    shares = [share.value for share in shapley.build().share(coalitions)]
    first, last = steps[0], steps[-1]
    assert shares == pytest.approx([0.5 * (i in (first, last)) for i in range(len(shares))])


@pytest.mark.parametrize("name", ["search_agent", "react"])
def test_run_again_without_a_search_it_reacts(name: str) -> None:
    record, workflow, deps = made(name)
    frozen = over_steps(record, Counterfactual())
    assert frozen is not None
    first, *_, last = frozen.players
    replayed = ReplayGame(frozen, record, workflow, deps, Counterfactual())
    everyone = keys(replayed, *frozen.players)
    assert {"a", "b"} <= set(everyone)
    without_first = keys(replayed, *(p for p in frozen.players if p != first))
    assert "b" not in without_first, "it asked another query"
    assert "a" in keys(replayed, *(p for p in frozen.players if p != last))
