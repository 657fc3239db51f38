"""Record a query engine of LlamaIndex, and measure its passages. The model is scripted.

Needs `pip install 'hopscope[local,llama-index]'`.
"""

from typing import Any

from llama_index.core import QueryBundle
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

import hopscope

FACTS = ("Elsa Wilby is employed by Salwin Pictures.", "Elsa Wilby was born in Nalmir.")
QUESTION = "What company employs Elsa Wilby?"


class Shelf(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=fact), score=1.0) for fact in FACTS]


engine: Any = RetrieverQueryEngine.from_args(Shelf(), llm=MockLLM(max_tokens=8))

with hopscope.Store.open("sqlite://") as store:
    with (
        hopscope.recording(QUESTION, gold="Salwin Pictures", store=store) as run,
        hopscope.record_llama_index(store),
    ):
        run.answer = str(engine.query(QUESTION))
    with hopscope.Session(store=store) as session:
        for row in session.credit(run.id, over="passages", meters=["seper"], rules=["shapley"]):
            if row.rule == "shapley" and row.passage:
                print(f"passage {row.passage}: {row.value:+.2f}")
