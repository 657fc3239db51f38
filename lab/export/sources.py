"""The sources of an export: the finished runs of an experiment, its reader and its meters."""

from collections.abc import Iterator, Mapping

from hopscope.api import parts
from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.runtime.ports import Reader, UtilityMeter
from hopscope.runtime.types import Question, Run
from hopscope.store.experiments.records import Experiment, Item
from hopscope.store.store import Store


def done(store: Store, experiment: str) -> Iterator[tuple[Item, Run | None]]:
    """The finished items one at a time, each with its run if it has one."""
    for item in store.experiments.items(experiment):
        if item.status in ("ok", "failed"):
            yield item, store.load(item.outcome.run_id) if item.outcome else None


def answered(store: Store, experiment: str, label: str) -> tuple[list[tuple[Item, Run]], int]:
    """The finished items of a workflow with an answer, and the number of those without."""
    finished = [(item, run) for item, run in done(store, experiment) if item.arm == label]
    kept = [(item, run) for item, run in finished if run is not None and run.answer is not None]
    return kept, len(finished) - len(kept)


def runs_by_question(store: Store, experiment: str) -> dict[Question, list[Run]]:
    """The runs of each finished question."""
    found: dict[Question, list[Run]] = {}
    for item, run in done(store, experiment):
        found.setdefault(item.question, []).extend([run] if run else [])
    return found


def reader_of(experiment: Experiment, named: str | None, thinking: str | None) -> str:
    """The text of the named reader, else of the experiment's own.

    Raises:
        UsageError: as `parts.reader_or_own`.
    """
    own = str(experiment.settings.get("reader") or parts.TINY)
    return parts.reader_or_own(named, own, thinking)


def meter(
    name: str,
    *,
    reader: str,
    entailment: str,
    samples: int,
    seed: int,
    options: Mapping[str, str],
) -> tuple[Reader, UtilityMeter]:
    """The reader, and the meter that uses it.

    Raises:
        UsageError: there is no such meter, option or model.
    """
    measuring = Measuring(samples=samples, seed=seed, options=options, meters=[name], rules=[])
    measuring.parse()
    appraiser = Appraiser(parts.reader(reader), parts.entailment(entailment), measuring)
    return appraiser.reader, appraiser.meters[0]
