"""Texts in CSV that spreadsheets would carry out.

A cell that begins with one of a few signs is a formula to a spreadsheet program, which can fetch an
address with the rest of the table in it. A quotation mark in front makes it text.
"""

from contextlib import suppress

BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Of formulas; the last four are the wide forms of the first."""


def harmless(text: str) -> str:
    """The text with `'` in front where it could be a formula; a number stays as it is."""
    if not text.startswith(BEGINNINGS):
        return text
    with suppress(ValueError):
        float(text)
        return text
    return f"'{text}"
