"""Column types that return the exact stored value, on SQLite and PostgreSQL alike.

Invariant: `read(write(x)) == x` for every value the records allow. That is why instants are
kept in UTC, seeds (which may exceed 64 bits) as decimal text, and number sequences packed.
"""

import json
import re
import struct
import zlib
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from sys import byteorder
from typing import Any

from sqlalchemy import DateTime, Dialect, LargeBinary, Text
from sqlalchemy.types import TypeDecorator

from hopscope.runtime.texts.storable import storable

_NUL, _ESCAPE = "\x00", "\x1b"
_ESCAPED = re.compile("\x1b(.)", re.DOTALL)
_TYPECODES = {"i": 4, "q": 8, "f": 4, "d": 8}
"""Array type codes by bytes per item, the narrower first."""
LARGEST = 100_000_000
"""Bytes of a compressed value when it is opened."""


class DamagedBytesError(ValueError):
    """Bytes of the database are not those that were written."""


class AnyText(TypeDecorator[str]):
    """Text that may hold NUL, which PostgreSQL refuses: it is stored as ESC 0, ESC as ESC ESC.
    Other text is stored unchanged. Unpaired surrogates, which no record holds, are replaced, so
    that no text ends an experiment."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        value = storable(value)
        if _NUL not in value and _ESCAPE not in value:
            return value
        return value.replace(_ESCAPE, _ESCAPE * 2).replace(_NUL, _ESCAPE + "0")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or _ESCAPE not in value:
            return value
        return _ESCAPED.sub(lambda found: _NUL if found[1] == "0" else found[1], value)


class Instant(TypeDecorator[datetime]):
    """A time in UTC with microseconds. A time without zone is taken as UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None or value.tzinfo is None:
            return value and value.replace(tzinfo=UTC)
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None or value.tzinfo is None:
            return value and value.replace(tzinfo=UTC)
        return value.astimezone(UTC)


class Seed(TypeDecorator[int]):
    """A whole number of any size, as decimal text."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> str | None:
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> int | None:
        return None if value is None else int(value)


class Packed(TypeDecorator[tuple[float, ...]]):
    """A sequence of numbers as bytes: one type code, then the items, little-endian.

    The code is the narrowest that loses nothing: `i` 32-bit or `q` 64-bit integers, `f` float32
    (what readers compute in) or `d` float64; `j` is JSON, for integers beyond 64 bits. The empty
    sequence is NULL.
    """

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Sequence[float] | None, dialect: Dialect) -> bytes | None:
        return pack(value) if value else None

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> tuple[float, ...]:
        return unpack(value) if value else ()


class Deflated(TypeDecorator[Any]):
    """JSON, compressed: for text that repeats itself, such as the answers to similar prompts."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> bytes | None:
        if value is None:
            return None
        return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), level=9)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> Any:
        """Raises DamagedBytesError where the bytes were damaged, or would fill the memory."""
        if value is None:
            return None
        opened = zlib.decompressobj()
        try:
            text = opened.decompress(value, LARGEST)
        except zlib.error as error:
            raise DamagedBytesError(f"compressed bytes are damaged: {error}") from None
        if not opened.eof:
            raise DamagedBytesError(
                f"compressed bytes are cut, or more than {LARGEST:,} when opened"
            )
        return json.loads(text)


def pack(numbers: Sequence[float]) -> bytes:
    """Bytes of a sequence that is all integers or all floats."""
    for code in "iq" if isinstance(numbers[0], int) else "fd":
        try:
            items = array(code, numbers)
        except OverflowError:
            continue
        if items.itemsize == _TYPECODES[code] and items.tolist() == list(numbers):
            if byteorder == "big":
                items.byteswap()
            return code.encode() + items.tobytes()
    return b"j" + json.dumps(list(numbers)).encode()


def unpack(data: bytes) -> tuple[float, ...]:
    """The numbers in `data`, with their original type."""
    code, body = chr(data[0]), data[1:]
    if code == "j":
        return tuple(json.loads(body))
    return struct.unpack(f"<{len(body) // _TYPECODES[code]}{code}", body)
