"""IRCoT's loop, on scripted replies."""

from collections.abc import Sequence
from time import perf_counter

import pytest

from hopscope.api import parts
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Generation, GenerationRequest, Passage, Question, Run
from hopscope.runtime.wrappers.forwarding_reader import ForwardingReader
from hopscope.workflows import ircot
from tests.talk import Reply, ScriptedRetriever, Talker

HARBOR = Passage(id="1", title="Moon Harbor", text="Moon Harbor was directed by Velora Tarn.")
TARN = Passage(id="2", title="Velora Tarn", text="Velora Tarn was born in Miskel.")
NOISE = Passage(id="3", title="Miskel", text="Miskel lies in Orla.")
FOUND = {
    "Where was the director of Moon Harbor born?": [HARBOR],
    "was the director of Moon Harbor born?": [HARBOR],
    "Moon Harbor was directed by Velora Tarn.": [TARN],
    "Velora Tarn was born in Miskel.": [NOISE, TARN],
}
QUESTION = Question(text="Where was the director of Moon Harbor born?", answers=("Miskel",))
CHAIN: list[Reply] = [
    "Moon Harbor was directed by Velora Tarn. And more.",
    "Velora Tarn was born in Miskel.",
    "So the answer is: Miskel.",
]


def ask(replies: list[Reply], **options: object) -> tuple[Run, Talker, ScriptedRetriever]:
    reader, retriever = Talker(replies), ScriptedRetriever(FOUND)
    workflow = Workflow("ircot", ircot.build(**options), {})  # type: ignore[arg-type]
    return run(workflow, QUESTION, Deps(reader=reader, retriever=retriever)), reader, retriever


def test_each_sentence_is_the_next_query() -> None:
    result, reader, retriever = ask([*CHAIN, "So the answer is: Miskel."])
    assert result.status == "ok", result.error
    assert retriever.queries == [
        "was the director of Moon Harbor born?",
        "Moon Harbor was directed by Velora Tarn.",
        "Velora Tarn was born in Miskel.",
    ]
    assert [s.name for s in result.steps] == ["retrieve", "reason"] * 3 + ["read"]
    assert [s.new for s in result.steps if s.kind == "retrieve"] == [("1",), ("2",), ("3",)]
    assert result.answer == "Miskel"
    assert result.stop_reason == "answer_marker"
    assert reader.requests[1].prompt.prefix == "Moon Harbor was directed by Velora Tarn."
    assert reader.requests[-1].prompt.prefix == ""


def test_only_the_first_sentence_of_a_reply_is_kept() -> None:
    result, *_ = ask([*CHAIN, "So the answer is: Miskel."])
    assert result.steps[1].output == "Moon Harbor was directed by Velora Tarn."


def test_without_the_reader_the_answer_is_taken_from_the_chain() -> None:
    result, reader, _ = ask(CHAIN, reader=False)
    assert result.answer == "Miskel"
    assert len(reader.requests) == 3


def test_an_answer_without_the_marker_is_kept_whole_and_marked() -> None:
    result, *_ = ask([*CHAIN, "It is Miskel"])
    assert result.answer == "It is Miskel"
    assert result.steps[-1].parse_ok is False


def test_silence_ends_the_loop() -> None:
    result, *_ = ask(["", "So the answer is: Miskel."])
    assert result.stop_reason == "empty_generation"
    assert [s.name for s in result.steps] == ["retrieve", "reason", "read"]


def test_the_loop_ends_at_max_steps() -> None:
    thought = "Moon Harbor was directed by Velora Tarn."
    result, *_ = ask([thought, thought, "So the answer is: X."], max_steps=2)
    assert result.stop_reason == "max_steps"
    assert sum(s.name == "reason" for s in result.steps) == 2


def test_the_cap_bounds_the_paragraphs() -> None:
    result, *_ = ask([*CHAIN, "So the answer is: Miskel."], cap=1)
    assert [p.id for p in result.evidence] == ["1"]


def test_near_duplicates_are_not_added() -> None:
    copy = HARBOR.model_copy(update={"id": "9", "text": HARBOR.text + "!"})
    found = {query: [HARBOR, copy] for query in FOUND}
    deps = Deps(
        reader=Talker([*CHAIN, "So the answer is: Miskel."]),
        retriever=ScriptedRetriever(found),
    )
    result = run(Workflow("ircot", ircot.build(), {}), QUESTION, deps)
    assert [p.id for p in result.evidence] == ["1"]


@pytest.mark.parametrize(
    ("thoughts", "query"),
    [
        ((), "was the director of Moon Harbor born?"),
        (("A was made in 1912.", "So 3 + 4 = 7."), "A was made in 1912."),
        (("Therefore it is B.",), "was the director of Moon Harbor born?"),
        (("A lived 1901-1950 in B.",), "A lived 1901-1950 in B."),
        # Where the rule was wider than that of the authors' code:
        (("A is B.", "That is, it lies in C."), "A B."),
        (("A is B.", "That is his home."), "That his home."),
        (("A is B.", "So-and-so wrote it."), "So-and-so wrote it."),
        (("A is B.", "Thus: C."), "Thus: C."),
        (("A is B.", "SO, it is C."), "A B."),
        (("A is B.", "Hence it was C."), "A B."),
        (("A is B.", "1,990.5 - 12 = 1,978.5 it was."), "A B."),
        (("A is B.", "Its size is 3 * 4 = 12."), "Its size 3 * 4 = 12."),
        (("A is B.", "Its size was 3+4 = 7."), "Its size was 3+4 = 7."),
        (("A is B.", "Who? Which one is it?"), "Who? one it?"),
        (("A is B.", "It is what's left."), "It what's left."),
    ],
)
def test_the_query_is_the_last_sentence_that_states_a_fact(
    thoughts: tuple[str, ...], query: str
) -> None:
    assert ircot.next_query(QUESTION.text, thoughts) == query


@pytest.mark.parametrize("text", ["1", "1 + ", "1 + 1,", "1 + 1.", "so ", "is ", ",", " "])
def test_the_query_of_any_thought_takes_linear_time(text: str) -> None:
    """100 kB in far less than a second; a number that was read anew from each of its digits would
    take hours."""
    thought = f"1 + {text * (100_000 // len(text))}"
    begun = perf_counter()
    ircot.next_query("Who?", [thought])
    assert perf_counter() - begun < 1


def test_a_query_of_question_words_only_retrieves_nothing() -> None:
    deps = Deps(
        reader=Talker(["So the answer is: X.", "So the answer is: X."]),
        retriever=ScriptedRetriever({}),
    )
    result = run(Workflow("ircot", ircot.build(), {}), Question(text="Who is"), deps)
    assert result.steps[0].query is None
    assert result.steps[0].ranked == ()


class _Whole(ForwardingReader):
    """Ends no reply early."""

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        return super().generate([r.model_copy(update={"keeps": None}) for r in requests])


def test_a_reply_that_ends_with_its_sentence_gives_the_same_chain() -> None:
    reader, retriever = parts.reader(parts.TINY), ScriptedRetriever(FOUND)
    workflow = Workflow("ircot", ircot.build(), {})
    ended, whole = (
        run(workflow, QUESTION, Deps(reader=each, retriever=retriever))
        for each in (reader, _Whole(reader))
    )
    assert [step.output for step in ended.steps] == [step.output for step in whole.steps]
    assert (ended.answer, ended.stop_reason) == (whole.answer, whole.stop_reason)
    assert ended.usage.output_tokens < whole.usage.output_tokens
    [exchange] = ended.steps[1].exchanges
    assert exchange.generations[0].finish_reason == "stop"
    assert "".join(exchange.generations[0].tokens) == exchange.generations[0].text
