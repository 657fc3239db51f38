"""Record a LangGraph agent over any model, and stop its second search. The model is scripted."""

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import hopscope


@tool
def search(query: str) -> str:
    """Search the shelf."""
    return "[1] Elsa Wilby is employed by Salwin Pictures."


def calling(query: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "search", "args": {"query": query}, "id": query}])


said = [calling("Elsa Wilby"), calling("her company"), AIMessage("Salwin Pictures")]
model = GenericFakeChatModel(messages=iter(said))
guard = hopscope.middleware(limits=hopscope.Limits(retrievals=1))
graph = StateGraph(MessagesState)
graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_node("tools", ToolNode([search], wrap_tool_call=guard.wrap_tool_call))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", tools_condition)
graph.add_edge("tools", "model")
question = {"role": "user", "content": "What company employs Elsa Wilby?"}

with hopscope.Store.open("sqlite://") as store:
    handler = hopscope.HopscopeHandler(store)
    graph.compile().invoke({"messages": [question]}, config={"callbacks": [handler]})
    for step in store.run(handler.stored[0]).steps:
        print(step.name, "-", step.query, "-", step.decision.reason if step.decision else "")
