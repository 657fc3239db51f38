"""What an experiment is made of: its settings, and what it must not change while it goes on.

Invariant: two experiments of one fingerprint give every item the same result, up to what hardware
and versions do to it.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from hopscope.lab.dataset import Order
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Record, digest
from hopscope.store.experiment_records import Arm, Claimed, Experiment


class Settings(Record):
    """An experiment as it was asked for, resolved: from this and its arms all is built again."""

    data: str
    """The file of questions, in full, or the name of embedded ones."""
    form: str
    """Of the file."""
    digest: str
    """Of its questions."""
    order: Order = "file"
    """In which they are asked; experiments of before this was a setting have them as in the
    file."""
    limit: int | None = None
    """Only so many of them, the first in that order."""
    sample_ids: tuple[str, ...] = ()
    """Only these."""
    corpus: str
    """The expression that names what is searched."""
    reader: str
    """As named, without revision."""
    entailment: str
    seed: int
    samples: int
    meters: tuple[str, ...]
    """None when nothing is measured."""
    rules: tuple[str, ...]
    options: dict[str, str] = Field(default_factory=dict)
    """Of meters and rules: `METER.KEY` to text."""
    deterministic: bool = False


class Models(Record):
    """What really answers and judges: names with revisions."""

    reader: str
    retriever: str
    """With the fingerprint of the corpus."""
    entailment: str


FREE = frozenset({"data", "form", "order", "limit", "sample_ids"})
"""Settings that may change while an experiment goes on, since no question's result depends on them:
the same questions can lie elsewhere, and more or fewer of them be asked."""
NAMES = frozenset({"corpus", "reader", "entailment"})
"""Settings that name models. What counts is what they turn out to be: an index can be built again,
a model trained on, a folder moved."""


def plan(name: str, settings: Settings, models: Models, arms: Sequence[Arm]) -> Experiment:
    """The experiment, as the store keeps it."""
    return Experiment(
        name=name,
        settings=settings.model_dump(mode="json"),
        **models.model_dump(),
        seed=settings.seed,
        fingerprint=_fingerprint(settings, models),
        created=datetime.now(UTC),
        arms=tuple(arms),
    )


def check(
    known: Experiment,
    settings: Settings,
    models: Models | None = None,
    *,
    arms: Sequence[Arm] = (),
) -> None:
    """Whether an experiment can go on with these settings and, once they are known, models; and
    with these arms, where it has them.

    Raises:
        UsageError: it was begun otherwise; the message says in what.
    """
    then = {**known.settings, **known.model_dump(include=set(Models.model_fields))}
    for key, value in _fixed(settings, models).items():
        if then.get(key) != value:
            what = "data, whose digest is" if key == "digest" else key
            raise UsageError(
                f"the experiment {known.name} was begun with the {what} {then.get(key)!r} and "
                f"cannot go on with {value!r}: give the former, or another --name"
            )
    begun = {arm.label: arm for arm in known.arms}
    for arm in arms:
        begun.get(arm.label, arm).check(arm)


def same_names(known: Experiment, settings: Settings) -> bool:
    """Whether models are named as they were."""
    return all(known.settings.get(key) == getattr(settings, key) for key in NAMES)


def run_id(name: str, claimed: Claimed) -> str:
    """Of the run of an item of the experiment of that name; the same however often it is tried, so
    that the last try stays."""
    return digest(name, claimed.entry.hash, claimed.arm.label)[:32]


def _fingerprint(settings: Settings, models: Models) -> str:
    return digest(json.dumps(_fixed(settings, models), sort_keys=True, ensure_ascii=False))


def _fixed(settings: Settings, models: Models | None) -> dict[str, Any]:
    """What results depend on."""
    found = settings.model_dump(mode="json", exclude=set(FREE | NAMES))
    return found if models is None else {**found, **models.model_dump()}
