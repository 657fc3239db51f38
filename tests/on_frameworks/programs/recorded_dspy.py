"""A module that searches twice and an agent of DSPy, recorded."""

from typing import Any

import dspy
import shelf
import telling
from dspy.dsp.utils import dotdict
from dspy.utils import DummyLM

import hopscope


class Hops(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.search = dspy.Retrieve(k=2)
        self.read = dspy.Predict("context, question -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        context = [text for query in shelf.QUERIES for text in self.search(query).passages]
        return self.read(context=context, question=question)


def find(query: str, k: int, **_: Any) -> list[Any]:
    return [dotdict(long_text=text) for _, text in shelf.found(query)[:k]]


def search(query: str) -> list[str]:
    """Search the shelf."""
    return [text for _, text in shelf.found(query)]


def called(query: str) -> dict[str, Any]:
    return {
        "next_thought": "I search.",
        "next_tool_name": "search",
        "next_tool_args": {"query": query},
    }


finish = {"next_thought": "I know.", "next_tool_name": "finish", "next_tool_args": {}}
answer = {"reasoning": "It stands there.", "answer": shelf.ANSWER}
said = [{"answer": shelf.ANSWER}, *map(called, shelf.QUERIES), finish, answer, answer]
dspy.configure(lm=DummyLM(said), rm=find)
store = hopscope.Store.open("sqlite://")
with hopscope.record_dspy(store, tools=["search"]) as recorded:
    Hops()(question=shelf.QUESTION)
    dspy.ReAct("question -> answer", tools=[search])(question=shelf.QUESTION)
Hops()(question="after the end")
assert not recorded.problems, recorded.problems
telling.tell(store, recorded.stored)
