"""A model on any server that speaks OpenAI's API: vLLM, llama.cpp, Ollama, TGI, or a hosted one.

Values that a server does not return are missing; docs/readers.md lists what each returns.
"""

from typing import Any, Literal

from hopscope.runtime.components import Count
from hopscope.runtime.errors import UsageError
from hopscope.runtime.models.installed import require
from hopscope.runtime.ports import Reader
from hopscope.runtime.servers import dialect, refused_options
from hopscope.runtime.servers.dialect import Server
from hopscope.runtime.servers.endpoint import (
    OPENAI,
    Endpoint,
    ModelAddress,
    RefusedRequestError,
    address,
    strange,
)
from hopscope.runtime.servers.refused_options import Terms
from hopscope.runtime.servers.remote_reader import RemoteReader
from hopscope.runtime.servers.wire import Alternatives, Wire
from hopscope.runtime.thinking.marks import Thinking


def build(
    *,
    model: str,
    api: Literal["auto", "chat", "completions"] = "auto",
    tokenizer: str | None = None,
    alternatives: Alternatives = 20,
    server: Server = "auto",
    omit: str = "",
    key: str | None = None,
    timeout: float = 120.0,
    retries: int = 5,
    concurrency: Count = 8,
    thinking: Thinking = "auto",
) -> Reader:
    """A reader over a model on a server. It requests the server's list of models.

    Args:
        model: http://HOST:PORT/v1#MODEL.
        api: `chat` sends messages, to which the server applies its template. `completions` sends
            tokens if a tokenizer is given, else plain text, for models without a chat template.
            `auto` is completions with a tokenizer, else chat.
        tokenizer: the model's folder or hub id: the prompt's template is applied here, as by the
            reader `hf`, and tokens are sent. Scoring and whole distributions need it. Weights are
            not needed.
        alternatives: number of likeliest tokens to request at each position; `all` of the
            vocabulary gives exact entropies, 0 the tokens' own log-probabilities, `none` nothing.
        server: the kind of server; `auto` detects it.
        omit: options to leave out of requests, such as temperature+seed, for a server whose refusal
            is not recognised. Options that it refuses plainly are left out anyway.
        key: the environment variable that holds the key, if there is one; OPENAI_API_KEY for
            OpenAI's own server, else HOPSCOPE_API_KEY.
        timeout: seconds to wait for each answer.
        retries: most repeats of a request that fails for a passing reason.
        concurrency: requests sent at the same time.
        thinking: whether the model thinks before it answers: `auto` is the server's default;
            `on`; `off`; or the most tokens of a thought (4,096 by default).

    Raises:
        UsageError: the address is invalid, the server lacks the model, or options contradict.
        ReaderError: the server cannot be reached or refuses.
        MissingExtraError: a tokenizer is given, and transformers is not installed.
    """
    where = address(model)
    chat = api == "chat" or (api == "auto" and tokenizer is None)
    if chat and tokenizer:
        raise UsageError(
            "openai: api=chat takes no tokenizer=, since the server applies the chat template; "
            "leave out one of them"
        )
    if alternatives == "all" and not tokenizer:
        raise UsageError(
            "openai: alternatives=all needs the model's tokenizer: give tokenizer=FOLDER"
        )
    if isinstance(alternatives, int) and alternatives < 0:
        raise UsageError("openai: alternatives must be 0 or more, all, or none")
    endpoint = Endpoint(
        where, key_from=key, timeout=timeout, retries=retries, connections=concurrency
    )
    entry = _entry(endpoint, where)
    context = entry.get("max_model_len")
    wire = Wire(
        where=where,
        dialect=dialect.DIALECTS[_kind(where, entry) if server == "auto" else server],
        chat=chat,
        alternatives=alternatives,
        context=context if isinstance(context, int) else None,
        thinking=thinking,
    )
    if tokenizer:
        require("openai: tokenizer=", instead="leave it out")
        from hopscope.runtime.generation import vocabularies

        wire = wire._replace(vocabulary=vocabularies.load(tokenizer, tokenizer, thinking))
    terms = Terms(wire.name, refused_options.given(omit))
    return RemoteReader(wire, endpoint, terms, connections=concurrency)


def _entry(endpoint: Endpoint, where: ModelAddress) -> dict[str, Any]:
    """The model's entry in the server's list; empty if the server has no list."""
    try:
        listed = endpoint.get("/models")
    except RefusedRequestError as error:
        if error.status in (404, 405, 501):
            return {}
        raise
    try:
        entries: dict[str, Any] = {str(entry["id"]): dict(entry) for entry in listed["data"]}
    except (LookupError, TypeError, ValueError):
        raise strange(where.url) from None
    if where.model not in entries:
        known = ", ".join(endpoint.clean(name) for name in list(entries)[:10]) or "none"
        raise UsageError(f"{where.url} has no model {where.model!r}; it has {known}")
    entry: dict[str, Any] = entries[where.model]
    return entry


def _kind(where: ModelAddress, entry: dict[str, Any]) -> str:
    if where.hostname == OPENAI:
        return "openai"
    owner = entry.get("owned_by")
    # Other servers name an owner too, but not their kind.
    return owner if owner in ("vllm", "llamacpp") else "plain"
