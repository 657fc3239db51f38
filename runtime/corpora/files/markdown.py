"""Markdown: each section is a passage, titled by the headings above it.

Front matter is left out, but for its title. What stands in fences is no heading.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from hopscope.runtime.corpora.reading import Columns, Record, whole
from hopscope.runtime.json_records import Reading

SUFFIXES = (".md", ".markdown")
BETWEEN = " > "
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_TITLE = re.compile(r"title:[ \t]*(.*)$")


def read(path: Path, reading: Reading, columns: Columns) -> Iterator[Record]:
    content = whole(path, reading).splitlines()
    begins, title = _front_matter(content)
    above = {0: title or path.name.partition(".")[0] or path.name}
    held: list[str] = []
    line, fence = begins + 1, ""
    for number, text in enumerate(content[begins:], begins + 1):
        if mark := _FENCE.match(text):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not text.strip(" `~"):
                fence = ""
        heading = None if fence else _HEADING.match(text)
        if heading is None:
            held.append(text)
            continue
        yield from _section(above, held, line)
        held, line = [], number
        level = len(heading[1])
        above = {each: named for each, named in above.items() if each < level}
        above[level] = (heading[2] or "").strip().rstrip("#").strip()
        if level == 1:
            above.pop(0, None)
    yield from _section(above, held, line)


def _front_matter(content: list[str]) -> tuple[int, str]:
    """The lines it takes, and the title it gives."""
    if not content or content[0].strip() != "---":
        return 0, ""
    for number, text in enumerate(content[1:], 2):
        if text.strip() in ("---", "..."):
            titles = filter(None, map(_TITLE.match, content[:number]))
            return number, next((found[1].strip().strip("\"'") for found in titles), "")
    return 0, ""


def _section(above: dict[int, str], held: list[str], line: int) -> Iterator[Record]:
    text = "\n".join(held).strip()
    if text:
        title = BETWEEN.join(filter(None, (above[level] for level in sorted(above))))
        yield Record({"title": title, "text": text}, line)
