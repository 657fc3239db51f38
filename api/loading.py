"""The parts of a session, each loaded once, when first needed."""

import logging
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from hopscope.api import given, parts, retrieval
from hopscope.api.given import EntailmentPart, ReaderPart, RetrieverPart
from hopscope.api.store import Store
from hopscope.runtime.errors import UsageError
from hopscope.store.store import Store as RecordStore

if TYPE_CHECKING:
    from hopscope.runtime.ports import Entailment, Reader, Retriever

_log = logging.getLogger(__name__)


class Parts:
    """The parts of a session. Threads may share them."""

    def __init__(
        self,
        *,
        reader: ReaderPart,
        retriever: RetrieverPart,
        entailment: EntailmentPart,
        store: "str | Path | RecordStore | None",
        seed: int,
    ) -> None:
        """`seed` is for the random stages of a retriever.

        Raises:
            UsageError: `store` names no database and is none.
        """
        if not isinstance(store, str | Path | RecordStore | None):
            raise UsageError(f"store: give a file, a URL or an open hopscope.Store, not {store!r}")
        self.lock = RLock()
        """Held while a part is loaded."""
        self.named_reader, self.named_retriever = reader, retriever
        self.named_entailment, self.named_store = entailment, store
        self._seed = seed
        self._reader: Reader | None = None
        self._retriever: Retriever | None = None
        self._entailment: Entailment | None = None
        self._store: RecordStore | None = None

    def close(self) -> None:
        """Close the database, unless it was given open."""
        with self.lock:
            if self._store is not None and self._store is not self.named_store:
                self._store.close()
            self._store = None

    @property
    def reader(self) -> "Reader":
        """
        Raises:
            UsageError, ReaderError: it cannot be loaded.
        """
        with self.lock:
            if self._reader is None:
                _log.info("loading the reader")
                self._reader = given.reader(self.named_reader)
            return self._reader

    @property
    def retriever(self) -> "Retriever":
        """
        Raises:
            UsageError, RetrieverError: it cannot be opened.
        """
        with self.lock:
            if self._retriever is None:
                self._retriever = self.retriever_for(self.reader)
                searched = self.named_retriever
                embedded = isinstance(searched, str) and retrieval.embedded_only(
                    retrieval.parse(searched)
                )
                if parts.embedded(self.named_reader) and not embedded:
                    _log.warning(parts.NO_MODEL_FOR_REAL_TEXT)
            return self._retriever

    def retriever_for(self, reader: "Reader") -> "Retriever":
        """A retriever whose stages call that reader.

        Raises:
            UsageError, RetrieverError: as `retriever`.
        """
        _log.info("loading the corpus")
        return given.retriever(self.named_retriever, reader, seed=self._seed)

    @property
    def entailment(self) -> "Entailment":
        """
        Raises:
            UsageError: it cannot be loaded.
        """
        with self.lock:
            if self._entailment is None:
                self._entailment = given.entailment(self.named_entailment)
            return self._entailment

    @property
    def store(self) -> "RecordStore":
        """
        Raises:
            UsageError, StoreError: it cannot be opened.
        """
        with self.lock:
            if self._store is None:
                place = self.named_store
                if place is None or isinstance(place, str | Path):
                    place = Store.open(place)
                self._store = place
            return self._store
