"""The calibration of the model's probabilities, fitted to questions that its trees did not see.

Every question is judged by trees that were trained on the other folds. The log-odds are divided
into parts of equal information, Σ p(1 - p), so that the many sure judgements share a few; the
log-odds of the observed shares, made to rise by isotonic regression, are the points of the curve.
"""

import numpy as np
from numpy.typing import NDArray

from hopscope.runtime.errors import MissingExtraError
from hopscope.tracing.entailments.equivalence.calibration import Calibration

Floats = NDArray[np.float64]
POINTS = 8
LEAST_RISE = 1e-6
"""Between the calibrated log-odds of two points; those that rise less are one."""


def fit_curve(logits: Floats, right: NDArray[np.bool_]) -> Calibration:
    """The curve for log-odds and verdicts, both (row,).

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    try:
        from sklearn.isotonic import IsotonicRegression
    except ImportError:
        raise MissingExtraError("calibrating the equivalence model", "train") from None
    order = np.argsort(logits, kind="stable")
    logits, right = logits[order], right[order]
    chances = 1 / (1 + np.exp(-logits))
    information = chances * (1 - chances)
    share = np.cumsum(information) / information.sum()
    parts = np.minimum((share * POINTS).astype(int), POINTS - 1)
    weight = np.bincount(parts, information)
    before = np.bincount(parts, logits * information) / weight
    # Half an answer more of each verdict, so that no share is 0 or 1.
    rate = (np.bincount(parts, right) + 0.5) / (np.bincount(parts) + 1)
    risen = IsotonicRegression().fit_transform(
        before, np.log(rate / (1 - rate)), sample_weight=weight
    )
    levels = np.cumsum(np.diff(risen, prepend=-np.inf) > LEAST_RISE) - 1
    count = np.bincount(levels)
    return Calibration(
        np.bincount(levels, before) / count, np.bincount(levels, np.asarray(risen)) / count
    )
