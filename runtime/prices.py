"""What models and retrievals cost in money: a small table that users can override.

The table is TOML: `currency`, `retrieval` (per query) and `models`, where each name has `input` and
`output`, per million tokens. A name that ends in `*` stands for all that begin so.
"""

import tomllib
from importlib.resources import files
from pathlib import Path

from pydantic import Field, ValidationError

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Record, Usage

MILLION = 1_000_000


class ModelPrice(Record):
    """Of one model, per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Of prompt tokens that the server has at hand; None where they cost as much as others."""


class Price(Record):
    """What a run pays."""

    model: ModelPrice | None = None
    """None where nobody told."""
    retrieval: float = Field(default=0.0, ge=0)
    """Per query."""
    currency: str = "USD"

    def of(self, usage: Usage, *, queries: int = 0) -> float | None:
        """The money that so much use costs; None where the price or the tokens are not known."""
        if usage.uncounted or (self.model is None and usage.tokens):
            return None
        model = self.model or ModelPrice(input=0, output=0)
        cached = model.input if model.cached is None else model.cached
        tokens = (
            (usage.input_tokens - usage.cached_tokens) * model.input
            + usage.cached_tokens * cached
            + usage.output_tokens * model.output
        )
        return tokens / MILLION + queries * self.retrieval


class Prices(Record):
    """The table."""

    currency: str = "USD"
    retrieval: float = Field(default=0.0, ge=0)
    models: dict[str, ModelPrice] = Field(default_factory=dict)

    def of(self, reader: str) -> Price:
        """What a reader of this name costs; its model is None where the table does not know it."""
        fitting = [name for name in self.models if _fits(name, reader)]
        best = max(fitting, key=len, default=None)
        model = self.models[best] if best is not None else None
        return Price(model=model, retrieval=self.retrieval, currency=self.currency)


def _fits(name: str, reader: str) -> bool:
    return reader.startswith(name[:-1]) if name.endswith("*") else reader == name


def prices(override: Path | None = None) -> Prices:
    """The shipped table, with what the file `override` says in its place.

    Raises:
        UsageError: the file cannot be read or is no such table.
    """
    shipped = tomllib.loads(files("hopscope.runtime").joinpath("prices.toml").read_text("utf-8"))
    if override is None:
        return Prices.model_validate(shipped)
    try:
        own = tomllib.loads(override.read_text("utf-8"))
        models = {**shipped["models"], **own.get("models", {})}
        return Prices.model_validate({**shipped, **own, "models": models})
    except OSError as error:
        raise UsageError(f"prices {override} cannot be read: {error.strerror}") from None
    except RecursionError:
        raise UsageError(f"prices {override}: the values are nested too deep") from None
    except (ValidationError, TypeError, AttributeError) as error:
        reason = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise UsageError(
            f"prices {override}: {reason}; write e.g. "
            '"my-model*" = { input = 0.5, output = 1.5 } under [models]'
        ) from None
    except ValueError as error:  # not TOML, not UTF-8, or a number of thousands of digits
        raise UsageError(f"prices {override} is not TOML that can be read: {error}") from None
