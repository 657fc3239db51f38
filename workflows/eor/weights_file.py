"""The weights of EoR's voter and their file.

Invariant: weights belong to one pool, in its order, and to one voting rule; they are never used
with another.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue, ValidationError

from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Record
from hopscope.runtime.validation import first
from hopscope.workflows.eor._similarities import KNOWN, parse_weights
from hopscope.workflows.eor.voting import VotingRule

Weight = Annotated[float, Field(ge=0)]


class Weights(Record):
    """The contents of the file that `hopscope eor fit` writes."""

    version: Literal[1] = 1
    pool: tuple[str, ...]
    """The retrievers, in canonical form."""
    retrievers: tuple[Weight, ...]
    """ω^r, one for each retriever of the pool."""
    similarities: dict[str, Weight]
    """ω^s, by name; only their proportions matter."""
    rule: dict[str, JsonValue]
    """The voting rule with which the weights were learned."""
    learned: dict[str, JsonValue] = Field(default_factory=dict)
    """Data, settings and results of the fit, for the record only."""


def choose(file: str | None, pool: Sequence[str], similarities: str, rule: VotingRule) -> Weights:
    """The weights of a file; without one all retrievers have equal weights.

    Raises:
        UsageError: as `load` and `parse_weights`.
    """
    shares = parse_weights(similarities)
    if file is not None:
        return load(Path(file), pool, rule)
    alike = (1.0,) * len(pool)
    return Weights(pool=tuple(pool), retrievers=alike, similarities=shares, rule=rule._asdict())


def load(path: Path, pool: Sequence[str], rule: VotingRule) -> Weights:
    """The weights in a file.

    Raises:
        UsageError: it cannot be read, or holds weights for another pool or rule.
    """
    try:
        weights = Weights.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(
            f"weights {path} cannot be read: {error.strerror}; make them with `hopscope eor fit`"
        ) from None
    except ValidationError as error:
        problem = first(error, whole="the file")
        raise UsageError(
            f"weights {path}: {problem}; make the file with `hopscope eor fit`"
        ) from None
    if weights.pool != tuple(pool):
        raise UsageError(
            f"weights {path} are for the pool {','.join(weights.pool)}, not for {','.join(pool)}: "
            "set that pool with -o pool=..., or learn weights for yours with `hopscope eor fit`"
        )
    if len(weights.retrievers) != len(weights.pool):
        raise UsageError(
            f"weights {path}: {len(weights.retrievers)} weights for {len(weights.pool)} retrievers"
        )
    if unknown := sorted(set(weights.similarities) - set(KNOWN)):
        raise UsageError(f"weights {path}: similarity {unknown[0]!r} is unknown")
    given = rule._asdict()
    for key in given.keys() | weights.rule.keys():
        if given.get(key) != weights.rule.get(key):
            raise UsageError(
                f"weights {path} were learned with {key}={weights.rule.get(key)}, not "
                f"{given.get(key)}: set -o {key}={weights.rule.get(key)}, or learn weights anew "
                "with `hopscope eor fit`"
            )
    return weights


def save(path: Path, weights: Weights) -> None:
    """As JSON that people can read."""
    text = json.dumps(weights.model_dump(mode="json"), indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
