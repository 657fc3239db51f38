"""Learn from the words of a question how many retrievals it needs: the least that are best.

As a policy of its own, by logistic regression on which words and pairs of words occur, after
Adaptive-RAG (arXiv 2403.14403), which trains a language model for it; and as signals of `value`, by
ridge regression on the same.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hopscope.lab.budget._sklearn import sklearn
from hopscope.lab.budget.paths import Path
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import digest
from hopscope.tracing.learned.classifier_file import ClassifierFile, WordModel, terms

MANY = 2
FOLDS = 5
PULL = 1.0
"""Strength of the ridge: as so many questions without an effect of the term."""
WORDS = ("wanted", "needed")
"""Signals from the words of a question: retrievals until the workflow's own stop, and the least
that are best."""
RARE = 3
"""Terms in fewer questions are left out as names."""


def learn(paths: Sequence[Path], *, workflow: str, reader: str, source: str = "") -> ClassifierFile:
    """Learn a policy from paths.

    Raises:
        UsageError: there are no paths.
        MissingExtraError: scikit-learn is not installed.
    """
    if not paths:
        raise UsageError("there are no runs to learn from")
    needed = [min(MANY, path.best) for path in paths]
    vocabulary, present = _present([path.question.text for path in paths])
    classes = sorted(set(needed))
    weights: dict[str, tuple[float, ...]] = {}
    intercepts: tuple[float, ...] = (0.0,) * len(classes)
    if len(classes) > 1 and vocabulary:
        model = sklearn().LogisticRegression(max_iter=500).fit(present, needed)
        rows, starts = model.coef_, model.intercept_
        if len(classes) == 2:  # one row for both
            rows, starts = np.vstack([0 * rows, rows]), np.array([0.0, starts[0]])
        table = np.round(rows, 6).T.tolist()
        weights = {t: tuple(row) for t, row in zip(vocabulary, table, strict=True)}
        intercepts = tuple(np.round(starts, 6).tolist())
    return ClassifierFile(
        workflow=workflow,
        reader=reader,
        classes=tuple(classes),
        intercepts=intercepts,
        weights=weights,
        learned={"source": source, "questions": len(paths)},
    )


def told(paths: Sequence[Path]) -> tuple[list[Path], WordModel]:
    """The paths with the signals of `WORDS`, each by weights that have not seen the question; and
    the model of all of them.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    vocabulary, present = _present([path.question.text for path in paths])
    known = np.array([(path.retrievals, path.best) for path in paths], float)
    centre, usual = known.mean(axis=0), present.mean(axis=0)
    present -= usual
    inputs, targets = present, known - centre

    def weights(rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        """By term and signal. Without an intercept, which would tell the mean of those left out."""
        if not vocabulary or not rows.any():
            return np.zeros((len(vocabulary), len(WORDS)))
        model = sklearn().Ridge(alpha=PULL, fit_intercept=False, copy_X=False)
        found: NDArray[np.float64] = model.fit(inputs[rows], targets[rows]).coef_.T.round(6)
        return found

    folds = np.array([int(digest(path.question.text)[:8], 16) % FOLDS for path in paths])
    unseen = [weights(folds != own) for own in range(FOLDS)]
    rows = [x @ unseen[fold] + centre for x, fold in zip(inputs, folds, strict=True)]
    whole = weights(np.full(len(paths), True))
    model = WordModel(
        names=WORDS,
        intercepts=tuple((centre - usual @ whole).tolist()),
        weights={t: tuple(row) for t, row in zip(vocabulary, whole.tolist(), strict=True)},
    )
    seen = [dict(zip(WORDS, row.tolist(), strict=True)) for row in rows]
    return [path.with_signals(each) for path, each in zip(paths, seen, strict=True)], model


def _present(questions: Sequence[str]) -> tuple[list[str], NDArray[np.float64]]:
    """The terms that are not rare, and by question which of them occur."""
    occurring = [terms(question) for question in questions]
    counts = Counter(term for each in occurring for term in each)
    vocabulary = sorted(term for term, count in counts.items() if count >= RARE)
    place = {term: column for column, term in enumerate(vocabulary)}
    table = np.zeros((len(questions), len(vocabulary)))
    for row, each in zip(table, occurring, strict=True):
        row[[place[term] for term in each if term in place]] = 1
    return vocabulary, table
