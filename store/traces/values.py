"""Questions, answers and documents in the values of spans, which each framework writes its own way.

A value is a text or JSON. In JSON, the question is what stands under the first of `QUESTIONS` that
is there, at any depth; where several of one name differ, the question is not known. Answers
likewise. Of messages, the question is the last of the user, the answer the last of the model.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hopscope.runtime.spans import keys
from hopscope.runtime.texts.literals import json_value
from hopscope.store.traces.span import Span

QUESTIONS = ("question", "query", "query_str", "user_query", "input", "text", "prompt")
ANSWERS = (
    "answer",
    "final_answer",
    "result",
    "output",
    "response",
    "generation",
    "replies",
    "text",
    "content",
)
DEPTH = 6
"""Objects and lists within each other that are looked through."""
_USERS = ("user", "human")
_MODELS = ("assistant", "ai", "model")


def question(span: Span) -> str:
    """The question in the input of a span; empty if it is not known."""
    value = loaded(span.text(keys.INPUT_VALUE, keys.INPUT_MESSAGES))
    return value.strip() if isinstance(value, str) else _said(value, _USERS, QUESTIONS)


def answer(span: Span) -> str | None:
    """The answer in the output of a span; None if it is not known."""
    told = span.text(keys.OUTPUT_VALUE, keys.OUTPUT_MESSAGES)
    if not told:
        return None
    value = loaded(told)
    if isinstance(value, str):
        return value.strip()
    return _said(value, _MODELS, ANSWERS) or None


def reply(span: Span) -> str | None:
    """The text of a model's reply."""
    listed = span.listed(keys.LLM_OUTPUT_MESSAGES)
    if listed:
        return _flat(listed[0])
    messages = loaded(span.text(keys.OUTPUT_MESSAGES))
    if isinstance(messages, list) and messages and isinstance(messages[0], Mapping):
        return _content(messages[0])
    text = span.text(keys.OUTPUT_VALUE)
    return _chosen(loaded(text)) or text or None


def _chosen(value: Any) -> str:
    """The first reply in an answer of OpenAI's API; empty if it is none."""
    choices = value.get("choices") if isinstance(value, Mapping) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, Mapping) else None
    return _content(message) if isinstance(message, Mapping) else ""


def prompt(span: Span) -> str:
    """All text of a model's prompt; empty if it is not told."""
    listed = [_flat(message) for message in span.listed(keys.LLM_INPUT_MESSAGES)]
    if any(listed):
        return "\n".join(listed)
    messages = loaded(span.text(keys.INPUT_MESSAGES))
    if isinstance(messages, list):
        return "\n".join(_content(each) for each in messages if isinstance(each, Mapping))
    told = loaded(span.text(keys.INPUT_VALUE))
    return told if isinstance(told, str) else "\n".join(_texts(told))


def said(text: str) -> str:
    """What a tool's output says: of a message its content, else the text as it is."""
    value = loaded(text)
    if isinstance(value, Mapping) and _role(value):
        return _content(value)
    return value if isinstance(value, str) else text


def documents(span: Span, flattened: str) -> list[dict[str, Any]] | None:
    """The documents of a span: under that prefix, else as gen_ai's JSON, else the JSON of the
    output; None if it tells none."""
    if listed := span.listed(flattened):
        return [_document(each) for each in listed]
    for name in (keys.GEN_AI_DOCUMENTS, keys.OUTPUT_VALUE):
        value = loaded(span.text(name))
        if isinstance(value, Mapping):
            lists = [each for each in value.values() if isinstance(each, list)]
            value = lists[0] if len(lists) == 1 else None
        if isinstance(value, list) and all(isinstance(each, Mapping | str) for each in value):
            return [_plain(each) for each in value]
    return None


def loaded(text: str) -> Any:
    """The value of JSON; other text as it is."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return text
    try:
        return json_value(text)
    except ValueError:
        return text


def metadata_of(document: Mapping[str, Any]) -> Any:
    """The metadata of a document of OpenInference: JSON, or one attribute for each entry, as
    Phoenix gives them back."""
    told = document.get(keys.DOCUMENT_METADATA)
    if told is None:
        start = f"{keys.DOCUMENT_METADATA}."
        flat = {
            key.removeprefix(start): value
            for key, value in document.items()
            if key.startswith(start)
        }
        return flat or None
    return loaded(told) if isinstance(told, str) else told


def _document(flat: Mapping[str, Any]) -> dict[str, Any]:
    """A document of OpenInference."""
    told = metadata_of(flat)
    return _plain(
        {
            "id": flat.get(keys.DOCUMENT_ID),
            "content": flat.get(keys.DOCUMENT_CONTENT),
            "score": flat.get(keys.DOCUMENT_SCORE),
            "metadata": told,
        }
    )


def _plain(document: Any) -> dict[str, Any]:
    """A document with its fields on one level, without those that are not told."""
    if isinstance(document, str):
        return {"text": document}
    inner = document.get("node") or document.get("document")  # beside a score
    found = {**document, **inner} if isinstance(inner, Mapping) else dict(document)
    metadata = found.get("metadata")
    about = metadata if isinstance(metadata, Mapping) else {}
    text = next(
        (found[k] for k in ("content", "text", "page_content", "contents") if found.get(k)), None
    )
    title = found.get("title") or about.get("title")
    score = found.get("score")
    told = {
        "id": found.get("id") or found.get("id_") or found.get("doc_id"),
        "title": title if isinstance(title, str) else None,
        "text": text,
        "score": score if isinstance(score, int | float) else None,
        "source": about.get("source") if isinstance(about.get("source"), str) else None,
    }
    return {key: value for key, value in told.items() if value is not None}


def _said(value: Any, roles: Sequence[str], names: Sequence[str]) -> str:
    messages = [each for each in _objects(value) if _role(each) in roles]
    if messages:
        return _content(messages[-1]).strip()
    if isinstance(value, list):
        texts = [each for each in value if isinstance(each, str)]
        return texts[0].strip() if len(value) == len(texts) == 1 else ""
    found = list(_objects(value))
    for name in names:
        told = [text for each in found if name in each for text in _told(each[name])]
        if told:
            return told[0].strip() if len(set(told)) == 1 else ""
    texts = list(_texts(value))
    return texts[0].strip() if len(texts) == 1 else ""


def _told(value: Any) -> list[str]:
    """A text, or the only one of a list."""
    if isinstance(value, list) and len(value) == 1:
        [value] = value
    return [value] if isinstance(value, str) and value.strip() else []


def _role(message: Mapping[str, Any]) -> str:
    inner = message.get("kwargs")
    told = message.get("role") or message.get("type")
    if isinstance(inner, Mapping) and inner.get("type"):  # LangChain's own JSON
        told = inner["type"]
    return told.lower() if isinstance(told, str) else ""


def _content(message: Mapping[str, Any]) -> str:
    inner = message.get("kwargs")
    whole = {**message, **inner} if isinstance(inner, Mapping) else message
    content = whole.get("content", whole.get("parts", whole.get("_content")))
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (
        part if isinstance(part, str) else part.get("text") or part.get("content")
        for part in parts
        if isinstance(part, str | Mapping)
    )
    return "\n".join(text for text in texts if isinstance(text, str))


def _flat(message: Mapping[str, Any]) -> str:
    """The text of a flattened message of OpenInference, with its calls of tools."""
    name = keys.MESSAGE_CONTENT
    texts = [message[name]] if isinstance(message.get(name), str) else []
    ends = (keys.CONTENT_TEXT, "tool_call.function.name", "tool_call.function.arguments")
    texts += [v for k, v in message.items() if k.endswith(ends) and isinstance(v, str)]
    return "\n".join(texts)


def _objects(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """All objects in a value, the outer ones first."""
    if depth > DEPTH:
        return
    if isinstance(value, Mapping):
        yield value
        for each in value.values():
            yield from _objects(each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            yield from _objects(each, depth + 1)


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth <= DEPTH and isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each, depth + 1)
