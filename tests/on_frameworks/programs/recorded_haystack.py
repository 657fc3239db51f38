"""A pipeline and an agent of Haystack, recorded."""

import shelf
import telling
from haystack import Document, Pipeline, component
from haystack.components.agents import Agent
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.tools import tool

import hopscope


@component
class Generator:
    @component.output_types(replies=list[str], meta=list[dict])
    def run(self, prompt: str) -> dict[str, list]:  # type: ignore[type-arg]
        usage = {"prompt_tokens": 50, "completion_tokens": 3}
        return {"replies": [shelf.ANSWER], "meta": [{"usage": usage}]}


@component
class Chat:
    def __init__(self) -> None:
        calls = [ToolCall("search", {"query": query}) for query in shelf.QUERIES]
        self.said = [
            ChatMessage.from_assistant(tool_calls=calls),
            ChatMessage.from_assistant(shelf.ANSWER),
        ]

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: object = None) -> dict[str, list]:  # type: ignore[type-arg]
        return {"replies": [self.said.pop(0)]}


@tool
def search(query: str) -> str:
    """Search the shelf."""
    return "\n".join(f"[{n}] {text}" for n, (_, text) in enumerate(shelf.found(query), start=1))


documents = InMemoryDocumentStore()
documents.write_documents([Document(id=id, content=text) for id, text in shelf.PASSAGES.items()])
pipeline = Pipeline()
pipeline.add_component("retriever", InMemoryBM25Retriever(documents))
pipeline.add_component(
    "prompt", PromptBuilder("{{ documents }} {{ question }}", required_variables="*")
)
pipeline.add_component("generator", Generator())
pipeline.connect("retriever.documents", "prompt.documents")
pipeline.connect("prompt.prompt", "generator.prompt")
asked = {"retriever": {"query": shelf.QUESTION}, "prompt": {"question": shelf.QUESTION}}

store = hopscope.Store.open("sqlite://")
with hopscope.record_haystack(store) as recorded:
    pipeline.run(asked)
    Agent(chat_generator=Chat(), tools=[search]).run([ChatMessage.from_user(shelf.QUESTION)])
pipeline.run(asked)
assert not recorded.problems, recorded.problems
telling.tell(store, recorded.stored)
