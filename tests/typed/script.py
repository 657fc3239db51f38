"""A user's script: `make check` types it, and so the names that `hopscope` exports."""

from typing import assert_type

import hopscope
from hopscope import Hit, MeasuredRun
from hopscope.api.credits import CreditRow


def find(query: str, k: int) -> list[str]:
    return ["Alba is a film."][:k]


with hopscope.Session(retriever=find, store="sqlite://", limits=hopscope.Limits(tokens=10)) as s:
    run: MeasuredRun = s.ask("Who made Alba?", gold=["Ada", "A. Example"], k=3)
    answer: str | None = run.answer
    values: list[float | None] = [row.value for row in run.credits if row.meter == "seper"]
    hits: list[Hit] = s.retrieve("Alba", k=2)
    assert_type(run.credits[0], CreditRow)
    assert_type(run.steps[0].query, str | None)
