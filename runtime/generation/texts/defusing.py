"""Removes the marks of a model's chat format from untrusted text.

Passages, questions and prefixes of answers may hold `<|im_end|>` or `<tool_call>`; these must not
end their turn, nor begin another. Marks are searched among the tokens of the text, since a
normalizing tokenizer reads full-width brackets as plain ones, and are broken by a space. Time is
linear in the text.
"""

import re
import unicodedata
from typing import Any

from hopscope.runtime.errors import ReaderError

BRACKETED = re.compile(r"[<\[{|\uff5c\uff1c].*[>\]}|\uff5c\uff1e]", re.DOTALL)
"""An added token that looks like a mark, even if its tokenizer does not mark it as special; other
added tokens, such as words and runs of spaces, are text."""
WRITTEN = re.compile(r"<[^<>\s{}%'\"]{1,40}>|\[/?[A-Z_]{2,40}\]")
"""Marks that a chat template writes out, `<<SYS>>` and `[INST]` among them."""
ROUNDS = 4
"""A broken mark can hold another."""


class Defuser:
    """Breaks the marks of one tokenizer."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        self._name = name
        self._tokenizer = tokenizer
        self._backend: Any = getattr(tokenizer, "backend_tokenizer", None)
        self._marks: dict[int, str] = {
            number: token.content
            for number, token in tokenizer.added_tokens_decoder.items()
            if token.content and (token.special or BRACKETED.fullmatch(token.content))
        }
        self._unknown: int | None = tokenizer.unk_token_id
        written = set(WRITTEN.findall(str(tokenizer.chat_template or "")))
        self._written = _any_of(written)
        self._all = _any_of(written | set(self._marks.values()))

    def defuse(self, text: str) -> str:
        """The text with a space inside every mark, or in place of one that is a single character.

        Raises:
            ReaderError: marks remain after all attempts to break them.
        """
        text = self._written.sub(lambda match: _broken(match[0]), text)
        for _ in range(ROUNDS):
            if self._backend is None:
                text, left = self._by_pattern(text)
            else:
                text, left = self._by_place(text)
            if not left:
                return text
        raise ReaderError(f"{self._name}: a text holds control tokens that cannot be removed")

    def _by_place(self, text: str) -> tuple[str, bool]:
        """The text with a space in each mark among its tokens, and whether there was one."""
        parts, end = [], 0
        encoded = self._backend.encode(text, add_special_tokens=False)
        for number, (start, stop) in zip(encoded.ids, encoded.offsets, strict=True):
            if number in self._marks and self._meant(number, text[start:stop]):
                parts += [text[end:start], _broken(text[start:stop])]
                end = stop
        return "".join([*parts, text[end:]]), bool(parts)

    def _by_pattern(self, text: str) -> tuple[str, bool]:
        """As `_by_place`, for a tokenizer without offsets."""
        text = self._all.sub(lambda match: _broken(match[0]), text)
        ids = self._tokenizer(text, add_special_tokens=False, verbose=False).input_ids
        if all(number == self._unknown or number not in self._marks for number in ids):
            return text, False
        return unicodedata.normalize("NFKC", text), True

    def _meant(self, number: int, text: str) -> bool:
        """Whether a text is the mark itself: unknown text also becomes a special token."""
        if number != self._unknown:
            return True
        return unicodedata.normalize("NFKC", text).strip() == self._marks[number]


def _any_of(marks: set[str]) -> re.Pattern[str]:
    longest_first = sorted(marks, key=lambda mark: (-len(mark), mark))
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def _broken(mark: str) -> str:
    """The mark with a space after its first character that is none."""
    core = mark.strip()
    if len(core) < 2:
        return " "
    cut = mark.index(core) + 1
    return f"{mark[:cut]} {mark[cut:]}"
