"""What a reply cost in tokens: as the server tells, or as the model's tokenizer counts.

Where neither can tell, it is marked as unknown, which is not the same as nothing.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hopscope.runtime.readers._choices import Choice
from hopscope.runtime.types import Usage

if TYPE_CHECKING:  # it imports torch
    from hopscope.runtime.readers._vocabulary import Vocabulary

MOST = 2**53
"""A server that tells of more tokens tells nonsense."""


def usages(
    told: Any,
    choices: Sequence[Choice],
    body: Mapping[str, Any],
    vocabulary: "Vocabulary | None",
) -> list[Usage]:
    """What each continuation cost: as many tokens as it has; the prompt, and what else the server
    counts, stands on the first.

    Raises:
        ValueError: there are no continuations.
    """
    if not choices:
        raise ValueError("no choices")
    # A prompt is never empty: servers that tell 0 tell nothing.
    read = _count(told, "prompt_tokens") or (len(body["prompt"]) if vocabulary else None)
    written = _written(told)
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
        cached_tokens=min(_cached(told), read or 0),
        uncounted=0 if read and (written is not None or listed) else 1,
    )
    return [first, *(Usage(output_tokens=count) for count in counts[1:])]


def _written(told: Any) -> int | None:
    """Tokens of all replies. xAI counts those of thoughts in the total only."""
    asked, answered, total = (
        _count(told, name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    )
    if asked is None or answered is None or total is None:
        return answered
    return max(answered, total - asked)


def _tokens(choice: Choice, vocabulary: "Vocabulary") -> int:
    """Tokens of a reply as its tokenizer cuts the text, the end token included."""
    ids = vocabulary.tokenizer(choice.text, add_special_tokens=False).input_ids
    return len(ids) + (choice.finish != "length")


def _cached(told: Any) -> int:
    """OpenAI, Google and Mistral tell it among the details, DeepSeek and Moonshot beside them."""
    details = told.get("prompt_tokens_details") if isinstance(told, Mapping) else None
    found = (
        _count(details, "cached_tokens"),
        _count(told, "prompt_cache_hit_tokens"),
        _count(told, "cached_tokens"),
    )
    return next((count for count in found if count is not None), 0)


def _count(told: Any, name: str) -> int | None:
    """A number of tokens; None where that is not what is told."""
    value = told.get(name) if isinstance(told, Mapping) else None
    return value if type(value) is int and 0 <= value < MOST else None
