"""A query engine, and an engine with two retrievers and a reranker: two runs of LlamaIndex."""

from typing import Any

import shelf
from llama_index.core import QueryBundle, Settings
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor


class Shelf(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = shelf.found(query_bundle.query_str)
        return [
            NodeWithScore(node=TextNode(id_=id, text=text), score=1.0 / place)
            for place, (id, text) in enumerate(found, start=1)
        ]


class Twice(BaseRetriever):
    """Searches for both queries."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        first, second = (Shelf().retrieve(query) for query in shelf.QUERIES)
        return [first[0], second[0]]


class Backwards(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> Any:
        return nodes[::-1]


LlamaIndexInstrumentor().instrument(tracer_provider=shelf.provider())
Settings.llm = MockLLM()
RetrieverQueryEngine.from_args(Shelf()).query(shelf.QUESTION)
RetrieverQueryEngine.from_args(Twice(), node_postprocessors=[Backwards()]).query(shelf.QUESTION)
