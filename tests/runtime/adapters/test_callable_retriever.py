"""Any search function as a retriever."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from hopscope.runtime.adapters import retriever
from hopscope.runtime.corpora import hopland
from hopscope.runtime.corpora.corpus import Corpus
from hopscope.runtime.errors import BudgetExceededError, RetrieverError, UsageError
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.readers import tiny
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.types import Hit, Passage
from hopscope.workflows import ircot

BOTH = ["Alba is a film.", "Bruno Costa directed Alba."]


def returning(*found: Any) -> Any:
    """A search that returns these, whatever it is asked."""
    return lambda query, k: list(found)


def only(found: Any, *, k: int = 5) -> list[Hit]:
    """What is found for one query."""
    [hits] = retriever.of_callable(lambda query, k: found).search(["who?"], k=k)
    return hits


@dataclass
class Record:
    text: str
    title: str = ""
    id: int | None = None


@pytest.mark.parametrize(
    ("item", "id", "title", "text", "score"),
    [
        ("Alba is a film.", None, "", "Alba is a film.", 1.0),
        ({"id": 7, "title": "Alba", "text": "A film."}, "7", "Alba", "A film.", 1.0),
        ({"_id": "b", "text": "A film.", "title": ""}, "b", "", "A film.", 1.0),
        ({"docid": "d", "contents": '"Alba"\nA film.'}, "d", "Alba", "A film.", 1.0),
        ({"content": "A film.", "relevance_score": 2}, None, "", "A film.", 2.0),
        ({"text": "A film.", "score": np.float32(0.5)}, None, "", "A film.", 0.5),
        ({"text": "A film.", "score": None, "id": None}, None, "", "A film.", 1.0),
        (
            {"text": "A film.", "metadata": {"title": "Alba", "score": 3}},
            None,
            "Alba",
            "A film.",
            3,
        ),
        (Passage(title="Alba", text="A film."), None, "Alba", "A film.", 1.0),
        (Passage(id="p", text="A film."), "p", "", "A film.", 1.0),
        (Hit(passage=Passage(id="p", text="A film."), score=-2.5), "p", "", "A film.", -2.5),
        (Document("A film.", id="x", metadata={"title": "Alba"}), "x", "Alba", "A film.", 1.0),
        (Document("A film.", metadata={"_id": 3, "score": 0.25}), "3", "", "A film.", 0.25),
        (Document("A film.").model_dump(), None, "", "A film.", 1.0),
        ((Document("A film."), 0.75), None, "", "A film.", 0.75),
        (("A film.", 9), None, "", "A film.", 9.0),
        (Record("A film.", "Alba", 4), "4", "Alba", "A film.", 1.0),
    ],
)
def test_whatever_is_a_passage_becomes_one(
    item: Any, id: str | None, title: str, text: str, score: float
) -> None:
    [hit] = only([item])
    assert (hit.passage.title, hit.passage.text, hit.score) == (title, text, score)
    assert len(hit.passage.id) == 16 if id is None else hit.passage.id == id
    assert hit.passage.source.startswith("callable:")


def test_a_passage_without_an_id_has_the_one_that_a_corpus_gives_it(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"title": "Alba", "text": "A film.\\ud83d"}\n')
    [passage] = Corpus(tmp_path / "c.jsonl")
    [hit] = only([{"title": "Alba", "text": "A film.\ud83d"}])
    assert hit.passage.id == passage.id


def test_rankings_have_each_passage_once_no_blank_one_and_no_more_than_k() -> None:
    found = ["a", " ", "a", {"text": ""}, Passage(text="b"), "c", "d"]
    assert [hit.passage.text for hit in only(found, k=3)] == ["a", "b", "c"]
    assert [hit.score for hit in only(found, k=3)] == [1, 1 / 2, 1 / 3]
    assert only(found, k=0) == []
    assert only([]) == []
    assert only(iter(found), k=2) == only(found, k=2) == only(np.array(["a", "b"]), k=2)


def test_of_more_than_k_no_more_than_k_are_taken_from_a_generator() -> None:
    taken = []

    def endless(query: str) -> Iterator[str]:
        for number in range(10**9):
            taken.append(number)
            yield f"passage {number}"

    [hits] = retriever.of_callable(endless).search(["who?"], k=3)
    assert len(hits) == 3
    assert len(taken) == 3


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ([3.0, 2.0, 2.0], [3.0, 2.0, 2.0]),
        ([-1.0, -4.0, -9.0], [-1.0, -4.0, -9.0]),
        ([0.1, 0.4, 0.9], [1, 1 / 2, 1 / 3]),
        ([3.0, None, 1.0], [1, 1 / 2, 1 / 3]),
    ],
    ids=["falling", "negative", "distances", "missing"],
)
def test_scores_never_contradict_the_order(told: list[float | None], kept: list[float]) -> None:
    """Measures of rankings sort by score: distances would turn a ranking round."""
    hits = only([{"text": f"passage {i}", "score": score} for i, score in enumerate(told)])
    assert [hit.passage.text for hit in hits] == ["passage 0", "passage 1", "passage 2"]
    assert [hit.score for hit in hits] == kept


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "None is no list of passages: give texts, dicts with 'text'"),
        ("Alba is a film.", "an object of type str is no list of passages"),
        ({"documents": BOTH}, "an object of type dict is no list of passages"),
        (Passage(text="Alba"), "an object of type Passage is no list of passages"),
        (Document("Alba"), "an object of type Document is no list of passages"),
        (7, "an object of type int is no list of passages"),
        (
            SimpleNamespace(columns=[], __iter__=None),
            "an object of type SimpleNamespace is no list",
        ),
        ([BOTH], "passage 1: an object of type list is no passage: give texts"),
        (["a", None], "passage 2: None is no passage"),
        (["a", 3.5], "passage 2: an object of type float is no passage"),
        (["a", {"body": "b"}], "passage 2: no 'text' among the fields 'body'"),
        ([{"text": 3}], "passage 1: 'text' must be a string, not int"),
        ([{"text": "a", "id": 1.5}], "passage 1: 'id' must be a non-empty string or an integer"),
        ([{"text": "a", "title": ["b"]}], "passage 1: 'title' must be a string, not list"),
        ([("a", float("nan"))], "passage 1: the score nan is no finite number"),
        ([{"text": "a", "score": "high"}], "passage 1: the score 'high' is no finite number"),
        ([{"text": "a", "score": True}], "passage 1: the score True is no finite number"),
        (
            [{"id": 1, "text": "a"}, {"id": "1", "text": "b"}],
            "two different passages have the id '1'",
        ),
    ],
)
def test_what_is_no_passage_is_told(found: Any, message: str) -> None:
    with pytest.raises(RetrieverError) as raised:
        only(found)
    assert f"callable:{__name__}.only.<locals>.<lambda> did not return" in str(raised.value)
    assert message in str(raised.value)


def test_a_table_is_asked_for_its_rows() -> None:
    """Iterating a data frame gives the names of its columns, which would pass as texts."""

    class Frame(list[str]):
        columns = ("docno", "text")

    with pytest.raises(RetrieverError, match="of type Frame is a table: give its rows"):
        only(Frame(["docno", "text"]))


def test_the_function_is_called_as_its_parameters_ask() -> None:
    asked: list[Any] = []

    def both(query: str, k: int = 4) -> list[str]:
        asked.append((query, k))
        return BOTH

    def by_name(*, query: str = "", k: int) -> list[str]:
        raise AssertionError("takes no query in the first place")

    def top(text: str, top_k: int = 4) -> list[str]:
        return both(text, top_k)

    def second(text: str, how_many: int, /) -> list[str]:
        return both(text, how_many)

    def alone(text: str, language: str = "en") -> list[str]:
        return both(f"{language}:{text}", 0)

    def strict(query: str, k: int, /) -> list[str]:
        return both(query, k)

    class Search:
        def __call__(self, query: str, k: int) -> list[str]:
            return both(query, k)

        def method(self, query: str, **options: Any) -> list[str]:
            return both(query, len(options))

    for search in (both, top, second, alone, strict, Search(), Search().method, partial(both, k=9)):
        retriever.of_callable(search).search(["who?"], k=2)
    assert asked == [
        ("who?", 2), ("who?", 2), ("who?", 2), ("en:who?", 0), ("who?", 2), ("who?", 2),
        ("who?", 0), ("who?", 2),
    ]  # fmt: skip
    for wrong in (by_name, lambda: [], lambda query, index, k: []):
        with pytest.raises(UsageError, match=r"cannot be called as search\(query, k\)"):
            retriever.of_callable(wrong)
    with pytest.raises(UsageError, match="'my-index' is no retriever: give a function"):
        retriever.of_callable("my-index")


def test_what_the_function_raises_is_told_with_its_name() -> None:
    def broken(query: str, k: int) -> list[str]:
        raise KeyError("no such index")

    def silent(query: str, k: int) -> Iterator[str]:
        yield "a"
        raise TimeoutError

    def spent(query: str, k: int) -> list[str]:
        raise BudgetExceededError("budget_calls", "spent")

    name = f"callable:{__name__}.test_what_the_function_raises_is_told_with_its_name"
    with pytest.raises(RetrieverError) as raised:
        retriever.of_callable(broken).search(["who?"], k=2)
    assert str(raised.value) == f"{name}.<locals>.broken failed: KeyError: 'no such index'"
    assert isinstance(raised.value.__cause__, KeyError)
    with pytest.raises(RetrieverError, match=r"silent failed: TimeoutError$"):
        retriever.of_callable(silent).search(["who?"], k=2)
    with pytest.raises(BudgetExceededError):
        retriever.of_callable(spent).search(["who?"], k=2)


def test_a_blank_query_finds_nothing_and_asks_nobody() -> None:
    asked: list[str] = []

    def search(query: str, k: int) -> list[str]:
        asked.append(query)
        return [query]

    found = retriever.of_callable(search).search(["who?", " ", "when?"], k=1)
    assert [[hit.passage.text for hit in hits] for hits in found] == [["who?"], [], ["when?"]]
    assert asked == ["who?", "when?"]


CALLER: contextvars.ContextVar[str] = contextvars.ContextVar("CALLER")


async def find(query: str, k: int) -> list[str]:
    await asyncio.sleep(0)
    return [f"{query} by {CALLER.get('nobody')}", threading.current_thread().name]


async def stream(query: str, k: int) -> AsyncIterator[str]:
    for text in BOTH:
        yield text


def test_coroutines_are_awaited_even_where_a_loop_is_running() -> None:
    """As in a notebook, where the main thread has a running loop."""
    found = retriever.of_callable(find)

    async def notebook() -> list[list[Hit]]:
        CALLER.set("me")  # spans know their parents by such variables
        return found.search(["who?", "when?"], k=2)

    [[first, thread], [second, same]] = asyncio.run(notebook())
    assert (first.passage.text, second.passage.text) == ("who? by me", "when? by me")
    assert thread.passage.text == same.passage.text != threading.current_thread().name
    assert [[hit.passage.text for hit in retriever.of_callable(stream).search(["a"], k=5)[0]]] == [
        BOTH
    ]


def test_what_a_coroutine_keeps_in_its_loop_can_be_used_again() -> None:
    """Clients keep connections and locks in the loop that they were first used in."""
    lock = asyncio.Lock()

    async def locked(query: str) -> list[str]:
        async with lock:
            await asyncio.sleep(0.001)
        return [query]

    found = retriever.of_callable(locked)
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda: results.append(found.search(["who?"], k=1)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4


def test_the_loop_ends_with_the_retriever() -> None:
    before = set(threading.enumerate())
    found = retriever.of_callable(find)
    assert before >= set(threading.enumerate()), "it starts when it is needed"
    found.search(["who?"], k=1)
    [started] = set(threading.enumerate()) - before
    found.search(["who?"], k=1)
    assert set(threading.enumerate()) - before <= {started}
    del found
    started.join(timeout=10)
    assert not started.is_alive()


async def failing(query: str) -> list[str]:
    raise ConnectionError("no route")


def test_a_coroutine_that_fails_is_told_with_its_name() -> None:
    with pytest.raises(RetrieverError, match=r"retriever\.failing failed: Conn"):
        retriever.of_callable(failing).search(["who?"], k=1)


class Two(BaseRetriever):
    """A retriever of LangChain that decides itself how many it returns."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(text, metadata={"title": query}) for text in BOTH]


def test_retrievers_of_langchain_are_invoked() -> None:
    found = retriever.of_callable(Two())
    [hits] = found.search(["who?"], k=5)
    assert [(hit.passage.title, hit.passage.text) for hit in hits] == [("who?", t) for t in BOTH]
    assert found.name == f"callable:{__name__}.Two"
    assert len(found.search(["who?"], k=1)[0]) == 1
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_texts([f"passage {number}" for number in range(20)])
    [hits] = retriever.of_callable(store.as_retriever()).search(["passage 3"], k=9)
    assert len(hits) == 9, "k goes to the store, whose own is 4"
    assert hits[0].passage.text == "passage 3"
    [pairs] = retriever.of_callable(store.similarity_search_with_score).search(["passage 3"], k=9)
    assert [hit.passage for hit in pairs] == [
        hit.passage.model_copy(update={"source": pairs[0].passage.source}) for hit in hits
    ]
    assert pairs[0].score == pytest.approx(1.0)


def test_the_name_is_that_of_the_function_or_the_one_given() -> None:
    assert retriever.of_callable(find).name == f"callable:{__name__}.find"
    assert retriever.of_callable(partial(find, k=3)).name == retriever.of_callable(find).name
    assert retriever.of_callable(find, name="wiki").name == "callable:wiki"
    bound = retriever.of_callable(SimpleNamespace(invoke=lambda query: BOTH))
    assert bound.name == "callable:types.SimpleNamespace"


@given(st.lists(st.text() | st.tuples(st.text(), st.floats(allow_nan=False, allow_infinity=False))))
def test_rankings_are_in_order_and_have_no_passage_twice(found: list[Any]) -> None:
    hits = only(found, k=len(found))
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert len({hit.passage.key for hit in hits}) == len(hits)
    assert all(hit.passage.text.strip() for hit in hits)


def test_a_run_finds_with_a_function_what_it_finds_with_the_index() -> None:
    index = bm25.from_passages(hopland.corpus(), name="hopland")

    def search(query: str, k: int) -> list[Hit]:
        return index.search([query], k=k)[0]

    workflow = Workflow("ircot", ircot.build(k=3, max_steps=3), {})
    asked = hopland.questions("dev")[0].question
    reader = tiny.build()
    direct = run(workflow, asked, Deps(reader, index))
    found = run(workflow, asked, Deps(reader, retriever.of_callable(search, "hopland")))
    assert found.retriever == "callable:hopland"
    assert found.answer == direct.answer
    assert [(s.query, s.ranked, s.output) for s in found.steps] == [
        (s.query, s.ranked, s.output) for s in direct.steps
    ]
