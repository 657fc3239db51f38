"""What of scikit-learn policies are learned with; loaded only when something is learned."""

from typing import Any, NamedTuple

from hopscope.runtime.errors import MissingExtra


class Sklearn(NamedTuple):
    GradientBoostingRegressor: Any
    IsotonicRegression: Any
    LogisticRegression: Any


def sklearn() -> Sklearn:
    """
    Raises:
        MissingExtra: scikit-learn is not installed.
    """
    try:
        from sklearn.ensemble import GradientBoostingRegressor
        from sklearn.isotonic import IsotonicRegression
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise MissingExtra("learning a policy", "train") from None
    return Sklearn(GradientBoostingRegressor, IsotonicRegression, LogisticRegression)
