"""Answer equivalence for general text: a small embedded model, no download. Deterministic.

The answer is first read in the light of the golds (`reading.py`): "20141" as the year 2014, "about
225" as a rounded 224.7, "Bill" as William. Forty numbers relate the words, letters and numbers of
the answer, the gold answers and the question; boosted trees trained on human judgements combine
them, and a curve calibrates their probabilities (docs/equivalence.md). The model judges whether
both say the same as an answer to the question, so the premise may be longer or shorter than the
hypothesis. The first case that applies decides:

| case                                                      | P(entailment)    |
|-----------------------------------------------------------|------------------|
| no words on one side; the same symbols                    | 0; 1             |
| the same number with another sign or unit                 | 0                |
| the same words in the same order                          | 1                |
| the question asks whether, the hypothesis says            |                  |
| yes or no (true, false): the same; not the same           | 1; 0             |
| the same words with different numbers                     | 0                |
| the hypothesis is a time: all times of the premise are    |                  |
| apart from it, or it names no day and the question asks   |                  |
| for one                                                   | 0                |
| a word's opposite beside the same words                   | 0                |
| some but not all of several that the question asks for    | 0                |
| the gold only as somebody beside the one that is named    | 0                |
| anything else                                             | by the trees     |

Of the times of several aliases the finest count: "26 January 1788" contradicts "18 January 1788",
even beside the alias "1788". Numbers are compared with one alias at a time, and another alias that
the answer contains overrules the rule.

The rest is neutral if the premise is empty, refuses, or says less than the hypothesis, and
contradiction otherwise.

The idea is BEM's (Bulian et al. 2022, arXiv 2202.07654), without its language model.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hopscope.runtime.ports import Probabilities, Statement
from hopscope.tracing.entailments.equivalence.calibration import Calibration
from hopscope.tracing.entailments.equivalence.features import NAMES, features
from hopscope.tracing.entailments.equivalence.golds import Golds
from hopscope.tracing.entailments.equivalence.reading import read
from hopscope.tracing.entailments.equivalence.rules import asks_whether, decide, said_polarity
from hopscope.tracing.entailments.equivalence.trees import Floats, TreeEnsemble, Trees, load
from hopscope.tracing.entailments.equivalence.words import Text
from hopscope.tracing.scoring.correctness import Answered

MODEL = "equivalence.safetensors"


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
    calibration: float
    """The change of the log-odds by calibration."""
    reasons: tuple[Reason, ...]
    """The strongest first; with bias and calibration their contributions sum to the log-odds."""
    read_as: str | None
    """The answer's words as they were read beside the golds, if not as they stand."""


class Equivalence:
    """Judges by trees over the numbers of `features`. Threads may share it."""

    def __init__(self, trees: Trees, calibration: Calibration, *, name: str) -> None:
        self.name = name
        self._trees = trees
        self._ensemble = TreeEnsemble(trees)
        self._calibration = calibration

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
        golds, answer = _Texts().read(answered)
        own = Text(answered.answer).words
        read_as = None if answer.words == own else " ".join(answer.words)
        if decided := decide(golds, answer):
            return Explanation(decided.probability, decided.rule, 0.0, 0.0, (), read_as)
        row = np.array(features(golds, answer))
        bias, added = self._trees.contributions(row)
        reasons = map(Reason, NAMES, map(float, row), map(float, added))
        strongest = tuple(sorted(reasons, key=lambda reason: -abs(reason.contribution)))
        logits = self._ensemble.logits(row[None])
        calibrated = self._calibration(logits)
        return Explanation(
            float(_sigmoid(calibrated)[0]),
            None,
            bias,
            float((calibrated - logits)[0]),
            strongest,
            read_as,
        )

    def _judge(self, answered: Sequence[Answered], texts: "_Texts") -> list[float]:
        known: dict[Answered, float] = {}
        rows: dict[Answered, list[float]] = {}
        for asked in dict.fromkeys(answered):
            golds, answer = texts.read(asked)
            if decided := decide(golds, answer):
                known[asked] = decided.probability
            else:
                rows[asked] = features(golds, answer)
        if rows:
            logits = self._ensemble.logits(np.array(list(rows.values())))
            chances = _sigmoid(self._calibration(logits))
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
    model = load(path, NAMES)
    name = f"equivalence:{sha256(path.read_bytes()).hexdigest()[:8]}"
    return Equivalence(model.trees, Calibration(*model.curve), name=name)


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

    def read(self, answered: Answered) -> tuple[Golds, Text]:
        """The golds, and the answer as read beside them."""
        golds = self.golds(answered.question, answered.golds)
        return golds, read(golds, self.text(answered.answer))


def _distribution(statement: Statement, texts: _Texts, chance: float) -> Probabilities:
    question, premise, hypothesis = map(texts.text, statement)
    silent = not premise.words or not hypothesis.words or premise.refuses
    silent = silent or premise.stemset < hypothesis.stemset
    bare = len(hypothesis.words) == 1 and said_polarity(hypothesis)
    whether = bare and asks_whether(question)
    silent = silent or bool(whether and not said_polarity(premise))
    rest = 1 - chance
    return Probabilities(chance, rest if silent else 0.0, 0.0 if silent else rest)


def _sigmoid(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-logits)))
