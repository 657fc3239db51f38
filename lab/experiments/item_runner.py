"""The runner of items: models, retriever and meters, built from an experiment's settings."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from hopscope.api import parts, retrieval
from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.lab.experiments import concurrency
from hopscope.lab.experiments.arms import component, pinned
from hopscope.lab.experiments.concurrency import ONE, Concurrency, Situation
from hopscope.lab.experiments.experiment import ExperimentSettings, Models, run_id
from hopscope.lab.experiments.workers import ItemResult
from hopscope.runtime import code_files, entry_points
from hopscope.runtime.code_files import CodeFile
from hopscope.runtime.errors import HopscopeError
from hopscope.runtime.execution.run import Exited, Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Entailment, Reader
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import RunError
from hopscope.runtime.wrappers.kept_reader import KeptReader
from hopscope.store.experiments.records import Arm, ClaimedItem

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ItemRunnerFactory:
    """Makes the runner of a worker: plain data that can be sent to another process."""

    settings: ExperimentSettings
    name: str
    """Name of the experiment."""
    arms: tuple[Arm, ...]
    """The requested arms; the experiment may have more."""
    threads: int | None = 1
    """Number of threads that use the runner at the same time; None to choose it."""
    code: tuple[CodeFile, ...] = ()
    """Code files that define components named by the settings and arms."""
    questions: int = 1
    """Number of items that its worker can expect."""
    workers: int = 1
    """Number of workers that share the machine."""
    trace_content: bool = True
    """Whether spans carry questions, prompts, passages and answers."""

    @contextmanager
    def __call__(self) -> Iterator["ItemRunner"]:
        from hopscope.tracing.spans.telemetry import captures_content, telemetry

        settings = self.settings
        code_files.introduce(self.code)
        judge = parts.entailment(settings.entailment)
        named, corpus = Spec.parse(settings.reader), retrieval.parse(settings.corpus)
        own = parts.reader(named)
        if self.threads is None:
            at_once = concurrency.chosen(own, self._situation(named))
        else:
            at_once = Concurrency(self.threads, "--threads")
        sharing = shared(own, at_once.threads, named=named, deterministic=settings.deterministic)
        with sharing as reader, telemetry(warn=_log.warning):
            deps = Deps(
                reader=reader,
                retriever=retrieval.retriever(corpus, reader, seed=settings.seed),
                entailment=judge,
                seed=settings.seed,
                capture_content=self.trace_content and captures_content(),
            )
            runner = ItemRunner(
                self.name, deps, reader, judge, measuring(settings), at_once=at_once
            )
            for arm in self.arms:
                runner.system(arm)  # reports errors before the first question
            try:
                yield runner
            finally:
                retrieval.tell_cut(deps.retriever)

    def _situation(self, reader: Spec) -> Situation:
        settings = self.settings
        parts = (settings.corpus, settings.entailment, *settings.meters, *map(str, self.arms))
        named = " ".join(parts)
        return Situation(
            reader=reader,
            foreign=bool(self.code) or entry_points.occur(named),
            served=any(service in named for service in concurrency.SERVICES),
            timed=any(pinned(arm).limits.seconds is not None for arm in self.arms),
            questions=self.questions,
            workers=self.workers,
            deterministic=settings.deterministic,
        )


@contextmanager
def shared(
    reader: Reader, threads: int, *, named: Spec | None, deterministic: bool = False
) -> Iterator[Reader]:
    """The reader; for several threads wrapped to batch their requests, unless the reader `named`
    does so itself."""
    if threads == 1 or (named is not None and named.name in concurrency.SERVED):
        yield reader
        return
    if isinstance(reader, KeptReader):  # what is known waits for no batch
        with shared(reader.inner, threads, named=named, deterministic=deterministic) as inner:
            yield reader.around(inner)
        return
    from hopscope.runtime.wrappers.scheduled_reader import ScheduledReader

    with ScheduledReader(reader, callers=threads, deterministic=deterministic) as scheduled:
        yield scheduled


def measuring(settings: ExperimentSettings) -> Measuring:
    return Measuring(
        samples=settings.samples,
        seed=settings.seed,
        options=settings.options,
        meters=settings.meters,
        rules=settings.rules,
    )


@dataclass
class ItemRunner:
    """Runs items of an experiment. Threads may share it."""

    name: str
    deps: Deps
    reader: Reader
    judge: Entailment
    measuring: Measuring
    live: Mapping[str, Workflow] = field(default_factory=dict)
    """Workflows in memory, by arm label."""
    at_once: Concurrency = ONE
    """The number of threads that share it, with the reason."""
    _systems: dict[str, tuple[Workflow, Deps]] = field(default_factory=dict)

    @property
    def models(self) -> Models:
        return Models(
            reader=self.reader.name,
            retriever=self.deps.retriever.name,
            entailment=self.judge.name,
        )

    def do(self, claimed: ClaimedItem) -> ItemResult:
        """Run the item, then measure the run, even a failed one."""
        from hopscope.tracing.spans.evaluators import emit

        workflow, deps = self.system(claimed.arm)
        try:
            result = run(workflow, claimed.entry.question, deps, run_id=run_id(self.name, claimed))
        except Exited as exited:  # fails one item; the others go on
            result = exited.run
        if not result.steps or not self.measuring.meters:
            return ItemResult(result, error=result.error)
        # A new one each time: with a shared memory, the cost of a question would depend on the
        # questions before it.
        appraiser = Appraiser(self.reader, self.judge, self.measuring)
        try:
            credits, appraisal, games = appraiser.appraise(result)
        except HopscopeError as error:
            unmeasured = RunError(type=type(error).__name__, message=f"not measured: {error}")
            return ItemResult(result, error=result.error or unmeasured)
        emit(result, credits, capture=self.deps.capture_content)
        return ItemResult(result, tuple(credits), (appraisal,), result.error, tuple(games))

    def system(self, arm: Arm) -> tuple[Workflow, Deps]:
        """The workflow of an arm, and its dependencies with the arm's own policy and limits.

        Raises:
            UsageError: the policy does not fit the workflow or the reader, or a limit in money has
                no price.
        """
        if arm.label not in self._systems:
            options = arm.settings["options"]
            assert isinstance(options, Mapping)
            spending, name = pinned(arm), self.reader.name
            workflow = self.live.get(arm.label) or parts.rebuilt(component(arm), options)
            prompts = (workflow.prompts or self.deps.prompts).name
            deps = replace(
                self.deps,
                policy=spending.policy_for(
                    workflow=arm.workflow, reader_name=name, prompts=prompts
                ),
                ledger=spending.ledger(name),
            )
            self._systems[arm.label] = workflow, deps
        return self._systems[arm.label]
