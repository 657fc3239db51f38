"""FLARE: drafts, triggers and queries, on a reader that knows how sure it is of each word."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Generation, GenerationRequest, Hit, Passage, Question, Run
from hopscope.workflows import flare
from hopscope.workflows.flare import drafting
from hopscope.workflows.flare.questions import formulate, phrase, question
from hopscope.workflows.flare.writing import FlareState
from tests.probes import SURE, UNSURE, Say, Speaker, script, task
from tests.talk import ScriptedRetriever

HARBOR = Passage(id="1", title="Moon Harbor", text="Moon Harbor was directed by Velora Tarn.")
TARN = Passage(id="2", title="Velora Tarn", text="Velora Tarn was born in Miskel.")
QUESTION = Question(text="Where was the director of Moon Harbor born?", answers=("Miskel",))
FIRST = "Moon Harbor was directed by Velora Tarn."
WRONG, RIGHT = "She was born in Orla.", "She was born in Miskel."
END = "So the answer is: Miskel."


def found(query: str) -> list[Passage]:
    return [TARN] if "She" in query or ("?" in query and "Moon" not in query) else [HARBOR]


def ask(
    say: Say, *, unsure: tuple[str, ...] = ("Orla",), logprobs: bool = True, **options: object
) -> tuple[Run, Speaker, ScriptedRetriever]:
    reader = Speaker(say, unsure=unsure, logprobs=logprobs)
    retriever = ScriptedRetriever(found)
    workflow = Workflow("flare", flare.build(**options), {})  # type: ignore[arg-type]
    return run(workflow, QUESTION, Deps(reader=reader, retriever=retriever)), reader, retriever


def writer(request: GenerationRequest) -> str:
    """Knows where she was born only when it is shown; goes on where the answer stops."""
    she = RIGHT if "2" in request.prompt.shown else WRONG
    left = [FIRST, she, END][request.prompt.prefix.count(".") :]
    return " ".join(left)


def test_an_unsure_sentence_is_searched_and_written_again() -> None:
    result, reader, retriever = ask(writer)
    assert result.status == "ok", result.error
    assert [s.name for s in result.steps] == [
        "retrieve",
        "look_ahead",
        "look_ahead",
        "formulate",
        "retrieve",
        "generate",
        "look_ahead",
    ]
    assert retriever.queries == [QUESTION.text, "She was born in"]
    assert [s.output for s in result.steps if s.kind == "generate"] == [
        FIRST,
        WRONG,
        "She was born in",
        RIGHT,
        END,
    ]
    assert result.answer == "Miskel"
    assert result.stop_reason == "eos"
    assert reader.requests[-1].prompt.prefix == f"{FIRST} {RIGHT}"


def test_it_costs_one_call_a_sentence_and_one_more_for_each_trigger() -> None:
    sure = ask(writer, unsure=())
    assert (len(sure[1].requests), len(sure[2].queries)) == (3, 1)
    once = ask(writer)
    assert (len(once[1].requests), len(once[2].queries)) == (3 + 1, 1 + 1)
    always = ask(writer, theta=1.0, unsure=())
    assert (len(always[1].requests), len(always[2].queries)) == (3 + 3, 1 + 3)


def test_the_code_writes_a_sure_sentence_again_without_a_search() -> None:
    result, reader, retriever = ask(writer, unsure=(), variant="code")
    assert [s.name for s in result.steps] == ["retrieve"] + ["look_ahead", "generate"] * 3
    assert len(reader.requests) == 2 * 3
    assert len(retriever.queries) == 1
    assert result.answer == "Miskel"


def test_the_paper_drafts_without_documents_and_writes_with_them() -> None:
    result, *_ = ask(writer, variant="paper")
    drafts = [s for s in result.steps if s.name == "look_ahead"]
    assert all(step.shown == () for step in drafts)
    [again] = [s for s in result.steps if s.name == "generate"]
    assert again.shown == ("2",)
    assert again.output == RIGHT


def test_documents_are_replaced() -> None:
    result, *_ = ask(writer)
    assert [p.id for p in result.evidence] == ["2"]
    assert result.steps[0].dangling == ()


def test_a_query_of_nothing_sure_keeps_the_documents() -> None:
    say = script(["Orla.", "Orla Orla.", END])
    result, _, retriever = ask(say, unsure=("Orla",))
    assert retriever.queries == [QUESTION.text]
    assert [s.name for s in result.steps][:4] == ["retrieve", "look_ahead", "formulate", "generate"]
    assert [p.id for p in result.evidence] == ["1"]


def test_questions_are_asked_about_unsure_spans() -> None:
    def say(request: GenerationRequest) -> str:
        if task(request).startswith("Question: Where was the director of Moon Harbor born?\nAns"):
            return "Where was she born?" if "Ask one" in task(request) else "Orla."
        return writer(request)

    result, reader, retriever = ask(say, query="question")
    assert retriever.queries == [QUESTION.text, "Where was she born?"]
    assert len(reader.requests) == 3 + 1 + 2
    [formulate] = [s for s in result.steps if s.name == "formulate"]
    assert formulate.parse_ok is True
    assert formulate.usage.calls == 2
    assert result.answer == "Miskel"
    assert len(ask(say, query="question", expand=False)[1].requests) == 3 + 1 + 1


def test_a_reply_that_is_no_question_searches_nothing() -> None:
    result, _, retriever = ask(writer, query="question", expand=False)
    [formulate] = [s for s in result.steps if s.name == "formulate"]
    assert formulate.parse_ok is False
    assert retriever.queries == [QUESTION.text]
    assert result.status == "ok"


def test_an_unsure_draft_without_a_span_to_ask_about_is_searched_for_whole() -> None:
    """No token was up to beta, so nothing was searched; the authors' code searches the draft."""
    result, _, retriever = ask(writer, query="question", beta=0.0)
    assert retriever.queries == [QUESTION.text, WRONG]
    [formulate] = [s for s in result.steps if s.name == "formulate"]
    assert (formulate.output, formulate.parse_ok, formulate.usage.calls) == (WRONG, None, 0)
    assert result.answer == "Miskel"
    always = ask(writer, query="question", theta=1.0, unsure=())[2]
    assert always.queries == [QUESTION.text, FIRST, WRONG, END]


def test_a_refused_phrase_drops_its_span() -> None:
    """The span itself was asked about instead; the authors' code drops it."""

    def say(request: GenerationRequest) -> str:
        asked = task(request)
        if "Copy the shortest" in asked:
            return "Orla Bay" if '"Orla' in asked else "another phrase"
        if "Ask one" in asked:
            return "Who?" if "Orla Bay" in asked else "Was this asked about?"
        she = RIGHT if "2" in request.prompt.shown else "It was in Orla Bay and then later Fen."
        return " ".join([FIRST, she, END][request.prompt.prefix.count(".") :])

    result, _, retriever = ask(say, query="question", unsure=("Orla", "Fen"))
    assert retriever.queries == [QUESTION.text, "Who?"]
    [formulate] = [s for s in result.steps if s.name == "formulate"]
    assert (formulate.parse_ok, formulate.usage.calls) == (False, 2 + 1)
    # Where all are refused nothing is left to ask about, and the draft is searched for.
    assert ask(writer, query="question")[2].queries == [QUESTION.text, WRONG]


@pytest.mark.parametrize("mark", ['"', "...", "—", " "])
def test_spans_of_punctuation_are_not_asked_about(mark: str) -> None:
    state = FlareState(
        question=QUESTION, draft=Generation(text=f"It is{mark}.", tokens=(f"It is{mark}.",))
    )
    reader = Speaker(script(["What is it?"]))
    deps = Deps(reader=reader, retriever=ScriptedRetriever(found))
    asked = formulate(state, deps, [mark], expand=False)
    assert (asked.queries, asked.ok, reader.requests) == ((f"It is{mark}.",), None, [])
    assert formulate(state, deps, [mark, "It"], expand=False).queries == ("What is it?",)


def test_a_reader_without_probabilities_is_refused_with_a_reason() -> None:
    result, *_ = ask(writer, logprobs=False)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.type == "ReaderError"
    assert "probability of each token" in result.error.message
    assert "flare_instruct" in result.error.message


def test_silence_and_a_blank_line_end_it() -> None:
    silent, *_ = ask(script([""]))
    assert (silent.stop_reason, silent.answer) == ("empty_generation", "")
    blank, reader, _ = ask(script([f"{FIRST}\n\nQuestion: another"]))
    assert (blank.stop_reason, blank.answer) == ("eos", FIRST)
    assert len(reader.requests) == 1
    assert blank.steps[-1].parse_ok is False


def test_it_ends_at_its_length() -> None:
    result, reader, _ = ask(lambda request: "On and on it goes. And more.", max_tokens=12)
    assert result.stop_reason == "max_tokens"
    assert result.answer == "On and on it goes. On and on it goes. On and"
    assert reader.requests[-1].max_tokens == 2


def test_a_lone_number_belongs_to_the_sentence_after_it() -> None:
    draft = Generation(
        text=" 1. It is. More", tokens=(" 1", ".", " It is.", " More"), logprobs=(0.0,) * 4
    )
    first = drafting.first(draft, reader="")
    assert first.text == " 1. It is."
    assert first.tokens == draft.tokens[:3]
    assert first.finish_reason == "length"


VECTOR_24 = Generation(
    text=" The director was born in 1912.",
    tokens=(" The", " director", " was", " born", " in", " 1912", "."),
    logprobs=tuple(map(log, (0.95, 0.9, 0.85, 0.7, 0.92, 0.35, 0.99))),
)


def test_vector_24_triggers_below_theta_and_masks_up_to_beta() -> None:
    assert not drafting.confident(VECTOR_24, 0.8)
    assert drafting.confident(VECTOR_24, 0.3)
    assert drafting.mask(VECTOR_24, 0.4) == "The director was born in ."


def test_a_probability_of_exactly_theta_triggers_only_as_in_the_code() -> None:
    draft = Generation(text="a", tokens=("a",), logprobs=(0.0,))
    half = draft.model_copy(update={"logprobs": (log(0.5),)})
    assert drafting.confident(half, 0.5)
    assert not drafting.confident(half, 0.5, at_threshold=True)
    assert drafting.confident(draft, 0.99)
    assert not drafting.confident(draft, 1.0)


def test_a_long_query_loses_its_head() -> None:
    words = tuple(f" {i}" for i in range(70))
    draft = Generation(text="".join(words), tokens=words, logprobs=(0.0,) * 70)
    assert drafting.mask(draft, 0.4).split() == [str(i) for i in range(6, 70)]


def hits(keys: str) -> list[Hit]:
    return [Hit(passage=Passage(id=key, text=key), score=0.0) for key in keys]


def test_vector_28_rankings_are_interleaved() -> None:
    taken = drafting.interleave([hits("abc"), hits("bde")], 3)
    assert [hit.passage.id for hit in taken] == ["a", "b", "d"]
    assert drafting.interleave([], 3) == []
    assert [h.passage.id for h in drafting.interleave([[], hits("xy")], 1)] == ["x"]


@pytest.mark.parametrize(
    ("low", "expected"),
    [((), []), ((1,), ["b"]), ((1, 5), ["b c d e f"]), ((1, 6), ["b", "g"]), ((0, 7), ["a", "h"])],
)
def test_spans_less_than_five_tokens_apart_are_one(
    low: tuple[int, ...], expected: list[str]
) -> None:
    tokens = tuple(f" {c}" for c in "abcdefgh")
    logprobs = tuple(log(UNSURE if i in low else SURE) for i in range(8))
    draft = Generation(text="".join(tokens), tokens=tokens, logprobs=logprobs)
    assert drafting.spans(draft, 0.4) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [("Orla Bay", "Orla Bay"), ("in Orla", None), ("Orla City", None), ("", None)],
)
def test_a_phrase_must_begin_with_the_span_and_stand_in_the_sentence(
    reply: str, expected: str | None
) -> None:
    assert phrase(reply, "Orla", "She was born in Orla Bay.") == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [(" Who? \nNext", "Who?"), ("No question.", ""), ("", ""), ("?", ""), ("\n", "")],
)
def test_what_does_not_end_in_a_question_mark_is_no_question(reply: str, expected: str) -> None:
    assert question(reply) == expected


@st.composite
def drafts(draw: st.DrawFn) -> Generation:
    """Any tokens; a stop string may have cut the text short."""
    tokens = draw(st.lists(st.sampled_from([" a", ".", "\n", "", "U.S.", " B", "∮", "?", " é"])))
    chances = draw(st.lists(st.floats(1e-6, 1), min_size=len(tokens), max_size=len(tokens)))
    text = "".join(tokens)
    kept = text[: len(text) - draw(st.integers(0, len(tokens[-1]) if tokens else 0))]
    return Generation(text=kept, tokens=tuple(tokens), logprobs=tuple(map(log, chances)))


@given(drafts(), st.floats(0, 1))
def test_any_draft_can_be_read(draft: Generation, threshold: float) -> None:
    if draft.text and not draft.tokens:
        return
    first = drafting.first(draft, reader="")
    assert draft.text.startswith(first.text)
    assert len(first.tokens) == len(first.logprobs)
    assert "".join(first.tokens).startswith(first.text)
    assert all(span in "".join(first.tokens) for span in drafting.spans(first, threshold))
    assert drafting.mask(first, threshold) == drafting.mask(first, threshold).strip()
