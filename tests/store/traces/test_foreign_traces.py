"""Traces of other programs, by OpenInference's and gen_ai's conventions, and by MLflow's."""

import json
from pathlib import Path
from typing import Any

import pytest

from hopscope.lab.export.trec import of_run
from hopscope.runtime import components
from hopscope.runtime.spans import keys
from hopscope.runtime.types import Decision, Run, Usage
from hopscope.store import formats
from hopscope.store.trajectories.sources import Source, Unread
from hopscope.tracing.games.frozen import contributions
from hopscope.tracing.reports.shown import shown_passages

TRACE = "0af7651916cd43dd8448eb211c80319c"
HELLON = {"id": "h", "title": "Port Hellon", "text": "Its mayor is Cleo Marwick."}
ROVMAR = {"id": "r", "title": "Rovmar", "text": "A town on a river."}


def span(number: int, parent: int, name: str, **attributes: Any) -> dict[str, Any]:
    """A span that lasts from one millisecond to the next, unless told otherwise."""
    lasts = attributes.pop("lasts", 1)
    return {
        "trace": attributes.pop("trace", TRACE),
        "id": f"{number:016x}",
        "parent": f"{parent:016x}" if parent else "",
        "name": name,
        "start": 1_700_000_000_000 + number,
        "end": 1_700_000_000_000 + number + lasts,
        "attributes": {key.replace("__", "."): value for key, value in attributes.items()},
    }


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def as_otlp(spans: list[dict[str, Any]], path: Path) -> Source:
    told = [
        {
            "traceId": each["trace"],
            "spanId": each["id"],
            "parentSpanId": each["parent"],
            "name": each["name"],
            "startTimeUnixNano": str(each["start"] * 10**6),
            "endTimeUnixNano": str(each["end"] * 10**6),
            "attributes": [
                {"key": key, "value": any_value(value)} for key, value in each["attributes"].items()
            ],
            "status": {},
        }
        for each in spans
    ]
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": told}]}]}))
    return Source(path)


def as_openinference(spans: list[dict[str, Any]], path: Path) -> Source:
    """As OpenTelemetry's SDK prints them: indented, one after the other."""
    told = [
        {
            "name": each["name"],
            "context": {"trace_id": f"0x{each['trace']}", "span_id": f"0x{each['id']}"},
            "parent_id": f"0x{each['parent']}" if each["parent"] else None,
            "start_time": f"2026-01-01T00:00:{each['start'] % 1000 / 1000 + 1:09.6f}Z",
            "end_time": f"2026-01-01T00:00:{each['end'] % 1000 / 1000 + 1:09.6f}Z",
            "status": {"status_code": "UNSET"},
            "attributes": each["attributes"],
        }
        for each in spans
    ]
    path.write_text("\n".join(json.dumps(each, indent=4) for each in told))
    return Source(path)


def documents(prefix: str, *passages: dict[str, str]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for place, passage in enumerate(passages):
        at = f"{prefix}.{place}.document"
        flat |= {
            f"{at}.id": passage["id"],
            f"{at}.content": passage["text"],
            f"{at}.score": 1.0 - place / 10,
            f"{at}.metadata": json.dumps({"title": passage["title"]}),
        }
    return flat


def by_openinference() -> list[dict[str, Any]]:
    """A chain with a retriever within a retriever, a tool that searches by it, a reranker, two
    model calls, an embedding and an evaluation."""
    kind = "openinference__span__kind"
    asked = json.dumps({"input": {"question": "Who leads Port Hellon?"}, "k": 2})
    found = documents("retrieval.documents", ROVMAR, HELLON)
    ranked = {
        **documents("reranker.input_documents", ROVMAR, HELLON),
        **documents("reranker.output_documents", HELLON),
    }
    prompt = {"llm.input_messages.0.message.content": f"Documents: {HELLON['text']} Who leads?"}
    said = {"llm.output_messages.0.message.content": "Cleo Marwick"}
    plan = {
        "llm.input_messages.0.message.content": "What to search for?",
        "llm.output_messages.0.message.content": "mayor",
    }
    counts = {"llm.token_count.prompt": 30, "llm.token_count.completion": 2}
    return [
        span(1, 0, "chain", lasts=90, input__value=asked, output__value='{"answer": "Cleo"}',
             **{kind: "CHAIN"}),
        span(2, 1, "plan", **{kind: "LLM"}, **plan, llm__model_name="m"),
        span(3, 1, "tool", lasts=9, input__value='{"query": "mayor"}', output__value="glued",
             tool__name="lookup", **{kind: "TOOL"}),
        span(4, 3, "ensemble", lasts=5, input__value="mayor", **{kind: "RETRIEVER"}, **found),
        span(5, 4, "bm25", input__value="mayor", **{kind: "RETRIEVER"}, **found),
        span(6, 5, "embed", **{kind: "EMBEDDING"}),
        span(20, 1, "rerank", **{kind: "RERANKER"}, **ranked),
        span(30, 1, "answer", lasts=9, **{kind: "LLM"}, **prompt, **said, llm__model_name="m"),
        span(31, 30, "http", **{kind: "LLM"}, **prompt, **said, **counts),
        span(50, 1, "judge", lasts=9, **{kind: "EVALUATOR"}),
        span(51, 50, "judging", **{kind: "LLM"}, **prompt, **said),
        span(60, 0, "evaluation", **{kind: "EVALUATOR"}),
    ]  # fmt: skip


def by_gen_ai() -> list[dict[str, Any]]:
    """An agent with a retrieval, a tool whose passages are glued, and a chat."""
    operation = "gen_ai__operation__name"
    user = [{"role": "user", "parts": [{"type": "text", "content": "Who leads Port Hellon?"}]}]
    replied = [{"role": "assistant", "parts": [{"type": "text", "content": "Cleo Marwick"}]}]
    told = [{"id": "h", "score": 0.5, "content": HELLON["text"], "metadata": {"title": "Hellon"}}]
    return [
        span(1, 0, "invoke_agent", lasts=90, gen_ai__input__messages=json.dumps(user),
             gen_ai__output__messages=json.dumps(replied), **{operation: "invoke_agent"}),
        span(2, 1, "retrieval db", gen_ai__retrieval__query__text="mayor",
             gen_ai__retrieval__documents=json.dumps(told), **{operation: "retrieval"}),
        span(3, 1, "execute_tool wiki", gen_ai__tool__name="wiki",
             gen_ai__tool__call__arguments='{"query": "Hellon"}',
             gen_ai__tool__call__result="[1] A town\n[2] A port", **{operation: "execute_tool"}),
        span(4, 1, "chat m", gen_ai__input__messages=json.dumps(user),
             gen_ai__output__messages=json.dumps(replied), gen_ai__request__model="m",
             gen_ai__usage__input_tokens=40, gen_ai__usage__output_tokens=2,
             **{operation: "chat"}),
    ]  # fmt: skip


def read(source: Source, name: str) -> list[Run | Unread]:
    fitting = [
        each
        for each in components.names(formats)
        if components.load(formats, each).build().fits(source)
    ]
    assert fitting == [name]
    return list(components.load(formats, name).build().runs([source]))


def one(found: list[Run | Unread]) -> Run:
    [run] = found
    assert isinstance(run, Run), run
    return run


@pytest.mark.parametrize("name", ["otlp", "openinference"])
def test_every_search_counts_once(tmp_path: Path, name: str) -> None:
    """The tool, the ensemble and the retriever within it were three searches."""
    write = as_otlp if name == "otlp" else as_openinference
    run = one(read(write(by_openinference(), tmp_path / "trace.json"), name))
    assert [(step.kind, step.name) for step in run.steps] == [
        ("generate", "plan"),
        ("retrieve", "ensemble"),
        ("rank", "rerank"),
        ("generate", "answer"),
    ]
    assert run.question.text == "Who leads Port Hellon?"
    assert run.answer == "Cleo"
    assert run.reader == "m"
    search = run.steps[1]
    assert search.query == "mayor"
    assert [hit.passage.title for hit in search.ranked] == ["Rovmar", "Port Hellon"]
    assert run.steps[3].usage == Usage(input_tokens=30, output_tokens=2, calls=1)
    assert run.steps[0].usage == Usage(calls=1, uncounted=1)
    assert (run.workflow, run.trace_id) == (f"imported:{name}", TRACE)
    assert run.options["line"] == 1


def test_a_reranker_decides_the_order_and_what_is_left(tmp_path: Path) -> None:
    """The retriever had the useful passage second."""
    run = one(read(as_otlp(by_openinference(), tmp_path / "trace.json"), "otlp"))
    assert [passage.id for passage in run.evidence] == ["h"]
    assert list(shown_passages(run)) == ["h"]
    assert of_run(run).passages == ("h",)
    assert run.steps[1].dangling == ("r",)
    assert {step: [p.id for p in passages] for step, passages in contributions(run).items()} == {
        1: ["h"]
    }
    both = by_openinference()
    both[6]["attributes"] |= documents("reranker.output_documents", HELLON, ROVMAR)
    both[7]["attributes"]["llm.input_messages.0.message.content"] += ROVMAR["text"]
    run = one(read(as_otlp(both, tmp_path / "both.json"), "otlp"))
    assert of_run(run).passages == ("h", "r")
    assert [hit.passage.id for hit in run.steps[1].ranked] == ["r", "h"]


def test_a_reranker_ranks_what_the_last_search_found_not_one_that_was_declined(
    tmp_path: Path,
) -> None:
    """Where its record does not tell what it was given; what it left out stayed in the evidence."""
    spans = by_openinference()
    for name in [name for name in spans[6]["attributes"] if "input_documents" in name]:
        del spans[6]["attributes"][name]
    decision = Decision(retrieve=False, policy="none", reason="known")
    declined = span(7, 1, "search", **{keys.DECISION: decision.model_dump_json()})
    run = one(read(as_otlp([*spans, declined], tmp_path / "trace.json"), "otlp"))
    assert [step.kind for step in run.steps if step.kind != "generate"] == [
        "retrieve",
        "retrieve",
        "rank",
    ]
    assert run.steps[2].declined
    assert [passage.id for passage in run.evidence] == ["h"]


def test_prompts_tell_what_a_model_saw(tmp_path: Path) -> None:
    spans = by_openinference()
    run = one(read(as_otlp(spans, tmp_path / "trace.json"), "otlp"))
    assert [step.shown for step in run.steps] == [(), (), (), ("h",)]
    for number in (7, 8):
        spans[number]["attributes"]["llm.input_messages.0.message.content"] = "changed"
    run = one(read(as_otlp(spans, tmp_path / "changed.json"), "otlp"))
    assert [step.shown for step in run.steps] == [(), (), (), ("h",)]  # all there was


def test_gen_ai_conventions(tmp_path: Path) -> None:
    run = one(read(as_otlp(by_gen_ai(), tmp_path / "trace.json"), "otlp"))
    assert [(step.kind, step.query) for step in run.steps] == [
        ("retrieve", "mayor"),
        ("retrieve", "Hellon"),
        ("generate", None),
    ]
    assert run.question.text == "Who leads Port Hellon?"
    assert run.answer == "Cleo Marwick"
    assert run.steps[0].ranked[0].passage.title == "Hellon"
    assert [hit.passage.text for hit in run.steps[1].ranked] == ["A town", "A port"]
    assert run.options["split"] == {"1": "brackets"}
    assert run.usage == Usage(input_tokens=40, output_tokens=2, calls=1)
    build = components.load(formats, "otlp").build
    [told] = build(tools="other").runs([as_otlp(by_gen_ai(), tmp_path / "trace.json")])
    assert isinstance(told, Run)
    assert [step.query for step in told.steps] == ["mayor", None, None]


def test_a_trace_of_mlflow(tmp_path: Path) -> None:
    def encoded(**values: Any) -> dict[str, str]:
        return {f"mlflow.{key}": json.dumps(value) for key, value in values.items()}

    spans = [
        ("1", None, "ask", encoded(spanType="CHAIN", spanInputs={"question": "Who?"},
                                   spanOutputs="Cleo")),
        ("2", "1", "search", encoded(
            spanType="RETRIEVER", spanInputs={"query": "mayor"},
            spanOutputs=[{"page_content": HELLON["text"], "metadata": {"title": "Hellon"},
                          "id": "h"}])),
        ("3", "1", "model", encoded(spanType="CHAT_MODEL", spanInputs={"messages": []},
                                    spanOutputs={"content": "Cleo"})),
    ]  # fmt: skip
    told = [
        {
            "trace_id": "CvdlGRbNQ92ESOshHIAxnA==",
            "span_id": f"000000000000000{id}",
            "parent_span_id": parent and f"000000000000000{parent}",
            "name": name,
            "start_time_unix_nano": int(id) * 1000,
            "end_time_unix_nano": 9000,
            "status": {"code": "STATUS_CODE_OK"},
            "attributes": attributes,
        }
        for id, parent, name, attributes in spans
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"info": {"trace_id": "tr-1"}, "data": {"spans": told}}))
    run = one(read(Source(path), "mlflow"))
    assert (run.question.text, run.answer, run.trace_id) == ("Who?", "Cleo", TRACE)
    assert [(step.kind, step.query) for step in run.steps] == [
        ("retrieve", "mayor"),
        ("generate", None),
    ]
    assert run.steps[0].ranked[0].passage.id == "h"
    assert run.steps[1].shown == ("h",)


def test_what_a_trace_does_not_tell_is_named(tmp_path: Path) -> None:
    unasked = by_gen_ai()
    del unasked[0]["attributes"]["gen_ai.input.messages"]
    unfound = by_gen_ai()
    del unfound[1]["attributes"]["gen_ai.retrieval.documents"]
    orphans = [each | {"parent": "f" * 16} for each in by_gen_ai()[1:]]
    idle = [span(1, 0, "GET /")]
    for spans, problem in (
        (unasked, "does not tell the question"),
        (unfound, "span 'retrieval db': the search does not tell what it found"),
        (orphans, "has no root"),
    ):
        [unread] = read(as_otlp(spans, tmp_path / "trace.json"), "otlp")
        assert isinstance(unread, Unread)
        assert problem in unread.problem
        assert unread.where == "trace.json, line 1"
    assert read(as_otlp(idle, tmp_path / "trace.json"), "otlp") == []


def test_broken_spans_are_named_and_the_others_are_read(tmp_path: Path) -> None:
    good = json.loads(as_otlp(by_gen_ai(), tmp_path / "a.json").path.read_text())
    broken: list[Any] = [
        {"resourceSpans": 3},
        {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "zz", "spanId": "00"}]}]}]},
        {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "x"}]}]}]},
        {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "ab", "spanId": "cd",
                                                       "attributes": {"a": 1}}]}]}]},
        {"resourceSpans": [{"scopeSpans": [{"spans": [
            {"traceId": "ab", "spanId": "cd", "startTimeUnixNano": "soon"}]}]}]},
        {"resourceSpans": [{"scopeSpans": [{"spans": [
            {"traceId": "ab", "spanId": "cd", "startTimeUnixNano": "9" * 30}]}]}]},
    ]  # fmt: skip
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(map(json.dumps, [good, *broken])))
    found = read(Source(path), "otlp")
    assert [each.where for each in found if isinstance(each, Unread)] == [
        f"trace.jsonl, line {line}" for line in range(2, 8)
    ]
    assert len([each for each in found if isinstance(each, Run)]) == 1


@pytest.mark.parametrize("events", [3, True, "x", [None], {"a": 1}])
def test_events_of_a_wrong_type_are_none(tmp_path: Path, events: Any) -> None:
    source = as_openinference(by_openinference(), tmp_path / "trace.json")
    text = source.path.read_text().replace(
        '"status":', f'"events": {json.dumps(events)}, "status":'
    )
    source.path.write_text(text)
    assert one(read(source, "openinference")).answer == "Cleo"
