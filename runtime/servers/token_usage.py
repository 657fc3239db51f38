"""Token counts of a reply: from the server, or from the model's tokenizer.

Without either the count is marked as unknown, which is not zero.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hopscope.runtime.servers.replies import CompletionChoice
from hopscope.runtime.types import Usage

if TYPE_CHECKING:  # it imports torch
    from hopscope.runtime.generation.vocabularies import Vocabulary

MOST = 2**53
"""The largest credible count of a server."""


def usages(
    usage: Any,
    choices: Sequence[CompletionChoice],
    body: Mapping[str, Any],
    vocabulary: "Vocabulary | None",
) -> list[Usage]:
    """The usage of each continuation: its own tokens; the first also has the prompt and the rest
    of the server's counts.

    Raises:
        ValueError: the reply has no continuations.
    """
    if not choices:
        raise ValueError("no choices")
    # A prompt is never empty: a count of 0 means that the server does not count.
    read = _count(usage, "prompt_tokens") or (len(body["prompt"]) if vocabulary else None)
    written = _written(usage)
    counts = [len(choice.tokens) for choice in choices]
    listed = all(choice.tokens or not choice.text for choice in choices)
    if written is None and not listed and vocabulary:
        counts = [_tokens(choice, vocabulary) for choice in choices]
        listed = True
    counts[0] += max(0, (written or 0) - sum(counts))
    first = Usage(
        input_tokens=read or 0,
        output_tokens=counts[0],
        calls=1,
        cached_tokens=min(_cached(usage), read or 0),
        uncounted=0 if read and (written is not None or listed) else 1,
    )
    return [first, *(Usage(output_tokens=count) for count in counts[1:])]


def _written(usage: Any) -> int | None:
    """Tokens of all replies. xAI counts tokens of thoughts in the total only."""
    asked, answered, total = (
        _count(usage, name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    )
    if asked is None or answered is None or total is None:
        return answered
    return max(answered, total - asked)


def _tokens(choice: CompletionChoice, vocabulary: "Vocabulary") -> int:
    """Tokens of a reply by the tokenizer, the end token included."""
    ids = vocabulary.tokenizer(choice.text, add_special_tokens=False).input_ids
    return len(ids) + (choice.finish != "length")


def _cached(usage: Any) -> int:
    """OpenAI, Google and Mistral report it among the details, DeepSeek and Moonshot beside them."""
    details = usage.get("prompt_tokens_details") if isinstance(usage, Mapping) else None
    counts = (
        _count(details, "cached_tokens"),
        _count(usage, "prompt_cache_hit_tokens"),
        _count(usage, "cached_tokens"),
    )
    return next((count for count in counts if count is not None), 0)


def _count(usage: Any, name: str) -> int | None:
    """A number of tokens; None if the field holds no count."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if type(value) is int and 0 <= value < MOST else None
