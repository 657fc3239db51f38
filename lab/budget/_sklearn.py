"""What of scikit-learn policies are learned with; loaded only when something is learned."""

from typing import Any, NamedTuple

from hopscope.runtime.errors import MissingExtra


class Sklearn(NamedTuple):
    DecisionTreeRegressor: Any
    IsotonicRegression: Any
    LogisticRegression: Any
    RandomForestRegressor: Any


def sklearn() -> Sklearn:
    """
    Raises:
        MissingExtra: scikit-learn is not installed.
    """
    try:
        from sklearn.ensemble import RandomForestRegressor
        from sklearn.isotonic import IsotonicRegression
        from sklearn.linear_model import LogisticRegression
        from sklearn.tree import DecisionTreeRegressor
    except ImportError:
        raise MissingExtra("learning a policy", "train") from None
    return Sklearn(
        DecisionTreeRegressor, IsotonicRegression, LogisticRegression, RandomForestRegressor
    )
