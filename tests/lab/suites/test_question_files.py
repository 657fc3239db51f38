"""What suites are given where the questions are those of a file."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hopscope.api import parts
from hopscope.lab.dataset import qrels
from hopscope.lab.running_suites import FileOfQuestions, Suites
from hopscope.lab.suites import files, inputs
from hopscope.lab.suites.files import QuestionFile
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import Need
from hopscope.lab.validity import erag, item
from hopscope.runtime.errors import CorpusError, HopscopeError, UsageError
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.types import Hit, Passage
from tests.fakes import ScriptedReader

TITLES = ("Alba", "Bruno", "Alba (town)")
TEXTS = ("Alba was filmed by Bruno.", "Bruno was born in Lisbon.", "Alba is a town.")


def lines(path: Path, *records: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def plain(number: int, gold: int) -> dict[str, Any]:
    """A question with so many gold passages of its own among three."""
    return {
        "id": f"q{number}",
        "question": f"Where was person {number} born?",
        "answers": [f"Town {number}"],
        "passages": [
            {
                "title": f"T{number}",
                "text": f"Passage {number} {place} about a person.",
                "is_supporting": place < gold,
            }
            for place in range(3)
        ],
    }


@pytest.fixture
def found(tmp_path: Path) -> QuestionFile:
    """Three questions of two gold passages, one of one."""
    golds = (2, 2, 1, 2)
    return files.load(lines(tmp_path / "asked.jsonl", *map(plain, range(4), golds)))


def of(source: QuestionFile) -> SuiteInputs:
    return inputs.of_source(source, ScriptedReader([]), limit=2, entailment="lexical")


def test_questions_are_told_apart_by_their_gold_passages(found: QuestionFile) -> None:
    assert found.hops == (1, 2)
    assert [len(found.questions(hops, 10)) for hops in (1, 2, 3)] == [1, 3, 0]
    given = of(found)
    assert (given.near(1), given.near(2), given.near(3), given.several) == (1, 2, 2, [2])
    assert len(given.questions(2)) == 2
    for one in found.known:
        assert [one.is_gold(p) for p in one.candidates] == [i < one.hops for i in range(3)]
        assert one.holds(one.candidates[:1]) == 1 / one.hops


def test_the_file_s_own_passages_mislead_first_and_then_the_search(found: QuestionFile) -> None:
    given = of(found)
    [one] = found.questions(1, 1)
    own = one.candidates[1:]
    assert given.distractors(one, 2) == own
    more = given.distractors(one, 4)
    assert more[:2] == own
    assert len({p.key for p in more}) == 4
    assert not any(map(one.is_gold, more))
    assert len(given.unrelated(one, 5)) == 5
    assert [len(shown) for shown in given.single_passages(one)] == [0, 1, 1, 1]
    assert [len(shown) for shown in given.single_passages(found.questions(2, 1)[0])] == [0, 2, 2, 2]


def test_item_judges_the_candidates_that_the_file_gives(found: QuestionFile) -> None:
    [one] = found.questions(1, 1)
    listed = item.listed(of(found), one)
    assert listed.candidates == one.candidates
    assert listed.gold == {one.candidates[0].key}


@pytest.mark.parametrize(
    ("record", "gold"),
    [
        (
            {
                "_id": "h", "question": "Where?", "answer": "Lisbon",
                "supporting_facts": [["Bruno", 0]],
                "context": [["Alba", ["One.", " Two."]], ["Bruno", ["He is there."]]],
            },
            ["He is there."],
        ),
        (
            # Two paragraphs of one title, of which one supports the answer.
            {
                "id": "2hop__1_2", "question": "Where?", "answer": "Lisbon",
                "paragraphs": [
                    {"title": "A", "paragraph_text": "First.", "is_supporting": False},
                    {"title": "A", "paragraph_text": "Second.", "is_supporting": True},
                ],
            },
            ["Second."],
        ),
        (
            {
                "id": "f", "question": "Where?", "golden_answers": ["Lisbon"],
                "metadata": {
                    "supporting_facts": {"title": ["B"], "sent_id": [0]},
                    "context": {"title": ["A", "B"], "sentences": [["One."], ["Two."]]},
                },
            },
            ["Two."],
        ),
        (
            {
                "query_id": 3, "query": "Where?", "answers": ["Lisbon"],
                "passages": [
                    {"is_selected": 0, "passage_text": "One.", "url": "u"},
                    {"is_selected": 1, "passage_text": "Two.", "url": "u"},
                ],
            },
            ["Two."],
        ),
        (
            # As the datasets library gives them.
            {
                "query_id": 3, "query": "Where?", "answers": ["Lisbon"],
                "passages": {"is_selected": [1, 0], "passage_text": ["One.", "Two."]},
            },
            ["One."],
        ),
    ],
)  # fmt: skip
def test_each_form_brings_its_passages(
    tmp_path: Path, record: dict[str, Any], gold: list[str]
) -> None:
    [one] = files.load(lines(tmp_path / "asked.jsonl", record)).known
    assert [passage.text for passage in one.gold] == gold
    assert len(one.candidates) == 2


def test_gold_passages_are_those_of_the_corpus_that_titles_or_judgments_name(
    tmp_path: Path,
) -> None:
    corpus = bm25.from_passages(
        [
            Passage(id=f"p{at}", title=title, text=text)
            for at, (title, text) in enumerate(zip(TITLES, TEXTS, strict=True))
        ],
        name="c",
    )
    asked = lines(
        tmp_path / "asked.jsonl",
        {"id": "1", "question": "Where?", "answers": ["Lisbon"], "supporting": ["Alba", "Bruno"]},
        {"id": "2", "question": "Who?", "answers": ["Bruno"], "supporting": ["Nobody"]},
    )
    titled = files.load(asked, corpus=corpus)
    [one] = titled.known
    assert [passage.id for passage in one.gold] == ["p0", "p1"]
    assert titled.left_out == {"no gold passage": 1}
    queries = lines(tmp_path / "queries.jsonl", {"_id": "7", "text": "Where is Alba?"})
    judged = tmp_path / "test.tsv"
    judged.write_text("query-id\tcorpus-id\tscore\n7\tp2\t1\n7\tp1\t0\n")
    beir = files.load(queries, corpus=corpus, labels=judged)
    [one] = beir.known
    assert [passage.id for passage in one.gold] == ["p2"]
    assert set(beir.lacks) == {Need.ANSWERS, Need.CHAINS, Need.WORLD}


def test_a_passage_is_gold_from_the_grade_on_that_the_user_names(tmp_path: Path) -> None:
    corpus = bm25.from_passages(
        [Passage(id=f"p{at}", text=text) for at, text in enumerate(TEXTS)], name="c"
    )
    queries = lines(
        tmp_path / "queries.jsonl",
        {"_id": "7", "text": "Where is Alba?"},
        {"_id": "8", "text": "Where is Bruno?"},
    )
    judged = tmp_path / "qrels"
    judged.write_text("7 0 p0 1\n7 0 p2 3\n8 0 p1 2\n")
    found = files.load(queries, corpus=corpus, labels=judged, grade=3)
    [one] = found.known
    assert [passage.id for passage in one.gold] == ["p2"]
    assert one.grades == {"p0": 1, "p2": 3}
    assert found.left_out == {"no gold passage": 1}
    lower = files.load(queries, corpus=corpus, labels=judged)
    assert {one.question.id: len(one.gold) for one in lower.known} == {"7": 2, "8": 1}


def test_a_text_is_gold_whatever_id_an_index_gave_it(found: QuestionFile) -> None:
    [one] = found.questions(1, 1)
    again = one.gold[0].model_copy(update={"id": "doc-9"})
    assert one.is_gold(again)
    assert one.holds([again]) == 1


def test_qrels_have_one_of_two_forms(tmp_path: Path) -> None:
    file = tmp_path / "qrels"
    file.write_text("q 0 a 2\nq 0 b 0\n\nr 0 c 1\n")
    assert qrels.read(file) == {"q": {"a": 2}, "r": {"c": 1}}
    for line in ("q a", "q 0 a --5", f"q 0 a {'9' * 5000}"):
        file.write_text(f"q 0 a 2\n{line}\n")
        with pytest.raises(CorpusError, match="line 2: not `QUESTION 0 PASSAGE LABEL`"):
            qrels.read(file)
    with pytest.raises(CorpusError, match="cannot be read as qrels"):
        qrels.read(tmp_path / "none")


@pytest.fixture
def judged(tmp_path: Path) -> Callable[[str], QuestionFile]:
    """Reads two judged questions with a run; an id holds a space."""
    corpus = bm25.from_passages(
        [Passage(id=f"p {at}", text=text) for at, text in enumerate(TEXTS)], name="c"
    )
    queries = lines(
        tmp_path / "queries.jsonl",
        {"_id": "7", "text": "Where is Alba?"},
        {"_id": "q 8", "text": "Where is Bruno?"},
    )
    labels = tmp_path / "qrels.tsv"
    labels.write_text("query-id\tcorpus-id\tscore\n7\tp 2\t1\nq 8\tp 1\t1\n")

    def read(run: str) -> QuestionFile:
        path = tmp_path / "run.trec"
        path.write_text(run)
        return files.load(queries, corpus=corpus, labels=labels, candidates=path)

    return read


def test_candidates_are_those_of_a_ranking_in_its_order(
    judged: Callable[[str], QuestionFile],
) -> None:
    """As `export trec` writes it, with spaces in ids as %20."""
    found = judged("7 Q0 p%201 1 2.0 x\n7 Q0 p%200 3 0.5 x\n7 Q0 p%202 2 1.5 x\n")
    assert found.left_out == {"no candidates": 1}
    [one] = found.known
    assert one.ranked
    assert [passage.id for passage in one.candidates] == ["p 1", "p 2", "p 0"]
    listed = item.listed(of(found), one)
    assert listed.candidates == one.candidates
    assert listed.gold == {"p 2"}
    assert erag.lists(of(found), one) == {"given": one.candidates}
    assert [p.id for p in of(found).distractors(one, 2)] == ["p 1", "p 0"]
    both = judged("q%208 Q0 p%200 1 2.0 x\n7 Q0 p%201 1 2.0 x\n")
    assert {one.question.id: one.candidates[0].id for one in both.known} == {
        "7": "p 1",
        "q 8": "p 0",
    }
    assert both.left_out == {}


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("7 Q0 p%201 1 2 x\n9 Q0 p%201 1 2 x\n", "line 2: queries has no question 9; its ids are"),
        ("7 Q0 p%201 1 2 x\n7 Q0 p9 2 1 x\n", "line 2: the corpus has no passage p9; its ids are"),
        ("7 Q0 p%201\n", "line 1: 3 columns"),
    ],
)
def test_a_ranking_of_what_does_not_exist_is_refused(
    judged: Callable[[str], QuestionFile], run: str, said: str
) -> None:
    with pytest.raises(HopscopeError, match=re.escape(said)):
        judged(run)


def test_a_ranking_needs_the_texts_of_its_passages(tmp_path: Path) -> None:
    """A search engine on the web has no list of its passages."""

    class Engine:
        name = "engine"

        def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
            return [[] for _ in queries]

    asked = lines(tmp_path / "asked.jsonl", {"_id": "7", "text": "Where?"})
    (tmp_path / "run").write_text("7 Q0 p 1 2 x\n")
    with pytest.raises(UsageError, match="cannot list its passages: give the folder of an index"):
        files.load(asked, corpus=Engine(), candidates=tmp_path / "run")


def test_no_question_with_gold_in_the_ranking(tmp_path: Path) -> None:
    records = [plain(0, 1), plain(1, 0)]
    for number, record in enumerate(records):
        record["passages"][0]["id"] = f"p{number}"
    (tmp_path / "run").write_text("q1 Q0 p1 1 2 x\n")
    asked = lines(tmp_path / "asked.jsonl", *records)
    with pytest.raises(UsageError, match="ranks passages for none of the questions with gold"):
        files.load(asked, candidates=tmp_path / "run")


def test_suites_that_search_by_themselves_take_no_candidates(tmp_path: Path) -> None:
    record = plain(0, 1)
    for at, passage in enumerate(record["passages"]):
        passage["id"] = f"p{at}"
    asked = lines(tmp_path / "asked.jsonl", record)
    (tmp_path / "run").write_text("q0 Q0 p1 1 2 x\nq0 Q0 p0 2 1 x\n")
    file = FileOfQuestions(asked, candidates=tmp_path / "run")

    def suites(*names: str) -> Suites:
        return Suites(names, parts.TINY, None, seed=0, limit=2, file=file)

    with pytest.raises(UsageError) as caught:
        suites("eor", "item")
    assert "eor: it searches by itself: leave out --candidates" in str(caught.value)
    assert "with asked can run: erag, grogu, item, seper" in str(caught.value)
    running = suites("erag")
    assert running.given["candidates"] == "run"
    [outcome] = running.run()
    assert not outcome.failed
    assert outcome.figures["erag_lists/given/right_all"].n == 1
    assert outcome.figures["erag/gold P/tau_all"].n == 1
    assert outcome.tables[0].title == "Right answers from the given lists"


def test_without_passages_a_corpus_is_needed(tmp_path: Path) -> None:
    asked = lines(tmp_path / "asked.jsonl", {"question": "Where?", "answers": ["Lisbon"]})
    with pytest.raises(UsageError, match="has no passages to search: give --corpus INDEX") as told:
        files.load(asked)
    assert str(told.value).endswith(
        "for example\n  hopscope index build CORPUS.jsonl --out INDEX\n"
        f"  hopscope lab --data {asked} --corpus INDEX"
    )
