"""A model on any server that speaks OpenAI's API: vLLM, llama.cpp, Ollama, TGI, or a hosted one.

What a server does not tell is left out: see docs/readers.md for what each gives.
"""

from typing import Any, Literal

from hopscope.runtime.components import Count
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Reader
from hopscope.runtime.readers import _dialect, _terms
from hopscope.runtime.readers._dialect import Server
from hopscope.runtime.readers._endpoint import OPENAI, Address, Endpoint, Refused, address, strange
from hopscope.runtime.readers._remote import RemoteReader
from hopscope.runtime.readers._terms import Terms
from hopscope.runtime.readers._thinking import Thinking
from hopscope.runtime.readers._wire import Alternatives, Wire


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
    """A reader over a model on a server. The server is asked for its list of models.

    Args:
        model: http://HOST:PORT/v1#MODEL.
        api: `chat` sends messages, which the server lays out; `completions` sends tokens where a
            tokenizer is given, else running text, which is for models without a chat template.
            `auto` is completions with a tokenizer, else chat.
        tokenizer: the model's folder or hub id: prompts are laid out here, as the reader `hf` does,
            and sent as tokens. Scoring and whole distributions need it. Weights are not needed.
        alternatives: how many of the likeliest tokens are asked for at each place; `all` of the
            vocabulary gives exact entropies, 0 the tokens' own log-probabilities, `none` nothing.
        server: what kind of server it is; `auto` goes by what it says.
        omit: options of a request that are left out, as temperature+seed, for a server that refuses
            them in a way that is not understood; what is refused plainly is left out anyway.
        key: the environment variable that holds the key, if there is one; OPENAI_API_KEY for
            OpenAI's own server, else HOPSCOPE_API_KEY.
        timeout: seconds to wait for an answer each time.
        retries: how often a question is asked again that failed for now.
        concurrency: questions asked at a time.
        thinking: whether it thinks before it answers: `auto` is as the server has it, `on`, `off`,
            or a number of tokens, of which a thought has 4,096 unless told.

    Raises:
        UsageError: that is no address, the server has no such model, or options do not go together.
        ReaderError: the server cannot be reached or refuses.
    """
    where = address(model)
    chat = api == "chat" or (api == "auto" and tokenizer is None)
    if chat and tokenizer:
        raise UsageError("openai: messages are laid out by the server: tokenizer= is not for chat")
    if alternatives == "all" and not tokenizer:
        raise UsageError("openai: alternatives=all takes the model's tokens: give tokenizer=FOLDER")
    if isinstance(alternatives, int) and alternatives < 0:
        raise UsageError("openai: alternatives is 0 or more, all, or none")
    endpoint = Endpoint(
        where, key_from=key, timeout=timeout, retries=retries, connections=concurrency
    )
    entry = _entry(endpoint, where)
    context = entry.get("max_model_len")
    wire = Wire(
        where=where,
        dialect=_dialect.DIALECTS[_kind(where, entry) if server == "auto" else server],
        chat=chat,
        alternatives=alternatives,
        context=context if isinstance(context, int) else None,
        thinking=thinking,
    )
    if tokenizer:
        from hopscope.runtime.readers import _vocabulary

        wire = wire._replace(vocabulary=_vocabulary.load(tokenizer, tokenizer, thinking))
    terms = Terms(wire.name, _terms.given(omit))
    return RemoteReader(wire, endpoint, terms, connections=concurrency)


def _entry(endpoint: Endpoint, where: Address) -> dict[str, Any]:
    """What the server says of the model; nothing if it has no list."""
    try:
        listed = endpoint.get("/models")
    except Refused as error:
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
    found: dict[str, Any] = entries[where.model]
    return found


def _kind(where: Address, entry: dict[str, Any]) -> str:
    if where.hostname == OPENAI:
        return "openai"
    owner = entry.get("owned_by")
    # Others name an owner, too, and not what kind of server they are.
    return owner if owner in ("vllm", "llamacpp") else "plain"
