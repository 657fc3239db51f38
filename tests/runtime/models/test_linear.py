"""Linear maps of many tokens."""

import pytest
import torch
from torch import nn
from torch.nn.functional import linear

from hopscope.runtime.models.devices import Precision
from hopscope.runtime.models.linear import build, multiplies, rounded


def test_sizes_are_few_and_hardly_larger() -> None:
    """A process would else keep code for each number of tokens that ever came."""
    sizes = [rounded(count) for count in range(513)]
    assert all(count <= size < count + 16 for count, size in enumerate(sizes))
    assert [rounded(size) for size in sizes] == sizes
    assert len(set(sizes)) < 50


@pytest.mark.parametrize(
    ("precision", "error"), [("single", 1e-5), ("bfloat16", 0.05), ("eight-bits", 0.05)]
)
def test_every_number_of_tokens_is_mapped(precision: Precision, error: float) -> None:
    if not multiplies(precision):
        pytest.skip("this processor does not multiply such numbers")
    torch.manual_seed(0)
    part = nn.Linear(24, 40)
    own = build(precision)([part])
    for count in (1, 3, 4, 15, 17, 100, 130):
        tokens = torch.randn(count, 24)
        with torch.inference_mode():
            found = own(tokens).float()
            assert found.shape == (count, 40)
            assert torch.allclose(found, linear(tokens, part.weight, part.bias), atol=error)
