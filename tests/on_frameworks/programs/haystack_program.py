"""A pipeline of retriever, prompt and generator: a run of Haystack."""

import shelf
from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from openinference.instrumentation.haystack import HaystackInstrumentor


@component
class Generator:
    @component.output_types(replies=list[str])
    def run(self, prompt: str) -> dict[str, list[str]]:
        return {"replies": [shelf.ANSWER]}


HaystackInstrumentor().instrument(tracer_provider=shelf.provider())
store = InMemoryDocumentStore()
store.write_documents([Document(id=id, content=text) for id, text in shelf.PASSAGES.items()])
pipeline = Pipeline()
pipeline.add_component("retriever", InMemoryBM25Retriever(store))
pipeline.add_component(
    "prompt", PromptBuilder("{{ documents }} {{ question }}", required_variables="*")
)
pipeline.add_component("generator", Generator())
pipeline.connect("retriever.documents", "prompt.documents")
pipeline.connect("prompt.prompt", "generator.prompt")
pipeline.run({"retriever": {"query": shelf.QUESTION}, "prompt": {"question": shelf.QUESTION}})
