"""Prices of models and retrievals: a shipped table that users can override.

The table is TOML, as `prices.toml` explains: `currency`, `retrieval` (per query), `models`, readers
by name, and `hosts`, hosted services with what their models cost, the page that says so, and the
day it was read. Prices are per million tokens.
"""

import datetime
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.literals import toml_table
from hopscope.runtime.types import Record, Usage
from hopscope.runtime.validation import first

MILLION = 1_000_000


class ModelPrice(Record):
    """The price of one model, per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Price of prompt tokens from the server's cache; None if they cost as much as others."""
    thinking: float | None = Field(default=None, ge=0)
    """Price of output tokens of thoughts; None if they cost as much as others."""


class HostPrices(Record):
    """The prices of one hosted service."""

    source: str
    """The page that publishes them."""
    read: datetime.date
    """The day on which the page was read."""
    models: dict[str, ModelPrice]
    """Prices by the API's names of models."""

    def of(self, model: str) -> ModelPrice | None:
        """The price of a model or of its dated snapshot; None if it is not listed."""
        named = model.removeprefix("models/")  # as Google's API lists them
        return self.models.get(named) or self.models.get(_DATED.sub("", named))


EXAMPLE = 'write, for example, "my-model*" = { input = 0.5, output = 1.5 } under [models]'
_DATED = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")


class Price(Record):
    """The prices of a run."""

    model: ModelPrice | None = None
    """None if unknown."""
    retrieval: float = Field(default=0.0, ge=0)
    """Per query."""
    currency: str = "USD"
    read: datetime.date | None = None
    """The day on which a hosted service's price was read; None for a user's own price."""

    def of(self, usage: Usage, *, queries: int = 0) -> float | None:
        """The cost of this usage; None if the price or the tokens are unknown."""
        if usage.uncounted or (self.model is None and usage.tokens):
            return None
        cost: float = self.charge(vars(usage), queries)
        return cost

    def charge(self, usage: Mapping[str, Any], queries: Any) -> Any:
        """The cost of counted usage by name of its fields: numbers, or arrays of them. A price that
        is unknown counts as none."""
        model = self.model or ModelPrice(input=0, output=0)
        cached = model.input if model.cached is None else model.cached
        thinking = model.output if model.thinking is None else model.thinking
        tokens = (
            (usage["input_tokens"] - usage["cached_tokens"]) * model.input
            + usage["cached_tokens"] * cached
            + (usage["output_tokens"] - usage["thinking_tokens"]) * model.output
            + usage["thinking_tokens"] * thinking
        )
        return tokens / MILLION + queries * self.retrieval


class Prices(Record):
    """The table of prices."""

    currency: str = "USD"
    retrieval: float = Field(default=0.0, ge=0)
    models: dict[str, ModelPrice] = Field(default_factory=dict)
    hosts: dict[str, HostPrices] = Field(default_factory=dict)

    def of(self, reader: str) -> Price:
        """The price of a reader by name; its model is None if the table lacks it."""
        fitting = [name for name in self.models if _fits(name, reader)]
        if fitting:
            return self._price(self.models[max(fitting, key=len)], None)
        model, _, where = reader.rpartition("@")
        for host, hosted in self.hosts.items():
            if where == host or where.startswith(f"{host}:"):
                return self._price(hosted.of(model), hosted.read)
        return self._price(None, None)

    def _price(self, model: ModelPrice | None, read: datetime.date | None) -> Price:
        return Price(model=model, retrieval=self.retrieval, currency=self.currency, read=read)


def _fits(name: str, reader: str) -> bool:
    return reader.startswith(name[:-1]) if name.endswith("*") else reader == name


def prices(override: Path | None = None) -> Prices:
    """The shipped table, overridden by the file `override`. A file in another currency replaces all
    prices except free ones.

    Raises:
        UsageError: the file cannot be read or is no such table.
    """
    shipped = toml_table(
        files("hopscope.runtime.budget").joinpath("prices.toml").read_text("utf-8")
    )
    if override is None:
        return Prices.model_validate(shipped)
    try:
        return Prices.model_validate(_merged(shipped, toml_table(override.read_text("utf-8"))))
    except OSError as error:
        raise UsageError(
            f"prices {override} cannot be read: {error.strerror}; give a TOML file that you may "
            "read, or leave prices (--prices) out for the shipped table"
        ) from None
    except (ValidationError, TypeError, AttributeError) as error:
        reason = str(error)
        if isinstance(error, ValidationError):
            reason = first(error, whole="the table")
        raise UsageError(f"prices {override}: {reason}; {EXAMPLE}") from None
    except ValueError as error:  # not TOML, or not UTF-8
        raise UsageError(f"prices {override} is not valid TOML: {error}; {EXAMPLE}") from None


def _merged(shipped: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Both tables merged; the result never mixes two currencies."""
    if own.get("currency", shipped["currency"]) != shipped["currency"]:
        free = {name: row for name, row in shipped["models"].items() if not any(row.values())}
        return {**own, "models": {**free, **own.get("models", {})}}
    return {
        **shipped,
        **own,
        "models": {**shipped["models"], **own.get("models", {})},
        "hosts": {**shipped["hosts"], **own.get("hosts", {})},
    }
