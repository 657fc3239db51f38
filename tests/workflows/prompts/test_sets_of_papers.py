"""The presets' prompts in a run: the form of the papers, and replies in it are read."""

from collections.abc import Sequence

from hopscope.api import parts
from hopscope.api.presets import Presets
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Passage, Question, Run
from tests.probes import Speaker, script
from tests.talk import ScriptedRetriever

HARBOR = Passage(id="1", title="Moon Harbor", text="Velora Tarn directed it.")
ASKED = Question(text="Who directed Moon Harbor?")


def sent(preset: str, workflow: str, replies: Sequence[str]) -> tuple[Run, list[str]]:
    """A run with a preset, and the texts of its prompts with what the reader continues."""
    options = Presets.named([preset]).of_workflow(workflow)
    reader = Speaker(script(replies))
    deps = Deps(reader=reader, retriever=ScriptedRetriever(lambda query: [HARBOR]))
    result = run(parts.workflow(workflow, options), ASKED, deps)
    assert result.error is None, result.error
    assert str(result.options["prompts"]).startswith(f"{preset}#")
    prompts = [request.prompt for request in reader.requests]
    assert all(len(prompt.messages) == 1 and prompt.shown == ("1",) for prompt in prompts)
    return result, [prompt.messages[0].content + prompt.prefix for prompt in prompts]


def test_ircot_reads_paragraphs_of_wikipedia_and_answers_directly() -> None:
    thoughts = [" It was directed by Velora Tarn.", " So the answer is: Velora Tarn."]
    result, prompts = sent("ircot-authors", "ircot", [*thoughts, " Velora Tarn"])
    paragraph = "Wikipedia Title: Moon Harbor\nVelora Tarn directed it.\n\nQ: Answer the following"
    assert all(paragraph in prompt and prompt.count("Wikipedia Title:") == 13 for prompt in prompts)
    assert prompts[0].endswith("step-by-step.\nWho directed Moon Harbor?\nA:")
    assert prompts[1].endswith("\nA:It was directed by Velora Tarn.")
    assert prompts[2].endswith("Answer the following question.\nWho directed Moon Harbor?\nA:")
    assert result.answer == "Velora Tarn"


def test_flare_writes_after_search_results() -> None:
    result, prompts = sent("flare-authors", "flare", [" So the answer is Velora Tarn."] * 2)
    assert prompts[0].count("\nAnswer:") == 9
    assert prompts[0].endswith(
        "Search results:\n[1] Moon Harbor: Velora Tarn directed it.\n\n"
        "Question: Who directed Moon Harbor?\nAnswer:"
    )
    assert result.answer == "Velora Tarn"


def test_self_ask_continues_its_dialogue() -> None:
    replies = [" Yes.\nFollow up: Who?\n", " Tarn.\nSo the final answer is: Velora Tarn"]
    result, prompts = sent("self-ask-authors", "self_ask", replies)
    assert prompts[0].count("Are follow up questions needed here:") == 5
    assert prompts[1].endswith("needed here: Yes.\nFollow up: Who?\nIntermediate answer:")
    assert "Context1: Moon Harbor: Velora Tarn directed it.\nQuestion: Who directed" in prompts[0]
    assert result.answer == "Velora Tarn"
