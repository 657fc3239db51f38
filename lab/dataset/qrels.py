"""Judgments of passages: the qrels of TREC and of BEIR.

TREC has four columns, `QUESTION 0 PASSAGE LABEL`; BEIR three, separated by tabs, below a heading:
`query-id corpus-id score`. A label above 0 says that the passage is relevant, a
higher one that it is more so.
"""

from collections.abc import Mapping
from pathlib import Path

from hopscope.runtime.errors import CorpusError, unreadable
from hopscope.runtime.texts.literals import whole_number

HEADING = "query-id"


def read(path: Path) -> Mapping[str, dict[str, int]]:
    """The labels of the relevant passages by their ids, by the id of the question, in the order of
    the file.

    Raises:
        CorpusError: the file cannot be read, or a line has another form.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(unreadable(path, error, "qrels")) from None
    found: dict[str, dict[str, int]] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split("\t") if line.count("\t") == 2 else line.split()
        if not words or (number == 1 and words[0] == HEADING):
            continue
        label = whole_number(words[-1].strip())
        if len(words) not in (3, 4) or label is None:
            raise CorpusError(
                f"{path}, line {number}: not `QUESTION 0 PASSAGE LABEL` (TREC) nor `QUESTION "
                "PASSAGE LABEL` separated by tabs (BEIR), with a whole number as LABEL"
            )
        if label > 0:
            found.setdefault(words[0], {})[words[-2]] = label
    return found
