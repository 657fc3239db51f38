"""Probabilities that are right as often as they say: a rising curve over the trees' log-odds.

The trees are too careful in the middle: of the answers to which they give .4 to .6, people accept
two thirds. The curve was fitted to log-odds of trees that had not seen the questions
(`lab.equivalence.calibrate`). Because it rises, it changes no ranking.
"""

from typing import NamedTuple

import numpy as np

from hopscope.tracing.entailments.equivalence.trees import Floats


class Calibration(NamedTuple):
    """Straight between its points, and beyond them parallel to the diagonal."""

    before: Floats
    """Log-odds of the trees, ascending, (point,)."""
    after: Floats
    """Calibrated log-odds, ascending, (point,)."""

    def __call__(self, logits: Floats) -> Floats:
        """Calibrated log-odds, (row,)."""
        beyond = logits - np.clip(logits, self.before[0], self.before[-1])
        return np.asarray(np.interp(logits, self.before, self.after) + beyond)
