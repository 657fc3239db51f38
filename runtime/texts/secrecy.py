"""Untrusted text made safe to show: without control characters and without a secret.

A server can echo the key of a request, whole or in part, plain or encoded, so all these forms are
masked. The text is cut only afterwards: a cut through a key would leave a part unmasked.
"""

import base64
import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote

HIDDEN = "***"
"""Replaces a secret."""
RUN = 6
"""Consecutive characters of a secret that are masked wherever they stand."""
END = 4
"""Characters of its beginning or end that are masked where they stand alone, as in `sk-a…wxyz`."""
LONGEST = 10_000
"""Characters that are searched: a server's error may be megabytes."""
_WORD = re.compile(r"[A-Za-z0-9+/=_%~\\.-]+")
_ELISION = re.compile(r"\*+|\.{2,}|…+|•+|#{2,}|[xX]{3,}")


class Secret:
    """A key or password that no message may repeat. Its value has no representation."""

    def __init__(self, value: str) -> None:
        """An empty value hides nothing."""
        self._value = _folded(value)
        self._run = min(RUN, len(value))
        self._parts = {
            form[at : at + self._run]
            for form in map(_folded, _forms(value))
            for at in range(len(form) - self._run + 1)
        }

    def __bool__(self) -> bool:
        return bool(self._value)

    def hide(self, text: str) -> str:
        """The text with `***` for each run of characters that is part of the secret."""
        if not self._value:
            return text
        folded = _folded(text)
        hidden = bytearray(len(text))
        for at in range(len(text) - self._run + 1):
            if folded[at : at + self._run] in self._parts:
                hidden[at : at + self._run] = b"\1" * self._run
        for start, end in self._ends(folded):
            hidden[start:end] = b"\1" * (end - start)
        shown: list[str] = []
        for at, character in enumerate(text):
            if not hidden[at]:
                shown.append(character)
            elif not at or not hidden[at - 1]:
                shown.append(HIDDEN)
        return "".join(shown)

    def _ends(self, folded: str) -> Iterator[tuple[int, int]]:
        """Words that are the beginning or the end of the secret, and such ends beside stars."""
        for word in _WORD.finditer(folded):
            alone = word[0]
            if len(alone) >= END and self._value[: len(alone)] == alone:
                yield word.span()
            if len(alone) >= END and self._value[-len(alone) :] == alone:
                yield word.span()
        for stars in _ELISION.finditer(folded):
            start, end = stars.span()
            for size in range(min(self._run, start, len(self._value)), 1, -1):
                if folded[start - size : start] == self._value[:size]:
                    yield start - size, start
                    break
            for size in range(min(self._run, len(self._value)), 1, -1):
                if folded[end : end + size] == self._value[-size:]:
                    yield end, end + size
                    break


def shown(text: str, secret: Secret, *, most: int = 300) -> str:
    """The text on one line, without control characters and the secret, cut to `most` characters."""
    beginning = text[:LONGEST]
    folded = " ".join(beginning.split())
    printable = "".join(character for character in folded if character.isprintable())
    return secret.hide(printable)[:most]


def _folded(text: str) -> str:
    """The text in lower case with the same length: `str.lower` turns some letters into two."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def _forms(value: str) -> Iterator[str]:
    """The forms in which a server may write the secret. A short one has only the plain form, since
    parts of the others occur in any text."""
    yield value
    if len(value) < RUN:
        return
    yield quote(value, safe="")
    yield html.escape(value)
    yield json.dumps(value)[1:-1]
    yield json.dumps(value)[1:-1].replace("/", "\\/")
    yield repr(value)[1:-1]
    data = value.encode()
    yield data.hex()
    for before in range(3):  # it may stand anywhere in the encoded text
        encoded = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        # The characters at both ends depend on the neighbouring bytes.
        inner = encoded[(0, 2, 3)[before] : len(encoded) - ((before + len(data)) % 3 > 0)]
        yield inner
        yield inner.replace("+", "-").replace("/", "_")
