"""A shelf of two passages and models that say what they are told, for recorded programs."""

from collections.abc import Iterator
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever

QUESTION = "What is the headquarters city of the company that employs Elsa Wilby?"
GOLD = "Grand Rovmar"
PASSAGES = {
    "Elsa Wilby": "Elsa Wilby is employed by Salwin Pictures.",
    "Salwin Pictures": "Salwin Pictures is based in Grand Rovmar.",
}


def look_up(query: str) -> list[dict[str, str]]:
    """The passages whose titles stand in the query."""
    return [
        {"id": title, "title": title, "text": text}
        for title, text in PASSAGES.items()
        if title in query
    ]


class Shelf(BaseRetriever):
    """The shelf as LangChain's retriever; a query for nothing fails."""

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        if not query:
            raise RuntimeError("an empty query")
        return [
            Document(id=each["id"], page_content=each["text"], metadata={"title": each["title"]})
            for each in look_up(query)
        ]


class Model(GenericFakeChatModel):
    """Says the messages that it is given."""

    def bind_tools(self, tools: Any, **_: Any) -> "Model":
        return self


def model(*messages: AIMessage | str) -> Model:
    return Model(messages=iter(messages))


def calls(*queries: str, name: str = "search") -> AIMessage:
    """A message that searches for all of these at once."""
    made = [
        {"name": name, "args": {"query": query}, "id": f"{query}-{place}"}
        for place, query in enumerate(queries)
    ]
    usage = {"input_tokens": 30, "output_tokens": 7, "total_tokens": 37}
    return AIMessage("", tool_calls=made, usage_metadata=usage)


def answers(text: str = GOLD) -> AIMessage:
    usage = {"input_tokens": 50, "output_tokens": 3, "total_tokens": 53}
    return AIMessage(text, usage_metadata=usage)


def repeating(text: str) -> Iterator[AIMessage]:
    """An endless script of one reply, for programs that run many times."""
    while True:
        yield answers(text)
