"""A table or figure of a paper, with the command that makes it."""

from collections.abc import Sequence
from typing import NamedTuple

DASH = "\N{EN DASH}"
LARGE = "needs the paper's model"
DRAWN = "the paper gives a picture only"
NONE = "no command"

DATA = "--data FILE --reader hf:MODEL"
"""The part that makes a suite read a user's own questions."""
FUSED = "--data FILE --reader fid:MODEL"
"""Likewise, with Fusion-in-Decoder."""


class Source(NamedTuple):
    """A figure of a suite on the generated world, as `hopscope lab --json` calls it."""

    suite: str
    name: str
    """`*` stands for any text, as the version of a model."""
    percent: bool = True


class Result(NamedTuple):
    """A table or figure of a paper."""

    place: str
    """As T1 or Fig. 3."""
    shows: str
    commands: Sequence[str]
    """In their order; none if there is no command."""
    differs: str
    paper: str
    """One of the paper's figures, with what it is of."""
    here: Source | None = None
    """The same figure here."""
    unmeasured: str = ""
    """Without it, why there is none."""
    elsewhere: str = ""
    """In place of both, figures of another benchmark."""
