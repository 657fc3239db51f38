"""The answers behind a run's values, in a few lines: key tokens in brackets, sampled answers by
mass."""

from itertools import groupby
from typing import TYPE_CHECKING

from rich.text import Text

from hopscope.api.views.render import number, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from hopscope.runtime.types import AnswerGroup
    from hopscope.tracing.reports.records import ContextReport, RunReport

MOST = 3
"""Sampled answers in a line."""


def show(console: "Console", found: "RunReport") -> None:
    """Print a line for each context with answers; nothing where none are stored."""
    known = [each for each in found.contexts if each.tokens or each.groups]
    if not known:
        return
    console.print(Text("answers after each retrieval, GroGU's key tokens in [ ]", style="dim"))
    for context in known:
        line = Text(f"  {'closed book' if context.step is None else context.step}  ")
        line.append_text(_tokens(context))
        if context.groups:
            line.append("   samples  " if context.tokens else "samples  ", style="dim")
            line.append_text(samples(context.groups))
        console.print(line)


def samples(groups: "Sequence[AnswerGroup]") -> Text:
    """The heaviest sampled answers with their mass."""
    found = Text(", ").join(map(_sample, groups[:MOST]))
    if (more := len(groups) - MOST) > 0:
        found.append(f", {more} more", style="dim")
    return found


def _sample(group: "AnswerGroup") -> Text:
    """In green if it is right."""
    text = plain(group.answer) or "(empty)"
    return Text(f"{text} {number(group.mass)}", style="green" if group.right else "")


def _tokens(context: "ContextReport") -> Text:
    """The greedy answer; neighbouring key tokens share their brackets."""
    found = Text()
    for key, tokens in groupby(context.tokens or (), key=lambda token: token.key):
        text = "".join(token.text for token in tokens)
        if found and text[:1].isspace():
            found.append(" ")
        found.append(f"[{plain(text)}]" if key else plain(text), style="bold" if key else "")
    return found
