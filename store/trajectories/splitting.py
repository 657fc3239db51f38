"""Parts the passages that a tool glued into one text.

A tool's text is tried by the rules of `RULES` in turn; the first that applies parts it. A text that
is JSON is not glued: its list of passages is read as it stands. Each rule sees the beginnings of
lines only, and numbers must rise by one from 1 or 0, so that a number within a passage parts
nothing unless it is the next one.

    doc_title    Doc 1(Title: "Rovmar") text       Search-R1, FlashRAG
    parentheses  (1)Rovmar<tab or three spaces>text  R1-Searcher; (1)Title: Rovmar Text: text
    brackets     [1] text
    words        Document 1: text; also Passage, Result, Source and Doc
    dashes       lines of three or more dashes between the passages
    blank_lines  empty lines between the passages   LangChain's retriever tool
    whole        the whole text is one passage
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from hopscope.runtime.texts.literals import json_value

Rule = Literal["doc_title", "parentheses", "brackets", "words", "dashes", "blank_lines", "whole"]
RULES: tuple[Rule, ...] = get_args(Rule)
WHOLE: Rule = "whole"
"""The rule that parts nothing."""
LISTS = ("documents", "passages", "results", "result", "docs", "contexts", "hits", "data")
"""Fields of a JSON object that hold its list of passages; the first present one counts."""

_NUMBERED: dict[Rule, re.Pattern[str]] = {
    "doc_title": re.compile(r"Doc (\d{1,4})(?=\(Title: )"),
    "parentheses": re.compile(r"\((\d{1,4})\) ?"),
    "brackets": re.compile(r"\[(\d{1,4})\]:? ?"),
    "words": re.compile(r"(?:Document|Passage|Result|Source|Doc) \[?(\d{1,4})\]?(?:[:.)]|$) ?"),
}
_DASHES = re.compile(r"-{3,}\s*\Z")
_TITLED = re.compile(r"Title: ?(.*)")
_GAP = re.compile(r"\t|   ")


class Parted(NamedTuple):
    """The passages of a tool's text."""

    passages: Sequence[Any]
    """As `runtime.adapters.passages.ranking` reads them."""
    rule: Rule | None
    """The rule that parted them; None if they were told apart by the text itself."""


def part(text: str, rules: Sequence[Rule] = RULES) -> Parted:
    """The passages of a tool's text, by the first of the rules that applies."""
    if (listed := _json(text)) is not None:
        return Parted(listed, None)
    for rule in rules:
        passages = [each for each in _BY_RULE[rule](text) if each["text"].strip()]
        if passages:
            return Parted(passages, rule)
    return Parted([], None)


def _json(text: str) -> Sequence[Any] | None:
    """The passages of a JSON list, or of the list in a JSON object."""
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        value = json_value(text)
    except ValueError:
        return None
    if isinstance(value, Mapping):
        value = next((value[key] for key in LISTS if isinstance(value.get(key), list)), [value])
    # Search-R1's server puts each passage beside its score.
    return (
        [
            {**each["document"], "score": each.get("score")}
            if isinstance(each, Mapping) and isinstance(each.get("document"), Mapping)
            else each
            for each in value
        ]
        if isinstance(value, list)
        else None
    )


def _numbered(rule: Rule) -> Callable[[str], Iterator[dict[str, str]]]:
    mark = _NUMBERED[rule]

    def parts(text: str) -> Iterator[dict[str, str]]:
        held: list[str] | None = None
        due = -1
        for line in text.splitlines():
            match = mark.match(line)
            number = int(match[1]) if match else -1
            if match and (number == due or (held is None and number in (0, 1))):
                if held is not None:
                    yield _titled("\n".join(held))
                held, due = [line[match.end() :]], number + 1
            elif held is not None:
                held.append(line)
            elif line.strip():
                return  # text before the first number: another form
        if held is not None:
            yield _titled("\n".join(held))

    return parts


def _titled(text: str) -> dict[str, str]:
    """A passage with the title that its beginning names."""
    first, _, rest = text.partition("\n")
    if first.startswith("(Title: "):
        quoted = first.startswith('(Title: "')
        title, closed, body = text.removeprefix("(Title: ").partition('") ' if quoted else ") ")
        if closed:
            return {"title": title.strip().strip('"'), "text": body.strip()}
    if match := _TITLED.match(first):
        title, parted, body = match[1].partition(" Text: ")
        if parted:
            return {"title": title.strip(), "text": f"{body}\n{rest}".strip()}
        if rest.strip():
            return {"title": title.strip(), "text": rest.strip().removeprefix("Text: ")}
    if gap := _GAP.search(first):
        return {
            "title": first[: gap.start()].strip(),
            "text": f"{first[gap.end() :]}\n{rest}".strip(),
        }
    return {"text": text.strip()}


def _between(divides: Callable[[str], bool]) -> Callable[[str], Iterator[dict[str, str]]]:
    def parts(text: str) -> Iterator[dict[str, str]]:
        pieces: list[list[str]] = [[]]
        for line in text.strip().splitlines():
            if divides(line):
                pieces.append([])
            else:
                pieces[-1].append(line)
        if len(pieces) > 1:
            yield from (_titled("\n".join(piece)) for piece in pieces)

    return parts


def _whole(text: str) -> Iterator[dict[str, str]]:
    yield _titled(text)


_BY_RULE: dict[Rule, Callable[[str], Iterator[dict[str, str]]]] = {
    **{rule: _numbered(rule) for rule in _NUMBERED},
    "dashes": _between(lambda line: _DASHES.match(line) is not None),
    "blank_lines": _between(lambda line: not line.strip()),
    "whole": _whole,
}
