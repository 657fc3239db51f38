"""Ask a reader for a rating from 1 to 10 and parse its reply.

Invariant: a reply without a rating is unmeasured, never the lowest. Ratings become values in [0, 1]
by (rating - 1) / 9.
"""

import re
from collections.abc import Sequence

from hopscope.runtime.ports import Reader
from hopscope.runtime.types import GenerationRequest, Prompt
from hopscope.tracing.asking.asking import Unmeasured, generate

LOWEST, HIGHEST = 1, 10
MAX_TOKENS = 16
SHOWN = 40
"""Characters of a reply that a reason quotes."""


_SCALE = re.compile(r"(?:/|out of)\s*10\b")
_NUMBER = re.compile(r"(?<![\w.,-])\d+(?![\w,-]|\.\d)")


def rating(reply: str) -> int | None:
    """The only whole number from 1 to 10 in the reply, else None; "8/10" is 8."""
    *scaled, rest = _SCALE.split(reply)
    said = "".join([*map(str.rstrip, scaled), rest])
    numbers = {int(found) for found in _NUMBER.findall(said[:1000])}
    return numbers.pop() if len(numbers) == 1 and LOWEST <= min(numbers) <= HIGHEST else None


def rate(reader: Reader, prompts: Sequence[Prompt], *, seed: int) -> dict[Prompt, float | str]:
    """For each prompt a value in [0, 1] or the reason it is missing; one call to the reader.

    Raises:
        ReaderError: the reader failed.
    """
    asked = list(dict.fromkeys(prompts))
    requests = [GenerationRequest(prompt=p, max_tokens=MAX_TOKENS, seed=seed) for p in asked]
    replies = generate(reader, requests) if requests else []
    return {p: _value(reply) for p, reply in zip(asked, replies, strict=True)}


def _value(reply: object) -> float | str:
    if isinstance(reply, Unmeasured):
        return reply.reason
    assert isinstance(reply, list)
    text: str = reply[0].text
    found = rating(text)
    if found is None:
        return f"the judge's reply is no rating from 1 to 10: {text.strip()[:SHOWN]!r}"
    return (found - LOWEST) / (HIGHEST - LOWEST)
