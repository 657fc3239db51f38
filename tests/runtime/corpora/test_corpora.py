"""Corpora in the formats that people have them in; all content is made up."""

import gzip
import json
import random
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hopscope.runtime import components
from hopscope.runtime.corpora import files, layouts
from hopscope.runtime.corpora.corpus import Corpus
from hopscope.runtime.corpora.records.chunks import Chunking
from hopscope.runtime.corpora.records.reading import Columns
from hopscope.runtime.errors import CorpusError, UsageError

SENTENCES = ["Alba is a film.", " It is by Bruno Costa."]
HOTPOT = {"_id": "q", "question": "Who?", "answer": "Bruno", "context": [["Alba", SENTENCES]]}
HUB = {"id": "q", "question": "Who?", "context": {"title": ["Alba"], "sentences": [SENTENCES]}}
TWO_WIKI = {
    **HOTPOT,
    "evidences": [],
    "context": [["Alba", ["Alba is a film.", "It is by Bruno Costa."]]],
}
PARAGRAPH = {
    "idx": 0,
    "title": "Alba",
    "paragraph_text": "Alba is a film. It is by Bruno Costa.",
    "is_supporting": True,
}
MUSIQUE = {"id": "2hop__1_2", "question": "Who?", "paragraphs": [PARAGRAPH]}
OWN = {
    "question": "Who?",
    "passages": [{"title": "Alba", "text": "Alba is a film. It is by Bruno Costa."}],
}
ALBA = ("Alba", "Alba is a film. It is by Bruno Costa.")


def written(folder: Path, content: str | bytes | list[Any], name: str = "corpus.jsonl") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, list):
        content = "".join(json.dumps(each) + "\n" for each in content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def told(corpus: Corpus) -> list[tuple[str, str]]:
    return [(passage.title, passage.text) for passage in corpus]


@pytest.mark.parametrize("record", [HOTPOT, HUB, TWO_WIKI, MUSIQUE, OWN])
def test_questions_give_their_passages_with_the_same_ids(
    tmp_path: Path, record: dict[str, Any]
) -> None:
    """The same paragraph is the same passage, whichever dataset and spacing it comes in."""
    corpus = Corpus(written(tmp_path, [record, record]))
    (passage,) = corpus
    assert (passage.title, passage.text) == ALBA
    (alone,) = Corpus(written(tmp_path, [{"title": ALBA[0], "text": ALBA[1]}], "alone.jsonl"))
    assert passage.id == alone.id
    assert corpus.repeats == 1


def test_ids_do_not_depend_on_the_order(tmp_path: Path) -> None:
    records = [{"question": "?", "context": [[f"T{i}", [f"Text {i}."]]]} for i in range(50)]
    there = {p.title: p.id for p in Corpus(written(tmp_path, records))}
    random.Random(0).shuffle(records)
    here = {p.title: p.id for p in Corpus(written(tmp_path, records, "other.jsonl"))}
    assert here == there
    assert len(set(here.values())) == 50


def test_flashrag_and_beir(tmp_path: Path) -> None:
    flashrag = written(tmp_path, [{"id": "0", "contents": '"Alba"\nA film.'}])
    assert [(p.id, p.title, p.text) for p in Corpus(flashrag)] == [("0", "Alba", "A film.")]
    folder = tmp_path / "beir"
    written(folder, [{"_id": "d1", "title": "Alba", "text": "A film.", "metadata": {}}])
    written(folder, [{"_id": "q1", "text": "Which film?"}], "queries.jsonl")
    written(folder, "query-id\tcorpus-id\tscore\nq1\td1\t1\n", "qrels/test.tsv")
    corpus = Corpus(folder)
    assert [(p.id, p.title) for p in corpus] == [("d1", "Alba")]
    assert corpus.name == "beir"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'id,title,text\n1,Alba,"A ""film"",\nby Bruno."\n\n2,Bora,A town.\n'),
        ("a.csv", 'id;title;text\n1;Alba;"A ""film"",\nby Bruno."\n2;Bora;A town.\n'),
        ("a.tsv", 'id\ttitle\ttext\n1\tAlba\t"A ""film"",  by Bruno."\n\n2\tBora\tA town.\n'),
        ("A.TSV", 'id\ttitle\ttext\r\n1\tAlba\tA "film",  by Bruno.\r\n2\tBora\tA town.\r\n'),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_tables(tmp_path: Path, name: str, content: str, zipped: bool) -> None:
    data = ("\ufeff" + content).encode()
    path = written(
        tmp_path, gzip.compress(data) if zipped else data, name + (".gz" if zipped else "")
    )
    corpus = Corpus(path)
    found = [(p.id, p.title, p.text.replace("\n", "  ")) for p in corpus]
    assert found == [("1", "Alba", 'A "film",  by Bruno.'), ("2", "Bora", "A town.")]
    assert corpus.name in ("a", "A")
    assert corpus.reading.bytes_read == corpus.size


def test_columns_are_named_or_numbered(tmp_path: Path) -> None:
    path = written(tmp_path, "Heading,Body,Year\nAlba,A film.,1999\n", "a.csv")
    found = Corpus(path, columns=Columns(text="Body", title="Heading"))
    assert told(found) == [("Alba", "A film.")]
    assert told(Corpus(path, columns=Columns(text="Body"))) == [("", "A film.")]
    bare = written(tmp_path, '7\tSays "no.\n8\tA town.\n', "collection.tsv")
    found = Corpus(bare, columns=Columns(text="2", id="1"))
    assert [(p.id, p.text) for p in found] == [("7", 'Says "no.'), ("8", "A town.")]
    lines = written(tmp_path, [{"name": "Alba", "abstract": "A film."}])
    found = Corpus(lines, columns=Columns(text="abstract", title="name"))
    assert told(found) == [("Alba", "A film.")]
    with pytest.raises(CorpusError, match=r"line 2: no 'Text' among the fields 'Heading', 'Body'"):
        list(Corpus(path, columns=Columns(text="Text")))
    with pytest.raises(UsageError, match="go with --text"):
        Columns(title="Heading")
    with pytest.raises(UsageError, match="leave out --format beir"):
        Corpus(lines, columns=Columns(text="abstract"), format="beir")


def test_parquet_and_saved_datasets_give_what_json_lines_do(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = [
        {
            "question": "?",
            "context": {"title": [f"T{i}", "Same"], "sentences": [[f"A{i}."], ["B."]]},
        }
        for i in range(2500)
    ]
    expected = list(Corpus(written(tmp_path, rows)))
    assert len(expected) == 2501
    whole = datasets.Dataset.from_list(rows)
    whole.to_parquet(str(tmp_path / "a.parquet"))
    whole.save_to_disk(str(tmp_path / "saved"), num_shards=2)
    split = datasets.DatasetDict(
        {"train": whole.select(range(1000)), "validation": whole.select(range(1000, 2500))}
    )
    split.save_to_disk(str(tmp_path / "splits"))
    for name in ("a.parquet", "saved", "splits"):
        corpus = Corpus(tmp_path / name)
        assert list(corpus) == expected, name
        assert corpus.repeats == 2499
        assert 0 < corpus.reading.bytes_read <= corpus.size


def test_damaged_parquet_and_datasets_are_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = written(tmp_path, b"PAR1 and no more", "a.parquet")
    with pytest.raises(CorpusError, match=r"a\.parquet, after row 0: Parquet cannot"):
        list(Corpus(path))
    written(tmp_path, '{"_data_files": [{"filename": "../../etc/passwd"}]}', "saved/state.json")
    with pytest.raises(CorpusError, match="which is not inside its folder"):
        list(Corpus(tmp_path / "saved"))
    written(tmp_path, "[" * 99_999, "saved/state.json")
    with pytest.raises(CorpusError, match=r"state\.json cannot be read: JSON that is nested too"):
        list(Corpus(tmp_path / "saved"))
    written(tmp_path, '{"_data_files": [{"filename": "a.arrow"}]}', "saved/state.json")
    written(tmp_path, b"no arrow", "saved/a.arrow")
    with pytest.raises(CorpusError, match=r"a\.arrow, after row 0: cannot be read"):
        list(Corpus(tmp_path / "saved"))


MARKDOWN = """---
title: "Handbook"
---
Before any heading.

# Films
## Alba ##
A film.

```
# no heading
```
# Towns

#hashtag
"""


def test_folders_of_markdown_and_text(tmp_path: Path) -> None:
    written(tmp_path, MARKDOWN, "docs/a.md")
    written(tmp_path, "A town.\n\nIt is small.\n", "docs/b/bora.txt")
    written(tmp_path, "not for reading", "docs/.hidden/x.txt")
    written(tmp_path, "{", "docs/package.json")
    corpus = Corpus(tmp_path / "docs")
    assert told(corpus) == [
        ("Handbook", "Before any heading."),
        ("Films > Alba", "A film.\n\n```\n# no heading\n```"),
        ("Towns", "#hashtag"),
        ("bora", "A town.\n\nIt is small."),
    ]
    assert told(Corpus(tmp_path / "docs", format="text")) == told(corpus)[3:]
    assert corpus.name == "docs"
    assert corpus.reading.bytes_read == corpus.size
    with pytest.raises(CorpusError, match="no file with one of the suffixes"):
        Corpus(tmp_path / "docs", format="parquet")


def pdf(*pages: str) -> bytes:
    """A small PDF by hand."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>"]
    kids = " ".join(f"{4 + 2 * at} 0 R" for at in range(len(pages)))
    objects.append(f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>".encode())
    objects.append(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    for at, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents {5 + 2 * at} 0 R"
            "/Resources<</Font<</F1 3 0 R>>>>>>".encode()
        )
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
    out, offsets = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n" % (len(objects) + 1, len(out))
    return (
        out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end + b"%%EOF\n"
    )


def test_pdf(tmp_path: Path) -> None:
    pytest.importorskip("pypdf", reason="the extra pdf is not installed")
    path = written(tmp_path, pdf("Alba is a film.", "Bora is a town."), "report.pdf")
    assert told(Corpus(path)) == [
        ("report, page 1", "Alba is a film."),
        ("report, page 2", "Bora is a town."),
    ]
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):  # damage is an error of ours, or leaves other text
        damaged = bytearray(whole)
        damaged[at] ^= 0x20
        with suppress(CorpusError):
            list(Corpus(written(tmp_path, bytes(damaged), "damaged.pdf")))


def test_long_texts_are_divided(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(25)]
    records = [{"id": "a", "title": "T", "text": "  ".join(words)}, {"id": "b", "text": "short"}]
    chunking = Chunking.parse("words:10,overlap:2")
    found = list(Corpus(written(tmp_path, records), chunking=chunking))
    assert [(p.id, p.title) for p in found] == [("a#1", "T"), ("a#2", "T"), ("a#3", "T"), ("b", "")]
    pieces = [p.text.split("  ") for p in found]
    assert pieces[:3] == [words[0:10], words[8:18], words[16:25]]
    plain = [{"text": "x y " * 30}]
    corpus = Corpus(written(tmp_path, plain), chunking=Chunking.parse("words:10"))
    assert len(list(corpus)) == 1  # all pieces are alike
    assert corpus.repeats == 5
    for text in ("words:0", "words:10,overlap:10", "sentences:3", "words:-1"):
        with pytest.raises(UsageError, match="--chunk"):
            Chunking.parse(text)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "title,text\nAlba\n", r"line 2: 1 fields; the first line names 2 columns"),
        ("a.csv", b"text\ncaf\xe9\n", r"line 2: byte 0xe9 is not UTF-8"),
        ("a.tsv", b"text\nx\ncaf\xe9\n", r"line 3: byte 0xe9 is not UTF-8"),
        ("a.txt", b"x\ncaf\xe9\n", r"line 2: byte 0xe9 is not UTF-8"),
        ("a.csv", "name,age\nAda,9\n", r"line 2: no 'text' among the keys 'name', 'age'.*--text"),
        ("a.jsonl", '{"question": "Who?"}', r"line 1: a question without passages"),
        ("a.jsonl", '{"question": "?", "context": [["T"]]}', r"line 1: 'context' must be a list"),
        (
            "a.jsonl",
            '{"question": "?", "context": [[1, []]]}',
            r"line 1: a title .* must be a string",
        ),
        ("a.jsonl", '{"question": "?", "paragraphs": [1]}', r"line 1: 'paragraphs' must be a list"),
        (
            "a.bin",
            b"\x00\x01",
            r"a\.bin: neither .* tell its kind; give --format with one of csv, datasets",
        ),
    ],
)
def test_what_cannot_be_read_is_named(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    with pytest.raises(CorpusError, match=message):
        list(Corpus(written(tmp_path, content, name)))


def test_an_unknown_format_lists_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        Corpus(written(tmp_path, "{}"), format="hotpot")
    known = [*components.names(files), *components.names(layouts)]
    assert "auto, csv, datasets, json, markdown, parquet, pdf" in str(error.value)
    assert all(name in str(error.value) for name in known)


def test_a_format_can_be_forced(tmp_path: Path) -> None:
    path = written(tmp_path, "text\ttitle\nA film.\tAlba\n", "corpus.dat")
    assert told(Corpus(path, format="tsv")) == [("Alba", "A film.")]
    both = [{**MUSIQUE, "context": [["Bora", ["A town."]]]}]
    assert told(Corpus(written(tmp_path, both), format="musique")) == [ALBA]
    assert told(Corpus(written(tmp_path, both), format="hotpotqa")) == [("Bora", "A town.")]


def test_the_same_id_in_two_files_is_named_with_both(tmp_path: Path) -> None:
    written(tmp_path, [{"id": "a", "text": "x"}], "set/a.jsonl")
    written(tmp_path, [{"id": "b", "text": "x"}, {"id": "a", "text": "y"}], "set/b.jsonl")
    told = r"b\.jsonl, line 2: id 'a' was already given in .*a\.jsonl, on line 1; ids must differ"
    with pytest.raises(CorpusError, match=told):
        list(Corpus(tmp_path / "set"))


def test_memory_holds_no_table(tmp_path: Path) -> None:
    text = "a film by somebody " * 20
    rows = "".join(f"{i},{text}{i}\n" for i in range(30_000))
    path = written(tmp_path, f"id,text\n{rows}", "a.csv")
    tracemalloc.start()
    assert sum(1 for _ in Corpus(path)) == 30_000
    assert tracemalloc.get_traced_memory()[1] < path.stat().st_size * 2 / 3
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "count", "repeats"),
    [
        ("hotpotqa_train500.jsonl", 4963, 29),
        ("2wiki_train500.jsonl", 3443, 1557),
        ("2wiki_corpus_6119.json", 6119, 0),
        ("musique_train100.json", 1890, 110),
        ("musique_train_corpus_1890.json", 1890, 0),
    ],
)
def test_the_real_files(
    name: str, count: int, repeats: int, research_data: Callable[[str], Path]
) -> None:
    corpus = Corpus(research_data(name))
    passages = list(corpus)
    assert (len(passages), corpus.repeats) == (count, repeats)
    assert len(passages) == len({passage.id for passage in passages})
