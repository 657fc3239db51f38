"""Searches, replies and calls of tools as the attributes of spans that imported traces have."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hopscope.api.recording.keeping import tell
from hopscope.api.recording.replies import Reply
from hopscope.runtime.adapters.passages import ranking
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.spans import keys
from hopscope.runtime.types import Hit
from hopscope.store.traces.span import TOOL_ARGUMENTS, TOOL_NAME, TOOL_RESULT

TOOL = "TOOL"


def search(query: str) -> dict[str, Any]:
    """The beginning of a search."""
    return {keys.SPAN_KIND: keys.RETRIEVER, keys.RETRIEVAL_QUERY: query}


def passages(given: Iterable[Any]) -> list[Hit]:
    """The hits of a search, as `runtime.adapters.passages.ranking` reads them; none, with a line in
    the log, if it found something else."""
    try:
        return ranking(list(given), source="")
    except MalformedRecordError as problem:
        tell(f"a search did not return passages: {problem}")
        return []


def found(hits: Iterable[Hit]) -> dict[str, Any]:
    """The end of a search."""
    told = [
        {
            "id": hit.passage.id,
            "title": hit.passage.title,
            "text": hit.passage.text,
            "score": hit.score,
            "metadata": {"source": hit.passage.source},
        }
        for hit in hits
    ]
    return {keys.GEN_AI_DOCUMENTS: json.dumps(told, ensure_ascii=False)}


def asked(prompt: str, model: str = "") -> dict[str, Any]:
    """The beginning of a model's reply."""
    told = {keys.SPAN_KIND: keys.LLM, keys.INPUT_MESSAGES: _message("user", prompt)}
    return {**told, keys.LLM_MODEL_NAME: model} if model else told


def replied(reply: Reply) -> dict[str, Any]:
    """The end of a model's reply. Tokens that nobody counted are not told."""
    told: dict[str, Any] = {keys.OUTPUT_MESSAGES: _message("assistant", reply.text)}
    if reply.model:
        told[keys.LLM_MODEL_NAME] = reply.model
    if reply.input_tokens is not None and reply.output_tokens is not None:
        told[keys.LLM_TOKENS_PROMPT] = reply.input_tokens
        told[keys.LLM_TOKENS_COMPLETION] = reply.output_tokens
    return told


def called(name: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """The beginning of a call of a tool."""
    told = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
    return {keys.SPAN_KIND: TOOL, TOOL_NAME[0]: name, TOOL_ARGUMENTS[0]: told}


def returned(text: str) -> dict[str, Any]:
    """The end of a call of a tool that returned a text."""
    return {TOOL_RESULT[0]: text}


def said(name: str, text: str) -> str:
    """A text as the only value of a JSON object, so that it is read as it stands."""
    return json.dumps({name: text}, ensure_ascii=False)


def _message(role: str, content: str) -> str:
    return json.dumps([{"role": role, "content": content}], ensure_ascii=False)
