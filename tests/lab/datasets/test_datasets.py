"""Datasets in the field's forms are read alike, and what is wrong is told with its line."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hopscope.lab.dataset import dataset
from hopscope.runtime.corpora import hopland
from hopscope.runtime.errors import CorpusError, UsageError

ASKED = "Where was the director of Alba born?"
CONTEXT = [["Alba", ["Alba is a film."]], ["Bruno Costa", ["He was born in Lisbon."]]]
FACTS = [["Alba", 0], ["Bruno Costa", 0], ["Bruno Costa", 1]]
HOTPOT = {
    "_id": "h1", "question": ASKED, "answer": "Lisbon", "type": "bridge", "level": "hard",
    "supporting_facts": FACTS, "context": CONTEXT,
}  # fmt: skip
MUSIQUE = {
    "id": "3hop1__9_8_7", "question": ASKED, "answer": "Lisbon", "answer_aliases": ["Lisboa"],
    "answerable": True, "question_decomposition": [],
    "paragraphs": [
        {"idx": 0, "title": "Elsewhere", "paragraph_text": "x", "is_supporting": False},
        {"idx": 1, "title": "Alba", "paragraph_text": "y", "is_supporting": True},
    ],
}  # fmt: skip
FORMS: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "hotpotqa": (HOTPOT, ("h1", ("Lisbon",), "bridge", 2, ("Alba", "Bruno Costa"))),
    "hotpotqa as in datasets": (
        {
            **{key: value for key, value in HOTPOT.items() if key != "_id"},
            "id": "h1",
            "supporting_facts": {"title": ["Alba", "Bruno Costa"], "sent_id": [0, 0]},
        },
        ("h1", ("Lisbon",), "bridge", 2, ("Alba", "Bruno Costa")),
    ),
    "two_wiki": (
        {**HOTPOT, "evidences": [["Alba", "director", "Bruno Costa"]], "type": "compositional"},
        ("h1", ("Lisbon",), "compositional", 2, ("Alba", "Bruno Costa")),
    ),
    "musique": (MUSIQUE, ("3hop1__9_8_7", ("Lisbon", "Lisboa"), "3hop1", 3, ("Alba",))),
    "musique without an answer": (
        {**MUSIQUE, "answerable": False},
        ("3hop1__9_8_7", (), "3hop1", 3, ("Alba",)),
    ),
    "musique of another's shape": (
        {**MUSIQUE, "id": f"{2**70}hop1"},
        (f"{2**70}hop1", ("Lisbon", "Lisboa"), "", None, ("Alba",)),
    ),
    "musique of a shape of many digits": (
        {**MUSIQUE, "id": "9" * 5000 + "hop1"},
        ("9" * 5000 + "hop1", ("Lisbon", "Lisboa"), "", None, ("Alba",)),
    ),
    "flashrag": (
        {
            "id": "f1", "question": ASKED, "golden_answers": ["Lisbon", "Lisbon", " "],
            "metadata": {"type": "bridge", "supporting_facts": {"title": ["Alba"]}},
        },
        ("f1", ("Lisbon",), "bridge", None, ("Alba",)),
    ),
    "ms_marco": (
        {
            "query_id": 9, "query": ASKED, "query_type": "LOCATION", "answers": ["Lisbon"],
            "passages": [{"is_selected": 1, "passage_text": "Bruno.", "url": "http://x"}],
        },
        ("9", ("Lisbon",), "location", None, ()),
    ),
    "ms_marco without an answer": (
        {"query_id": 9, "query": ASKED, "answers": ["No Answer Present."], "passages": []},
        ("9", (), "", None, ()),
    ),
    "plain": (
        {"id": 7, "question": ASKED, "answers": ["Lisbon"], "hops": 2, "supporting": ["Alba"]},
        ("7", ("Lisbon",), "", 2, ("Alba",)),
    ),
    "plain with passages": (
        {
            "question": ASKED, "answers": "Lisbon", "type": None,
            "passages": [
                {"title": "A", "is_supporting": False}, {"title": "B", "is_supporting": True},
            ],
        },
        ("", ("Lisbon",), "", None, ("B",)),
    ),
}  # fmt: skip


def written(tmp_path: Path, *records: object, name: str = "asked.jsonl") -> str:
    path = tmp_path / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_told_and_read(tmp_path: Path, form: str) -> None:
    record, wanted = FORMS[form]
    found = dataset.load(written(tmp_path, record))
    assert found.form == form.split()[0]
    [entry] = found.entries
    asked = entry.question
    assert asked.text == ASKED
    assert (asked.id, asked.answers, entry.kind, entry.hops, entry.supporting) == wanted


def test_the_same_questions_have_the_same_digest_in_any_wrapping(tmp_path: Path) -> None:
    """A list, as HotpotQA is released, or gzipped lines; with another answer it is another."""
    lines = dataset.load(written(tmp_path, HOTPOT, {**HOTPOT, "_id": "h2"}))
    listed = tmp_path / "list.json.gz"
    listed.write_bytes(gzip.compress(json.dumps([HOTPOT, {**HOTPOT, "_id": "h2"}]).encode()))
    again = dataset.load(str(listed))
    assert (again.entries, again.digest, again.name) == (lines.entries, lines.digest, "list")
    other = dataset.load(written(tmp_path, HOTPOT, {**HOTPOT, "_id": "h2", "answer": "Porto"}))
    assert other.digest != lines.digest


def test_some_can_be_chosen(tmp_path: Path) -> None:
    found = dataset.load(written(tmp_path, *({**HOTPOT, "_id": f"h{i}"} for i in range(5))))
    assert [e.question.id for e in found.choose(limit=2)] == ["h0", "h1"]
    assert [e.question.id for e in found.choose(ids=("h3", "h1", "h3"))] == ["h3", "h1"]
    with pytest.raises(UsageError, match=r"no question 'h9' in asked; its ids are like h0, h1, h2"):
        found.choose(ids=("h9",))


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ({**HOTPOT, "_id": "h2", "question": " "}, "'question' is an empty text"),
        ({**HOTPOT, "_id": "h2", "question": None}, "'question' is missing"),
        ({**HOTPOT, "_id": "h2", "answer": 3}, "'answer' is 3; it must be a text or a list of"),
        ({**HOTPOT, "_id": "h2", "supporting_facts": [1]}, "'supporting_facts' is neither"),
        (HOTPOT, "the id 'h1' was already given on line 1"),
        ({"question": ASKED, "answers": []}, "not of the form hotpotqa"),
        ([1], "JSON object"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, second: object, told: str) -> None:
    with pytest.raises(CorpusError, match=r"asked\.jsonl, line 2: ") as error:
        dataset.load(written(tmp_path, HOTPOT, second))
    assert told in str(error.value)


def test_half_of_a_surrogate_pair_is_replaced_and_counted(tmp_path: Path) -> None:
    found = dataset.load(written(tmp_path, HOTPOT, {**HOTPOT, "_id": "h2", "question": "\ud83d?"}))
    assert [entry.question.text for entry in found.entries] == [ASKED, "\ufffd?"]
    assert found.replaced == 1


def test_files_without_questions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="holds no questions"):
        dataset.load(written(tmp_path))
    with pytest.raises(CorpusError, match=r"line 1: of none of the known forms .*'text'"):
        dataset.load(written(tmp_path, {"text": "a passage"}))
    with pytest.raises(CorpusError, match="does not exist"):
        dataset.load(str(tmp_path / "nowhere.jsonl"))
    twice = {"question": ASKED, "answers": ["x"]}
    with pytest.raises(CorpusError, match=r"line 2: the question .* on line 1; give each an id"):
        dataset.load(written(tmp_path, twice, twice))


def test_the_embedded_questions_have_a_name() -> None:
    found = dataset.load("hopland:dev")
    assert [e.question for e in found.entries] == [q.question for q in hopland.questions("dev")]
    first, wanted = found.entries[-1], hopland.questions("dev")[-1]
    assert (first.kind, first.hops) == (wanted.kind, wanted.hops)
    assert first.supporting == tuple(dict.fromkeys(wanted.gold_titles))


@pytest.mark.parametrize(
    ("form", "change", "told"),
    [
        ("two_wiki", {"answer": {}}, "'answer' is an object; it must be a text or a list of texts"),
        ("musique", {"paragraphs": "x"}, "'paragraphs' is a text; it must be a list of objects"),
        (
            "flashrag",
            {"golden_answers": [1]},
            "'golden_answers' is a list with 1; it must be a text",
        ),
        ("flashrag", {"golden_answers": [10**4000]}, f"is a list with 1{'0' * 58}…; it must be"),
        ("musique", {"paragraphs": ["x"]}, "'paragraphs' is a list with a text; it must be a list"),
        ("flashrag", {"metadata": "x"}, "'metadata' must be an object"),
        ("plain", {"hops": "two"}, "'hops' is a text; it must be a whole number from 1"),
        ("plain", {"hops": 2**63}, "it must be a whole number from 1 to 1,000"),
    ],
)
def test_every_form_tells_which_field_is_wrong(
    tmp_path: Path, form: str, change: dict[str, Any], told: str
) -> None:
    record = FORMS[form][0]
    other = {**record, "id": "other", "_id": "other", **change}
    with pytest.raises(CorpusError, match=r"asked\.jsonl, line 2: ") as error:
        dataset.load(written(tmp_path, record, other))
    assert told in str(error.value)


def test_a_beginning_has_its_share_of_every_kind() -> None:
    """The first N of a file sorted by hops have one hop: workflows looked alike on them."""
    found = dataset.load("hopland:dev")
    first = found.choose(limit=20, order="stratified")
    chains = Counter(entry.hops for entry in first if entry.kind == "chain")
    assert sorted(chains) == [1, 2, 3, 4]
    assert min(chains.values()) >= 3
    assert {entry.kind for entry in first} == {"chain", "comparison", "yesno", "known"}
    whole = found.choose(order="stratified")
    assert {entry.hash for entry in whole} == {entry.hash for entry in found.entries}
    assert len(whole) == len(found.entries)


def test_a_larger_limit_adds_to_a_smaller_one_wherever_questions_stand() -> None:
    found = dataset.load("hopland:dev")
    turned = found.model_copy(update={"entries": found.entries[::-1]})
    for limit in (1, 4, 33, 200):
        more = turned.choose(limit=2 * limit, order="stratified")
        assert found.choose(limit=limit, order="stratified") == more[:limit]
    ids = [entry.question.id for entry in found.entries[:2]]
    assert [e.question.id for e in found.choose(ids=(ids[1], ids[0]), order="stratified")] == [
        ids[1],
        ids[0],
    ]
