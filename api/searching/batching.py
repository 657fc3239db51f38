"""Queries of many clients, searched at once.

What arrives while a search goes on is searched together by the next one: nobody waits for others to
come, and an index that is faster for many queries than for each is as fast as in process.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import NamedTuple

from hopscope.runtime import spans
from hopscope.runtime.errors import HopscopeError, RetrieverError
from hopscope.runtime.ports import Retriever
from hopscope.runtime.types import Hit

MOST = 512
"""Queries of one search, so that a large request does not hold up all others."""

Rankings = list[list[Hit]]


class Asked(NamedTuple):
    """The queries of a client."""

    queries: Sequence[str]
    k: int
    found: "Future[Rankings]"


class Batches:
    """Searches for many clients in one thread. Threads may share it."""

    def __init__(self, retriever: Retriever, *, capture: bool = True) -> None:
        """
        Args:
            capture: whether spans carry queries and passages.
        """
        self.retriever = retriever
        self.searches = 0
        """Calls of the retriever."""
        self._capture = capture
        self._waiting: SimpleQueue[Asked | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name="hopscope-searching", daemon=True)
        self._thread.start()

    def search(self, queries: Sequence[str], *, k: int) -> "Future[Rankings]":
        """The rankings of these queries, in order, as soon as they are there.

        The future raises RetrieverError if the index or the service failed.
        """
        asked = Asked(queries, k, Future())
        self._waiting.put(asked)
        return asked.found

    def close(self) -> None:
        """Answer what waits, and end."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        held: Asked | None = None
        while True:
            first = held or self._waiting.get()
            if first is None:
                return
            together, held, ended = self._joined(first)
            self._answer(together)
            if ended:
                self._waiting.put(None)

    def _joined(self, first: Asked) -> tuple[list[Asked], Asked | None, bool]:
        """Those that wait and ask for as many passages; the next one that does not fit; and whether
        the end came after them."""
        together, count = [first], len(first.queries)
        while True:
            try:
                asked = self._waiting.get_nowait()
            except Empty:
                return together, None, False
            if asked is None:
                return together, None, True
            count += len(asked.queries)
            if asked.k != first.k or count > MOST:
                return together, asked, False
            together.append(asked)

    def _answer(self, waiting: Sequence[Asked]) -> None:
        together = [asked for asked in waiting if asked.found.set_running_or_notify_cancel()]
        if not together:  # their clients are gone
            return
        queries = [query for asked in together for query in asked.queries]
        name, k = self.retriever.name, together[0].k
        self.searches += 1
        try:
            with spans.retrievals(name, queries, k=k, capture=self._capture) as finish:
                rankings = self.retriever.search(queries, k=k)
                finish(rankings)
        except HopscopeError as error:
            problem: HopscopeError = error
        except Exception as error:  # whatever a part from outside raises
            problem = RetrieverError(f"{name} failed: {type(error).__name__}: {error}")
        else:
            for asked in together:
                own, rankings = rankings[: len(asked.queries)], rankings[len(asked.queries) :]
                asked.found.set_result(own)
            return
        for asked in together:
            asked.found.set_exception(problem)
