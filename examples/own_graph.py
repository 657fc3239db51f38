"""Measure a LangGraph graph of your own: its state and nodes know nothing of Hopscope."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph

import hopscope

FACTS = {
    "Elsa Wilby": "Elsa Wilby works for Salwin Pictures.",
    "Salwin Pictures": "Salwin Pictures is based in Grand Rovmar.",
}


class Hops(TypedDict, total=False):
    question: str
    documents: list[str]
    answer: str


def first_hop(state: Hops) -> Hops:
    return {"documents": [FACTS["Elsa Wilby"]]}


def second_hop(state: Hops) -> Hops:
    return {"documents": [*state["documents"], FACTS["Salwin Pictures"]]}


def answer(state: Hops) -> Hops:
    return {"answer": state["documents"][-1].split(" in ")[-1].strip(".")}


graph = StateGraph(Hops)
graph.add_sequence([first_hop, second_hop, answer])
graph.add_edge(START, "first_hop")
graph.add_edge("answer", END)

with hopscope.Session(workflow=graph.compile(), store="sqlite://") as session:
    run = session.ask(
        "What is the headquarters city of the company that employs Elsa Wilby?",
        gold="Grand Rovmar",
    )
    run.show()
