"""Runs of a foreign LangGraph graph, with the embedded world and model: measured, kept, shown, and
shared by the commands as those of our own workflows are."""

import json
import sqlite3
from contextlib import closing
from functools import cache
from operator import add
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langchain_core.documents import Document
from langgraph.graph import END, START, StateGraph
from pydantic import ByteSize

from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.cli.main import main
from hopscope.runtime.adapters import workflow
from hopscope.runtime.corpora import hopland
from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Reader, Retriever
from hopscope.runtime.prompting.prompts import chain_of_thought
from hopscope.runtime.readers import tiny
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.types import GenerationRequest, Passage, Question, Run
from hopscope.store.store import Store
from hopscope.tracing.entailments import lexical
from hopscope.tracing.games import frozen, replay
from hopscope.tracing.reports.appraised import Appraised
from hopscope.tracing.spans.evaluators import emit
from hopscope.workflows import ircot
from hopscope.workflows.ircot import next_query
from tests.servers.otlp import recorded


class Chain(TypedDict, total=False):
    """A chain of thought that searches, in a state of its own."""

    question: str
    query: str
    documents: list[Document]
    thoughts: Annotated[list[str], add]
    answer: str


@cache
def index() -> Retriever:
    return bm25.from_passages(hopland.corpus(), name="hopland")


@cache
def model() -> Reader:
    """Keeps no prefixes: its numbers do not depend on what was asked before."""
    return tiny.build(prefix_cache=ByteSize(0))


def question() -> Question:
    """A question of two hops."""
    [first, *_] = [q for q in hopland.questions("test") if q.kind == "chain" and q.hops == 2]
    return first.question


def retrieve(state: Chain) -> Chain:
    query = next_query(state["question"], state.get("thoughts", []))
    [hits] = index().search([query], k=4)
    held = state.get("documents", [])
    known = {document.id for document in held}
    found = [
        Document(hit.passage.text, id=hit.passage.id, metadata={"title": hit.passage.title})
        for hit in hits
        if hit.passage.id not in known
    ]
    return {"query": query, "documents": held + found}


def reason(state: Chain) -> Chain:
    evidence = [
        Passage(id=each.id or "", title=each.metadata["title"], text=each.page_content)
        for each in state["documents"]
    ]
    prompt = chain_of_thought(state["question"], evidence, state.get("thoughts", []))
    [[said]] = model().generate([GenerationRequest(prompt=prompt, max_tokens=64, stop=("\n",))])
    thought = said.text.partition(". ")[0].rstrip(".") + "."
    _, marker, answer = thought.partition("answer is: ")
    return {"thoughts": [thought], **({"answer": answer.rstrip(".")} if marker else {})}


def onward(state: Chain) -> Literal["retrieve", "__end__"]:
    return END if "answer" in state or len(state["thoughts"]) > 4 else "retrieve"


def graph() -> Workflow:
    chain = StateGraph(Chain)
    chain.add_node("retrieve", retrieve)
    chain.add_node("reason", reason)
    chain.add_edge(START, "retrieve")
    chain.add_edge("retrieve", "reason")
    chain.add_conditional_edges("reason", onward)
    return workflow.of_graph(chain.compile(), "chain")


def measured(found: Run) -> Appraised:
    rules = ("trajectory", "leave_one_out", "solo", "shapley")
    measuring = Measuring(samples=4, seed=0, meters=("seper", "grogu"), rules=rules)
    return Appraiser(model(), lexical.build(), measuring).appraise(found)


@pytest.fixture(scope="module")
def made() -> tuple[Run, Appraised]:
    with recorded():
        found = run(graph(), question(), Deps(model(), index()))
    assert found.status == "ok", found.error
    return found, measured(found)


@pytest.fixture
def database(made: tuple[Run, Appraised], tmp_path: Path) -> list[str]:
    """A database that holds the run and its credits."""
    found, appraised = made
    with Store.open(str(tmp_path / "runs.db")) as store:
        store.save(found)
        store.save_credits(appraised.credits, [appraised.appraisal])
    return ["--db", str(tmp_path / "runs.db")]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one command."""
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return int(stop.value.code or 0), *capsys.readouterr()


def values(found: Appraised, meter: str, rule: str) -> list[float | None]:
    return [
        credit.measurement.value
        for credit in found.credits
        if credit.meter == meter and credit.rule == rule and credit.step is not None
    ]


def test_its_credits_sum_to_what_it_gained(made: tuple[Run, Appraised]) -> None:
    found, appraised = made
    retrievals = [step for step in found.steps if step.kind == "retrieve"]
    assert len(retrievals) >= 2
    assert all(step.query and step.new for step in retrievals)
    for meter in ("seper", "grogu"):
        [total] = [c for c in appraised.credits if c.meter == meter and c.rule == "total"]
        assert total.measurement.value is not None, total.measurement.reason
        assert sum(filter(None, values(appraised, meter, "trajectory"))) == pytest.approx(
            total.measurement.value
        )
    [total] = [c for c in appraised.credits if c.meter == "seper" and c.rule == "total"]
    assert sum(filter(None, values(appraised, "seper", "shapley"))) == pytest.approx(
        total.measurement.value
    )
    assert total.measurement.value != 0
    assert {c.step for c in appraised.credits if c.rule == "shapley" and c.measurement.value} <= {
        step.index for step in retrievals
    }


def test_it_is_worth_what_our_own_workflow_is_worth_over_the_same_evidence(
    made: tuple[Run, Appraised],
) -> None:
    found, appraised = made
    own = run(Workflow("ircot", ircot.build(k=4), {}), question(), Deps(model(), index()))
    retrievals = [step for step in own.steps if step.kind == "retrieve"]
    assert [(step.query, step.new) for step in found.steps if step.kind == "retrieve"] == [
        (step.query, step.new) for step in retrievals
    ]
    theirs = measured(own)
    for rule in ("trajectory", "shapley"):
        mine = [value for value in values(appraised, "seper", rule) if value]
        assert mine == pytest.approx([value for value in values(theirs, "seper", rule) if value])


def test_it_comes_back_from_a_database_as_it_was(
    made: tuple[Run, Appraised], database: list[str]
) -> None:
    found, appraised = made
    with Store.open(database[1]) as store:
        assert store.load(found.id) == found
        assert sorted(map(repr, store.credits(found.id))) == sorted(map(repr, appraised.credits))
    assert found.workflow == "graph:chain"
    assert (found.reader, found.retriever) == ("", "")
    assert found.options["documents"] == "documents"


def test_commands_show_it_and_leave_unknown_what_its_model_cost(
    made: tuple[Run, Appraised], database: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found, _ = made
    code, out, err = call(capsys, "show", *database, "--json")
    assert code == 0, err
    shown = json.loads(out)
    assert shown["workflow"] == "graph:chain"
    assert shown["total"]["usage"]["uncounted"] == found.usage.uncounted > 0
    assert shown["total"]["seper"]["delta"] is not None
    code, out, err = call(capsys, "show", *database)
    assert code == 0, err
    assert "calls without a count" in " ".join(out.split())
    assert call(capsys, "ls", *database)[0] == 0


def test_its_worth_is_shared_anew_by_the_command(
    database: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    quick = ["--samples", "4", "--meter", "seper", "--rule", "shapley"]
    for more in (["--over", "passages"], ["--counterfactual", "leave-out"]):
        code, out, err = call(capsys, "credit", *database, *quick, *more, "--json")
        assert code == 0, err
        assert json.loads(out)
    for impossible in (["--counterfactual", "random"], ["--mode", "replay"]):
        code, _, err = call(capsys, "credit", *database, *quick, *impossible)
        assert code == 2
        assert "names no corpus, since graph:chain searched by itself: choose mode frozen" in err


def test_it_cannot_be_replayed(made: tuple[Run, Appraised]) -> None:
    found, _ = made
    with pytest.raises(UsageError, match=r"not written with @step: use mode='frozen'"):
        replay.check(found, graph(), Deps(model(), index()))


def test_its_credits_are_spans_that_link_to_its_steps(made: tuple[Run, Appraised]) -> None:
    found, appraised = made
    assert all(step.span_id for step in found.steps)
    with recorded() as spans:
        emit(found, appraised.credits)
    linked = {f"{link.context.span_id:016x}" for span in spans.spans for link in span.links}
    assert linked >= {step.span_id for step in found.steps}


def test_its_steps_are_players_of_the_frozen_game(made: tuple[Run, Appraised]) -> None:
    found, _ = made
    game = frozen.over_steps(found)
    assert game.players == tuple(step.index for step in found.steps if step.kind == "retrieve")
    assert game.evidence(frozenset(game.players)) == found.evidence


def test_nothing_of_it_is_hidden_in_the_database(database: list[str]) -> None:
    with closing(sqlite3.connect(database[1])) as raw:
        rows: list[Any] = raw.execute("select kind, count(*) from steps group by kind").fetchall()
    assert dict(rows).keys() == {"generate", "retrieve"}
