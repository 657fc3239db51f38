"""Answer equivalence for general text: a small embedded model, no download. Deterministic.

Forty numbers relate the words, letters and numbers of an answer, the gold answers and the question;
boosted trees trained on human judgements combine them (docs/equivalence.md). The model judges
whether both say the same as an answer to the question, so the premise may be longer or shorter than
the hypothesis. The first case that applies decides:

| case                                            | P(entailment)                    |
|-------------------------------------------------|----------------------------------|
| no words on one side; the same symbols          | 0; 1                             |
| the same words in the same order                | 1                                |
| the question asks whether, the hypothesis says  |                                  |
| yes or no (true, false): the same; not the same | 1; 0                             |
| the same words with different numbers           | 0                                |
| a part of a date of a gold, but on another day  | 0                                |
| anything else                                   | by the trees                     |

The last two rules compare one alias at a time: "26 January 1788" contradicts "18 January 1788".
Another alias that the answer contains overrules them, unless it is only a part of the contradicted
alias or of its date, such as "1788".

The rest is neutral if the premise is empty, refuses, or says less than the hypothesis, and
contradiction otherwise.

The idea is BEM's (Bulian et al. 2022, arXiv 2202.07654), without its language model.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.resources import as_file, files
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopscope.runtime.ports import Probabilities, Statement
from hopscope.tracing.entailments.equivalence._english import ASKING, AUXILIARIES, MONTHS
from hopscope.tracing.entailments.equivalence.features import NAMES, Golds, features
from hopscope.tracing.entailments.equivalence.trees import Floats, TreeEnsemble, Trees, load
from hopscope.tracing.entailments.equivalence.words import Text
from hopscope.tracing.entailments.lexical import polarity
from hopscope.tracing.scoring.correctness import Answered

MODEL = "equivalence.safetensors"

LONGEST_MONTH = 31
BETWEEN = frozenset(["the", "of", "st", "nd", "rd", "th"])
"""May stand between a day and its month: "the 26th of January"."""
_TRUTH = {"true": "yes", "false": "no"}


class Reason(NamedTuple):
    """One feature's contribution to a judgement."""

    feature: str
    value: float
    """The feature's value; -1 if not applicable."""
    contribution: float
    """Its contribution to the log-odds."""


class Explanation(NamedTuple):
    """A judgement with its reasons."""

    probability: float
    rule: str | None
    """The rule that decided, in which case there are no reasons."""
    bias: float
    """Log-odds without any feature."""
    reasons: tuple[Reason, ...]
    """The strongest first; with the bias their contributions sum to the log-odds."""


class Equivalence:
    """Judges by trees over the numbers of `features`. Threads may share it."""

    def __init__(self, trees: Trees, *, name: str) -> None:
        self.name = name
        self._trees = trees
        self._ensemble = TreeEnsemble(trees)

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement; the hypothesis has the part of the gold answer."""
        asked = [Answered(s.question, (s.hypothesis,), s.premise) for s in statements]
        texts = _Texts()
        chances = self._judge(asked, texts)
        return [
            _distribution(s, texts, chance) for chance, s in zip(chances, statements, strict=True)
        ]

    def correctness(self, answered: Sequence[Answered]) -> list[float]:
        """P(right) for each answer, from all its golds together."""
        return self._judge(answered, _Texts())

    def explain(self, answered: Answered) -> Explanation:
        """The judgement of one answer with its reasons."""
        texts = _Texts()
        golds, answer = texts.golds(answered.question, answered.golds), texts.text(answered.answer)
        if decided := _rule(golds, answer):
            return Explanation(decided.probability, decided.rule, 0.0, ())
        row = np.array(features(golds, answer))
        bias, added = self._trees.contributions(row)
        reasons = map(Reason, NAMES, map(float, row), map(float, added))
        strongest = tuple(sorted(reasons, key=lambda reason: -abs(reason.contribution)))
        return Explanation(
            float(_sigmoid(self._ensemble.logits(row[None]))[0]), None, bias, strongest
        )

    def _judge(self, answered: Sequence[Answered], texts: "_Texts") -> list[float]:
        known: dict[Answered, float] = {}
        rows: dict[Answered, list[float]] = {}
        for asked in dict.fromkeys(answered):
            golds, answer = texts.golds(asked.question, asked.golds), texts.text(asked.answer)
            if decided := _rule(golds, answer):
                known[asked] = decided.probability
            else:
                rows[asked] = features(golds, answer)
        if rows:
            chances = _sigmoid(self._ensemble.logits(np.array(list(rows.values()))))
            known.update(zip(rows, map(float, chances), strict=True))
        return [known[asked] for asked in answered]


def build() -> Equivalence:
    """The embedded model, for short English answers."""
    return _embedded()


@lru_cache(maxsize=1)
def _embedded() -> Equivalence:
    with as_file(files("hopscope.tracing.entailments.equivalence").joinpath(MODEL)) as path:
        return from_file(path)


def from_file(path: Path) -> Equivalence:
    """A model that `hopscope.lab.equivalence.train` wrote.

    Raises:
        EntailmentError: the file is no such model.
    """
    trees = load(path, NAMES)
    return Equivalence(trees, name=f"equivalence:{sha256(path.read_bytes()).hexdigest()[:8]}")


class _Texts:
    """Each text of one call is read once."""

    def __init__(self) -> None:
        self._texts: dict[str, Text] = {}
        self._golds: dict[tuple[str, tuple[str, ...]], Golds] = {}

    def text(self, text: str) -> Text:
        if text not in self._texts:
            self._texts[text] = Text(text)
        return self._texts[text]

    def golds(self, question: str, golds: Iterable[str]) -> Golds:
        # Neither the order of the golds nor a repeated one may change a score.
        key = question, tuple(sorted(set(golds)))
        if key not in self._golds:
            self._golds[key] = Golds(self.text(question), [self.text(gold) for gold in key[1]])
        return self._golds[key]


class _Decided(NamedTuple):
    """A probability that needs no model, with its rule."""

    probability: float
    rule: str


def _rule(golds: Golds, answer: Text) -> _Decided | None:
    if not answer.words or not golds.full:
        same = answer.raw.strip() and answer.raw.strip() in {raw.strip() for raw in golds.raw}
        return _Decided(1.0, "the same symbols") if same else _Decided(0.0, "nothing to compare")
    if answer.spaced in golds.spaced:
        return _Decided(1.0, "the same words")
    if golds.bare:
        wanted = set(filter(None, map(_polarity, golds.bare)))
        if wanted and _asks_whether(golds.question):
            said = _polarity(answer)
            return _Decided(float(said in wanted), f"says {said or 'neither yes nor no'}")
    if answer.numbers:
        held = [r.text for r in golds.full if r.text.stemset <= answer.stemset]
        for reading in golds.full:
            gold = reading.text
            others = [text for text in held if not text.stemset < gold.stemset]
            if not others and _only_numbers_differ(gold, answer):
                return _Decided(0.0, "the same but for numbers")
            if held and all(map(_without_day, others)) and _on_another_day(gold, golds, answer):
                return _Decided(0.0, "another day")
    return None


def _on_another_day(gold: Text, golds: Golds, answer: Text) -> bool:
    """Whether the answer has a month of the gold with another day, which is in no gold."""
    new = answer.numbers.difference(golds.question.numbers, *golds.numbers)
    wanted = {month for month, day in _days(gold) if day not in answer.numbers}
    return any(month in wanted and day in new for month, day in _days(answer))


def _without_day(text: Text) -> bool:
    """Whether it is a year or a month, and no day."""
    return not _days(text) and MONTHS.union(text.numbers).issuperset(text.words)


def _days(text: Text) -> list[tuple[str, str]]:
    """Months, each with the day next to it."""
    words = [word for word in text.words if word not in BETWEEN]
    both = chain.from_iterable(((a, b), (b, a)) for a, b in pairwise(words))
    return [
        (month, day)
        for month, day in both
        if month in MONTHS and day in text.numbers and float(day) <= LONGEST_MONTH
    ]


def _only_numbers_differ(one: Text, other: Text) -> bool:
    if not one.numbers - other.numbers or not other.numbers - one.numbers:
        return False
    return one.stemset - one.numbers == other.stemset - other.numbers


def _polarity(text: Text) -> str | None:
    return polarity(text.raw) or _TRUTH.get(text.words[0] if text.words else "")


def _bare_polarity(text: Text) -> str | None:
    """Yes or no, if the text says nothing else."""
    return _polarity(text) if len(text.words) == 1 else None


def _asks_whether(question: Text) -> bool:
    """Whether yes or no can answer the question; otherwise they are names, of a band or a film."""
    first = question.words[0] if question.words else ""
    return first in AUXILIARIES or ASKING.isdisjoint(question.words)


def _distribution(statement: Statement, texts: _Texts, chance: float) -> Probabilities:
    question, premise, hypothesis = map(texts.text, statement)
    silent = not premise.words or not hypothesis.words or premise.refuses
    silent = silent or premise.stemset < hypothesis.stemset
    whether = _bare_polarity(hypothesis) and _asks_whether(question)
    silent = silent or bool(whether and not _polarity(premise))
    rest = 1 - chance
    return Probabilities(chance, rest if silent else 0.0, 0.0 if silent else rest)


def _sigmoid(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-logits)))
