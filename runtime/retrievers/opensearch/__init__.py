"""BM25 by a search service on other machines: OpenSearch, or a service with its HTTP API.

The service holds the index and its manifest, in the mapping's `_meta`. Terms are those of the
service's `english` analyzer, which is Lucene's; k1 0.9 and b 0.4 are Anserini's; ties are in the
order of the corpus. Several shards rank like one, because frequencies are collected from all of
them (`dfs_query_then_fetch`).

Invariant: the name that the user gave is an alias, and it points to a complete index or to none. A
build writes an index with a separate name, closes it to writes, and moves the alias last.
"""

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hopscope import __version__
from hopscope.runtime.errors import CorpusError, IndexMismatchError, RetrieverError
from hopscope.runtime.indexes.index_folder import Manifest
from hopscope.runtime.indexes.phases import Progress, silent
from hopscope.runtime.ports import Retriever
from hopscope.runtime.retrievers.opensearch import _client
from hopscope.runtime.retrievers.opensearch import _index as _index
from hopscope.runtime.retrievers.opensearch._client import IndexAddress, asking, reading
from hopscope.runtime.texts.storable import storable
from hopscope.runtime.types import Hit, Passage, digest

KIND = _index.KIND
K1 = 0.9
B = 0.4
TIMEOUT = 60.0
SENT_PASSAGES = 500
SENT_BYTES = 8 << 20
"""Most bytes of one request: some services accept 10 MiB."""
RETRIES = 5
"""Retries of passages that a busy service refused, each after twice the last pause."""
ASKED_QUERIES = 256
ASKED_HITS = 10_000
"""At most in one request, where more than one query is asked."""
READ_PASSAGES = 1000


class OpenSearch:
    """An index on a service. Searching is safe from several threads."""

    def __init__(self, name: str, where: IndexAddress, client: Any) -> None:
        self._name = name
        self._where = where
        self._client = client

    @property
    def name(self) -> str:
        """Kind, corpus and fingerprint."""
        return self._name

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """At most `k` passages for each query that have any of its terms, best first, ties in the
        order of the corpus. One call with many queries is faster than many calls.

        Raises:
            RetrieverError: the service cannot be reached, refuses, or failed.
        """
        nonblank = [at for at, query in enumerate(queries) if query.strip()] if k > 0 else []
        results: list[list[Hit]] = [[] for _ in queries]
        size = max(1, min(ASKED_QUERIES, ASKED_HITS // max(k, 1)))
        for start in range(0, len(nonblank), size):
            batch = nonblank[start : start + size]
            rankings = self._ask([queries[at] for at in batch], k)
            for at, ranking in zip(batch, rankings, strict=True):
                results[at] = ranking
        return results

    def _ask(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        lines: list[Any] = []
        for query in queries:
            lines += [{}, _wanted(query, k)]
        with reading(self._where):
            answer = self._client.msearch(
                body=lines,
                index=self._where.index,
                params={"search_type": "dfs_query_then_fetch"},
            )
            responses = list(answer["responses"])
            if len(responses) != len(queries):
                raise ValueError(f"{len(responses)} answers to {len(queries)} queries")
            return [self._hits(response) for response in responses]

    def _hits(self, response: Any) -> list[Hit]:
        if failed := response.get("error"):
            raise RetrieverError(f"{self._where} did not search: {_client.said(failed)}")
        shards = response["_shards"]
        if shards["failed"] or response.get("timed_out"):
            reasons = [_client.said(one) for one in shards.get("failures", [])]
            raise RetrieverError(
                f"{shards['failed']} of {shards['total']} shards of {self._where} gave nothing: "
                f"{reasons[0] if reasons else 'the time was over'}"
            )
        return [
            Hit(passage=_passage(hit["_source"], self._name), score=float(hit["_score"]))
            for hit in response["hits"]["hits"]
        ]


def build(*, url: str, timeout: float = TIMEOUT) -> Retriever:
    """Open an index made with `hopscope index build --kind opensearch`.

    Args:
        url: http://HOST:PORT/INDEX.
        timeout: seconds to wait for each answer.

    Raises:
        MissingExtraError: opensearch-py is not installed.
        UsageError: the address is invalid, or the service has no such index.
        RetrieverError: the service cannot be reached or refuses.
        IndexMismatchError: Hopscope did not make the index, it is incomplete, or it has settings
            that this version does not know.
    """
    where = _client.address(url)
    client = _client.connect(where.service, timeout=timeout)
    # Search the index itself, so that a moving alias changes no ranking.
    index, manifest = _index.opened(client, where)
    k1, b = (manifest.settings.get(key) for key in ("k1", "b"))
    kind = KIND if (k1, b) == (K1, B) else f"{KIND}(k1={k1:g},b={b:g})"
    name = f"{kind}:{manifest.name}@{manifest.fingerprint[:12]}"
    return OpenSearch(name, IndexAddress(where.service, index), client)


def read_manifest(url: str) -> Manifest:
    """The manifest of an index.

    Raises:
        UsageError, RetrieverError, IndexMismatchError: as `build`.
    """
    where = _client.address(url)
    return _index.opened(_client.connect(where.service, timeout=TIMEOUT), where)[1]


def verify(url: str) -> Manifest:
    """Read all passages back and compare them with the fingerprint.

    Raises:
        UsageError, RetrieverError, IndexMismatchError: as `build`, or a passage has changed.
    """
    where = _client.address(url)
    client = _client.connect(where.service, timeout=TIMEOUT)
    index, manifest = _index.opened(client, where)
    sha = hashlib.sha256()
    for passage in _stored(client, IndexAddress(where.service, index)):
        sha.update(digest(passage.id, passage.title, passage.text).encode())
    if sha.hexdigest() != manifest.fingerprint:
        raise IndexMismatchError(
            f"the passages of {where} have fingerprint {sha.hexdigest()}, its manifest says "
            f"{manifest.fingerprint}; build the index again"
        )
    return manifest


def create(
    passages: Iterable[Passage],
    url: str,
    *,
    name: str,
    k1: float = K1,
    b: float = B,
    shards: int = 1,
    overwrite: bool = False,
    timeout: float = TIMEOUT,
    progress: Progress = silent,
) -> Manifest:
    """Build an index on a service, completely or not at all. Memory does not hold the texts. A
    killed build leaves an index with the name INDEX-* and no alias.

    Args:
        passages: the corpus.
        url: http://HOST:PORT/INDEX.
        name: the name of the corpus.
        k1: of BM25.
        b: of BM25.
        shards: parts of the index, which the service spreads over its machines.
        overwrite: whether to replace an index of that name.
        timeout: seconds to wait for each answer.
        progress: called with the progress.

    Raises:
        MissingExtraError: opensearch-py is not installed.
        UsageError: the address is invalid, or the name is taken.
        CorpusError: the passages are broken, or there are none.
        RetrieverError: the service cannot be reached or refuses.
    """
    where = _client.address(url)
    client = _client.connect(where.service, timeout=timeout)
    old = _index.replaced(client, where, overwrite)
    new = IndexAddress(where.service, f"{where.index}-{secrets.token_hex(4)}")
    try:
        with asking(where):
            client.indices.create(index=new.index, body=_index.empty(k1=k1, b=b, shards=shards))
        sha = hashlib.sha256()
        count = 0
        for count in _send(client, new, passages, sha):
            progress("read", count)
        if not count:
            raise CorpusError("the corpus has no passages: give a file or folder that holds some")
        progress("write", count)
        manifest = Manifest(
            kind=KIND,
            name=name,
            fingerprint=sha.hexdigest(),
            counts={"passages": count, "shards": shards},
            settings=_index.settings(k1=k1, b=b),
            hopscope=__version__,
        )
        _seal(client, new, manifest)
        moves: list[dict[str, Any]] = [{"add": {"index": new.index, "alias": where.index}}]
        moves += [{"remove": {"index": one, "alias": where.index}} for one in old]
        with asking(where):
            client.indices.update_aliases(body={"actions": moves})
    except BaseException:
        _index.forget(client, new)
        raise
    for one in old:
        _index.forget(client, IndexAddress(where.service, one))
    return manifest


def _send(client: Any, new: IndexAddress, passages: Iterable[Passage], sha: Any) -> Iterator[int]:
    """Write passages in batches, one ahead of the service; yields the number of stored passages."""
    from opensearchpy import helpers

    def actions() -> Iterator[dict[str, Any]]:
        for position, passage in enumerate(passages):
            sha.update(digest(passage.id, passage.title, passage.text).encode())
            kept = passage.model_dump(include={"id", "title", "text"})
            # Numbered, so that a repeated batch stores no passage twice.
            yield {"_id": str(position), "_source": {"position": position, **kept}}

    taken = 0
    with asking(new):
        sent = helpers.streaming_bulk(
            client,
            actions(),
            index=new.index,
            chunk_size=SENT_PASSAGES,
            max_chunk_bytes=SENT_BYTES,
            max_retries=RETRIES,
            raise_on_error=False,
        )
        for ok, result in sent:
            if not ok:
                [told] = result.values()
                raise RetrieverError(
                    f"{new} did not take passage {told.get('_id')}: "
                    f"{_client.said(told.get('error'))}"
                )
            taken += 1
            yield taken


def _seal(client: Any, new: IndexAddress, manifest: Manifest) -> None:
    """Add the manifest, and close the index to writes."""
    kept = {"index": {"refresh_interval": None, "number_of_replicas": None, "blocks.write": True}}
    with reading(new):
        client.indices.refresh(index=new.index)
        found, wanted = client.count(index=new.index)["count"], manifest.counts["passages"]
        if found != wanted:
            raise RetrieverError(f"{new} has {found} passages after taking {wanted}")
        meta = {_index.META: manifest.model_dump(mode="json")}
        client.indices.put_mapping(index=new.index, body={"_meta": meta})
        client.indices.put_settings(index=new.index, body=kept)


def _stored(client: Any, where: IndexAddress) -> Iterator[Passage]:
    """All passages in the order of the corpus."""
    after: list[Any] = []
    while True:
        wanted: dict[str, Any] = {"size": READ_PASSAGES, "sort": [{"position": "asc"}]}
        with reading(where):
            body = wanted | ({"search_after": after} if after else {})
            hits = client.search(index=where.index, body=body)["hits"]["hits"]
            passages = [_passage(hit["_source"], "") for hit in hits]
            if not hits:
                return
            after = hits[-1]["sort"]
        yield from passages


def _wanted(query: str, k: int) -> dict[str, Any]:
    # Half of a surrogate pair is no character to the service.
    text = storable(query)
    return {
        "query": {"match": {"contents": {"query": text}}},
        "sort": [{"_score": "desc"}, {"position": "asc"}],
        "size": k,
        "_source": ["id", "title", "text"],
        "track_total_hits": False,
    }


def _passage(stored: Any, source: str) -> Passage:
    return Passage(id=stored["id"], title=stored["title"], text=stored["text"], source=source)
