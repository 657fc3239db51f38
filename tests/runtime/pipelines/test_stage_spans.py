"""The spans of a composed retriever's stages: where they hang, what they say, what they keep to
themselves."""

import json
from collections.abc import Iterator

import pytest
from opentelemetry.trace import StatusCode

from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.pipelines.composition import Parts, compose
from hopscope.runtime.pipelines.expression_parser import parse
from hopscope.runtime.ports import Retriever
from hopscope.runtime.types import Hit, Question, Run
from hopscope.workflows import naive
from tests.fakes import passage
from tests.servers.otlp import Recorded, recorded
from tests.talk import ScriptedRetriever, Talker

QUESTION = Question(text="Who directed Alba?")
FOUND = [passage("one"), passage("two")]


@pytest.fixture
def seen() -> Iterator[Recorded]:
    with recorded() as into:
        yield into


def composed(expression: str, reader: Talker) -> Retriever:
    parts = Parts(
        source=lambda name: ScriptedRetriever(lambda query: FOUND if query else []),
        reader=reader,
        other_reader=lambda spec: reader,
    )
    return compose(parse(expression), parts)


def ask(expression: str, *replies: str, capture: bool = True) -> Run:
    reader = Talker(replies)
    deps = Deps(reader=reader, retriever=composed(expression, reader), capture_content=capture)
    return run(Workflow("naive", naive.build(k=2), {}), QUESTION, deps)


def test_a_stage_hangs_below_the_retrieval_and_what_it_asks_below_it(seen: Recorded) -> None:
    result = ask("a@RR@1@CP", "[2] > [1]", "A summary.", "Costa")
    assert result.status == "ok", result.error
    names = {span.context.span_id: span.name for span in seen.spans if span.context}
    tree = [
        (span.name.split(" [")[0], names.get(span.parent.span_id) if span.parent else None)
        for span in seen.spans
    ]
    (retrieval,) = (name for name in names.values() if name.startswith("retrieval "))
    rerank, compress = "rerank listwise(window=20,stride=10)", "compress summary(words=200)"
    assert tree == [
        ("invoke_workflow naive", None),
        ("retrieve", "invoke_workflow naive"),
        ("retrieval a@RR@1@CP", "retrieve"),
        (rerank, retrieval),
        ("chat scripted", rerank),
        (compress, retrieval),
        ("chat scripted", compress),
        ("answer", "invoke_workflow naive"),
        ("chat scripted", "answer"),
    ]


def document(hit: Hit) -> dict[str, object]:
    made = hit.passage
    metadata = {"title": made.title, "source": made.source}
    return {"id": made.key, "score": hit.score, "content": made.text, "metadata": metadata}


def flattened(prefix: str, hits: list[Hit]) -> dict[str, object]:
    return {
        f"{prefix}.{position}.document.{name}": (
            json.dumps(value, separators=(",", ":")) if name == "metadata" else value
        )
        for position, hit in enumerate(hits)
        for name, value in document(hit).items()
    }


def test_the_exact_attributes_of_a_reranking(seen: Recorded) -> None:
    ask("a@RR@1", "[2] > [1]", "Costa")
    attributes = dict(seen.named("rerank listwise(window=20,stride=10)").attributes or {})
    before = [Hit(passage=p, score=1 / place) for place, p in enumerate(FOUND, 1)]
    after = [Hit(passage=p, score=1 / place) for place, p in enumerate(reversed(FOUND), 1)]
    assert json.loads(str(attributes.pop("output.value"))) == [document(hit) for hit in after]
    assert attributes == {
        "openinference.span.kind": "RERANKER",
        "gen_ai.operation.name": "rerank",
        "hopscope.stage": "@RR",
        "hopscope.stage.parse_ok": True,
        "reranker.model_name": "listwise(window=20,stride=10)",
        "reranker.query": QUESTION.text,
        "reranker.top_k": 1,
        "input.value": QUESTION.text,
        "input.mime_type": "text/plain",
        "output.mime_type": "application/json",
        **flattened("reranker.input_documents", before),
        **flattened("reranker.output_documents", after),
    }


def test_a_compression_tells_its_tokens(seen: Recorded) -> None:
    ask("a@CP", "A short summary of both.", "Costa")
    attributes = dict(seen.named("compress summary(words=200)").attributes or {})
    assert attributes["openinference.span.kind"] == "RERANKER"
    assert attributes["gen_ai.operation.name"] == "compress"
    assert attributes["hopscope.stage.tokens_before"] == 10
    assert attributes["hopscope.stage.tokens_after"] == 5
    assert attributes["reranker.output_documents.0.document.content"] == "A short summary of both."


def test_without_capture_a_stage_gives_no_text_away(seen: Recorded) -> None:
    result = ask("a@RR@CP", "[2] > [1]", "A summary.", "Costa", capture=False)
    assert result.status == "ok", result.error
    for text in (QUESTION.text, "A summary", *(p.text for p in FOUND)):
        assert text not in seen.content
    attributes = dict(seen.named("rerank listwise(window=20,stride=10)").attributes or {})
    assert [
        attributes[f"reranker.output_documents.{i}.document.id"] for i in range(2)
    ] == ["two", "one"]  # fmt: skip


def test_a_stage_that_fails_marks_its_span(seen: Recorded) -> None:
    result = ask("a@RR")
    assert result.status == "failed"
    span = seen.named("rerank listwise(window=20,stride=10)")
    assert span.status.status_code is StatusCode.ERROR


def test_each_query_has_a_span_and_one_that_finds_nothing_has_none(seen: Recorded) -> None:
    retriever = composed("a@RR", Talker(["[1]", "[2]"]))
    retriever.search(["Who?", "", "Where?"], k=2)
    spans = [span for span in seen.spans if span.name.startswith("rerank")]
    assert len(spans) == 2
    assert all("reranker.query" not in (span.attributes or {}) for span in spans)
