"""The known forms of question datasets, one file each.

A form is a module with `matches(record)`, True for its own records only, `read(record)`, which
reads a record, and `passages(record)`, the passages that the record gives for its question, each
marked as supporting the answer or not. Both raise `Malformed`.
"""

from typing import NamedTuple

from hopscope.runtime.types import Passage


class Judged(NamedTuple):
    """A passage that a record gives for its question."""

    passage: Passage
    supporting: bool


class Malformed(ValueError):
    """A record does not fit its form; the message names the field and the remedy."""
