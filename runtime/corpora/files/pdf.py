"""PDF by pypdf (extra `pdf`): each page that has text is a passage, titled by file and page."""

from collections.abc import Iterator
from pathlib import Path

from hopscope.runtime.corpora.records.json_records import LONGEST, Reading
from hopscope.runtime.corpora.records.reading import Columns, FileRecord
from hopscope.runtime.errors import CorpusError, MissingExtraError

SUFFIXES = (".pdf",)
_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""Errors of pypdf, besides its own types, on files that break the standard."""


def read(path: Path, reading: Reading, columns: Columns) -> Iterator[FileRecord]:
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError:
        raise MissingExtraError("PDF", "pdf") from None
    stem, size, number = path.name.rpartition(".")[0], path.stat().st_size, 0
    try:
        with path.open("rb") as file:
            document = PdfReader(file)
            if document.is_encrypted and not document.decrypt(""):
                raise CorpusError(f"{path} is encrypted: save it without a password")
            title = (document.metadata and document.metadata.title) or stem
            for number, page in enumerate(document.pages, 1):
                text = page.extract_text().strip()
                if len(text) > LONGEST:
                    problem = f"the page has more than {LONGEST >> 20} MiB of text"
                    raise CorpusError(f"{path}, page {number}: {problem}")
                if text:
                    yield FileRecord(
                        {"title": f"{title}, page {number}", "text": text}, number, "page"
                    )
    except (PyPdfError, OSError, *_DAMAGE) as error:
        raise CorpusError(f"{path}, page {number}: cannot be read: {error}") from None
    reading.bytes_read += size
