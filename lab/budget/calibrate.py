"""From the margin of a draft to the utility of stopping there, by isotonic regression: what TASR
(arXiv 2606.13814) does before it compares the margin with a threshold.
"""

from collections.abc import Sequence

import numpy as np

from hopscope.lab.budget._sklearn import sklearn
from hopscope.lab.budget.paths import Path
from hopscope.runtime.errors import UsageError
from hopscope.tracing.learned.calibration import Calibration


def calibrate(
    paths: Sequence[Path], *, workflow: str, reader: str, source: str = ""
) -> Calibration:
    """Learn from paths what a margin is worth.

    Raises:
        UsageError: no margin is known.
        MissingExtraError: scikit-learn is not installed.
    """
    pairs = sorted(
        (known["margin"], stop.utility)
        for path in paths
        for known, stop in zip(path.known, path.stops, strict=False)
        if "margin" in known
    )
    if not pairs:
        raise UsageError(
            "the reader gives no token probabilities, so there is no margin to calibrate"
        )
    margins, worth = map(np.array, zip(*pairs, strict=True))
    model = sklearn().IsotonicRegression(out_of_bounds="clip").fit(margins, worth)
    return Calibration(
        workflow=workflow,
        reader=reader,
        scores=tuple(model.X_thresholds_.tolist()),
        values=tuple(model.y_thresholds_.tolist()),
        learned={"source": source, "questions": len(paths)},
    )
