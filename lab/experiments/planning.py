"""The plan of an experiment: its questions and arms, checked as far as possible before a model is
loaded."""

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hopscope.api import parts, retrieval
from hopscope.api.presets import Presets
from hopscope.api.spending import Spending
from hopscope.lab.dataset import dataset
from hopscope.lab.dataset.ordering import Order
from hopscope.lab.experiments import experiment, item_runner
from hopscope.lab.experiments.arms import arms, component
from hopscope.lab.experiments.experiment import ExperimentSettings
from hopscope.runtime import code_files
from hopscope.runtime.errors import MissingDatabaseError, UsageError
from hopscope.runtime.texts.counting import counted
from hopscope.store.experiments.naming import named as named_experiment
from hopscope.store.experiments.records import Arm, DatasetEntry
from hopscope.store.store import Store

_log = logging.getLogger(__name__)


class ExperimentPlan(NamedTuple):
    """An experiment to begin or to continue."""

    name: str
    settings: ExperimentSettings
    arms: tuple[Arm, ...]
    """The arms to run now; the stored experiment may have more."""
    entries: tuple[DatasetEntry, ...]
    """The questions to run now."""


def resolve(
    data: str,
    *,
    named: Sequence[str],
    options: Mapping[str, str],
    presets: Presets,
    name: str | None,
    corpus: str,
    k: int | None,
    reader: str,
    entailment: str,
    meters: tuple[str, ...],
    rules: tuple[str, ...],
    samples: int,
    seed: int,
    order: Order | None,
    limit: int | None,
    sample_ids: tuple[str, ...],
    deterministic: bool,
    spend: Spending,
    db: str | None,
) -> ExperimentPlan:
    """The plan that names and texts describe. Without an `order` it takes that of the stored
    experiment of this name, so that a larger limit adds to its questions.

    Raises:
        UsageError: there is no such component or option.
        CorpusError: the data are broken; the message has the line.
    """
    own = {key: text for key, text in options.items() if "." not in key}
    retrieval.parse(corpus)
    compared = arms(named, own, presets=presets, corpus=corpus, k=k, spend=spend)
    presets.check(meters=meters, workflows=[arm.workflow for arm in compared])
    of_meters = {key: text for key, text in options.items() if key not in own}
    found = dataset.load(data)
    name = named_experiment(found.name if name is None else name)
    if found.replaced:
        _log.warning(
            f"{data}: {counted(found.replaced, 'question holds', 'questions hold')} half of a "
            "surrogate pair, such as \\ud83d alone; U+FFFD replaces it"
        )
    settings = ExperimentSettings(
        data=dataset.location(data),
        form=found.form,
        digest=found.digest,
        order=order or _order(name, db),
        limit=limit,
        sample_ids=sample_ids,
        corpus=corpus,
        reader=reader,
        entailment=parts.judging(entailment, presets.prompts),
        seed=seed,
        samples=samples,
        meters=meters,
        rules=rules,
        options={**presets.of_meters(meters), **of_meters},
        deterministic=deterministic,
    )
    return plan(name, settings, compared, found)


def repeat(known: str, *, name: str | None, db: str | None) -> ExperimentPlan:
    """The plan of a stored experiment, under another name.

    Raises:
        UsageError: there is no such experiment, or its questions have changed.
        CorpusError: the data are broken.
    """
    with Store.open(db, create=False) as store:
        before = store.experiments.find(known)
    code_files.require(" ".join([str(before.settings), *map(component, before.arms)]))
    settings = ExperimentSettings.model_validate(before.settings)
    found = dataset.load(settings.data)
    if found.digest != settings.digest:
        raise UsageError(f"{settings.data} no longer holds the questions that {known} asked")
    return plan(f"{known}-again" if name is None else name, settings, before.arms, found)


def plan(
    name: str, settings: ExperimentSettings, compared: Sequence[Arm], questions: dataset.Dataset
) -> ExperimentPlan:
    """
    Raises:
        UsageError: there is no such meter, rule, option or question, or the name cannot be used.
    """
    item_runner.measuring(settings).parse()
    chosen = questions.choose(limit=settings.limit, ids=settings.sample_ids, order=settings.order)
    return ExperimentPlan(named_experiment(name), settings, tuple(compared), tuple(chosen))


def is_stored(name: str, db: str | None) -> bool:
    """Whether the database has an experiment of this name."""
    try:
        with Store.open(db, create=False) as store:
            return store.experiments.known(name) is not None
    except MissingDatabaseError:
        return False


def is_finished(store: Store, plan: ExperimentPlan, *, retry_failed: bool) -> bool:
    """Whether the stored experiment has nothing left to do of the plan, as far as that shows before
    its models are loaded.

    Raises:
        UsageError: an experiment of this name began with other settings.
    """
    known = store.experiments.known(plan.name)
    if known is None:
        return False
    experiment.check(known, plan.settings, arms=plan.arms)
    progress = store.experiments.progress(known.name)
    if progress.pending + progress.running or (retry_failed and progress.failed):
        return False
    if any(arm not in known.arms for arm in plan.arms):
        return False
    if not experiment.same_names(known, plan.settings):
        return False  # whether they are the same models shows when they are loaded
    there = {(item.entry.hash, item.arm) for item in store.experiments.items(known.name)}
    return all((entry.hash, arm.label) in there for entry in plan.entries for arm in plan.arms)


def _order(name: str, db: str | None) -> Order:
    """That of the stored experiment of this name; a new one is stratified."""
    try:
        with Store.open(db, create=False) as store:
            known = store.experiments.known(name)
    except MissingDatabaseError:
        known = None
    if known is None:
        return "stratified"
    return "stratified" if known.settings.get("order") == "stratified" else "file"
