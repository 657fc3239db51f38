"""Turns records into span attributes that any backend accepts.

Invariants: nothing here raises for odd text or numbers; no attribute is NaN or infinite; every
text is valid Unicode and at most `TEXT_LIMIT` characters (`DOCUMENT_LIMIT` for a passage), a
cut one ending in the number of characters left out; without `capture` no attribute holds what
a person or a model wrote.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from opentelemetry.util.types import AttributeValue
from pydantic_core import to_json

from hopscope.runtime.spans import keys as keys
from hopscope.runtime.stages import Candidates, StageNote
from hopscope.runtime.texts.storable import storable
from hopscope.runtime.types import Generation, GenerationRequest, Hit, Prompt, Usage

DOCUMENT_LIMIT = 4_000
TEXT_LIMIT = 32_000

Attributes = dict[str, AttributeValue]
NO_WORTH: Mapping[str, Mapping[str, float]] = MappingProxyType({})

_FINISH = {"eos": "stop", "stop": "stop", "length": "length"}


def text(value: str, limit: int = TEXT_LIMIT) -> str:
    """Text that OTLP can carry: lone surrogates replaced, cut at `limit`."""
    if len(value) > limit:
        value = f"{value[:limit]}… [{len(value) - limit} more characters]"
    return storable(value)


def as_json(value: Any) -> str:
    """JSON with its texts cut, but itself complete. NaN and infinity become null."""
    return _json(_cut(value))


def _json(value: Any) -> str:
    """As `as_json`, for values with texts that `text` has already cut."""
    return to_json(value, inf_nan_mode="null").decode()


def _cut(value: Any) -> Any:
    match value:
        case str():
            return text(value)
        case Mapping():
            return {text(str(key)): _cut(item) for key, item in value.items()}
        case list() | tuple():
            return [_cut(item) for item in value]
        case None | int() | float():
            return value
        case _:
            return text(str(value))


def spent(usage: Usage) -> Attributes:
    attributes: Attributes = {keys.SPENT_CALLS: usage.calls}
    if usage.uncounted:  # a count would be too low; a missing one shows that it is unknown
        return attributes
    attributes |= {keys.SPENT_INPUT: usage.input_tokens, keys.SPENT_OUTPUT: usage.output_tokens}
    if usage.cached_tokens:
        attributes[keys.SPENT_CACHED] = usage.cached_tokens
    if usage.thinking_tokens:
        attributes[keys.SPENT_THINKING] = usage.thinking_tokens
    return attributes


def options(values: Mapping[str, Any], *, capture: bool) -> str:
    """A workflow's options; without `capture` numbers and switches only: text may be a prompt."""
    shown = {k: v for k, v in values.items() if capture or isinstance(v, int | float | None)}
    return as_json(shown)


def request(model: str, asked: GenerationRequest, *, capture: bool) -> Attributes:
    """The attributes of a request to a reader."""
    settings: Attributes = {
        "temperature": asked.temperature,
        "max_tokens": asked.max_tokens,
        "seed": asked.seed,
        "n": asked.n,
        "stop": [text(stop) for stop in asked.stop],
    }
    if asked.keeps:
        settings["keeps"] = asked.keeps
    attributes: Attributes = {
        keys.SPAN_KIND: keys.LLM,
        keys.OPERATION: keys.CHAT,
        keys.PROVIDER: "hopscope",
        keys.REQUEST_MODEL: text(model),
        keys.LLM_MODEL_NAME: text(model),
        keys.REQUEST_TEMPERATURE: asked.temperature,
        keys.REQUEST_MAX_TOKENS: asked.max_tokens,
        keys.REQUEST_SEED: asked.seed,
        keys.LLM_INVOCATION_PARAMETERS: _json(settings),
    }
    if asked.n != 1:
        attributes[keys.REQUEST_CHOICE_COUNT] = asked.n
    if asked.stop:
        attributes[keys.REQUEST_STOP] = [text(stop) for stop in asked.stop]
    if capture:
        turns = _turns(asked.prompt)
        attributes[keys.INPUT_VALUE] = text(asked.prompt.text)
        attributes[keys.INPUT_MIME_TYPE] = keys.TEXT
        attributes[keys.INPUT_MESSAGES] = _json([_message(*turn) for turn in turns])
        attributes |= _messages(keys.LLM_INPUT_MESSAGES, turns)
    return attributes


def reply(model: str, generations: Sequence[Generation], *, capture: bool) -> Attributes:
    """The attributes of a reader's reply: one output message for each sample."""
    usage = sum((g.usage for g in generations), Usage())
    reasons = [_FINISH[g.finish_reason] for g in generations]
    attributes: Attributes = {
        keys.RESPONSE_MODEL: text(model),
        keys.RESPONSE_FINISH_REASONS: reasons,
    }
    if not usage.uncounted:
        attributes |= {
            keys.USAGE_INPUT: usage.input_tokens,
            keys.USAGE_OUTPUT: usage.output_tokens,
            keys.LLM_TOKENS_PROMPT: usage.input_tokens,
            keys.LLM_TOKENS_COMPLETION: usage.output_tokens,
            keys.LLM_TOKENS_TOTAL: usage.tokens,
        }
    if usage.cached_tokens:
        cached = usage.cached_tokens
        attributes[keys.USAGE_CACHED] = attributes[keys.LLM_TOKENS_CACHED] = cached
    if refused := sorted({name for g in generations for name in g.refused}):
        attributes[keys.REFUSED] = refused
    thoughts = [g.thought for g in generations if g.thought is not None]
    if thoughts:
        tokens = usage.thinking_tokens
        attributes[keys.USAGE_REASONING] = attributes[keys.LLM_TOKENS_REASONING] = tokens
        attributes[keys.THOUGHT_ENDS] = [thought.end for thought in thoughts]
    if reasons:
        attributes[keys.LLM_FINISH_REASON] = reasons[0]
        if all(generation.usage == Usage() for generation in generations):
            attributes[keys.CACHE_HIT] = True
    if capture and generations:
        turns = [("assistant", g.text) for g in generations]
        attributes[keys.OUTPUT_MESSAGES] = _json(
            [
                {**_message("assistant", g.text, _thought(g)), "finish_reason": reason}
                for g, reason in zip(generations, reasons, strict=True)
            ]
        )
        attributes |= _messages(keys.LLM_OUTPUT_MESSAGES, turns)
        for position, generation in enumerate(generations):
            attributes |= _contents(f"{keys.LLM_OUTPUT_MESSAGES}.{position}", generation)
        several = len(generations) > 1
        attributes[keys.OUTPUT_VALUE] = (
            _json([text(g.text) for g in generations]) if several else text(generations[0].text)
        )
        attributes[keys.OUTPUT_MIME_TYPE] = keys.JSON if several else keys.TEXT
    return attributes


def query(source: str, asked: str, *, k: int, capture: bool) -> Attributes:
    """The attributes of a query to a retriever."""
    attributes: Attributes = {
        keys.SPAN_KIND: keys.RETRIEVER,
        keys.OPERATION: keys.RETRIEVAL,
        keys.DATA_SOURCE: text(source),
        keys.RETRIEVAL_TOP_K: k,
    }
    if capture:
        attributes[keys.INPUT_VALUE] = text(asked)
        attributes[keys.INPUT_MIME_TYPE] = keys.TEXT
        attributes[keys.RETRIEVAL_QUERY] = text(asked)
    return attributes


def ranking(
    hits: Sequence[Hit], *, capture: bool, worth: Mapping[str, Mapping[str, float]] = NO_WORTH
) -> Attributes:
    """The attributes of a ranking: flattened for OpenInference, as JSON for gen_ai, and as JSON in
    `output.value` for backends that read neither.

    Args:
        worth: credits of passages by key and name, where they are known already; they stand in the
            documents' metadata.
    """
    documents = [_document(hit, capture=capture) for hit in hits]
    for hit, document in zip(hits, documents, strict=True):
        if credit := worth.get(hit.passage.key):
            document["metadata"] = {**document.get("metadata", {}), **credit}
    documents_json = _json(documents)
    attributes: Attributes = {
        keys.RETRIEVED: len(hits),
        keys.GEN_AI_DOCUMENTS: documents_json,
        keys.OUTPUT_VALUE: documents_json,
        keys.OUTPUT_MIME_TYPE: keys.JSON,
    }
    return attributes | _flattened(keys.RETRIEVAL_DOCUMENTS, documents)


def stage(
    operation: str, name: str, operator: str, asked: Candidates, *, k: int, capture: bool
) -> Attributes:
    """The attributes of a reranker's or compressor's input."""
    attributes: Attributes = {
        keys.SPAN_KIND: keys.RERANKER,
        keys.OPERATION: operation,
        keys.STAGE: text(operator),
        keys.RERANKER_MODEL: text(name),
        keys.RERANKER_TOP_K: k,
    }
    if capture:
        attributes[keys.INPUT_VALUE] = text(asked.query)
        attributes[keys.INPUT_MIME_TYPE] = keys.TEXT
        attributes[keys.RERANKER_QUERY] = text(asked.query)
    documents = [_document(hit, capture=capture) for hit in asked.hits]
    return attributes | _flattened(keys.RERANKER_INPUTS, documents)


def staged(hits: Sequence[Hit], note: StageNote, *, capture: bool) -> Attributes:
    """The attributes of a reranker's or compressor's result."""
    documents = [_document(hit, capture=capture) for hit in hits]
    told = {
        keys.STAGE_PARSE_OK: note.parse_ok,
        keys.STAGE_CUT: note.cut,
        keys.STAGE_BEFORE: note.tokens_before,
        keys.STAGE_AFTER: note.tokens_after,
    }
    attributes: Attributes = {key: value for key, value in told.items() if value is not None}
    attributes[keys.OUTPUT_VALUE] = _json(documents)
    attributes[keys.OUTPUT_MIME_TYPE] = keys.JSON
    return attributes | _flattened(keys.RERANKER_OUTPUTS, documents)


def _flattened(prefix: str, documents: Sequence[Mapping[str, Any]]) -> Attributes:
    attributes: Attributes = {}
    for position, document in enumerate(documents):
        at = f"{prefix}.{position}."
        attributes[at + keys.DOCUMENT_ID] = document["id"]
        if "score" in document:
            attributes[at + keys.DOCUMENT_SCORE] = document["score"]
        if "content" in document:
            attributes[at + keys.DOCUMENT_CONTENT] = document["content"]
        if "metadata" in document:
            attributes[at + keys.DOCUMENT_METADATA] = _json(document["metadata"])
    return attributes


def _document(hit: Hit, *, capture: bool) -> dict[str, Any]:
    document: dict[str, Any] = {"id": text(hit.passage.key)}
    if math.isfinite(hit.score):
        document["score"] = float(hit.score)
    if capture:
        document["content"] = text(hit.passage.text, DOCUMENT_LIMIT)
        title, source = text(hit.passage.title), text(hit.passage.source)
        document["metadata"] = {"title": title, "source": source}
    return document


TURNS: Mapping[str, str] = {"tools": "system", "calls": "assistant"}
"""The conventions' names of Hopscope's roles."""


def _turns(prompt: Prompt) -> list[tuple[str, str]]:
    turns = [
        (TURNS.get(message.role, message.role), message.content) for message in prompt.messages
    ]
    return [*turns, ("assistant", prompt.prefix)] if prompt.prefix else turns


def _message(role: str, content: str, thought: str | None = None) -> dict[str, Any]:
    parts = [] if thought is None else [{"type": keys.REASONING, "content": text(thought)}]
    return {"role": role, "parts": [*parts, {"type": "text", "content": text(content)}]}


def _thought(generation: Generation) -> str | None:
    return None if generation.thought is None else generation.thought.text


def _contents(prefix: str, generation: Generation) -> Attributes:
    """A message in parts, if there is a thought before the answer."""
    thought = _thought(generation)
    if thought is None:
        return {}
    attributes: Attributes = {}
    parts = ((keys.REASONING, thought), ("text", generation.text))
    for place, (kind, content) in enumerate(parts):
        at = f"{prefix}.{keys.MESSAGE_CONTENTS}.{place}"
        attributes[f"{at}.{keys.CONTENT_TYPE}"] = kind
        attributes[f"{at}.{keys.CONTENT_TEXT}"] = text(content)
    return attributes


def _messages(prefix: str, turns: Sequence[tuple[str, str]]) -> Attributes:
    attributes: Attributes = {}
    for position, (role, content) in enumerate(turns):
        attributes[f"{prefix}.{position}.{keys.MESSAGE_ROLE}"] = role
        attributes[f"{prefix}.{position}.{keys.MESSAGE_CONTENT}"] = text(content)
    return attributes
