"""Texts in CSV that spreadsheets would execute.

A cell that begins with one of a few signs is a formula to a spreadsheet program, and a formula can
send the table to an address. An apostrophe in front makes it text.
"""

from contextlib import suppress

BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The first signs of formulas; the last four are the wide forms of the first four."""


def harmless(text: str) -> str:
    """The text, with `'` in front if it could be a formula; numbers are unchanged."""
    if not text.startswith(BEGINNINGS):
        return text
    with suppress(ValueError):
        float(text)
        return text
    return f"'{text}"
