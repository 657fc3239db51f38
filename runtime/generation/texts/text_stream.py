"""Turns tokens back into text, one token at a time.

Invariant: the pieces of a sequence concatenate to its text. A token that ends within a character
has the piece "", and the token that completes the character has the whole of it.
"""

import copy
from collections.abc import Sequence
from typing import Any

CONTEXT = 4
"""Tokens before the text that are decoded with it, for tokenizers that drop a leading space."""
INCOMPLETE = "\N{REPLACEMENT CHARACTER}"


class TextStream:
    """Decodes tokens as they arrive; special ones have no text unless `special`."""

    def __init__(self, tokenizer: Any, prompt_ids: Sequence[int], *, special: bool = False) -> None:
        self._tokenizer = tokenizer
        self._skips = not special
        self._window = list(prompt_ids[-CONTEXT:])
        self._spelled = len(self._window)
        """Number of tokens of the window that are already in the text; they are its context."""
        self._before = self._decode(self._window)

    def fork(self) -> "TextStream":
        """An independent copy."""
        twin = copy.copy(self)
        twin._window = list(self._window)
        return twin

    def add(self, token: int) -> str:
        """The text that this token completes."""
        self._window.append(token)
        text = self._decode(self._window)
        if text.endswith(INCOMPLETE):
            return ""
        return self._advance(text)

    def finish(self) -> str:
        """The rest after the last token: the marks of incomplete characters."""
        return self._advance(self._decode(self._window))

    def _advance(self, text: str) -> str:
        piece = text[len(self._before) :]
        if piece:
            self._window = self._window[self._spelled :]
            self._before = self._decode(self._window)
        self._spelled = len(self._window)
        return piece

    def _decode(self, ids: list[int]) -> str:
        text: str = self._tokenizer.decode(
            ids, skip_special_tokens=self._skips, clean_up_tokenization_spaces=False
        )
        return text


def pieces(tokenizer: Any, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[str]:
    """The text of each token of a continuation."""
    stream = TextStream(tokenizer, prompt_ids)
    spelled = [stream.add(token) for token in ids]
    if spelled:
        spelled[-1] += stream.finish()
    return spelled
