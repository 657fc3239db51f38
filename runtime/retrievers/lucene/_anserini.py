"""Anserini's searcher: queries go in; ids, scores and stored texts come out.

A hit is several Java objects, and reading them from Python one by one takes longer than the search.
So Jackson, which comes with Anserini, writes all hits of a batch as one JSON text. Threads
may search at once: the methods called here are bound to their objects (`jvm.bound`), and a
thread leaves Java when it has its answer.
"""

import json
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hopscope.runtime.retrievers.lucene import jvm

HITS = 20_000
"""Hits of one request, to limit the memory of their texts."""
_ALONE = "(Ljava/lang/String;I)[Lio/anserini/search/ScoredDoc;"
_SEARCH = "(Ljava/util/List;Ljava/util/List;II)Ljava/util/Map;"
_WRITE = "(Ljava/lang/Object;)Ljava/lang/String;"
_LIST = "([Ljava/lang/Object;)Ljava/util/List;"


class Stored(NamedTuple):
    """A hit in Lucene's form."""

    id: str
    score: float
    text: str | None
    """The stored text; None if the index stores no texts."""


class Searcher:
    """An open index, searched by BM25."""

    def __init__(self, folder: Path, *, k1: float, b: float) -> None:
        """Open the index in a folder.

        Raises:
            JavaException: Lucene cannot open it.
        """
        java = jvm.classes()
        with jvm.calling:
            opened = java("io.anserini.search.SimpleSearcher")(str(folder))
            opened.set_bm25(k1, b)
            self.size = int(opened.get_total_num_docs())
            """Passages in the index."""
            self._searcher = jvm.bound(opened, batch_search=_SEARCH, search=_ALONE)
            self._writer = jvm.bound(_writer(java), writeValueAsString=_WRITE)
            self._arrays = jvm.static("java/util/Arrays", asList=_LIST)
            # The first search creates shared state unsafely: another thread would score with other
            # parameters.
            self._written(["a", "b"], 1)

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Stored]]:
        """The ranking of each query.

        Raises:
            JavaException: Lucene failed.
        """
        from jnius import JavaException

        found: list[list[Stored]] = []
        most = max(1, HITS // k)
        for start in range(0, len(queries), most):
            asked = queries[start : start + most]
            try:
                rankings = json.loads(self._written(asked, k))
            except JavaException:
                for query in asked:  # a batch does not say why it failed
                    self._searcher.search(query, 1)
                raise
            finally:
                jvm.leave()
            found += [list(_stored(rankings[str(number)])) for number in range(len(asked))]
        return found

    def _written(self, queries: Sequence[str], k: int) -> str:
        """Rankings by the number of their query, as JSON. No Java object outlives the call, since
        deleting it would attach the thread to Java again."""
        if len(queries) == 1:  # a batch starts threads
            ranking = self._arrays.asList(*self._searcher.search(queries[0], k))
            return f'{{"0":{self._writer.writeValueAsString(ranking)}}}'
        texts = self._arrays.asList(*queries)
        numbers = self._arrays.asList(*map(str, range(len(queries))))
        # Anserini always uses as many threads as there are processors.
        found = self._searcher.batch_search(texts, numbers, k, 1)
        return str(self._writer.writeValueAsString(found))


def _stored(ranked: list[dict[str, Any]]) -> Iterator[Stored]:
    # Lucene's numbers have 32 bits; Java writes only the digits that identify them.
    for hit, score in zip(ranked, array("f", [hit["score"] for hit in ranked]), strict=True):
        fields = {one["name"]: one["fieldsData"] for one in hit["lucene_document"]["fields"]}
        text = fields.get("raw")
        yield Stored(hit["docid"], score, fields.get("contents") if text is None else text)


def _writer(java: Any) -> Any:
    """A writer of Java objects by their fields; of a document without Lucene's field settings."""
    writer = java("com.fasterxml.jackson.databind.ObjectMapper")()
    visible = java("com.fasterxml.jackson.annotation.JsonAutoDetect$Visibility")
    parts = java("com.fasterxml.jackson.annotation.PropertyAccessor")
    writer.setVisibility(parts.ALL, visible.NONE)  # a getter would give the text once more
    writer.setVisibility(parts.FIELD, visible.ANY)
    value = java("com.fasterxml.jackson.annotation.JsonIgnoreProperties$Value")
    field = java("java.lang.Class").forName("org.apache.lucene.document.StoredField")
    unread = value.forIgnoredProperties("type", "tokenStream")
    writer.configOverride(field).setIgnorals(unread)
    return writer
