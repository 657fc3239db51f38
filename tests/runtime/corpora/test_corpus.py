"""Corpora are read as streams, in every usual form, and broken ones are refused by line."""

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from hopscope.runtime.corpora.corpus import Corpus
from hopscope.runtime.corpora.records import json_records
from hopscope.runtime.corpora.records.json_records import BLOCK
from hopscope.runtime.errors import CorpusError
from hopscope.runtime.types import Passage

TWO = [
    Passage(id="a", title="Łódź", text="A city in Poland. 🏭"),
    Passage(id="b", title="", text='It has "quotes", [brackets] and\nlines.'),
]


def write(folder: Path, content: str | bytes, name: str = "corpus.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def as_objects(passages: list[Passage]) -> list[dict[str, str]]:
    return [p.model_dump(include={"id", "title", "text"}) for p in passages]


def as_lines(passages: list[Passage]) -> str:
    return "".join(json.dumps(o, ensure_ascii=False) + "\n" for o in as_objects(passages))


@pytest.mark.parametrize(
    "content",
    [
        as_lines(TWO),
        as_lines(TWO).rstrip("\n"),
        "\ufeff" + as_lines(TWO).replace("\n", "\r\n\n"),
        json.dumps(as_objects(TWO)),
        "\ufeff \n" + json.dumps(as_objects(TWO), indent=4, ensure_ascii=False) + "\n",
        gzip.compress(as_lines(TWO).encode()),
        gzip.compress(json.dumps(as_objects(TWO)).encode()),
    ],
    ids=["lines", "no last newline", "BOM and CRLF", "list", "indented list", "gz", "list gz"],
)
def test_every_form_gives_the_same_passages(tmp_path: Path, content: str | bytes) -> None:
    corpus = Corpus(write(tmp_path, content))
    assert list(corpus) == TWO
    assert list(corpus) == TWO, "reading again starts anew"
    assert corpus.reading.bytes_read == corpus.size


@pytest.mark.parametrize(
    ("record", "passage"),
    [
        ({"_id": "d1", "title": "T", "text": "x", "metadata": {}}, ("d1", "T", "x")),
        ({"docid": 7, "text": "x", "title": None}, ("7", "", "x")),
        ({"id": "0", "contents": '"Aaron"\nA prophet.'}, ("0", "Aaron", "A prophet.")),
        ({"id": "0", "contents": "One line only."}, ("0", "", "One line only.")),
        ({"id": "0", "title": "T", "contents": "One\ntwo"}, ("0", "T", "One\ntwo")),
    ],
)
def test_records_of_other_tools(
    tmp_path: Path, record: dict[str, object], passage: tuple[str, str, str]
) -> None:
    (read,) = Corpus(write(tmp_path, json.dumps(record)))
    assert (read.id, read.title, read.text) == passage


def test_passages_without_an_id_keep_theirs_when_the_corpus_grows(tmp_path: Path) -> None:
    one, two = {"title": "A", "text": "x"}, {"title": "B", "text": "x"}
    (before,) = Corpus(write(tmp_path, json.dumps([one])))
    corpus = Corpus(write(tmp_path, json.dumps([two, one, two])))
    passages = list(corpus)
    assert [p.title for p in passages] == ["B", "A"]
    assert passages[1] == before
    assert passages[0].id != passages[1].id
    assert corpus.repeats == 1


GOOD = '{"id": "a", "text": "x"}\n'


@pytest.mark.parametrize(
    ("content", "line", "told"),
    [
        (GOOD + '{"id": "b", "text": "x"\n', 2, "broken JSON"),
        (GOOD + "\n[1]\n", 3, "object is needed"),
        (GOOD + '{"id": "b", "title": "T"}\n', 2, "no 'text' among the keys 'id', 'title'"),
        (GOOD + '{"id": "b", "text": " "}\n', 2, "'text' is empty"),
        (GOOD + '{"id": "b", "text": 3}\n', 2, "'text' must be a string"),
        (GOOD + '{"id": ["b"], "text": "x"}\n', 2, "'id' must be"),
        (GOOD + GOOD, 2, "id 'a' was already given on line 1"),
        (GOOD.encode() + b'{"id": "b", "text": "caf\xe9"}\n', 2, "byte 0xe9 is not UTF-8"),
        ('[{"text": "x"},\n{"text": "y"\n}, {"text" "z"}]', 3, "broken JSON"),
        ('[{"text": "x"},\n {"text": "y"', 2, "broken JSON"),
        ('[{"text": "x"},\n]', 2, "broken JSON"),
        ('[{"text": "x"}\n {"text": "y"}]', 2, "']' is needed, not '{'"),
        ('[{"text": "x"}', 1, "not the end of the file"),
        ('[{"text": "x"}]\n{"text": "y"}', 2, "more text after the end"),
        ('[{"text": "x"},\n"y"]', 2, "object is needed here, not str"),
        ('[{"text": "x"},\n{"text": ""}]', 2, "'text' is empty"),
        (b'[{"text": "x"},\n{"text": "caf\xe9"}]', 2, "byte 0xe9 is not UTF-8"),
    ],
)
def test_what_is_wrong_is_told_by_line(
    tmp_path: Path, content: str | bytes, line: int, told: str
) -> None:
    path = write(tmp_path, content)
    with pytest.raises(CorpusError) as caught:
        list(Corpus(path))
    assert f"{path}, line {line}: " in str(caught.value)
    assert told in str(caught.value)


@pytest.mark.parametrize("form", ["lines", "list"])
def test_half_of_a_surrogate_pair_is_replaced_and_counted(tmp_path: Path, form: str) -> None:
    records = [r'{"text": "a \ud83d"}', r'{"text": "\ud83d\ude00"}', r'{"text": "\\ud83d"}']
    path = write(tmp_path, "\n".join(records) if form == "lines" else f"[{','.join(records)}]")
    corpus = Corpus(path)
    for _ in range(2):  # reading again counts anew
        assert [p.text for p in corpus] == ["a \ufffd", "😀", r"\ud83d"]
        assert corpus.reading.replaced == 1


def test_a_record_beyond_the_limit_is_named_and_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gzip of 2.9 MB with one record of 3 GB ended the process."""
    monkeypatch.setattr(json_records, "LONGEST", 1 << 20)
    path = tmp_path / "corpus.jsonl.gz"
    long = b'{"text": "' + b"a" * (50 << 20) + b'"}'
    path.write_bytes(gzip.compress(GOOD.encode() + long + b'\n{"id": "c", "text": "y"}'))
    listed = tmp_path / "list.json.gz"
    listed.write_bytes(gzip.compress(b"[" + GOOD.encode() + b"," + long + b"]"))
    tracemalloc.start()
    with pytest.raises(CorpusError, match="line 2: the record is longer than 1 MiB"):
        list(Corpus(path))
    corpus = Corpus(path, skip=True)
    assert [passage.id for passage in corpus] == ["a", "c"]
    assert corpus.reading.skipped == 1
    with pytest.raises(CorpusError, match="line 2: the record is longer than 1 MiB"):
        list(Corpus(listed))
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("at", [12, 40, 200, -6])
def test_a_damaged_gzip_file_is_named(tmp_path: Path, at: int) -> None:
    lines = "".join(f'{{"text": "{i * i}"}}\n' for i in range(99))
    data = bytearray(gzip.compress(lines.encode()))
    data[at] ^= 0xFF
    path = tmp_path / "corpus.jsonl.gz"
    path.write_bytes(data)
    with pytest.raises(CorpusError, match=r"corpus\.jsonl\.gz(, line \d+: | is a damaged gzip)"):
        list(Corpus(path))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"id": ' + "9" * 5000 + ', "text": "a"}', "line 1: a number with more than 4,300 digits"),
        ('{"text": ' + "[" * 99_999, "line 1: JSON that is nested too deep"),
    ],
)
def test_json_that_python_cannot_hold_is_told(tmp_path: Path, text: str, told: str) -> None:
    for form in (text, f"[{text}]"):
        with pytest.raises(CorpusError, match=told):
            list(Corpus(write(tmp_path, form)))


BROKEN = (
    b'{"id": "b", "text": "caf\xe9"}',
    b'{"id": "c", "text": ""}',
    b'{"id": "a", "text": "again"}',
    b'"e"',
)
TOLD = ("byte 0xe9 is not UTF-8", "'text' is empty", "already given on line 1", "not str")


@pytest.mark.parametrize("form", ["lines", "list"])
def test_broken_records_can_be_skipped_and_are_told_by_line(tmp_path: Path, form: str) -> None:
    records = [b'{"id": "a", "text": "x"}', *BROKEN, b'{"id": "z", "text": "\xc3\xa9"}']
    joined = b"\n".join(records) if form == "lines" else b"[" + b",\n".join(records) + b"]"
    path = write(tmp_path, joined)
    with pytest.raises(CorpusError, match="line 2: byte 0xe9"):
        list(Corpus(path))
    corpus = Corpus(path, skip=True)
    for _ in range(2):  # reading again counts anew
        assert [(p.id, p.text) for p in corpus] == [("a", "x"), ("z", "é")]
        assert corpus.reading.skipped == len(BROKEN)
        for line, (problem, told) in enumerate(zip(corpus.reading.problems, TOLD, strict=True), 2):
            assert f"{path}, line {line}: " in str(problem)
            assert told in str(problem)


def test_a_broken_line_can_be_skipped_but_not_what_follows_broken_json_in_a_list(
    tmp_path: Path,
) -> None:
    lines = Corpus(write(tmp_path, GOOD + '{"id": "b", "text"\n{"text": "y"}\n'), skip=True)
    assert [p.text for p in lines] == ["x", "y"]
    assert "line 2: broken JSON at column" in str(lines.reading.problems[0])
    listed = Corpus(write(tmp_path, '[{"text": "x"},\n{"text" "z"},\n{"text": "y"}]'), skip=True)
    with pytest.raises(CorpusError, match="line 2: broken JSON"):
        list(listed)


def test_skipped_records_are_counted_without_end_but_only_the_first_are_noted(
    tmp_path: Path,
) -> None:
    corpus = Corpus(write(tmp_path, '{"text": ""}\n' * 1000), skip=True)
    assert list(corpus) == []
    assert (corpus.reading.skipped, len(corpus.reading.problems)) == (1000, 100)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="does not exist"):
        Corpus(tmp_path / "none.jsonl")
    with pytest.raises(CorpusError, match="has no file with one of the suffixes"):
        Corpus(tmp_path)
    cut = write(tmp_path, gzip.compress(as_lines(TWO).encode())[:-12], "cut.jsonl.gz")
    with pytest.raises(CorpusError, match="damaged gzip"):
        list(Corpus(cut))


def test_an_object_that_spans_many_blocks_of_a_list_is_read_whole(tmp_path: Path) -> None:
    """A block may end inside an escape, a number or a character of several bytes."""
    objects = [{"text": "é\\n" * n, "n": [1.5e3] * 9} for n in (1, BLOCK // 3, BLOCK, 7)]
    (tmp_path / "c.json").write_text(json.dumps(objects), encoding="utf-8")
    assert [p.text for p in Corpus(tmp_path / "c.json")] == [o["text"] for o in objects]
    (tmp_path / "c.json").write_text(json.dumps(objects, ensure_ascii=False), encoding="utf-8")
    assert [p.text for p in Corpus(tmp_path / "c.json")] == [o["text"] for o in objects]


@pytest.mark.parametrize("form", ["list", "lines"])
def test_memory_does_not_hold_the_text(tmp_path: Path, form: str) -> None:
    texts = (json.dumps({"text": f"{i} " + "word " * 4000}) for i in range(500))
    content = "[" + ",".join(texts) + "]" if form == "list" else "\n".join(texts)
    path = write(tmp_path, content)
    assert len(content) > 9e6
    tracemalloc.start()
    try:
        assert sum(1 for _ in Corpus(path)) == 500
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2e6


def test_the_name_is_the_file_name_without_its_endings(tmp_path: Path) -> None:
    assert Corpus(write(tmp_path, GOOD, "wiki.v2.jsonl.gz")).name == "wiki.v2"
