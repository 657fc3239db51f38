"""The queries of `hopscope index search`: given one by one, or as a file of them."""

from collections.abc import Sequence
from pathlib import Path

from hopscope.runtime.errors import UsageError, unreadable


def read(given: Sequence[str], file: Path | None) -> list[tuple[str, str]]:
    """Ids and queries, from the command line or a file of them.

    Raises:
        UsageError: there are none, both are given, one is empty, or a line has no tab.
    """
    if bool(given) == (file is not None):
        raise UsageError("give queries, or a file of them with --queries")
    if file is None:
        if not all(query.strip() for query in given):
            raise UsageError("a query is empty: give what to search for")
        return [(str(number), query) for number, query in enumerate(given, 1)]
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(unreadable(file, error, "queries")) from None
    pairs = [_pair(file, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not pairs:
        raise UsageError(f"{file} has no queries")
    return pairs


def _pair(file: Path, number: int, line: str) -> tuple[str, str]:
    id, tab, query = line.partition("\t")
    if not (id.strip() and tab):
        raise UsageError(f"{file}, line {number}: an id, a tab and a query are needed")
    return id.strip(), query
