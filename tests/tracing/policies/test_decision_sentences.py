"""What `hopscope budget explain` ends each decision with."""

import pytest

from hopscope.runtime.types import Decision
from hopscope.tracing.reports.decisions import sentence

PRICED = {"gain": 0.5, "cost": 200.0, "price": 0.001}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"policy": "value:1", "retrieve": True, "reason": "", **PRICED},
            "It searched, because going on was expected to gain 0.50 of a right answer, more than "
            "the 0.20 that 200 tokens must bring.",
        ),
        (
            {"policy": "value:1", "retrieve": False, "reason": "", **PRICED, "gain": -0.1},
            "It did not search, because going on was expected to gain 0.00 of a right answer, no "
            "more than the 0.20 that 200 tokens must bring.",
        ),
        (
            {"policy": "limit:budget_calls", "retrieve": False, "reason": "9 of 9 calls are used"},
            "It did not search, because a limit of the run was reached: 9 of 9 calls are used.",
        ),
        (
            {"policy": "route:1", "retrieve": True, "reason": "one is worth most", "gain": 0.2},
            "It searched, because one is worth most.",
        ),
    ],
)
def test_a_sentence_says_why(fields: dict[str, object], told: str) -> None:
    assert sentence(Decision.model_validate(fields)) == told
