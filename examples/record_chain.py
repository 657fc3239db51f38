"""Record a LangChain RAG chain by its callbacks. The model is scripted."""

from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough

import hopscope

FACTS = ("Elsa Wilby is employed by Salwin Pictures.", "Elsa Wilby was born in Nalmir.")
QUESTION = "What company employs Elsa Wilby?"


class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query: str, **_: object) -> list[Document]:
        return [Document(page_content=fact) for fact in FACTS]


prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
model = GenericFakeChatModel(messages=iter([AIMessage("Salwin Pictures")]))
read = prompt | model | StrOutputParser()
chain = {"context": Shelf(), "question": RunnablePassthrough()} | read

with hopscope.Store.open("sqlite://") as store:
    handler = hopscope.HopscopeHandler(store)
    with hopscope.recording(QUESTION, gold="Salwin Pictures", store=store) as run:
        chain.invoke(QUESTION, config={"callbacks": [handler]})
    with hopscope.Session(store=store) as session:
        for row in session.credit(run.id, over="passages", meters=["seper"], rules=["shapley"]):
            if row.rule == "shapley" and row.passage:
                print(f"passage {row.passage}: {row.value:+.2f}")
