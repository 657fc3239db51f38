"""Query engines of LlamaIndex, recorded: plain, composed with a reranker, awaited, failing."""

import asyncio
import contextlib
from typing import Any

import shelf
import telling
from llama_index.core import QueryBundle, Settings
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

import hopscope


class Shelf(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if query_bundle.query_str == "nothing":
            raise LookupError("nothing to find")
        found = shelf.found(query_bundle.query_str)
        return [
            NodeWithScore(node=TextNode(id_=id, text=text), score=1.0 / place)
            for place, (id, text) in enumerate(found, start=1)
        ]


class Twice(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        first, second = (Shelf().retrieve(query) for query in shelf.QUERIES)
        return [first[0], second[0]]


class Backwards(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> Any:
        return nodes[::-1]


class Model(CustomLLM):
    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        raw = {"usage": {"prompt_tokens": 50, "completion_tokens": 3}}
        return CompletionResponse(text=shelf.ANSWER, raw=raw)

    def stream_complete(
        self, prompt: str, formatted: bool = False, **_: Any
    ) -> CompletionResponseGen:
        raise NotImplementedError


Settings.llm = Model()
store = hopscope.Store.open("sqlite://")
with hopscope.record_llama_index(store) as recorded:
    RetrieverQueryEngine.from_args(Shelf()).query(shelf.QUESTION)
    reranked = RetrieverQueryEngine.from_args(Twice(), node_postprocessors=[Backwards()])
    reranked.query(shelf.QUESTION)
    asyncio.run(RetrieverQueryEngine.from_args(Shelf()).aquery(shelf.QUESTION))
    with contextlib.suppress(LookupError):
        RetrieverQueryEngine.from_args(Shelf()).query("nothing")
RetrieverQueryEngine.from_args(Shelf()).query("after the end")
assert not recorded.problems, recorded.problems
telling.tell(store, recorded.stored)
