"""An index of passages on an OpenSearch service: its mapping, its manifest, its alias."""

from typing import Any

from pydantic import JsonValue, ValidationError

from hopscope.runtime.errors import IndexMismatchError, UsageError
from hopscope.runtime.indexes import index_folder
from hopscope.runtime.indexes.index_folder import Manifest
from hopscope.runtime.retrievers.opensearch._client import IndexAddress, reading

KIND = "opensearch"
META = "hopscope"


def opened(client: Any, where: IndexAddress) -> tuple[str, Manifest]:
    """The index behind a name, checked to be complete, and its manifest."""
    with reading(where):
        if not client.indices.exists(index=where.index):
            raise UsageError(
                f"no index at {where}: make one with `hopscope index build CORPUS.jsonl "
                f"--kind {KIND} --out {where}`"
            )
        found = client.indices.get(index=where.index)
        if len(found) != 1:
            raise IndexMismatchError(f"{where} stands for {len(found)} indices: name one of them")
        [(index, described)] = found.items()
        stored = _meta(described)
        passages = client.count(index=index)["count"]
    try:
        manifest = Manifest.model_validate(stored)
    except ValidationError:
        raise IndexMismatchError(
            f"{where} has no manifest of format {index_folder.FORMAT}: it was not made by this "
            "version; build the index again"
        ) from None
    wanted = settings(k1=manifest.settings.get("k1"), b=manifest.settings.get("b"))
    index_folder.check_settings(str(where), manifest, wanted)
    said = manifest.counts.get("passages")
    if passages != said:
        raise IndexMismatchError(
            f"{where} has {passages} passages, its manifest says {said}; build it again"
        )
    return index, manifest


def replaced(client: Any, where: IndexAddress, overwrite: bool) -> list[str]:
    """The indices that a name stands for and that may go.

    Raises:
        UsageError: the name is taken.
    """
    with reading(where):
        if not client.indices.exists(index=where.index):
            return []
        found = client.indices.get(index=where.index)
        ours = all(_meta(one) is not None and index != where.index for index, one in found.items())
    if not ours:
        raise UsageError(f"{where} exists and is no index of Hopscope's: give another name")
    if not overwrite:
        raise UsageError(f"{where} is an index already: give another name, or --overwrite")
    return list(found)


def forget(client: Any, index: IndexAddress) -> None:
    """Delete an index; that it stays is no reason to hide why it should go."""
    from opensearchpy.exceptions import OpenSearchException

    try:
        client.indices.delete(index=index.index)
    except OpenSearchException:
        return


def empty(*, k1: float, b: float, shards: int) -> dict[str, Any]:
    """What an index is created by: it takes passages as fast as it can, and shows none yet."""
    kept = {"type": "text", "index": False, "copy_to": "contents"}
    return {
        "settings": {
            "index": {
                "number_of_shards": shards,
                "number_of_replicas": 0,
                "refresh_interval": "-1",
                "similarity": {"default": {"type": "BM25", "k1": k1, "b": b}},
            }
        },
        "mappings": {
            "dynamic": "strict",
            "properties": {
                "position": {"type": "integer"},
                "id": {"type": "keyword", "index": False, "doc_values": False},
                "title": kept,
                "text": kept,
                "contents": {"type": "text", "analyzer": "english"},
            },
        },
    }


def settings(*, k1: JsonValue, b: JsonValue) -> dict[str, JsonValue]:
    """All that the ranking depends on besides the passages."""
    return {
        "variant": "lucene",
        "k1": k1,
        "b": b,
        "tokenizer": "opensearch-english",
        "stemmer": "porter",
        "fields": ["title", "text"],
    }


def _meta(described: Any) -> Any:
    return described["mappings"].get("_meta", {}).get(META)
