"""Learn from the words of a question how many retrievals it needs: the least that are best.

Logistic regression on which words and pairs of words occur, after Adaptive-RAG (arXiv 2403.14403),
which trains a language model for it.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from hopscope.lab.budget._sklearn import sklearn
from hopscope.lab.budget.paths import Path
from hopscope.runtime.errors import UsageError
from hopscope.tracing.learned.classifier_file import ClassifierFile, terms

MANY = 2
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
    occurring = [terms(path.question.text) for path in paths]
    counts = Counter(term for each in occurring for term in each)
    vocabulary = sorted(term for term, count in counts.items() if count >= RARE)
    classes = sorted(set(needed))
    weights: dict[str, tuple[float, ...]] = {}
    intercepts: tuple[float, ...] = (0.0,) * len(classes)
    if len(classes) > 1 and vocabulary:
        present = np.array([[term in each for term in vocabulary] for each in occurring], float)
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
