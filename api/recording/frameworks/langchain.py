"""Callbacks of LangChain: chains, LangGraph's graphs and agents become recorded runs.

    graph.invoke(question, config={"callbacks": [HopscopeHandler(store)]})

A call that no other one made is one run, or a part of the recording around it. LangChain tells who
called whom, so that parallel branches and threads are kept apart.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.outputs import LLMResult
from pydantic_core import PydanticSerializationError

from hopscope.api.recording import attributes, replies
from hopscope.api.recording.background import Measure
from hopscope.api.recording.frameworks.calls import Calls
from hopscope.api.recording.places import Place
from hopscope.api.recording.replies import Reply
from hopscope.runtime.spans import keys
from hopscope.store.store import Store as RecordStore


class HopscopeHandler(BaseCallbackHandler):
    """Stores what LangChain's chains, and LangGraph's graphs and agents do, as runs.

        with HopscopeHandler("runs.db") as handler:
            graph.invoke({"messages": [...]}, config={"callbacks": [handler]})

    A search is a call of a retriever or of a tool; a retriever within a tool is one search. A tool
    that returns documents as its artifact tells them whole (`response_format=
    "content_and_artifact"`); passages glued into its text are parted by the rules of imported runs.
    Threads and tasks may share a handler.
    """

    run_inline = True  # in the order in which things happen, in asynchronous programs, too

    def __init__(
        self,
        store: "str | Path | RecordStore | None" = None,
        *,
        tools: Iterable[str] = (),
        workflow: str = "langchain",
        experiment: str | None = None,
        measure: str | Measure | None = None,
    ) -> None:
        """
        Args:
            store: a file or URL, by default the database of the command line, or an open store.
            tools: names of the tools that search; by default all do.
            workflow: name of the program: the workflow of its runs is `recorded:NAME`.
            experiment: the runs become part of it, so that tables compare them with others.
            measure: which runs are measured in the background; see `hopscope.recording`.

        Raises:
            UsageError: the store is none.
            StoreError: it cannot be opened.
        """
        self._calls = Calls(
            store, tools=tools, workflow=workflow, experiment=experiment, measure=measure
        )

    @property
    def stored(self) -> list[str]:
        """Ids of the runs that were stored, in order."""
        return self._calls.stored

    @property
    def problems(self) -> list[str]:
        """Why runs were not stored; the log tells them, too."""
        return self._calls.problems

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store, unless it was given open."""
        self._calls.close()

    def place(self, run_id: UUID | None) -> Place | None:
        """The span of a call that goes on."""
        return self._calls.place(run_id)

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        name: str | None = None,
        **_: Any,
    ) -> None:
        """A chain or a graph, or a step of one, begins."""
        told = (
            {keys.INPUT_VALUE: _json("question", inputs)} if not self.place(parent_run_id) else {}
        )
        self._calls.begin(run_id, parent_run_id, name or _name(serialized) or "chain", told)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, inputs: Any = None, **_: Any) -> None:
        """It ends. One that streams tells its input only now."""
        told = {}
        if self._calls.is_root(run_id):
            told = {keys.OUTPUT_VALUE: _json("answer", outputs)}
            if inputs:
                told[keys.INPUT_VALUE] = _json("question", inputs)
        self._calls.end(run_id, told)

    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, inputs: Any = None, **_: Any
    ) -> None:
        """It fails."""
        streamed = self._calls.is_root(run_id) and inputs
        self._calls.end(
            run_id, {keys.INPUT_VALUE: _json("question", inputs)} if streamed else {}, error
        )

    def on_retriever_start(
        self,
        serialized: dict[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        name: str | None = None,
        **_: Any,
    ) -> None:
        """A search begins."""
        named = name or _name(serialized) or "retriever"
        self._calls.begin(run_id, parent_run_id, named, attributes.search(query))

    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, **_: Any) -> None:
        """A search has found documents."""
        self._calls.end(run_id, _found(documents))

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A search fails."""
        self._calls.end(run_id, error=error)

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        inputs: dict[str, Any] | None = None,
        name: str | None = None,
        **_: Any,
    ) -> None:
        """A tool is called."""
        named = name or _name(serialized) or "tool"
        told = attributes.called(named, input_str if inputs is None else inputs)
        self._calls.begin(run_id, parent_run_id, named, told)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """A tool has returned: documents as its artifact, or a text."""
        artifact = output.artifact if isinstance(output, ToolMessage) else output
        if _documents(artifact):
            self._calls.end(run_id, _found(artifact))
            return
        message = isinstance(output, BaseMessage)
        told = replies.prompt(output) if message else replies.text(output)
        self._calls.end(run_id, attributes.returned(told))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A tool fails."""
        self._calls.end(run_id, error=error)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        name: str | None = None,
        **_: Any,
    ) -> None:
        """A chat model is asked."""
        prompt = replies.prompt([message for each in messages for message in each])
        self._ask(run_id, parent_run_id, name or _name(serialized), prompt, metadata)

    def on_llm_start(
        self,
        serialized: dict[str, Any] | None,
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        name: str | None = None,
        **_: Any,
    ) -> None:
        """A model that completes texts is asked."""
        prompt = replies.prompt(prompts)
        self._ask(run_id, parent_run_id, name or _name(serialized), prompt, metadata)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """A model has replied."""
        first = next((each for each in response.generations if each), None)
        if first is None:
            self._calls.end(run_id, attributes.replied(Reply("")))
            return
        reply = replies.read(getattr(first[0], "message", first[0].text))
        if reply.input_tokens is None and response.llm_output:
            counted = replies.read({"usage": response.llm_output.get("token_usage"), "text": ""})
            reply = reply._replace(
                input_tokens=counted.input_tokens, output_tokens=counted.output_tokens
            )
        self._calls.end(run_id, attributes.replied(reply))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A model fails."""
        self._calls.end(run_id, error=error)

    def _ask(
        self,
        run_id: UUID,
        parent: UUID | None,
        name: str,
        prompt: str,
        metadata: Mapping[str, Any] | None,
    ) -> None:
        model = (metadata or {}).get("ls_model_name")
        told = attributes.asked(prompt, model if isinstance(model, str) else "")
        if self.place(parent) is None:
            told[keys.INPUT_VALUE] = attributes.said("question", prompt)
        self._calls.begin(run_id, parent, name or "model", told)


def _name(serialized: Mapping[str, Any] | None) -> str:
    """The name of a part: its own, or that of its class."""
    told = serialized or {}
    named = told.get("name") or (told.get("id") or [""])[-1]
    return str(named)


def _documents(value: Any) -> bool:
    """Whether it is a list of documents."""
    return isinstance(value, list) and bool(value) and all(isinstance(d, Document) for d in value)


def _found(documents: Sequence[Document]) -> dict[str, Any]:
    """The end of a search. Documents of one id with different texts, as of one page in parts, lose
    it."""
    texts: dict[str, str] = {}
    told = [
        document
        if document.id is None
        or texts.setdefault(document.id, document.page_content) == document.page_content
        else document.model_copy(update={"id": None})
        for document in documents
    ]
    return attributes.found(attributes.passages(told))


def _json(name: str, value: Any) -> str:
    """A value as JSON; a text under that name."""
    if isinstance(value, str):
        return attributes.said(name, value)
    try:
        return replies.text(value)
    except (PydanticSerializationError, ValueError, RecursionError):  # of objects in a circle
        return attributes.said(name, "")
