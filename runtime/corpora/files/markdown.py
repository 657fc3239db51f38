"""Markdown: each section is a passage, titled by the headings above it.

Front matter is left out, except its title. Lines within fences are no headings.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from hopscope.runtime.corpora.records.json_records import Reading
from hopscope.runtime.corpora.records.reading import Columns, FileRecord, whole

SUFFIXES = (".md", ".markdown")
BETWEEN = " > "
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_TITLE = re.compile(r"title:[ \t]*(.*)$")


def read(path: Path, reading: Reading, columns: Columns) -> Iterator[FileRecord]:
    content = whole(path, reading).splitlines()
    begins, title = _front_matter(content)
    above = {0: title or path.name.partition(".")[0] or path.name}
    section: list[str] = []
    line, fence = begins + 1, ""
    for number, text in enumerate(content[begins:], begins + 1):
        if mark := _FENCE.match(text):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not text.strip(" `~"):
                fence = ""
        heading = None if fence else _HEADING.match(text)
        if heading is None:
            section.append(text)
            continue
        yield from _section(above, section, line)
        section, line = [], number
        level = len(heading[1])
        above = {each: named for each, named in above.items() if each < level}
        above[level] = (heading[2] or "").strip().rstrip("#").strip()
        if level == 1:
            above.pop(0, None)
    yield from _section(above, section, line)


def _front_matter(content: list[str]) -> tuple[int, str]:
    """The number of its lines, and its title."""
    if not content or content[0].strip() != "---":
        return 0, ""
    for number, text in enumerate(content[1:], 2):
        if text.strip() in ("---", "..."):
            titles = filter(None, map(_TITLE.match, content[:number]))
            return number, next((match[1].strip().strip("\"'") for match in titles), "")
    return 0, ""


def _section(above: dict[int, str], section: list[str], line: int) -> Iterator[FileRecord]:
    text = "\n".join(section).strip()
    if text:
        title = BETWEEN.join(filter(None, (above[level] for level in sorted(above))))
        yield FileRecord({"title": title, "text": text}, line)
