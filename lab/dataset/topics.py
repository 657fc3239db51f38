"""The records of a file of questions, whatever its form: JSON, queries in lines, or TREC topics.

Queries in lines are an id, a tab and a text, as MS MARCO and TREC's deep learning track give them.
Topics are TREC's: `<top>` with `<num>` and `<title>`, or `<topic number="...">` with `<query>` or
`<title>`. Both become records of BEIR's form, `{"_id", "text"}`. A file that begins with `<` has
topics, one whose first line is not JSON and has a tab has queries in lines. `FORMS` tells users.
"""

import gzip
import html
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hopscope.runtime.corpora.records.json_records import (
    GZIP_MAGIC,
    LONGEST,
    JsonObject,
    JsonRecords,
    Reading,
)
from hopscope.runtime.errors import CorpusError

FORMS = (
    "a file of questions is UTF-8 text, plain or gzipped: JSON lines, one JSON list, lines of an "
    "id, a tab and a query (TSV), or TREC topics"
)
"""All that `records` reads, as errors tell it."""
SHOWN = 40
"""Characters of a file of no known form that its error shows."""
_TOPIC = re.compile(r"<top>|<topic\b([^<>]{0,500})>", re.IGNORECASE)
_END = re.compile(r"</top(?:ic)?>", re.IGNORECASE)
_NUMBER = re.compile(r"""number\s*=\s*["']([^"']*)["']""", re.IGNORECASE)
_FIELD = re.compile(r"<(num|title|query)>([^<]*)", re.IGNORECASE)
_LABEL = re.compile(r"^\s*(?:Number|Topic)\s*:", re.IGNORECASE)


class TextRecords:
    """Queries of lines or of topics as records of BEIR's form."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self._text = path, text
        self.reading = Reading()

    def fail(self, line: int, problem: str) -> CorpusError:
        return CorpusError(f"{self.path}, line {line}: {problem}")

    def __iter__(self) -> Iterator[JsonObject]:
        return self._topics() if self._text.lstrip().startswith("<") else self._lines()

    def _lines(self) -> Iterator[JsonObject]:
        for number, line in enumerate(self._text.split("\n"), start=1):
            if line.strip():
                id, tab, query = line.partition("\t")
                if not (tab and id.strip() and query.strip()):
                    raise self.fail(number, f"not an id, a tab and a query; {FORMS}")
                yield JsonObject(number, {"_id": id.strip(), "text": query.strip()})

    def _topics(self) -> Iterator[JsonObject]:
        line = place = 0
        for opened in _TOPIC.finditer(self._text):
            line += self._text.count("\n", place, opened.start())
            place = opened.start()
            closed = _END.search(self._text, opened.end())
            if closed is None:
                raise self.fail(line + 1, "a topic does not end with </top> or </topic>")
            body = self._text[opened.end() : closed.start()]
            fields = {name.lower(): value for name, value in _FIELD.findall(body)}
            numbered = _NUMBER.search(opened.group(1) or "")
            id = numbered.group(1) if numbered else _told(fields.get("num", ""))
            query = _told(fields.get("query", "")) or _told(fields.get("title", ""))
            if not (id.strip() and query):
                raise self.fail(line + 1, "a topic needs a number, and a text in title or query")
            yield JsonObject(line + 1, {"_id": id.strip(), "text": query})


def records(path: Path) -> JsonRecords | TextRecords:
    """
    Raises:
        CorpusError: the file is missing or of none of the forms, or it is text, but larger than
            64 MiB or not UTF-8.
    """
    head = _head(path)
    if head.startswith(("{", "[")):
        return JsonRecords(path)
    if not head:
        return _empty_or_unreadable(path)
    if not head.startswith("<") and "\t" not in head:
        raise CorpusError(f"{path} begins with {head[:SHOWN]!r}; {FORMS}")
    try:
        with _opened(path) as file:
            content = file.read(LONGEST + 1)
        if len(content) > LONGEST:
            raise CorpusError(f"{path}: more than 64 MiB of queries; divide the file")
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path} is not UTF-8 at byte {error.start}; {FORMS}") from None
    except (OSError, EOFError) as error:
        raise CorpusError(f"{path} cannot be read: {error}") from None
    return TextRecords(path, text.replace("\r\n", "\n"))


def _empty_or_unreadable(path: Path) -> JsonRecords:
    """
    Raises:
        CorpusError: the file is missing, is a folder or cannot be opened.
    """
    try:
        return JsonRecords(path)
    except CorpusError as error:
        raise CorpusError(f"{error}; {FORMS}") from None


def _head(path: Path) -> str:
    """The beginning of the first line that is not blank; empty where the file cannot be read, whose
    problem JSON's reader tells; it is shown, too, where it is of no form."""
    try:
        with _opened(path) as file:
            head = file.read(1 << 12)
    except (OSError, EOFError, zlib.error):
        return ""
    return head.decode("utf-8-sig", errors="replace").lstrip().partition("\n")[0]


def _opened(path: Path) -> gzip.GzipFile | BinaryIO:
    with path.open("rb") as file:
        zipped = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    return gzip.open(path) if zipped else path.open("rb")


def _told(text: str) -> str:
    return " ".join(_LABEL.sub("", html.unescape(text)).split())
