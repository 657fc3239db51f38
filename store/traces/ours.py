"""Runs that Hopscope traced: they come back as they were, as far as spans tell.

Spans do not tell: right answers, tokens with their log-probabilities and entropies, what cached
tokens cost, which sample took how many tokens, whether a reply ended by itself or at a stop string,
and which passages stood in which of several prompts of a step. Times are those of the spans. Texts
that were cut when they were traced stay cut, and the option `cut` says how many.
"""

import re
from collections.abc import Mapping
from typing import Any

from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.spans import keys
from hopscope.runtime.types import (
    Decision,
    Exchange,
    Generation,
    GenerationRequest,
    Hit,
    Message,
    Passage,
    Prompt,
    Question,
    Run,
    RunError,
    Step,
    Thought,
    Usage,
)
from hopscope.store.traces.span import Span
from hopscope.store.traces.tree import Tree
from hopscope.store.traces.values import loaded, metadata_of

_CUT = re.compile(r"… \[\d+ more characters\]\Z")


def is_run(span: Span) -> bool:
    """Whether it is the span of a whole run of ours."""
    return bool(span.text(keys.RUN_ID)) and keys.RUN_STATUS in span.attributes


def run(root: Span, tree: Tree) -> Run:
    """The run of a span.

    Raises:
        MalformedRecordError: it was traced without content, or spans are missing.
    """
    question = root.text(keys.INPUT_VALUE)
    if not question:
        raise MalformedRecordError(
            "the run was traced without content (--no-trace-content), so that its texts are lost"
        )
    found = [
        span
        for span in tree.below(root)
        if keys.STEP_INDEX in span.attributes and span.meaning != "evaluation"
    ]
    told = root.number(keys.RUN_STEPS)
    if told != len(found):
        raise MalformedRecordError(f"{len(found)} of the run's {told} steps are there")
    passages: dict[str, Passage] = {}
    steps = [_step(span, tree, passages) for span in sorted(found, key=_index)]
    shown = {key for step in steps for key in step.shown}
    moment, options = root.moment, loaded(root.text(keys.RUN_OPTIONS))
    texts = [question, *(passage.text for passage in passages.values())]
    cut = sum(_CUT.search(text[-40:]) is not None for text in texts)
    return Run(
        id=root.text(keys.RUN_ID),
        question=Question(text=question, id=root.text(keys.QUESTION_ID)),
        workflow=root.text(keys.WORKFLOW_NAME),
        options={**(options if isinstance(options, dict) else {}), **({"cut": cut} if cut else {})},
        reader=root.text(keys.RUN_READER),
        retriever=root.text(keys.RUN_RETRIEVER),
        seed=root.number(keys.RUN_SEED) or 0,
        steps=tuple(
            step.model_copy(update={"dangling": tuple(k for k in step.new if k not in shown)})
            for step in steps
        ),
        answer=_text(root, keys.OUTPUT_VALUE),
        status=root.attributes[keys.RUN_STATUS],
        stop_reason=root.attributes.get(keys.STOP_REASON),
        error=_error(root),
        started=moment.started,
        seconds=moment.seconds,
        trace_id=root.trace,
        span_id=root.id,
    )


def _index(span: Span) -> int:
    return span.number(keys.STEP_INDEX) or 0


def _error(root: Span) -> RunError | None:
    kind = root.text(keys.ERROR_TYPE)
    if not kind:
        return None
    return RunError(type=kind, message=root.status.removeprefix(f"{kind}: "))


def _step(span: Span, tree: Tree, passages: dict[str, Passage]) -> Step:
    """A step; its passages are added to those of the run."""
    below = list(tree.below(span))
    hits: list[Hit] = []
    for inner in below:
        if inner.meaning in ("search", "rank"):
            prefix = keys.RETRIEVAL_DOCUMENTS
            if inner.meaning == "rank":
                prefix = keys.RERANKER_OUTPUTS
            ranking = [_hit(document) for document in inner.listed(prefix)]
            for hit in ranking:
                passages.setdefault(hit.passage.key, hit.passage)
            hits += ranking if inner.meaning == "search" else []
    held = _keys(span, keys.STEP_EVIDENCE)
    if lost := [key for key in held if key not in passages]:
        raise MalformedRecordError(f"the text of the passage {lost[0]!r} is in no span")
    asked = [each for each in below if each.meaning == "reply"]
    shown = _keys(span, keys.STEP_SHOWN)
    # With several prompts in a step, it is not told which passage stood in which.
    exchanges = [_exchange(each, shown if len(asked) == 1 else ()) for each in asked]
    moment = span.moment
    return Step(
        index=_index(span),
        name=span.text(keys.GRAPH_NODE_NAME) or span.name,
        kind=span.attributes.get(keys.STEP_KIND, ""),
        query=_text(span, keys.INPUT_VALUE),
        ranked=tuple(hits),
        new=_keys(span, keys.STEP_NEW),
        shown=shown,
        evidence=tuple(passages[key] for key in held),
        exchanges=tuple(exchanges),
        output=_text(span, keys.OUTPUT_VALUE),
        parse_ok=span.attributes.get(keys.STEP_PARSE_OK),
        stop_reason=span.attributes.get(keys.STOP_REASON),
        decision=next((_decision(e.attributes) for e in span.events if _decided(e.name)), None),
        usage=_spent(span.attributes),
        started=moment.started,
        seconds=moment.seconds,
        span_id=span.id,
    )


def _hit(document: Mapping[str, Any]) -> Hit:
    metadata = metadata_of(document)
    about = metadata if isinstance(metadata, dict) else {}
    score = document.get(keys.DOCUMENT_SCORE)
    if not isinstance(score, int | float):
        raise MalformedRecordError(f"the passage {document.get(keys.DOCUMENT_ID)!r} has no score")
    return Hit(
        passage=Passage(
            id=document.get(keys.DOCUMENT_ID, ""),
            title=about.get("title", ""),
            text=document.get(keys.DOCUMENT_CONTENT, ""),
            source=about.get("source", ""),
        ),
        score=score,
    )


def _exchange(span: Span, shown: tuple[str, ...]) -> Exchange:
    asked = loaded(span.text(keys.LLM_INVOCATION_PARAMETERS))
    turns = [_message(each) for each in span.listed(keys.LLM_INPUT_MESSAGES)]
    prefix = turns.pop().content if turns and turns[-1].role == "assistant" else ""
    request = GenerationRequest(
        **(asked if isinstance(asked, dict) else {}),
        prompt=Prompt(messages=tuple(turns), prefix=prefix, shown=shown),
    )
    said = loaded(span.text(keys.OUTPUT_MESSAGES))
    replies = [each for each in said if isinstance(each, Mapping)] if isinstance(said, list) else []
    thoughts = iter(_keys(span, keys.THOUGHT_ENDS))
    generations = []
    for place, reply in enumerate(replies):
        listed = reply.get("parts")
        parts = {
            part.get("type"): part.get("content")
            for part in (listed if isinstance(listed, list) else [])
            if isinstance(part, Mapping)
        }
        thought = None
        if keys.REASONING in parts:
            told = {"text": parts[keys.REASONING], "end": next(thoughts, "closed")}
            thought = Thought.model_validate(told)
        generations.append(
            Generation(
                text=parts.get("text") or "",
                finish_reason="length" if reply.get("finish_reason") == "length" else "eos",
                usage=_used(span) if place == 0 else Usage(),
                refused=_keys(span, keys.REFUSED),
                thought=thought,
            )
        )
    seconds = span.moment.seconds
    return Exchange(
        request=request, generations=tuple(generations), seconds=seconds, span_id=span.id
    )


def _message(flat: Mapping[str, Any]) -> Message:
    return Message(role=flat.get(keys.MESSAGE_ROLE, ""), content=flat.get(keys.MESSAGE_CONTENT, ""))


def _used(span: Span) -> Usage:
    if span.attributes.get(keys.CACHE_HIT):
        return Usage()
    counts = span.number(keys.USAGE_INPUT), span.number(keys.USAGE_OUTPUT)
    if None in counts:
        return Usage(calls=1, uncounted=1)
    thinking = span.number(keys.USAGE_REASONING) or 0
    return Usage(
        input_tokens=counts[0] or 0,
        output_tokens=counts[1] or 0,
        calls=1,
        thinking_tokens=thinking,
        cached_tokens=span.number(keys.USAGE_CACHED) or 0,
    )


def _spent(attributes: Mapping[str, Any]) -> Usage:
    calls = attributes.get(keys.SPENT_CALLS, 0)
    if keys.SPENT_INPUT not in attributes:
        return Usage(calls=calls, uncounted=calls)
    return Usage(
        input_tokens=attributes[keys.SPENT_INPUT],
        output_tokens=attributes.get(keys.SPENT_OUTPUT, 0),
        calls=calls,
        thinking_tokens=attributes.get(keys.SPENT_THINKING, 0),
        cached_tokens=attributes.get(keys.SPENT_CACHED, 0),
    )


def _decided(name: str) -> bool:
    return name == keys.DECISION_EVENT


def _decision(attributes: Mapping[str, Any]) -> Decision:
    start, signal = f"{keys.DECISION}.", f"{keys.DECISION}.signal."
    own = {
        key.removeprefix(start): value
        for key, value in attributes.items()
        if key.startswith(start) and not key.startswith(signal)
    }
    signals = {
        key.removeprefix(signal): value
        for key, value in attributes.items()
        if key.startswith(signal)
    }
    return Decision(**own, signals=signals, usage=_spent(attributes))


def _keys(span: Span, name: str) -> tuple[str, ...]:
    value = span.attributes.get(name) or ()
    return tuple(value) if isinstance(value, list | tuple) else ()


def _text(span: Span, name: str) -> str | None:
    value = span.attributes.get(name)
    return value if isinstance(value, str) else None
