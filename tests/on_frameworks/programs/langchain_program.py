"""A chain that searches twice, and an agent with a retriever's tool: two runs of LangChain."""

from typing import Any

import shelf
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import create_retriever_tool
from openinference.instrumentation.langchain import LangChainInstrumentor


class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        return [Document(id=id, page_content=text) for id, text in shelf.found(query)]


class Model(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **_: Any) -> "Model":
        return self


def chain() -> None:
    prompt = ChatPromptTemplate.from_template("{documents}\n\n{question}")
    reader = prompt | Model(messages=iter([AIMessage(shelf.ANSWER)])) | StrOutputParser()

    def both(asked: dict[str, str]) -> str:
        documents = [each for query in shelf.QUERIES for each in Shelf().invoke(query)]
        texts = "\n".join(document.page_content for document in documents)
        return reader.invoke({"documents": texts, "question": asked["question"]})

    RunnableLambda(both).invoke({"question": shelf.QUESTION})


def agent() -> None:
    search = create_retriever_tool(Shelf(), "search", "Searches the shelf.")
    calls = [
        {"name": "search", "args": {"query": query}, "id": str(place)}
        for place, query in enumerate(shelf.QUERIES)
    ]
    said = [AIMessage("", tool_calls=calls), AIMessage(shelf.ANSWER)]
    asked = {"messages": [{"role": "user", "content": shelf.QUESTION}]}
    create_agent(Model(messages=iter(said)), [search]).invoke(asked)


LangChainInstrumentor().instrument(tracer_provider=shelf.provider())
chain()
agent()
