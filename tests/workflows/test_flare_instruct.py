"""FLARE-instruct: searches the model asks for in its text, on scripted replies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Passage, Question, Run
from hopscope.workflows import flare_instruct
from tests.oracle import REASON_TASK
from tests.probes import Say, Speaker, script, task
from tests.talk import ScriptedRetriever

HARBOR = Passage(id="1", title="Moon Harbor", text="Moon Harbor was directed by Velora Tarn.")
TARN = Passage(id="2", title="Velora Tarn", text="Velora Tarn was born in Miskel.")
FOUND = {"director of Moon Harbor": [HARBOR], "Velora Tarn birthplace": [TARN]}
QUESTION = Question(text="Where was the director of Moon Harbor born?", answers=("Miskel",))
CHAIN = [
    "[Search(director of Moon Harbor)]",
    "Moon Harbor was directed by Velora Tarn. [Search(Velora Tarn birthplace)] and so on",
    "She was born in Miskel. So the answer is: Miskel.",
]


def ask(
    say: Say, *, logprobs: bool = False, **options: int
) -> tuple[Run, Speaker, ScriptedRetriever]:
    reader, retriever = Speaker(say, logprobs=logprobs), ScriptedRetriever(FOUND)
    workflow = Workflow("flare_instruct", flare_instruct.build(**options), {})
    return run(workflow, QUESTION, Deps(reader=reader, retriever=retriever)), reader, retriever


@pytest.mark.parametrize("logprobs", [True, False])
def test_the_model_searches_where_it_asks_to(logprobs: bool) -> None:
    result, reader, retriever = ask(script(CHAIN), logprobs=logprobs)
    assert result.status == "ok", result.error
    assert [s.name for s in result.steps] == ["generate", "retrieve"] * 2 + ["generate"]
    assert retriever.queries == ["director of Moon Harbor", "Velora Tarn birthplace"]
    assert [r.prompt.shown for r in reader.requests] == [(), ("1",), ("2",)]
    assert (result.answer, result.stop_reason) == ("Miskel", "eos")


def test_the_search_leaves_no_trace_in_the_answer() -> None:
    result, reader, _ = ask(script(CHAIN))
    assert [r.prompt.prefix for r in reader.requests] == [
        "",
        "",
        "Moon Harbor was directed by Velora Tarn.",
    ]
    assert result.steps[0].output == "[Search(director of Moon Harbor"
    assert result.steps[0].parse_ok is True


def test_without_a_search_it_is_finished() -> None:
    result, _, retriever = ask(script(["So the answer is: Miskel."]))
    assert [s.name for s in result.steps] == ["generate"]
    assert retriever.queries == []
    assert result.answer == "Miskel"


def test_a_search_without_a_query_searches_the_question() -> None:
    result, _, retriever = ask(script(["[Search()]", "So the answer is: Miskel."]))
    assert retriever.queries == [QUESTION.text]
    assert result.steps[0].parse_ok is False


def test_when_the_searches_are_spent_none_is_offered() -> None:
    result, reader, retriever = ask(lambda r: "Well. [Search(it)]", max_searches=2)
    assert [s.name for s in result.steps] == ["generate", "retrieve"] * 2 + ["generate"]
    assert ["Search" in task(r) for r in reader.requests] == [True, True, False]
    assert task(reader.requests[-1]).endswith(REASON_TASK)
    assert ")]" not in reader.requests[-1].stop
    assert result.stop_reason == "max_steps"
    assert result.answer == "Well. Well. Well."
    assert len(retriever.queries) == 2


def test_it_ends_at_its_length_queries_included() -> None:
    result, reader, _ = ask(lambda r: "One two three. [Search(four five)]", max_tokens=7)
    assert [r.max_tokens for r in reader.requests] == [7, 2]
    assert result.stop_reason == "max_tokens"
    assert result.answer == "One two three. One two"


def test_silence_ends_it() -> None:
    result, *_ = ask(script([""]))
    assert (result.stop_reason, result.answer) == ("empty_generation", "")
    result, *_ = ask(script(["[Search(it)]", ""]))
    assert (result.stop_reason, result.answer) == ("empty_generation", "")


@pytest.mark.parametrize(
    ("text", "kept", "query"),
    [
        ("He was [Search(Orla", "He was", "Orla"),
        ("He was [Search(Orla)] old [Search(Miskel)]", "He was", "Orla"),
        ('[ search ("Orla")]', "", "Orla"),
        ("[Search(Paris (Texas)", "", "Paris (Texas)"),
        ("[Search(one\ntwo", "", "one"),
        ("[Search(  )]", "", ""),
        ("Search(Orla)", "Search(Orla)", None),
        ("", "", None),
    ],
)
def test_what_is_asked(text: str, kept: str, query: str | None) -> None:
    assert flare_instruct.asked(text) == (kept, query)


def test_a_long_query_loses_its_head() -> None:
    _, query = flare_instruct.asked("[Search(" + " ".join(map(str, range(70))))
    assert query == " ".join(map(str, range(6, 70)))


@given(st.lists(st.sampled_from(["[Search(", ")]", "a ", "\n", "]", "(", "[", '"', " "])))
def test_any_text_is_kept_up_to_its_first_search(pieces: list[str]) -> None:
    text = "".join(pieces)
    kept, query = flare_instruct.asked(text)
    assert text.startswith(kept)
    assert "[Search(" not in kept
    assert query is None or ("\n" not in query and query == query.strip())
