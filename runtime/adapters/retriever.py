"""Any search function as a retriever.

retriever.of_callable(lambda query, k: ["Alba is a film.", "Bruno Costa directed Alba."])
"""

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from langchain_core.vectorstores import VectorStoreRetriever

from hopscope.runtime.adapters._event_loop import EventLoop
from hopscope.runtime.adapters.passages import ranking
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.errors import HopscopeError, RetrieverError, UsageError
from hopscope.runtime.execution.untraced import untraced
from hopscope.runtime.ports import Retriever
from hopscope.runtime.types import Hit

KIND = "callable:"
"""Prefix of the name of such a retriever: it marks code that the run's record does not contain."""
COUNTS = ("k", "top_k")
"""Names of parameters for the number of passages."""

T = TypeVar("T")


def of_callable(search: Any, name: str | None = None) -> Retriever:
    """A retriever that calls `search(query, k)`.

    `search` is a function, a coroutine function, another callable, or an object with
    `invoke(query)`, such as LangChain's retrievers. The query is its first argument; k goes to the
    parameter `k` or `top_k`, else to the second one if that has no default. A function of the query
    alone decides itself how many passages it returns. The first k count.

    It returns passages, the best first: an iterable of texts, dicts, `Passage`, `Hit`, documents
    with `page_content` and `metadata` (LangChain's), objects with a `text`, or pairs of one of
    these and its score. A dict has its text in `text`, in `contents` (its first line is the
    title, as in FlashRAG), in `page_content` or `content`, and optionally `title`, `id` (`_id`,
    `docid`) and `score`.

    - Ids: one id means one passage, in all rankings. A passage without an id gets a hash of its
      title and text, as in a corpus. Repeated and blank passages are left out.
    - Scores: more is better, and the order counts. If a score is missing, or scores rise down the
      ranking (as distances do), all are 1, 1/2, 1/3, ... by place.
    - Threads: a run calls it from one thread, workers from several at once. Coroutines run on an
      event loop in a thread of its own.

    Args:
        name: the records of runs have it as `callable:NAME`. By default it is the function's module
            and qualified name. Give one if that is ambiguous: for lambdas, or for one function over
            two indexes.

    Raises:
        UsageError: `search` cannot be called with a query.
        RetrieverError: later, by the retriever's `search`, if the callable fails or returns
            something else than passages.
    """
    named = KIND + (_qualified_name(search) if name is None else name)
    return _CallableRetriever(named, _caller(search))


class _CallableRetriever:
    """See `of_callable`."""

    def __init__(self, name: str, call: Callable[[str, int], Any]) -> None:
        self.name = name
        self._call = call
        self._loop = EventLoop()

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """See the port. A blank query has no hits and does not call the callable.

        Raises:
            RetrieverError: the callable failed, or returned something else than passages.
        """
        return [self._find(query, k) if query.strip() else [] for query in queries]

    def _find(self, query: str, k: int) -> list[Hit]:
        try:
            with untraced():
                found = self._call(query, k)
                if inspect.isawaitable(found):
                    found = self._loop.wait(_awaited(found))
                if isinstance(found, AsyncIterable):
                    found = self._loop.wait(_collected(found))
                return ranking(found, source=self.name, k=k)
        except HopscopeError:
            raise
        except MalformedRecordError as problem:
            raise RetrieverError(f"{self.name} did not return passages: {problem}") from None
        except Exception as error:  # whatever the user's function raises
            told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise RetrieverError(f"{self.name} failed: {told}") from error


async def _awaited(found: Awaitable[T]) -> T:
    return await found


async def _collected(found: AsyncIterable[T]) -> list[T]:
    return [item async for item in found]


def _caller(search: Any) -> Callable[[str, int], Any]:
    """A function of query and k that calls `search` by its parameters.

    Raises:
        UsageError: the parameters accept no query, or require more than query and k.
    """
    if isinstance(search, VectorStoreRetriever):  # hands k on to its store
        return lambda query, k: search.invoke(query, k=k)
    invoke = getattr(search, "invoke", None)
    if callable(invoke):
        return lambda query, k: invoke(query)
    if not callable(search):
        raise UsageError(
            f"{search!r} is no retriever: give a function (query, k) that returns passages, or an "
            "object with invoke(query)"
        )
    try:
        signature = inspect.signature(search)
    except ValueError:  # some functions written in C do not tell
        return lambda query, k: search(query, k)
    count = next((name for name in COUNTS if name in signature.parameters), None)
    if count is not None and _fits(signature, "", **{count: 1}):
        return lambda query, k: search(query, **{count: k})
    if count is None and _fits(signature, ""):
        return lambda query, k: search(query)
    if _fits(signature, "", 1):
        return lambda query, k: search(query, k)
    raise UsageError(
        f"{_qualified_name(search)}{signature} cannot be called as search(query, k): the first "
        "parameter must take the query, and only one other may need a value"
    )


def _fits(signature: inspect.Signature, *values: Any, **named: Any) -> bool:
    try:
        signature.bind(*values, **named)
    except TypeError:
        return False
    return True


def _qualified_name(search: Any) -> str:
    """Module and name of a function, a method, or the class of another object."""
    while isinstance(search, partial):
        search = search.func
    named = search if hasattr(search, "__qualname__") else type(search)
    return f"{named.__module__}.{named.__qualname__}"
