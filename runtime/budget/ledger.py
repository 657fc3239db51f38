"""The limits of a run and its usage so far, as its ports report it.

Invariant: a model or an index is called only while something is left of every limit, so one call at
most exceeds a limit. The budget of one call is reserved for the answer: a step that is not the last
of its workflow stops before it, and the run still ends with an answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, ValidationError, model_validator

from hopscope.runtime import validation
from hopscope.runtime.budget.kept_prefixes import KeptPrefixes
from hopscope.runtime.budget.prices import Price
from hopscope.runtime.errors import BudgetExceededError, ReaderError, UsageError
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
    """The limits of one run; None is no limit."""

    tokens: int | None = Field(default=None, ge=0)
    """Tokens of prompts and replies together."""
    calls: int | None = Field(default=None, ge=0)
    """Requests to language models."""
    retrievals: int | None = Field(default=None, ge=0)
    """Queries sent to the retriever."""
    seconds: float | None = Field(default=None, ge=0)
    """Seconds from the beginning of the run."""
    cost: float | None = Field(default=None, ge=0)
    """Money in the currency of the price table."""

    @model_validator(mode="wrap")
    @classmethod
    def _checked(cls, given: object, make: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return make(given)
        except ValidationError as error:
            raise UsageError(f"Limits: {validation.first(error, whole='limits')}") from None

    @property
    def given(self) -> dict[Resource, float]:
        """The limits that are set."""
        return {name: value for name in REASONS if (value := getattr(self, name)) is not None}


@dataclass
class Ledger:
    """The account of one run. Not shared between runs."""

    limits: Limits = field(default_factory=Limits)
    price: Price = field(default_factory=Price)
    usage: Usage = field(default_factory=Usage)
    queries: int = 0
    """Queries sent to the retriever."""
    before: float = 0.0
    """Seconds of earlier parts of the run."""
    largest: Usage = field(default_factory=Usage)
    """The call with most tokens so far; as much is reserved for the answer."""
    slowest: float = 0.0
    """Seconds of the longest call so far."""
    prefixes: KeptPrefixes = field(default_factory=KeptPrefixes)
    """The prompts so far, by which cached tokens are counted."""
    _begun: float = field(default_factory=perf_counter)

    def recall(self, steps: Iterable[Step]) -> None:
        """Add the usage and the prompts of the steps of an earlier part."""
        steps = tuple(steps)
        self.prefixes.recall(steps)
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
        """Record a call to a model.

        Raises:
            ReaderError: its tokens or its price are unknown, and a limit counts them.
        """
        self.usage += usage
        self._compare(usage, seconds)
        counting = [name for name in ("tokens", "cost") if name in self.limits.given]
        if self.limits.cost is not None and not usage.uncounted and self.price.of(usage) is None:
            raise ReaderError(
                "the limit of cost cannot hold, since the model's price is unknown: give it by "
                "prices=FILE (--prices FILE), or limit the tokens (--max-tokens)"
            )
        if self.usage.uncounted and counting:  # by an earlier part of the run, too
            raise ReaderError(
                f"the limit of {counting[0]} cannot hold, since the server does not tell how many "
                "tokens a request took: give the model's tokenizer (reader option "
                "tokenizer=FOLDER), or limit the calls (--max-calls)"
            )

    def searched(self, queries: int) -> None:
        """Record queries that were sent."""
        self.queries += queries

    def check_call(self, *, last: bool) -> None:
        """
        Args:
            last: whether the call writes the answer and may use the reserved budget.

        Raises:
            BudgetExceededError: a call to a model would go beyond a limit.
        """
        for resource, limit in self.limits.given.items():
            if resource == "retrievals":
                continue
            needed = 0.0 if last else self._kept_back(resource)
            spent = self.spent(resource)
            if spent + needed >= limit:
                raise _exceeded(resource, spent, limit)

    def allowed(self, queries: int) -> int:
        """The number of queries, out of `queries`, that may be sent.

        Raises:
            BudgetExceededError: no time or money is left.
        """
        for resource in ("seconds", "cost"):
            limit = self.limits.given.get(resource)
            if limit is not None and (spent := self.spent(resource)) >= limit:
                raise _exceeded(resource, spent, limit)
        if self.limits.retrievals is None:
            return queries
        return max(0, min(queries, self.limits.retrievals - self.queries))

    def refuses_retrieval(self) -> BudgetExceededError | None:
        """The limit that forbids another retrieval, because no retrieval is left, or no budget to
        read its passages; else None."""
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


def _exceeded(resource: Resource, spent: float, limit: float) -> BudgetExceededError:
    return BudgetExceededError(
        REASONS[resource], f"{spent:.4g} of {limit:.4g} {resource} are spent"
    )


QUERIES = " | "
"""Separates the queries of one step."""


def queries(step: Step) -> int:
    """The number of queries that a step sent to the retriever."""
    return 0 if step.query is None else len(step.query.split(QUERIES))
