"""`tiny:search`, the embedded reader that searches by itself, in the workflow `search_agent`."""

from io import StringIO

import pytest
from rich.console import Console

from hopscope.api import parts
from hopscope.api.views.run_table import show_run
from hopscope.runtime.corpora import hopland
from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.readers import tiny
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.texts.answers import exact_match
from hopscope.runtime.types import Question, Run, Step
from hopscope.workflows import search_agent
from tests.fakes import NOW


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


@pytest.mark.parametrize(("workflow", "named"), [("search_agent", True), ("self_ask", False)])
def test_a_reader_that_never_writes_the_form_comes_with_another(workflow: str, named: bool) -> None:
    step = Step(index=0, name="think", kind="generate", started=NOW, seconds=0.0, parse_ok=False)
    mute = Run(
        id="mute",
        question=Question(text="Who?"),
        workflow=workflow,
        steps=(step,),
        answer="",
        started=NOW,
    )
    right = mute.model_copy(update={"steps": (step.model_copy(update={"parse_ok": True}),)})
    told = [StringIO(), StringIO()]
    for run_, file in zip((mute, right), told, strict=True):
        show_run(run_, [], json=False, console=Console(file=file, width=120))
    hint = f"no reply was in the form that {workflow} reads"
    assert [hint in each.getvalue() for each in told] == [True, False]
    assert ("--reader tiny:search" in told[0].getvalue()) == named
