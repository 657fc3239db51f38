"""The presets' prompts in a run: the form of the papers, and replies in it are read."""

from collections.abc import Sequence

import pytest

from hopscope.api import parts
from hopscope.api.presets import Presets
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.prompting import loading
from hopscope.runtime.types import Passage, Question, Run
from tests.probes import Speaker, script
from tests.talk import ScriptedRetriever
from tests.workflows.prompts.sent import Recorder

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


def of_set(name: str, workflow: str, **options: str) -> list[list[tuple[str, str]]]:
    """The messages of each prompt of a run with a set."""
    reader = Recorder()
    deps = Deps(reader=reader, retriever=ScriptedRetriever(lambda query: [HARBOR]))
    built = parts.workflow(workflow, {"prompts": name, **options})
    assert run(built, ASKED, deps).error is None
    return [[(role, text) for role, text in each["messages"]] for each in reader.sent]


def test_seper_answers_from_documents_or_from_what_the_model_knows() -> None:
    [[(_, with_documents), asked]] = of_set("seper-authors", "naive")
    assert with_documents.endswith("\nDoc 1(Title: Moon Harbor) Velora Tarn directed it.")
    assert asked == ("user", "Question: Who directed Moon Harbor?")
    [[(_, without), again]] = of_set("seper-authors", "closed_book")
    assert "what you know yourself" in without
    assert again == asked
    prompts = loading.load("seper-authors")
    of_meters = Presets.named(["seper-paper"]).of_meters(["seper_hard"])
    assert of_meters["seper.prompts"] == "seper-authors"
    made = prompts.render("meter/answer", (HARBOR,), question=ASKED.text)
    assert [(m.role, m.content) for m in made.messages] == [("system", with_documents), asked]


def test_seper_rates_with_the_context_in_a_list() -> None:
    render = loading.load("seper-authors").render
    values = {"question": "Who?", "answer": "Tarn"}
    [told] = render("judge/contribution", (HARBOR,), **values).messages
    listed = "- Question: Who?\n- Context:\nDoc 1(Title: Moon Harbor) Velora Tarn directed it.\n"
    assert told.content.endswith(f"{listed}- Answer: Tarn\nYour evaluation:")
    [told] = render("judge/correctness", (HARBOR,), **values).messages
    assert told.content.endswith(f"{listed}- Answer: Tarn\nYour rating:")
    [told] = render("judge/correctness", (), **values).messages
    assert told.content.endswith("- Question: Who?\n- Answer: Tarn\nYour rating:")


def test_item_answers_after_a_role_that_is_accepted() -> None:
    draft, *_, last = of_set("item-authors", "item", m="1")
    assert (
        [role for role, _ in draft] == [role for role, _ in last] == ["user", "assistant", "user"]
    )
    assert draft[-1][1].startswith("Information:\n(Moon Harbor) Velora Tarn directed it.\n\n")
    assert draft[-1][1].endswith("Question: Who directed Moon Harbor?\nAnswer:")
    first, *_ = of_set("item-authors", "item", m="1", answer="implicit")
    assert "Necessary information: [...]\nQuestion: Who directed Moon Harbor?" in first[-1][1]


def test_eor_supposes_that_paragraphs_are_true() -> None:
    options = {"pool": "Wiki@1,Wiki@1@CP,PK,ReFree", "similarities": "em=1"}
    sent = of_set("eor-authors", "eor", **options)
    assert all(len(messages) == 1 for messages in sent)
    texts = [text for [(_, text)] in sent]
    question = "Answer this question directly, in one or a few words: Who directed Moon Harbor?"
    assert question in texts
    supposed = "Suppose that these paragraphs are true:\n\n"
    assert f"{supposed}Moon Harbor: Velora Tarn directed it.\n\n{question}" in texts
    assert any(text.startswith("Write a document of background facts") for text in texts)
    [summarised] = [text for text in texts if "in at most 200 words" in text]
    assert summarised.endswith("Moon Harbor: Velora Tarn directed it.\n\nsummary:")


@pytest.mark.parametrize(
    ("preset", "workflow", "expected"),
    [
        ("seper-paper", "naive", "seper-authors"),
        ("item-paper", "item", "item-authors"),
        ("item-paper", "uj_impa", "item-authors"),
        ("eor-authors", "eor", "eor-authors"),
        ("grogu-paper", "naive", None),
    ],
)
def test_a_preset_selects_its_set(preset: str, workflow: str, expected: str | None) -> None:
    assert Presets.named([preset]).of_workflow(workflow).get("prompts") == expected
