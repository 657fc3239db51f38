"""Rows as data frames; pandas is optional."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hopscope.runtime.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd


def frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> "pd.DataFrame":
    """The rows as a data frame with these columns, also without rows.

    Raises:
        UsageError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("data frames need pandas: pip install pandas") from None
    return pd.DataFrame.from_records(list(rows), columns=list(columns))
