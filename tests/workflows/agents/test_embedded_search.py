"""`tiny:search`, the embedded reader that searches by itself, in the workflow `search_agent`."""

import pytest

from hopscope.api import parts
from hopscope.runtime.corpora import hopland
from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.readers import tiny
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.texts.answers import exact_match
from hopscope.workflows import search_agent


def test_it_searches_for_each_fact_and_answers_in_the_form() -> None:
    asked = [question for question in hopland.questions("test") if question.hops == 2][::40][:8]
    deps = Deps(
        reader=parts.reader("tiny:search"),
        retriever=bm25.from_passages(hopland.corpus(), name="hopland"),
    )
    workflow = Workflow("search_agent", search_agent.build(), {})
    runs = [run(workflow, each.question, deps) for each in asked]
    formed = [result for result in runs if result.stop_reason == "answer_marker"]
    right = [
        exact_match(result.answer or "", each.question.answers)
        for result, each in zip(runs, asked, strict=True)
    ]
    assert len(formed) >= 6
    assert sum(right) >= 4  # three in four in docs/evidence/reader.md
    assert sum(len(result.retrievals) >= 2 for result in formed) >= 4


def test_the_embedded_readers_have_names_of_their_own() -> None:
    names = {model: tiny.build(model=model).name for model in ("read", "search")}
    assert names["read"].startswith("hopland@")
    assert names["search"].startswith("hopland_search@")
    assert parts.embedded("tiny:search")
    assert parts.embedded("tiny,device=cpu")
    assert not parts.embedded("hf:tiny")
    with pytest.raises(UsageError, match="model"):
        parts.reader("tiny:other")
