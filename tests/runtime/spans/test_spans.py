"""The spans of a run: their tree, their exact attributes, and what they keep to themselves."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
from langgraph.graph import START
from openinference.semconv import trace as openinference
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode
from pydantic import JsonValue

from hopscope.runtime import spans
from hopscope.runtime.errors import ReaderError
from hopscope.runtime.execution.run import Run, Workflow, run
from hopscope.runtime.execution.state import Deps, Graph, State, Update
from hopscope.runtime.execution.step import step
from hopscope.runtime.prompting.prompts import short_answer
from hopscope.runtime.spans import content, keys
from hopscope.runtime.types import GenerationRequest, Passage, Question, Thought, Usage
from hopscope.tracing.spans.trace_file import line
from hopscope.workflows import ircot, naive
from tests.fakes import ScriptedReader, reply
from tests.servers.otlp import Recorded, recorded
from tests.talk import Reply, ScriptedRetriever, Talker

QUESTION = Question(text="Who directed Alba?", answers=("Bruno Costa",), id="q7")
PASSAGES = [Passage(id=f"p{i}", title=f"Title {i}", text=f"Passage text {i}.") for i in range(40)]
WRITTEN = ("Alba", "Bruno", "Passage text", "Title 0", "the reply", "You answer questions")


@pytest.fixture
def seen() -> Iterator[Recorded]:
    with recorded() as into:
        yield into


def ask(
    *replies: Reply, workflow: Graph | None = None, capture: bool = True, name: str = "naive"
) -> Run:
    deps = Deps(
        reader=Talker(replies),
        retriever=ScriptedRetriever(lambda _: PASSAGES),
        seed=3,
        capture_content=capture,
    )
    graph = workflow or naive.build(k=2)
    return run(Workflow(name, graph, {"k": 2, "note": "Alba"}), QUESTION, deps)


def parent(span: ReadableSpan) -> str:
    return f"{span.parent.span_id:016x}" if span.parent else ""


def own_id(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.span_id:016x}"


def test_the_spans_of_a_loop_hang_below_their_steps(seen: Recorded) -> None:
    result = ask("One.", "So the answer is: B.", "So the answer is: B.", workflow=ircot.build())
    tree = [(span.name, span.kind, parent(span)) for span in seen.spans]
    root, *steps = [result.span_id, *(s.span_id for s in result.steps)]
    steps_in, client = SpanKind.INTERNAL, SpanKind.CLIENT
    assert tree == [
        ("invoke_workflow naive", steps_in, ""),
        ("retrieve", steps_in, root),
        ("retrieval scripted", client, steps[0]),
        ("reason", steps_in, root),
        ("chat scripted", client, steps[1]),
        ("retrieve", steps_in, root),
        ("retrieval scripted", client, steps[2]),
        ("reason", steps_in, root),
        ("chat scripted", client, steps[3]),
        ("read", steps_in, root),
        ("chat scripted", client, steps[4]),
    ]
    assert {f"{s.context.trace_id:032x}" for s in seen.spans if s.context} == {result.trace_id}
    chats = [own_id(span) for span in seen.spans if span.name.startswith("chat")]
    assert chats == [exchange.span_id for s in result.steps for exchange in s.exchanges]
    assert all(span.status.status_code is StatusCode.UNSET for span in seen.spans)


def test_the_exact_attributes_of_every_span(seen: Recorded) -> None:
    result = ask("the reply")
    prompt = short_answer(QUESTION.text, PASSAGES[:2])
    documents = [
        {
            "id": f"p{i}",
            "score": 1 / (i + 1),
            "content": f"Passage text {i}.",
            "metadata": {"title": f"Title {i}", "source": ""},
        }
        for i in range(2)
    ]
    [root, retrieve, retrieval, answer, chat] = [dict(s.attributes or {}) for s in seen.spans]
    for span, key in ((retrieval, "gen_ai.retrieval.documents"), (retrieval, "output.value")):
        assert json.loads(str(span.pop(key))) == documents
    inputs = json.loads(str(chat.pop("gen_ai.input.messages")))
    assert [(m["role"], m["parts"][0]["content"]) for m in inputs] == [
        (m.role, m.content) for m in prompt.messages
    ]
    [output] = json.loads(str(chat.pop("gen_ai.output.messages")))
    assert output == {
        "role": "assistant",
        "parts": [{"type": "text", "content": "the reply"}],
        "finish_reason": "stop",
    }
    assert root == {
        "openinference.span.kind": "CHAIN",
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "naive",
        "hopscope.run.id": result.id,
        "hopscope.run.options": '{"k":2,"note":"Alba"}',
        "hopscope.question.id": "q7",
        "input.value": "Who directed Alba?",
        "input.mime_type": "text/plain",
        "output.value": "the reply",
        "output.mime_type": "text/plain",
        "hopscope.run.status": "ok",
        "hopscope.run.seed": 3,
        "hopscope.run.reader": "scripted",
        "hopscope.run.retriever": "scripted",
        "hopscope.run.steps": 2,
        "hopscope.retrieval.count": 2,
        "hopscope.usage.input_tokens": 10,
        "hopscope.usage.output_tokens": 2,
        "hopscope.usage.calls": 1,
        "hopscope.stop_reason": "answered",
    }
    assert retrieve == {
        "openinference.span.kind": "CHAIN",
        "graph.node.id": "retrieve",
        "graph.node.name": "retrieve",
        "hopscope.step.index": 0,
        "hopscope.step.kind": "retrieve",
        "hopscope.step.new": ("p0", "p1"),
        "hopscope.step.shown": (),
        "hopscope.step.evidence": ("p0", "p1"),
        "hopscope.retrieval.count": 2,
        "hopscope.usage.input_tokens": 0,
        "hopscope.usage.output_tokens": 0,
        "hopscope.usage.calls": 0,
        "input.value": "Who directed Alba?",
        "input.mime_type": "text/plain",
    }
    assert retrieval == {
        "openinference.span.kind": "RETRIEVER",
        "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "scripted",
        "gen_ai.retrieval.top_k": 2,
        "gen_ai.retrieval.query.text": "Who directed Alba?",
        "hopscope.retrieval.count": 2,
        "input.value": "Who directed Alba?",
        "input.mime_type": "text/plain",
        "output.mime_type": "application/json",
        "retrieval.documents.0.document.id": "p0",
        "retrieval.documents.0.document.score": 1.0,
        "retrieval.documents.0.document.content": "Passage text 0.",
        "retrieval.documents.0.document.metadata": '{"title":"Title 0","source":""}',
        "retrieval.documents.1.document.id": "p1",
        "retrieval.documents.1.document.score": 0.5,
        "retrieval.documents.1.document.content": "Passage text 1.",
        "retrieval.documents.1.document.metadata": '{"title":"Title 1","source":""}',
    }
    assert answer == {
        "openinference.span.kind": "CHAIN",
        "graph.node.id": "answer",
        "graph.node.name": "answer",
        "hopscope.step.index": 1,
        "hopscope.step.kind": "generate",
        "hopscope.step.new": (),
        "hopscope.step.shown": ("p0", "p1"),
        "hopscope.step.evidence": ("p0", "p1"),
        "hopscope.retrieval.count": 0,
        "hopscope.usage.input_tokens": 10,
        "hopscope.usage.output_tokens": 2,
        "hopscope.usage.calls": 1,
        "hopscope.stop_reason": "answered",
        "output.value": "the reply",
        "output.mime_type": "text/plain",
    }
    assert chat == {
        "openinference.span.kind": "LLM",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "hopscope",
        "gen_ai.request.model": "scripted",
        "gen_ai.response.model": "scripted",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.max_tokens": 32,
        "gen_ai.request.seed": 3,
        "gen_ai.request.stop_sequences": ("\n",),
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
        "llm.model_name": "scripted",
        "llm.invocation_parameters": '{"temperature":0.0,"max_tokens":32,"seed":3,"n":1,'
        '"stop":["\\n"]}',
        "llm.finish_reason": "stop",
        "llm.token_count.prompt": 10,
        "llm.token_count.completion": 2,
        "llm.token_count.total": 12,
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": prompt.messages[0].content,
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": prompt.messages[1].content,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "the reply",
        "input.value": prompt.text,
        "input.mime_type": "text/plain",
        "output.value": "the reply",
        "output.mime_type": "text/plain",
    }


def test_keys_are_those_of_openinference() -> None:
    ours = {k: v for k, v in vars(keys).items() if isinstance(v, str) and k.isupper()}
    of = ("Span", "Document", "Message", "MessageContent", "Reranker")
    classes = [f"{kind}Attributes" for kind in of]
    theirs = {v for c in classes for v in vars(getattr(openinference, c)).values()}
    groups = ("input", "output", "graph", "retrieval", "reranker", "document", "llm", "message")
    groups += ("message_content",)
    borrowed = tuple(f"{group}." for group in groups)
    for value in ours.values():
        if value.startswith((*borrowed, "openinference.")):
            assert value in theirs
    kinds = {kind.value for kind in openinference.OpenInferenceSpanKindValues}
    used = ("CHAIN", "LLM", "RETRIEVER", "RERANKER", "EVALUATOR")
    assert {getattr(keys, name) for name in used} <= kinds


def test_without_capture_nothing_written_leaves_the_process(seen: Recorded) -> None:
    """A failing node quotes the question in its message: that must not get out either."""
    quoting = ReaderError(f"cannot read: {QUESTION.text}")
    for replies in (["the reply"], [quoting]):
        ask(*replies, capture=False)
    for text in WRITTEN:
        assert text not in seen.content
    retrieval = dict(seen.spans[2].attributes or {})
    assert json.loads(str(retrieval["output.value"]))[1] == {"id": "p1", "score": 0.5}
    assert retrieval["retrieval.documents.1.document.id"] == "p1"
    failed = [s for s in seen.spans if s.status.status_code is StatusCode.ERROR]
    assert [s.name for s in failed] == ["invoke_workflow naive", "answer", "chat scripted"]
    for span in failed:
        assert span.status.description == "ReaderError"
        assert {(e.name, *dict(e.attributes or {}).items()) for e in span.events} == {
            ("exception", ("exception.type", "ReaderError"))
        }


@pytest.mark.parametrize("capture", [True, False])
def test_thoughts_stand_before_the_answer_or_nowhere(seen: Recorded, capture: bool) -> None:
    thought = Thought(text="a secret thought", tokens=5, end="forced")
    usage = Usage(input_tokens=10, output_tokens=7, calls=1, thinking_tokens=5)
    reader = ScriptedReader([[reply("the reply", thought=thought, usage=usage)]])
    deps = Deps(reader=reader, retriever=ScriptedRetriever(lambda _: PASSAGES))
    run(Workflow("naive", naive.build(k=2), {}), QUESTION, replace(deps, capture_content=capture))
    chat = next(dict(s.attributes or {}) for s in seen.spans if s.name == "chat scripted")
    assert chat["gen_ai.usage.output_tokens"] == 7
    assert chat["gen_ai.usage.reasoning.output_tokens"] == 5
    assert chat["llm.token_count.completion_details.reasoning"] == 5
    assert chat["hopscope.thought.ends"] == ("forced",)
    step = next(dict(s.attributes or {}) for s in seen.spans if s.name == "answer")
    assert step["hopscope.usage.thinking_tokens"] == 5
    if not capture:
        assert "secret" not in seen.content
        return
    [message] = json.loads(str(chat["gen_ai.output.messages"]))
    assert message["parts"] == [
        {"type": "reasoning", "content": "a secret thought"},
        {"type": "text", "content": "the reply"},
    ]
    parts = "llm.output_messages.0.message.contents"
    assert chat[f"{parts}.0.message_content.type"] == "reasoning"
    assert chat[f"{parts}.0.message_content.text"] == "a secret thought"
    assert chat[f"{parts}.1.message_content.text"] == chat["output.value"] == "the reply"


def test_a_failing_node_marks_its_spans_and_the_run(seen: Recorded) -> None:
    ask(ReaderError("out of memory"))
    status = {
        s.name: (s.status.status_code, (s.attributes or {}).get("error.type")) for s in seen.spans
    }
    failed, fine = (StatusCode.ERROR, "ReaderError"), (StatusCode.UNSET, None)
    assert status == {
        "invoke_workflow naive": failed,
        "retrieve": fine,
        "retrieval scripted": fine,
        "answer": failed,
        "chat scripted": failed,
    }
    chat = seen.named("chat scripted")
    assert chat.status.description is not None
    assert "out of memory" in chat.status.description
    [event] = chat.events
    attributes = dict(event.attributes or {})
    assert "out of memory" in str(attributes["exception.message"])
    assert "Traceback" in str(attributes["exception.stacktrace"])


def test_an_interrupted_run_says_so(seen: Recorded) -> None:
    class Stopping(Talker):
        def generate(self, requests):  # type: ignore[no-untyped-def]
            raise KeyboardInterrupt

    deps = Deps(reader=Stopping([]), retriever=ScriptedRetriever(lambda _: PASSAGES))
    run(Workflow("naive", naive.build(), {}), QUESTION, deps)
    root = seen.named("invoke_workflow naive")
    assert dict(root.attributes or {})["hopscope.run.status"] == "interrupted"
    assert root.status.status_code is StatusCode.ERROR


def test_forty_documents_survive(seen: Recorded) -> None:
    """The SDK's default of 128 attributes drops the last ones without a word."""
    ask("the reply", workflow=naive.build(k=40))
    attributes = dict(seen.named("retrieval scripted").attributes or {})
    kept = [k for k in attributes if k.startswith("retrieval.documents.")]
    assert len(kept) == 160
    assert attributes["retrieval.documents.39.document.content"] == "Passage text 39."


@step("generate")
def several(state: State, deps: Deps) -> Update:
    prompt = short_answer(state["question"].text)
    requests = [GenerationRequest(prompt=prompt, n=n) for n in (1, 2)]
    replies = deps.reader.generate(requests)
    deps.retriever.search(["one", "two", "three"], k=1)
    return {"answer": replies[0][0].text}


def test_the_spans_of_a_batch_are_siblings_that_start_together(seen: Recorded) -> None:
    graph = Graph(State, context_schema=Deps)
    graph.add_node("several", several())
    graph.add_edge(START, "several")
    result = ask("a", "b", "c", workflow=graph)
    chats = [s for s in seen.spans if s.name.startswith("chat")]
    searches = [s for s in seen.spans if s.name.startswith("retrieval")]
    assert (len(chats), len(searches)) == (2, 3)
    for batch in (chats, searches):
        assert len({(s.start_time, s.end_time) for s in batch}) == 1
        assert {parent(s) for s in batch} == {result.steps[0].span_id}
    two = next(
        dict(s.attributes or {})
        for s in chats
        if "gen_ai.request.choice.count" in (s.attributes or {})
    )
    assert two["gen_ai.request.choice.count"] == 2
    assert two["gen_ai.response.finish_reasons"] == ("stop", "stop")
    assert two["output.value"] == '["b","c"]'
    assert two["llm.output_messages.1.message.content"] == "c"
    queries = [dict(s.attributes or {})["input.value"] for s in searches]
    assert sorted(map(str, queries)) == ["one", "three", "two"]


@step("generate")
def left(state: State, deps: Deps) -> Update:
    deps.retriever.search(["left"], k=1)
    return {}


@step("generate")
def right(state: State, deps: Deps) -> Update:
    deps.retriever.search(["right"], k=1)
    return {}


def test_nodes_that_run_in_parallel_keep_their_parents(seen: Recorded) -> None:
    """LangGraph runs them in threads of its own."""
    graph = Graph(State, context_schema=Deps)
    for name, node in (("left", left()), ("right", right())):
        graph.add_node(name, node)
        graph.add_edge(START, name)
    result = ask(workflow=graph, capture=True)
    below = {
        str((s.attributes or {})["input.value"]): parent(s)
        for s in seen.spans
        if s.name.startswith("retrieval")
    }
    assert below == {name: own_id(seen.named(name)) for name in ("left", "right")}
    assert {parent(seen.named(name)) for name in below} == {result.span_id}


def test_without_an_sdk_nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    for builder in ("text", "as_json", "request", "reply", "query", "ranking", "spent"):
        monkeypatch.setattr(content, builder, None)
    monkeypatch.setattr(content, "text", str)  # span names
    result = ask("the reply")
    assert result.status == "ok"
    assert (result.trace_id, result.span_id) == ("", "")
    assert {s.span_id for s in result.steps} == {""}


def test_odd_values_neither_fail_nor_get_out(seen: Recorded) -> None:
    """Half a surrogate pair breaks protobuf, NaN is no JSON, an exception may not print."""

    class Unprintable(ValueError):
        def __str__(self) -> str:
            raise ZeroDivisionError

    options: dict[str, JsonValue] = {"a": math.nan, "b": "\ud83d"}
    with spans.workflow("r", "w\ud83d", QUESTION, options, capture=True) as span:
        spans.fail(span, ValueError("odd \ud83d"), capture=True)
        spans.fail(span, Unprintable(), capture=True)
    [span_made] = seen.spans
    attributes = dict(span_made.attributes or {})
    assert json.loads(str(attributes["hopscope.run.options"])) == {"a": None, "b": "\ufffd"}
    assert span_made.name == "invoke_workflow w\ufffd"
    assert "odd \ufffd".encode() in line(span_made)


def test_long_passages_are_cut_at_the_stated_limit(seen: Recorded) -> None:
    long = Passage(id="p", text="x" * 10_000)
    deps = Deps(reader=Talker(["a"]), retriever=ScriptedRetriever(lambda _: [long]))
    run(Workflow("naive", naive.build(), {}), QUESTION, deps)
    attributes = dict(seen.named("retrieval scripted").attributes or {})
    shown = str(attributes["retrieval.documents.0.document.content"])
    assert shown == "x" * content.DOCUMENT_LIMIT + "… [6000 more characters]"


def test_tokens_that_nobody_counted_are_left_out() -> None:
    """A trace showed 0 where a server tells no usage."""
    told = content.reply("m", [reply("a", usage=Usage(calls=1, uncounted=1))], capture=True)
    counted = content.reply("m", [reply("a", usage=Usage(calls=1))], capture=True)
    assert counted.keys() - told.keys() == {
        keys.USAGE_INPUT,
        keys.USAGE_OUTPUT,
        keys.LLM_TOKENS_PROMPT,
        keys.LLM_TOKENS_COMPLETION,
        keys.LLM_TOKENS_TOTAL,
    }
    assert content.spent(Usage(calls=1, uncounted=1)) == {keys.SPENT_CALLS: 1}
