"""Any LangGraph graph as a workflow.

    workflow.of_graph(builder.compile(), "my-crag")

A graph over `runtime.execution.state.State` with nodes by `@step` runs like Hopscope's own
workflows. Any other graph keeps its own state, retriever and model, and the writes of its nodes
become its steps: see `of_graph` for the rules.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, get_type_hints

from langchain_core.messages import HumanMessage
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

from hopscope.runtime.adapters._event_loop import EventLoop
from hopscope.runtime.adapters._keys import AUTO, MESSAGES, Keys, keys
from hopscope.runtime.adapters._watching import Rules, Watch
from hopscope.runtime.errors import HopscopeError, UsageError
from hopscope.runtime.execution.run import NODE_LIMIT, Workflow, closing
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Question

KIND = "graph:"
"""Prefix of the name of such a workflow, which no command can rebuild."""
UNNAMED = "LangGraph"
"""LangGraph's name for a graph without a name."""


def of_graph(
    graph: Any,
    name: str | None = None,
    *,
    question: str = AUTO,
    documents: str | None = AUTO,
    query: str | None = AUTO,
    answer: str = AUTO,
    retrieves: Sequence[str] | None = None,
    inputs: dict[str, Any] | None = None,
    context: Any = None,
    asynchronous: bool | None = None,
) -> Workflow:
    """A workflow that runs a graph of LangGraph, compiled or not.

    A graph over `State` with nodes by `@step` needs none of the options. In any other graph each
    executed node is a step, and a subgraph is one node:

    - **Retrieval.** A node retrieves if it is among `retrieves`, or from the first time that it
      writes new documents. Its query is its input under `query`, else under `question`. Its ranking
      is its written documents, after those of its input.
    - **Tools.** If messages call tools, a tool's message is a retrieval of the documents in its
      artifact, else in its content: a JSON list of passages, or one passage. The query is the
      argument `query` of the call, or its only text, or all arguments as JSON.
    - **Evidence** is the value of the documents' key after the node; without such a key, all
      passages retrieved so far.
    - **Judging.** A node that writes documents without retrieval has selected them. A document
      that it changes under the same id counts with its retrieved text.
    - **Generation.** All other nodes. Their prompts are unknown: a node that writes text counts as
      having shown its model all evidence.
    - **Answer**: the final value of the answer's key. A graph that ends without it, or that waits
      for a person, has failed.
    - **Cost.** Tokens are those in the messages of models. Any other node that writes text counts
      as one call with unknown tokens, so totals are unknown, not zero. Limits and policies cannot
      hold and are refused.

    The documents may be texts, dicts, `Passage` or documents of LangChain; see
    `retriever.of_callable`. Unchanged inputs do not count as a node's writes.

    Nodes may use the run's own reader and retriever: with `context_schema=Deps` they are in the
    nodes' `runtime.context`. The steps then record exact queries, prompts and costs, and limits
    hold.

    The reader and the retriever of a run are not in its record if the graph brings its own. Credit
    by `mode=frozen` is measured as for any run; `mode=replay` is refused, since passages cannot be
    withheld from a graph with its own retriever.

    Args:
        name: the records of runs have it as `graph:NAME`; by default the graph's own.
        question: the key of the question; by default `question`, `query`, `input` or `messages`,
            the first that the graph has.
        documents: the key that nodes write documents to; by default the only one of `documents`,
            `docs`, `context`, `retrieved` and the like, or `messages`. None: no retrieval.
        query: the key of the query, by default `query` or `search_query` if it exists.
        answer: the key of the answer; by default the only one of `answer`, `generation`, `output`
            and the like, or `messages`.
        retrieves: the nodes or tools that retrieve, and no others.
        inputs: values of the graph's further inputs.
        context: of the type of the graph's own context schema.
        asynchronous: whether to run it by `astream`; by default only if a node requires it.

    Raises:
        UsageError: the argument is no graph with a state, or its keys are ambiguous.
    """
    if not isinstance(graph, CompiledStateGraph | StateGraph):
        raise UsageError(
            f"a workflow is made of a StateGraph, compiled or not; {type(graph).__name__} is none, "
            "and a function under @entrypoint has no state to read"
        )
    compiled = graph.compile() if isinstance(graph, StateGraph) else graph
    builder = compiled.builder
    named = KIND + (name or (UNNAMED if compiled.name is None else compiled.name))
    ports = builder.context_schema is Deps
    if ports and _ours(builder.state_schema):
        keys_given = any(key != AUTO for key in (question, documents, query, answer))
        if keys_given or retrieves or inputs or context is not None or asynchronous is not None:
            raise UsageError(
                f"{named} is made of steps over State, which say themselves what they do: leave "
                "out all options but the name"
            )
        return Workflow(named, builder, {})
    state = _state(compiled)
    found = keys(
        named,
        list(builder.schemas[builder.input_schema]),
        state,
        {*state, *(key for schema in builder.schemas.values() for key in schema)},
        ports=ports,
        question=question,
        documents=documents,
        query=query,
        answer=answer,
    )
    watched = WatchedGraph(
        named,
        compiled,
        found,
        ports,
        None if retrieves is None else frozenset(retrieves),
        inputs or {},
        context,
        _async_only(compiled) if asynchronous is None else asynchronous,
    )
    return Workflow(named, watched, watched.options)


@dataclass(frozen=True)
class WatchedGraph:
    """See `of_graph`; may be run by several threads at once if the graph may."""

    name: str
    graph: CompiledStateGraph[Any, Any, Any, Any]
    keys: Keys
    ports: bool
    retrieves: frozenset[str] | None
    inputs: dict[str, Any]
    context: Any
    asynchronous: bool
    _loop: EventLoop = field(default_factory=EventLoop)

    @property
    def options(self) -> dict[str, Any]:
        """The options that read its state, for the records of runs."""
        chosen = {} if self.retrieves is None else {"retrieves": sorted(self.retrieves)}
        read = self.keys
        return {
            "question": read.question,
            "documents": read.documents,
            "query": read.query,
            "answer": read.answer,
            **chosen,
        }

    def check(self, deps: Deps) -> None:
        """
        Raises:
            UsageError: there is a policy, or a limit that its own model would evade.
        """
        if deps.policy is not None:
            raise UsageError(
                f"{self.name} decides itself when to retrieve: leave out the policy, or write its "
                "nodes with @step"
            )
        if deps.ledger.limits.given and not self.ports:
            limits = ", ".join(deps.ledger.limits.given)
            raise UsageError(
                f"{self.name} calls its own model, so that limits cannot hold ({limits}): leave "
                "them out, or let its nodes ask the run's reader (context_schema=Deps)"
            )

    def states(self, question: Question, deps: Deps, *, run_id: str) -> Iterator[dict[str, Any]]:
        """See `run.Watched`.

        Raises:
            UsageError: it ended without an answer, or waits for a person.
            RetrieverError: the documents' key has other values.
        """
        rules = Rules(self.name, self.keys, self.ports, self.retrieves, closing(self.graph))
        watch = Watch(rules, question, deps)
        try:
            yield from (self._awaited if self.asynchronous else self._streamed)(watch, run_id)
            watch.settle()
            yield watch.finished()
        except KeyboardInterrupt:
            yield watch.state  # Ctrl-C may have come while it was handed over
            raise
        except Exception as error:
            with suppress(HopscopeError):  # the finished nodes beside the failed one
                watch.settle()
            yield watch.failed(error)
            raise
        finally:
            watch.close()

    def _streamed(self, watch: Watch, run_id: str) -> Iterator[dict[str, Any]]:
        for mode, event in self.graph.stream(self._input(watch), **self._options(watch, run_id)):
            if watch.note(mode, event):
                yield watch.state

    def _awaited(self, watch: Watch, run_id: str) -> Iterator[dict[str, Any]]:
        states: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        stream = self.graph.astream(self._input(watch), **self._options(watch, run_id))

        async def run() -> None:
            try:
                async for mode, event in stream:
                    if watch.note(mode, event):
                        states.put(watch.state)
            finally:
                states.put(None)

        running = self._loop.begin(run())
        try:
            while (state := states.get()) is not None:
                yield state
            running.result()
        finally:
            running.cancel()

    def _options(self, watch: Watch, run_id: str) -> dict[str, Any]:
        own: Any = self.graph.config or {}
        return {
            "stream_mode": ["tasks", "values"],
            "output_keys": self.keys.read(_state(self.graph)),
            "context": watch.ports() if self.ports else self.context,
            "config": {
                "configurable": {"thread_id": run_id},
                "recursion_limit": own.get("recursion_limit", NODE_LIMIT),
            },
        }

    def _input(self, watch: Watch) -> dict[str, Any]:
        key, question = self.keys.question, watch.question
        takes = get_type_hints(self.graph.builder.input_schema).get(key)
        asked: Any = question if takes is Question else question.text
        return {**self.inputs, key: [HumanMessage(question.text)] if key == MESSAGES else asked}


def _ours(schema: Any) -> bool:
    """Whether the steps of a graph over this state come from `@step`."""
    hints = get_type_hints(schema)
    return hints.get("question") is Question and "steps" in hints


def _state(graph: CompiledStateGraph[Any, Any, Any, Any]) -> list[str]:
    """The keys of a graph's state."""
    found = graph.stream_channels_asis
    return [found] if isinstance(found, str) else list(found)


def _async_only(graph: CompiledStateGraph[Any, Any, Any, Any]) -> bool:
    """Whether a node can only be awaited."""
    runnables = (node.bound for node in graph.nodes.values())
    return any(
        getattr(each, "afunc", None) is not None and getattr(each, "func", None) is None
        for each in runnables
    )
