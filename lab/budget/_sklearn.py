"""The classes of scikit-learn that learn policies, imported lazily."""

from typing import Any, NamedTuple

from hopscope.runtime.errors import MissingExtraError


class Sklearn(NamedTuple):
    DecisionTreeRegressor: Any
    ExtraTreesRegressor: Any
    IsotonicRegression: Any
    LogisticRegression: Any
    Ridge: Any


def sklearn() -> Sklearn:
    """
    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    try:
        from sklearn.ensemble import ExtraTreesRegressor
        from sklearn.isotonic import IsotonicRegression
        from sklearn.linear_model import LogisticRegression, Ridge
        from sklearn.tree import DecisionTreeRegressor
    except ImportError:
        raise MissingExtraError("learning a policy", "train") from None
    return Sklearn(
        DecisionTreeRegressor,
        ExtraTreesRegressor,
        IsotonicRegression,
        LogisticRegression,
        Ridge,
    )
