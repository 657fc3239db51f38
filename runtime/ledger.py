"""What a run may spend and what it has spent: hard limits, counted from what ports report.

Invariant: whatever is asked of a model or an index is asked while something is left of every
limit, so a limit is exceeded by one call at most. One call's worth is kept back for the answer: a
step that is not the last of its workflow stops short of it, and the run still ends with an answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal

from pydantic import Field

from hopscope.runtime.errors import BudgetExceeded, ReaderError
from hopscope.runtime.prices import Price
from hopscope.runtime.types import Record, Step, StopReason, Usage

Resource = Literal["tokens", "calls", "retrievals", "seconds", "cost"]
REASONS: dict[Resource, StopReason] = {
    "tokens": "budget_tokens",
    "calls": "budget_calls",
    "retrievals": "budget_retrievals",
    "seconds": "budget_seconds",
    "cost": "budget_cost",
}


class Limits(Record):
    """What one run may spend; None is without limit."""

    tokens: int | None = Field(default=None, ge=0)
    """Of prompts and replies together."""
    calls: int | None = Field(default=None, ge=0)
    """Requests to language models."""
    retrievals: int | None = Field(default=None, ge=0)
    """Queries sent to the retriever."""
    seconds: float | None = Field(default=None, ge=0)
    """From the beginning of the run."""
    cost: float | None = Field(default=None, ge=0)
    """In the currency of the table of prices."""

    @property
    def given(self) -> dict[Resource, float]:
        """Those that are set."""
        return {name: value for name in REASONS if (value := getattr(self, name)) is not None}


@dataclass
class Ledger:
    """What one run has spent. Not shared between runs."""

    limits: Limits = field(default_factory=Limits)
    price: Price = field(default_factory=Price)
    usage: Usage = field(default_factory=Usage)
    queries: int = 0
    """Sent to the retriever."""
    before: float = 0.0
    """Seconds that earlier parts of the run took."""
    largest: Usage = field(default_factory=Usage)
    """The call with most tokens so far: what is kept back for the answer."""
    slowest: float = 0.0
    """Seconds of the longest call so far."""
    _begun: float = field(default_factory=perf_counter)

    def recall(self, steps: Iterable[Step]) -> None:
        """Take over what the steps of an earlier part have spent."""
        for step in steps:
            self.queries += queries(step)
            self.before += step.seconds
            self.usage += step.usage
            for exchange in step.exchanges:
                spent = sum((g.usage for g in exchange.generations), Usage())
                self._compare(spent, exchange.seconds)

    def spent(self, resource: Resource) -> float:
        match resource:
            case "tokens":
                return self.usage.tokens
            case "calls":
                return self.usage.calls
            case "retrievals":
                return self.queries
            case "seconds":
                return self.before + perf_counter() - self._begun
            case "cost":
                return self.price.of(self.usage, queries=self.queries) or 0.0

    def called(self, usage: Usage, seconds: float) -> None:
        """A call to a model has ended.

        Raises:
            ReaderError: nobody tells its tokens or its price, and a limit counts them.
        """
        self.usage += usage
        self._compare(usage, seconds)
        counting = [name for name in ("tokens", "cost") if name in self.limits.given]
        if self.limits.cost is not None and not usage.uncounted and self.price.of(usage) is None:
            raise ReaderError("the limit of cost cannot hold, since the model's price is not known")
        if self.usage.uncounted and counting:  # by an earlier part of the run, too
            raise ReaderError(
                f"the limit of {counting[0]} cannot hold, since the server does not tell how many "
                "tokens a request took: give the model's tokenizer (reader option "
                "tokenizer=FOLDER), or limit --max-calls"
            )

    def searched(self, queries: int) -> None:
        """So many queries were sent."""
        self.queries += queries

    def check_call(self, *, last: bool) -> None:
        """
        Args:
            last: whether the answer is written by it, which may use what is kept back.

        Raises:
            BudgetExceeded: a call to a model would go beyond a limit.
        """
        for resource, limit in self.limits.given.items():
            if resource == "retrievals":
                continue
            needed = 0.0 if last else self._kept_back(resource)
            spent = self.spent(resource)
            if spent + needed >= limit:
                raise _exceeded(resource, spent, limit)

    def allowed(self, queries: int) -> int:
        """How many of so many queries may be sent.

        Raises:
            BudgetExceeded: no time or money is left.
        """
        for resource in ("seconds", "cost"):
            limit = self.limits.given.get(resource)
            if limit is not None and (spent := self.spent(resource)) >= limit:
                raise _exceeded(resource, spent, limit)
        if self.limits.retrievals is None:
            return queries
        return max(0, min(queries, self.limits.retrievals - self.queries))

    def refuses_retrieval(self) -> BudgetExceeded | None:
        """Why another retrieval is out of the question: there are none left, or nothing with which
        to read what it finds."""
        for resource, limit in self.limits.given.items():
            kept = 0.0 if resource == "calls" else self._kept_back(resource)
            if (spent := self.spent(resource)) + kept >= limit:
                return _exceeded(resource, spent, limit)
        return None

    def _kept_back(self, resource: Resource) -> float:
        match resource:
            case "tokens":
                return self.largest.tokens
            case "calls":
                return 1
            case "seconds":
                return self.slowest
            case "cost":
                return self.price.of(self.largest) or 0.0
            case "retrievals":
                return 0

    def _compare(self, usage: Usage, seconds: float) -> None:
        self.largest = max(self.largest, usage, key=lambda each: each.tokens)
        self.slowest = max(self.slowest, seconds)


def _exceeded(resource: Resource, spent: float, limit: float) -> BudgetExceeded:
    return BudgetExceeded(REASONS[resource], f"{spent:.4g} of {limit:.4g} {resource} are spent")


QUERIES = " | "
"""Stands between the queries of one step."""


def queries(step: Step) -> int:
    """How many a step sent to the retriever."""
    return 0 if step.query is None else len(step.query.split(QUERIES))
