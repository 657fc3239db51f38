"""The settings of an experiment, and those that must stay the same when it continues.

Invariant: two experiments of one fingerprint give every item the same result, apart from effects
of hardware and versions.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from hopscope.lab.dataset.ordering import Order
from hopscope.runtime import code_files
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Record, digest
from hopscope.store.experiments.records import Arm, ClaimedItem, Experiment


class ExperimentSettings(Record):
    """The resolved settings of an experiment: with its arms, all that is needed to repeat it."""

    data: str
    """The full path of the file of questions, or the name of an embedded dataset."""
    form: str
    """Format of the file."""
    digest: str
    """Hash of its questions."""
    order: Order = "file"
    """Order of the questions; older experiments, without this setting, have the file's order."""
    limit: int | None = None
    """Number of questions, the first in that order; None for all."""
    sample_ids: tuple[str, ...] = ()
    """Ids of questions; empty for all."""
    corpus: str
    """The expression that names the corpus or index."""
    reader: str
    """Name as the user gave it, without revision."""
    entailment: str
    seed: int
    samples: int
    meters: tuple[str, ...]
    """None when nothing is measured."""
    rules: tuple[str, ...]
    options: dict[str, str] = Field(default_factory=dict)
    """Options of meters and rules: `METER.KEY` to text."""
    deterministic: bool = False


class Models(Record):
    """The loaded models: names with revisions."""

    reader: str
    retriever: str
    """With the fingerprint of the corpus."""
    entailment: str


FREE = frozenset({"data", "form", "order", "limit", "sample_ids"})
"""Settings that may change when an experiment continues, since no question's result depends on
them: the file may move, and more or fewer questions may be asked."""
NAMES = frozenset({"corpus", "reader", "entailment"})
"""Settings that name models. The loaded models count, not the names: an index may be built again,
a model trained further, a folder moved."""


def plan(
    name: str, settings: ExperimentSettings, models: Models, arms: Sequence[Arm]
) -> Experiment:
    """The experiment as a record for the store."""
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
    settings: ExperimentSettings,
    models: Models | None = None,
    *,
    arms: Sequence[Arm] = (),
) -> None:
    """Check that an experiment can continue with these settings, models (once they are loaded) and
    arms; arms that it does not have are accepted.

    Raises:
        UsageError: it began with others; the message names the difference.
    """
    then = {**known.settings, **known.model_dump(include=set(Models.model_fields))}
    for key, value in _fixed(settings, models).items():
        if then.get(key) != value:
            if key == "digest":
                raise UsageError(
                    f"the experiment {known.name} began with other questions, those of "
                    f"{then.get('data')}: give them as they were, or another name (--name)"
                )
            raise UsageError(
                f"the experiment {known.name} began with the {key} {then.get(key)!r} and "
                f"cannot continue with {value!r}: give the former, or another name (--name)"
            )
    for key in sorted(NAMES):
        hashes = code_files.hashes(str(known.settings.get(key)))
        for file, hash in code_files.hashes(getattr(settings, key)).items():
            if hashes.get(file, hash) != hash:
                raise UsageError(
                    f"{file} has changed since the experiment {known.name} began: "
                    "restore it, or give another name (--name)"
                )
    known_arms = {arm.label: arm for arm in known.arms}
    for arm in arms:
        known_arms.get(arm.label, arm).check(arm)


def same_names(known: Experiment, settings: ExperimentSettings) -> bool:
    """Whether the settings name the models as the stored experiment does."""
    return all(known.settings.get(key) == getattr(settings, key) for key in NAMES)


def run_id(name: str, claimed: ClaimedItem) -> str:
    """Run id of an item of the experiment of that name; the same for each attempt, so that the last
    attempt replaces the others."""
    return digest(name, claimed.entry.hash, claimed.arm.label)[:32]


def _fingerprint(settings: ExperimentSettings, models: Models) -> str:
    return digest(json.dumps(_fixed(settings, models), sort_keys=True, ensure_ascii=False))


def _fixed(settings: ExperimentSettings, models: Models | None) -> dict[str, Any]:
    """The settings and models that results depend on."""
    found = settings.model_dump(mode="json", exclude=set(FREE | NAMES))
    return found if models is None else {**found, **models.model_dump()}
