"""All that answers questions and measures the answers, built from what a user named."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from hopscope.cli import render, retrieval, wiring
from hopscope.cli.appraise import Appraiser, Measuring
from hopscope.cli.arms import pinned
from hopscope.lab.experiment import Models, Settings, run_id
from hopscope.lab.workers import Done
from hopscope.runtime.errors import HopscopeError
from hopscope.runtime.ports import Entailment, Reader
from hopscope.runtime.run import Workflow, run
from hopscope.runtime.state import Deps
from hopscope.runtime.types import RunError
from hopscope.store.experiment_records import Arm, Claimed

SERVED = frozenset({"openai"})
"""Readers that ask a server, which gathers requests itself."""


@dataclass(frozen=True)
class Opening:
    """How a worker makes its bench: plain data that another process can be sent."""

    settings: Settings
    name: str
    """Of the experiment."""
    arms: tuple[Arm, ...]
    """Those asked for; the experiment may have more."""
    threads: int = 1
    """How many will use the bench at the same time."""

    @contextmanager
    def __call__(self) -> Iterator["Bench"]:
        from hopscope.tracing.telemetry import captures_content, telemetry

        settings = self.settings
        judge = wiring.entailment(settings.entailment)
        with self._reader() as reader, telemetry(warn=render.note):
            deps = Deps(
                reader=reader,
                retriever=retrieval.retriever(settings.corpus, reader, seed=settings.seed),
                entailment=judge,
                seed=settings.seed,
                capture_content=captures_content(),
            )
            bench = Bench(self.name, deps, reader, judge, measuring(settings))
            for arm in self.arms:
                bench.system(arm)  # tells what is wrong before any question is asked
            try:
                yield bench
            finally:
                retrieval.tell_cut(deps.retriever)

    @contextmanager
    def _reader(self) -> Iterator[Reader]:
        """The reader; for threads one that computes together what they ask for."""
        named = self.settings.reader
        reader = wiring.reader(named)
        if self.threads == 1 or named.partition(":")[0] in SERVED:
            yield reader
            return
        from hopscope.runtime.readers._scheduler import ScheduledReader

        deterministic = self.settings.deterministic
        with ScheduledReader(reader, callers=self.threads, deterministic=deterministic) as shared:
            yield shared


def measuring(settings: Settings) -> Measuring:
    return Measuring(
        samples=settings.samples,
        seed=settings.seed,
        options=settings.options,
        meters=settings.meters,
        rules=settings.rules,
    )


@dataclass
class Bench:
    """Does items of an experiment. Threads may share it."""

    name: str
    deps: Deps
    reader: Reader
    judge: Entailment
    measuring: Measuring
    _systems: dict[str, tuple[Workflow, Deps]] = field(default_factory=dict)

    @property
    def models(self) -> Models:
        return Models(
            reader=self.reader.name,
            retriever=self.deps.retriever.name,
            entailment=self.judge.name,
        )

    def do(self, claimed: Claimed) -> Done:
        """Run, then measure what there is of the run, failed or not."""
        from hopscope.tracing.evaluators import emit

        workflow, deps = self.system(claimed.arm)
        result = run(workflow, claimed.entry.question, deps, run_id=run_id(self.name, claimed))
        if not result.steps or not self.measuring.meters:
            return Done(result, error=result.error)
        # A new one each time: what it remembered would make the cost of a question depend on which
        # were asked before it.
        appraiser = Appraiser(self.reader, self.judge, self.measuring)
        try:
            credits, appraisal = appraiser.appraise(result)
        except HopscopeError as error:
            told = RunError(type=type(error).__name__, message=f"not measured: {error}")
            return Done(result, error=result.error or told)
        emit(result, credits, capture=self.deps.capture_content)
        return Done(result, tuple(credits), (appraisal,), result.error)

    def system(self, arm: Arm) -> tuple[Workflow, Deps]:
        """What answers for an arm, and with what: its policy and limits are its own.

        Raises:
            UsageError: the policy does not fit the workflow or the reader, or a limit in money has
                no price.
        """
        if arm.label not in self._systems:
            options = arm.settings["options"]
            assert isinstance(options, Mapping)
            spends, name = pinned(arm), self.reader.name
            deps = replace(
                self.deps,
                policy=spends.policy_for(workflow=arm.workflow, reader_name=name),
                ledger=spends.ledger(name),
            )
            self._systems[arm.label] = wiring.rebuilt(arm.workflow, options), deps
        return self._systems[arm.label]
