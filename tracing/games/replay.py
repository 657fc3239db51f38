"""Games whose evidence comes from running the workflow again without absent players (mode
`replay`).

A frozen game keeps the later queries as they were. Here the workflow runs again, from the same
question, options and seed, and reacts to the missing passages: it may ask another query, retrieve
the passage in another step, stop sooner or go on for longer. The passages that this run's steps
brought are the coalition's evidence. The counterfactual names the missing passages, see `games`:

    empty       passages that absent players retrieved first are removed from all search results
    random      the same, with stand-ins in their places
    leave-out   only the search of the absent step itself returns nothing, or not the absent
                passage; a step is identified by its index

The coalition of all players is the recorded run. A run that fails leaves its coalition unmeasured.
Repeated runs are not stored.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from langgraph.config import get_config

from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution.run import Watched, Workflow
from hopscope.runtime.execution.run import run as run_workflow
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Prompts, Reader, Retriever
from hopscope.runtime.stages import RecordableRetriever, StageNote
from hopscope.runtime.types import Hit, Passage, Run
from hopscope.tracing.games.coalitions import Coalition, GameMember, MissingEvidence
from hopscope.tracing.games.frozen import Counterfactual, FrozenGame, contributions

ELSEWHERE = "the workflow got what was withheld from another source than the run's retriever"


@dataclass(frozen=True)
class _HiddenPassages:
    """The passages that are removed from search results."""

    keys: frozenset[str]
    """Keys of passages."""
    whole_steps: frozenset[int] = frozenset()
    """Steps whose searches return nothing."""
    only_in: int | None = None
    """The only step where the `keys` are removed; None for all steps."""

    def hides(self, key: str, step: int) -> bool:
        if step in self.whole_steps:
            return True
        return key in self.keys and self.only_in in (None, step)


@dataclass(frozen=True)
class _WithholdingRetriever:
    """The run's retriever without the hidden passages."""

    inner: Retriever
    withheld: _HiddenPassages
    stand_ins: Mapping[str, Passage]

    @property
    def name(self) -> str:
        return self.inner.name

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        step = _step_now()
        return [
            [kept for hit in ranking for kept in self._replace(hit, step)]
            for ranking in self.inner.search(queries, k=k)
        ]

    def _replace(self, hit: Hit, step: int) -> list[Hit]:
        if not self.withheld.hides(hit.passage.key, step):
            return [hit]
        stand_in = self.stand_ins.get(hit.passage.key)
        return [] if stand_in is None else [hit.model_copy(update={"passage": stand_in})]


class _RecordableWithholdingRetriever(_WithholdingRetriever):
    """The same over a retriever with stages, which `@step` records."""

    def recorded(
        self,
        recording: Callable[[Reader], Reader],
        note: Callable[[StageNote], None],
        *,
        capture: bool,
        prompts: Prompts,
    ) -> Retriever:
        """This retriever with its stages recorded; see `runtime.stages`."""
        inner = self.inner
        assert isinstance(inner, RecordableRetriever)
        seen = inner.recorded(recording, note, capture=capture, prompts=prompts)
        return replace(self, inner=seen)


def _step_now() -> int:
    """Index of the current step: LangGraph counts steps from 1."""
    return int(get_config()["metadata"]["langgraph_step"]) - 1


@dataclass(frozen=True)
class ReplayGame:
    """The players of a frozen game, with the evidence of repeated runs."""

    frozen: FrozenGame
    run: Run
    workflow: Workflow
    deps: Deps
    """The run's ports."""
    counterfactual: Counterfactual
    _played: dict[Coalition, tuple[Passage, ...] | MissingEvidence] = field(default_factory=dict)

    @property
    def step(self) -> int | None:
        return self.frozen.step

    @property
    def members(self) -> tuple[int, ...]:
        return self.frozen.members

    @property
    def players(self) -> tuple[int, ...]:
        return self.frozen.players

    @property
    def remark(self) -> str:
        return f"{self.frozen.remark}, mode=replay"

    def identify(self, member: int) -> GameMember:
        return self.frozen.identify(member)

    def brings(self, member: int) -> frozenset[str]:
        return self.frozen.brings(member)

    def evidence(self, coalition: Coalition) -> tuple[Passage, ...] | MissingEvidence:
        """The evidence that the workflow brings without the absent players.

        Raises:
            KeyboardInterrupt: Ctrl-C, which only interrupts a run, stops the whole game.
        """
        absent = frozenset(self.players) - coalition
        if not absent:
            return self.frozen.evidence(coalition)
        if absent not in self._played:
            self._played[absent] = self._play(absent)
        return self._played[absent]

    def _play(self, absent: Coalition) -> tuple[Passage, ...] | MissingEvidence:
        withheld = self._withheld(absent)
        made = (
            _RecordableWithholdingRetriever
            if isinstance(self.deps.retriever, RecordableRetriever)
            else _WithholdingRetriever
        )
        retriever = made(self.deps.retriever, withheld, self.counterfactual.stand_ins)
        again = run_workflow(
            self.workflow, self.run.question, replace(self.deps, retriever=retriever)
        )
        if again.status == "interrupted":
            raise KeyboardInterrupt
        if again.error is not None:
            return MissingEvidence(f"the repeated run failed: {again.error.message}")
        evidence = tuple(p for brought in contributions(again).values() for p in brought)
        leaks = withheld.only_in is None and any(p.key in withheld.keys for p in evidence)
        if leaks or any(s.ranked or s.new for s in again.steps if s.index in withheld.whole_steps):
            return MissingEvidence(ELSEWHERE)
        return evidence

    def _withheld(self, absent: Coalition) -> _HiddenPassages:
        kept = self.counterfactual.kind == "leave-out"
        if self.step is not None:
            keys = frozenset(self.frozen.keys[member] for member in absent)
            return _HiddenPassages(keys, only_in=self.step if kept else None)
        if kept:
            return _HiddenPassages(frozenset(), whole_steps=absent)
        first = _retrieved_first(self.run)
        return _HiddenPassages(frozenset(key for step in absent for key in first[step]))


def check(run: Run, workflow: Workflow, deps: Deps) -> None:
    """Repeat a run with nothing hidden, so that later differences come from the hidden passages.

    Raises:
        UsageError: the repeated run differs, or the workflow's nodes are not written with @step.
        KeyboardInterrupt: Ctrl-C.
    """
    if isinstance(workflow.graph, Watched):
        raise UsageError(
            f"mode replay hides passages from the run's retriever step by step, and the nodes of "
            f"{workflow.name} are not written with @step: use mode='frozen' "
            "(--mode frozen)"
        )
    for port, here, there in (
        ("reader", deps.reader.name, run.reader),
        ("corpus", deps.retriever.name, run.retriever),
    ):
        if here != there:
            raise UsageError(
                f"the run used the {port} {there}, not {here}: to run it again, give the run's own "
                f"{port} (--{port})"
            )
    again = run_workflow(workflow, run.question, deps)
    if again.status == "interrupted":
        raise KeyboardInterrupt
    advice = _advice(run)
    for before, after in zip(_step_records(run), _step_records(again), strict=False):
        if before != after:
            raise UsageError(
                f"the run does not repeat itself: step {before[0]} {before[1]} differs; {advice}"
            )
    if len(run.steps) != len(again.steps):
        raise UsageError(
            f"the run does not repeat itself: {len(run.steps)} steps then, {len(again.steps)} now; "
            f"{advice}"
        )


def _advice(run: Run) -> str:
    """How to make a run repeatable that differed when it ran again."""
    decided = [step.decision.policy for step in run.steps if step.decision]
    stopped = (run.stop_reason or "").startswith("budget_")
    if decided or stopped:
        by = f"the policy {decided[0]}" if decided else "a limit"
        return f"{by} affected it, and repeated runs have none: use mode='frozen' (--mode frozen)"
    return "give the run's own entailment (--entailment), and a reader with repeatable results"


def _step_records(run: Run) -> list[tuple[object, ...]]:
    return [
        (s.index, s.name, s.query, s.output, tuple(p.content_hash for p in s.evidence))
        for s in run.steps
    ]


def _retrieved_first(run: Run) -> dict[int, frozenset[str]]:
    """The passages that each step was the first to retrieve or bring, shown or not."""
    seen: set[str] = set()
    first: dict[int, frozenset[str]] = {}
    for step in run.steps:
        keys = {*step.new, *(hit.passage.key for hit in step.ranked)}
        first[step.index] = frozenset(keys - seen)
        seen |= keys
    return first
