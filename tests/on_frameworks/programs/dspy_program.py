"""A module that searches twice: a run of DSPy."""

from typing import Any

import dspy
import shelf
from dspy.dsp.utils import dotdict
from dspy.utils import DummyLM
from openinference.instrumentation.dspy import DSPyInstrumentor


class Hops(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.search = dspy.Retrieve(k=2)
        self.read = dspy.Predict("context, question -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        context = [text for query in shelf.QUERIES for text in self.search(query).passages]
        return self.read(context=context, question=question)


def search(query: str, k: int, **_: Any) -> list[Any]:
    return [dotdict(long_text=text) for _, text in shelf.found(query)[:k]]


DSPyInstrumentor().instrument(tracer_provider=shelf.provider())
dspy.configure(lm=DummyLM([{"answer": shelf.ANSWER}]), rm=search)
Hops()(question=shelf.QUESTION)
