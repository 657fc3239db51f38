"""Whoever writes a reply or a passage does not decide how long it takes to read it.

Each parser of text that a model, a trace or a passage holds reads all texts of `hostile_texts`.
Before, some took minutes for what is read in hundredths of a second now.
"""

import math
import re
from collections.abc import Callable
from contextlib import nullcontext, suppress
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pysbd
import pytest

import hopscope
from hopscope.cli.commands.parts import config
from hopscope.cli.options import configuration
from hopscope.lab.dataset import topics, trec_run
from hopscope.lab.datasets import musique
from hopscope.lab.table_forms import markdown
from hopscope.runtime import code_files, key_lists, shortening
from hopscope.runtime.compressors import _budget
from hopscope.runtime.corpora.records.chunks import Chunking
from hopscope.runtime.corpora.records.reading import MalformedRecordError, PassageDraft
from hopscope.runtime.errors import CorpusError
from hopscope.runtime.judgments import permutation, selection
from hopscope.runtime.ports import Statement
from hopscope.runtime.prompting import sandbox, tool_calls
from hopscope.runtime.retrievers.bm25 import _english
from hopscope.runtime.specs import Spec
from hopscope.runtime.texts import (
    answers,
    continuation,
    final_answer,
    secrecy,
    sentences,
)
from hopscope.runtime.types import Generation, Hit, Passage
from hopscope.store.formats import search_r1
from hopscope.store.trajectories import calls, fields, splitting
from hopscope.store.trajectories.tags import TaggedRollouts
from hopscope.tracing.answer_metrics import _rating
from hopscope.tracing.asking import context
from hopscope.tracing.entailments import equivalence, judge, lexical
from hopscope.tracing.entailments.equivalence import quantities, words
from hopscope.tracing.entailments.equivalence._english import WHEN, WHERE
from hopscope.tracing.learned import classifier_file
from hopscope.tracing.scoring.correctness import Answered
from hopscope.tracing.signals import question_features
from hopscope.view import links
from hopscope.view import texts as page_texts
from hopscope.workflows import _paragraphs, flare_instruct, ircot
from hopscope.workflows.flare import drafting, questions
from hopscope.workflows.search_agent import tags
from hopscope.workflows.self_ask import dialogue_form
from tests import hostile_texts
from tests.hostile_texts import reads_in_time, texts

KEY = secrecy.Secret("sk-0123456789")


def pieces(text: str) -> tuple[str, ...]:
    return tuple(text[at : at + 4] for at in range(0, len(text), 4))


def drafted(text: str) -> object:
    tokens = pieces(text)
    draft = Generation(text=text, tokens=tokens, logprobs=(math.log(0.3),) * len(tokens))
    return drafting.spans(draft, 0.5), drafting.mask(draft, 0.5), drafting.whole(draft)


def fresh(text: str) -> object:
    held = Passage(title=text, text=text)
    hit = Hit(passage=Passage(title=text[1:], text=f"{text[1:]}x"), score=1.0)
    return _paragraphs.fresh([held], [hit], longest=len(text), shown=len(text))


def reading(text: str) -> object:
    read = words.Text(text)
    return read.initials, read.trigrams, read.first, read.names, read.refuses


def signed(text: str) -> object:
    found = quantities.quantities(words.Text(f"-5 {text} 5"))
    return quantities.contradicted([found], found[1:], signed=True)


def topic(text: str) -> object:
    path = Path("topics")
    try:
        return [*topics.TextRecords(path, f"1\t{text}"), *topics.TextRecords(path, f"<top>{text}")]
    except CorpusError as error:
        return error


def ranked(text: str) -> object:
    """The text as a line, and as every column of one."""
    joined = "".join(text.split()) or "x"
    found: list[object] = []
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        for line in (text, " ".join([joined] * 6), f"{joined} Q0 {joined} 1 0.5 {joined}"):
            path.write_text(f"{line}\n{line}", encoding="utf-8", errors="replace")
            try:
                found.append(trec_run.read(path))
            except CorpusError as error:
                found.append(error)
    return found


def recorded(text: str) -> object:
    """The text as the name of a component of a record, and within such a name."""
    for each in (text, f'"{text}', f"{text}.py:"):
        code_files.check_recorded([each])
    return code_files.hashes(text), code_files.named(f"{text}.py;"), code_files.shown(text)


def spec(text: str) -> object:
    held = Spec("judge", f"x:{text}", (("a", text),))
    return str(held), str(held.inner), Spec.parse(f"x:{text},b={text}")


def equivalent(text: str) -> object:
    pairs = (text, "Lyon (France)"), ("Lyon (France)", text), (text, f"{text}x")
    asked = [Statement("Which town is it?", *pair) for pair in pairs]
    return equivalence.build().classify([*asked, Statement(text, "Lyon", "Paris")])


def judged(text: str) -> object:
    """By a question that asks for several, with the text on either side."""
    half = text[: len(text) // 2]
    asked = [
        Answered("Which two sons came?", ("Ana & Bob Lee", "1 May 1950", half), text),
        Answered("Which two sons came?", (text,), f"{half}, unlike non {half}"),
    ]
    return equivalence.build().correctness(asked)


def rollout(text: str) -> object:
    """A rollout with the text at every place."""
    searched = f"{text}<search>{text}</search><information>{text}</information>{text}"
    source = search_r1.build()
    assert isinstance(source, TaggedRollouts)
    try:
        return source.run({"question": "Where?", "output": f"{searched}<answer>{text}</answer>"})
    except MalformedRecordError as error:
        return error


PARSERS: dict[str, Callable[[str], object]] = {
    "cli.commands.parts.config": lambda text: config._safe("reader", f"x://{text}"),
    "cli.options.configuration": lambda text: [
        re.fullmatch(form, f"{opening}{text}")
        for form in (
            *configuration.OWN_PARTS.values(),
            configuration.PLAIN,
            configuration.PLAIN_OPTION,
        )
        for opening in ("", "a:k=", "k=")
    ],
    "lab.datasets.musique": lambda text: musique._SHAPE.match(text),
    "lab.table_forms.markdown": lambda text: markdown._escape(text),
    "runtime.code_files": recorded,
    "runtime.specs": spec,
    "view.links": lambda text: links.of_run({"step": text}),
    "view.texts": page_texts.visible,
    "runtime.texts.answers contains": lambda text: answers.contains(
        text, f"{text[: len(text) // 2]} x"
    ),
    "runtime.texts.answers normalise": lambda text: [
        answers.normalise(text, n) for n in ("squad", "spaced")
    ],
    "runtime.texts.answers rouge_l": lambda text: answers.rouge_l(text, f"{text} x"),
    "runtime.texts.answers token_f1": lambda text: answers.token_f1(text, [f"{text} x"]),
    "runtime.texts.final_answer": final_answer.extract_answer,
    "runtime.key_lists": lambda text: (key_lists.read(text), key_lists.read(f"[{text}]")),
    "runtime.corpora.records.chunks": lambda text: list(
        Chunking(100, 20).split(PassageDraft(text=text))
    ),
    "runtime.texts.secrecy": lambda text: secrecy.shown(text, KEY),
    "runtime.shortening": lambda text: shortening.cut(Passage(text=text), 10),
    "runtime.compressors._budget": lambda text: _budget.units(
        pieces(text), [0.0] * len(pieces(text)), "word"
    ),
    "runtime.retrievers.bm25._english": _english.terms,
    "runtime.judgments.permutation": lambda text: permutation.permutation(text, 20),
    "runtime.judgments.selection necessary_information": selection.necessary_information,
    "runtime.judgments.selection selection": lambda text: selection.selection(text, 20),
    "runtime.judgments.selection verdict": selection.verdict,
    "tracing.answer_metrics._rating": _rating.rating,
    "tracing.entailments.equivalence._english": lambda text: [
        expression.search(text) for expression in (WHERE, WHEN)
    ],
    "tracing.entailments.equivalence.quantities": signed,
    "lab.dataset.topics": topic,
    "lab.dataset.trec_run": ranked,
    "tracing.entailments.equivalence.words Text": reading,
    "tracing.entailments.equivalence.words alternatives": words.alternatives,
    "tracing.entailments.equivalence.words items": words.items,
    "tracing.entailments.equivalence.features": equivalent,
    "tracing.entailments.equivalence.reading and rules": judged,
    "store.trajectories.calls": calls.queried,
    "store.trajectories.fields": lambda text: fields.right({"answers": [text]}),
    "store.trajectories.splitting": lambda text: [
        splitting.part(text, [r]) for r in splitting.RULES
    ],
    "store.trajectories.tags": rollout,
    "tracing.entailments.judge": judge.relation,
    "tracing.entailments.lexical classify": lambda text: lexical.build().classify(
        [Statement("", text, f"{text[: len(text) // 2]} x")]
    ),
    "tracing.entailments.lexical polarity": lexical.polarity,
    "tracing.asking.context": lambda text: context.cut([Passage(title=text[:9], text=text)], 512),
    "tracing.learned.classifier_file": classifier_file.terms,
    "tracing.signals.question_features": lambda text: question_features.features(text, text, text),
    "workflows.flare.drafting": drafted,
    "workflows.flare.questions phrase": lambda text: questions.phrase(text, text[:4], text),
    "workflows.flare.questions question": questions.question,
    "workflows._paragraphs": fresh,
    "workflows.search_agent.tags": lambda text: (
        tags.defuse(text),
        [(form.read(text), form.concluded(text)) for form in tags.FORMS.values()],
    ),
    "workflows.self_ask.dialogue_form end": dialogue_form.end,
    "workflows.self_ask.dialogue_form read": dialogue_form.read,
    "runtime.prompting.sandbox": lambda text: sandbox.is_wide(f"%{text}"),
    "runtime.prompting.tool_calls": lambda text: (
        tool_calls.read(text),
        tool_calls.read(f'<tool_call>{{"name": {text}'),
        tool_calls.defuse(text),
    ),
    "runtime.texts.continuation": continuation.first_sentence,
    "workflows.flare_instruct": flare_instruct.asked,
    "workflows.ircot": lambda text: ircot.next_query("Who?", [text]),
}

SLOW = (
    "tracing.entailments.equivalence.features",
    "tracing.entailments.equivalence.reading and rules",
    "tracing.signals.question_features",
    "workflows._paragraphs",
)
"""They compare letter by letter, within bounds, which takes tenths of a second; a fifth will do."""
ELSEWHERE = {
    "api.views.render": "single characters",
    "cli.commands.parts.new": "the user's own name of a part",
    "cli.options.help": "our own help",
    "lab.equivalence.train": "our own questions, to learn from",
    "lab.export.inspect_logs": "names of an experiment and a workflow, which are short",
    "lab.hopland.evaluation.evaluate_prompts": "our own reader's replies",
    "lab.hopland.training.tokenizer": "our own prompts",
    "view.report": "our own scripts",
    "runtime.budget.prices": "the end of a model's name",
    "runtime.corpora.files.markdown": "matches each line of a file from its beginning",
    "runtime.corpora.records.json_records": "tests/runtime/corpora/test_corpus.py",
    "runtime.corpora.records.reading": "single characters",
    "runtime.entry_points": "the user's own",
    "runtime.generation.texts.defusing": "tests/runtime/generation/test_defusing.py",
    "runtime.pipelines.expression": "the user's own",
    "runtime.pipelines.expression_parser": "the user's own",
    "runtime.retrievers.dense.faiss_index": "the library's own error",
    "runtime.retrievers.lucene.jvm": "the machine's own version",
    "runtime.retrievers.opensearch._client": "the user's own index name",
    "runtime.servers.refused_options": "an error that `secrecy` has cut",
    "runtime.servers.remote_reader": "an error that `secrecy` has cut",
    "runtime.texts.sentences": "below",
    "store.database.columns": "the database's own",
    "store.runs.seals": "the database's own",
    "store.traces.ours": "the last characters of a text",
    "store.importers.servers": "the user's own address",
    "tracing.asking.cut_off": "our own names of estimators",
    "tracing.entailments.equivalence.rules": "in the table with `reading`",
    "tracing.learned.promise": "the user's own",
}
"""Modules with expressions that the table does not name, and why."""


@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_reads_hostile_text_in_no_time(name: str) -> None:
    for text in islice(texts(), 0, None, 5 if name in SLOW else 1):
        assert reads_in_time(PARSERS[name], text), f"{text[:40]!r} and so on"


@pytest.mark.parametrize("handles", [False, True])
def test_a_parser_that_takes_forever_is_seen(
    handles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that handles the error which ends it."""

    def careless(text: str) -> None:
        with suppress(Exception) if handles else nullcontext():
            re.match(r"(a+)+$", text)

    monkeypatch.setattr(hostile_texts, "LONGEST", 0.1)
    assert not reads_in_time(careless, "a" * 60 + "b")


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
    assert continuation.sentence_end(text) <= sentences.STRETCH
    assert len(given) == 1


def test_every_module_that_searches_texts_is_in_the_table() -> None:
    """So that none is forgotten."""
    used = re.compile(r"\bre\.[a-z]+\(|\bpysbd\.|\bfuzz\.|\bIndel\.")
    root = Path(hopscope.__file__).parent
    searching = {
        ".".join((room, *path.relative_to(root / room).with_suffix("").parts))
        for room in ("runtime", "tracing", "workflows", "store", "api", "lab", "view", "cli")
        for path in (root / room).rglob("*.py")
        if used.search(path.read_text(encoding="utf-8"))
    }
    named = {name.split()[0] for name in PARSERS} | ELSEWHERE.keys()
    assert {name.removesuffix(".__init__") for name in searching} - named == set()
    assert [name for name in ELSEWHERE if name not in searching] == []
