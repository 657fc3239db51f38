import math

import pytest
from pydantic import ValidationError

from hopscope.runtime.types import Measurement, Usage, digest


def test_a_measurement_is_a_value_or_a_reason_never_both_never_neither() -> None:
    assert Measurement(value=0.0).reason is None
    with pytest.raises(ValidationError):
        Measurement(value=None)
    with pytest.raises(ValidationError):
        Measurement(value=1.0, reason="but")


def test_nan_is_refused() -> None:
    with pytest.raises(ValidationError):
        Measurement(value=math.nan)


def test_usage_adds_up() -> None:
    total = sum([Usage(input_tokens=3, calls=1), Usage(output_tokens=2, calls=1)], Usage())
    assert (total.input_tokens, total.output_tokens, total.calls, total.tokens) == (3, 2, 2, 5)


def test_digest_does_not_confuse_where_one_part_ends() -> None:
    assert digest("ab", "c") != digest("a", "bc")
