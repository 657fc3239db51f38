"""Queries in lines and TREC topics are questions without answers."""

import gzip
from pathlib import Path

import pytest

from hopscope.lab.dataset import dataset, judged, topics
from hopscope.runtime.errors import CorpusError

LINES = "1037\twhere is alba\n\n30\twho is  bruno\n"
TOP = """
<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations.
</top>
<top><num>302</num><title>Poliomyelitis &amp; polio</title></top>
"""
TOPICS = """<?xml version="1.0"?>
<topics task="covid">
  <topic number="1">
    <query>coronavirus origin</query>
    <question>what is the origin?</question>
  </topic>
  <topic type="faceted" number='2'><query>obama family</query></topic>
</topics>
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (LINES, {"1037": "where is alba", "30": "who is  bruno"}),
        ("\ufeff" + LINES.replace("\n", "\r\n"), {"1037": "where is alba", "30": "who is  bruno"}),
        (TOP, {"301": "International Organized Crime", "302": "Poliomyelitis & polio"}),
        (TOPICS, {"1": "coronavirus origin", "2": "obama family"}),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_queries_are_read(tmp_path: Path, text: str, found: dict[str, str], zipped: bool) -> None:
    path = tmp_path / ("queries.tsv.gz" if zipped else "queries.tsv")
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    data = dataset.load(str(path))
    assert (data.name, data.form) == ("queries", "beir")
    assert {one.question.id: one.question.text for one in data.entries} == found
    assert judged.passages(str(path), data) == [[]] * len(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\tone\ntwo\n", "line 2: not an id, a tab and a query"),
        ("1\tone\n2\t \n", "line 2: not an id, a tab and a query"),
        ("1\tone\n1\ttwo\n", "the id '1' was already given on line 1"),
        ("\n<top>\n<num> 3\n</top>", "line 2: a topic needs a number, and a text"),
        ("<topic number='3'><query>x</query>", "line 1: a topic does not end"),
        ("<html></html>", "holds no questions"),
        ("1\tone\n\udcff\n", "is not UTF-8 at byte 6"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "queries.tsv"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(CorpusError, match=message):
        dataset.load(str(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist: check the path; "),
        (b"", "holds no questions; "),
        (b"<html></html>", "holds no questions; "),
        (b"Who was it?\n", "begins with 'Who was it?'; "),
        (b"PAR1\x15\x04\x15\xff", "begins with 'PAR1\\x15\\x04\\x15\ufffd'; "),
        (b"\xff\xfe1\0\t\0", "is not UTF-8 at byte 0; "),
        (b"1\tone\ntwo\n", "line 2: not an id, a tab and a query; "),
    ],
)
def test_a_file_that_cannot_be_read_as_questions_is_told_all_forms(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    """JSON was named alone, although queries in lines and topics are read, too."""
    path = tmp_path / "asked"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CorpusError) as told:
        dataset.load(str(path))
    assert str(told.value).startswith(str(path))
    assert str(told.value).endswith(f"{message}{topics.FORMS}")


def test_a_damaged_gzip_file_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "asked.jsonl.gz"
    path.write_bytes(gzip.compress(b"{}")[:10] + b"\xff" * 20)
    with pytest.raises(CorpusError, match="is a damaged gzip file"):
        dataset.load(str(path))
