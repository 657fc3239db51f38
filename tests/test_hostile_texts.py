"""Whoever writes a reply or a passage does not decide how long it takes to read it.

Each parser of text that a model, a trace or a passage holds reads all texts of `hostile_texts`.
Before, some took minutes for what is read in hundredths of a second now.
"""

import math
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pysbd
import pytest

import hopscope
from hopscope.runtime import answers, final_answer, key_lists, secrecy, sentences, shortening
from hopscope.runtime.compressors import _budget
from hopscope.runtime.corpora.chunks import Chunking
from hopscope.runtime.corpora.reading import Draft
from hopscope.runtime.ports import Statement
from hopscope.runtime.rerankers import _permutation, _selection
from hopscope.runtime.retrievers import _english
from hopscope.runtime.types import Generation, Hit, Passage
from hopscope.tracing.answer_metrics import _rating
from hopscope.tracing.entailments import _features, _reading, equivalence, judge, lexical
from hopscope.tracing.meters import _context
from hopscope.tracing.policies import _classifier_file
from hopscope.workflows import (
    _draft,
    _flare_questions,
    _paragraphs,
    _self_ask,
    _text,
    flare_instruct,
    ircot,
)
from tests.hostile_texts import guarded, texts

KEY = secrecy.Secret("sk-0123456789")


def pieces(text: str) -> tuple[str, ...]:
    return tuple(text[at : at + 4] for at in range(0, len(text), 4))


def drafted(text: str) -> object:
    tokens = pieces(text)
    draft = Generation(text=text, tokens=tokens, logprobs=(math.log(0.3),) * len(tokens))
    return _draft.spans(draft, 0.5), _draft.mask(draft, 0.5), _draft.whole(draft)


def fresh(text: str) -> object:
    held = Passage(title=text, text=text)
    hit = Hit(passage=Passage(title=text[1:], text=f"{text[1:]}x"), score=1.0)
    return _paragraphs.fresh([held], [hit], longest=len(text), shown=len(text))


def reading(text: str) -> object:
    read = _reading.Text(text)
    return read.initials, read.trigrams, read.first, read.names, read.refuses


def equivalent(text: str) -> object:
    pairs = (text, "Lyon (France)"), ("Lyon (France)", text), (text, f"{text}x")
    asked = [Statement("Which town is it?", *pair) for pair in pairs]
    return equivalence.build().classify([*asked, Statement(text, "Lyon", "Paris")])


PARSERS: dict[str, Callable[[str], object]] = {
    "answers.contains": lambda text: answers.contains(text, f"{text[: len(text) // 2]} x"),
    "answers.normalise": lambda text: [answers.normalise(text, n) for n in ("squad", "spaced")],
    "answers.rouge_l": lambda text: answers.rouge_l(text, f"{text} x"),
    "answers.token_f1": lambda text: answers.token_f1(text, [f"{text} x"]),
    "final_answer": final_answer.extract_answer,
    "key_lists": lambda text: (key_lists.read(text), key_lists.read(f"[{text}]")),
    "chunks": lambda text: list(Chunking(100, 20).split(Draft(text=text))),
    "secrecy": lambda text: secrecy.shown(text, KEY),
    "shortening": lambda text: shortening.cut(Passage(text=text), 10),
    "_budget.units": lambda text: _budget.units(pieces(text), [0.0] * len(pieces(text)), "word"),
    "_english": _english.terms,
    "_permutation": lambda text: _permutation.permutation(text, 20),
    "_selection.necessary_information": _selection.necessary_information,
    "_selection.selection": lambda text: _selection.selection(text, 20),
    "_selection.verdict": _selection.verdict,
    "_rating": _rating.rating,
    "_features.WHERE": lambda text: (_features.WHERE.search(text), _features.WHEN.search(text)),
    "_reading.Text": reading,
    "_reading.alternatives": _reading.alternatives,
    "_reading.items": _reading.items,
    "equivalence": equivalent,
    "judge": judge.relation,
    "lexical.classify": lambda text: lexical.build().classify(
        [Statement("", text, f"{text[: len(text) // 2]} x")]
    ),
    "lexical.polarity": lexical.polarity,
    "_context": lambda text: _context.cut([Passage(title=text[:9], text=text)], 512),
    "_classifier_file": _classifier_file.terms,
    "_draft": drafted,
    "_flare_questions.phrase": lambda text: _flare_questions.phrase(text, text[:4], text),
    "_flare_questions.question": _flare_questions.question,
    "_paragraphs": fresh,
    "_self_ask.end": _self_ask.end,
    "_self_ask.read": _self_ask.read,
    "_text.first_sentence": _text.first_sentence,
    "flare_instruct": flare_instruct.asked,
    "ircot": lambda text: ircot.next_query("Who?", [text]),
}

SLOW = ("equivalence", "_paragraphs")
"""They compare letter by letter, within bounds, which takes tenths of a second; a fifth will do."""
ELSEWHERE = {
    "cut_off": "our own names of estimators",
    "expression": "the user's own",
    "expression_parser": "the user's own",
    "json_records": "tests/runtime/test_corpus.py",
    "markdown": "matches each line of a file from its beginning",
    "prices": "the end of a model's name",
    "reading": "single characters",
    "sentences": "below",
    "_defusing": "tests/runtime/test_defusing.py",
    "_english": "constants of `_reading`",
    "_faiss": "the library's own error",
    "_java": "the machine's own version",
    "_opensearch": "the user's own index name",
    "_remote": "an error that `secrecy` has cut",
    "_rendering": "literal markers only",
    "_terms": "an error that `secrecy` has cut",
}
"""Modules with expressions that the table does not name, and why."""


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_reads_hostile_text_in_no_time(name: str) -> None:
    for text in islice(texts(), 0, None, 5 if name in SLOW else 1):
        with guarded():
            PARSERS[name](text)


@pytest.mark.parametrize("unit", ["a", "a ", "Is it? ", "1. ", '"Mr. '])
def test_pysbd_reads_stretches_whose_number_grows_with_the_text_alone(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, because pysbd takes a while for each."""
    given: list[int] = []
    segment = pysbd.Segmenter.segment

    def counting(self: pysbd.Segmenter, text: str) -> Any:
        given.append(len(text))
        return segment(self, text)

    monkeypatch.setattr(pysbd.Segmenter, "segment", counting)
    text = (unit * 20_000)[:20_000]
    found = list(sentences.spans(text))
    assert found == sorted(found)
    assert max(given) <= sentences.STRETCH
    assert sum(given) <= 2 * len(text)
    given.clear()
    assert _text.sentence_end(text) <= sentences.STRETCH
    assert len(given) == 1


def test_every_module_that_searches_texts_is_in_the_table() -> None:
    """So that none is forgotten."""
    used = re.compile(r"\bre\.[a-z]+\(|\bpysbd\.|\bfuzz\.|\bIndel\.")
    root = Path(hopscope.__file__).parent
    searching = {
        path.stem
        for room in ("runtime", "tracing", "workflows")
        for path in (root / room).resolve().rglob("*.py")
        if used.search(path.read_text(encoding="utf-8"))
    }
    assert searching - {name.split(".")[0] for name in PARSERS} - ELSEWHERE.keys() == set()
