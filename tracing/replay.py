"""Games whose evidence comes from running the workflow again without the absent (mode `replay`).

A frozen game keeps the later queries as they were. Here the workflow runs again, from the same
question, options and seed, and reacts to what is missing: it may ask otherwise, find the passage by
another way, stop sooner or go on for longer. What that run's steps brought is the coalition's
evidence. Which passages go missing is the counterfactual's to say, see `games`:

    empty       what the absent found first is taken out of all search results
    random      and its stand-ins are put in the same places
    leave-out   only the search of the absent step itself finds nothing, or not the absent passage;
                a step is known by its number

The coalition of all is the recorded run. A run that fails leaves its coalition unmeasured.
Repeated runs are not kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from langgraph.config import get_config

from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Reader, Retriever
from hopscope.runtime.run import Workflow
from hopscope.runtime.run import run as run_workflow
from hopscope.runtime.stages import Note, Noting
from hopscope.runtime.state import Deps
from hopscope.runtime.types import Hit, Passage, Run
from hopscope.tracing.coalitions import Coalition, Unplayed, Whom
from hopscope.tracing.games import Counterfactual, FrozenGame, contributions

ELSEWHERE = "the workflow got what was withheld from another source than the run's retriever"


@dataclass(frozen=True)
class _Withheld:
    """What a search does not find."""

    keys: frozenset[str]
    """Of passages."""
    whole_steps: frozenset[int] = frozenset()
    """Steps that find nothing at all."""
    only_in: int | None = None
    """The step that does not find the `keys`; None when none does."""

    def hides(self, key: str, step: int) -> bool:
        if step in self.whole_steps:
            return True
        return key in self.keys and self.only_in in (None, step)


@dataclass(frozen=True)
class _WithholdingRetriever:
    """The run's retriever, which does not find what is withheld."""

    inner: Retriever
    withheld: _Withheld
    stand_ins: Mapping[str, Passage]

    @property
    def name(self) -> str:
        return self.inner.name

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        step = _step_now()
        return [
            [found for hit in ranking for found in self._instead(hit, step)]
            for ranking in self.inner.search(queries, k=k)
        ]

    def _instead(self, hit: Hit, step: int) -> list[Hit]:
        if not self.withheld.hides(hit.passage.key, step):
            return [hit]
        stand_in = self.stand_ins.get(hit.passage.key)
        return [] if stand_in is None else [hit.model_copy(update={"passage": stand_in})]


class _NotingRetriever(_WithholdingRetriever):
    """The same over a retriever with stages, whose record the step seam asks for."""

    def recorded(
        self,
        recording: Callable[[Reader], Reader],
        note: Callable[[Note], None],
        *,
        capture: bool,
    ) -> Retriever:
        """With what its stages ask and do written down; see `runtime.stages`."""
        inner = self.inner
        assert isinstance(inner, Noting)
        return replace(self, inner=inner.recorded(recording, note, capture=capture))


def _step_now() -> int:
    """Index of the step that is being taken: LangGraph counts them from 1."""
    return int(get_config()["metadata"]["langgraph_step"]) - 1


@dataclass(frozen=True)
class ReplayGame:
    """The players of a frozen game, with the evidence of repeated runs."""

    frozen: FrozenGame
    run: Run
    workflow: Workflow
    deps: Deps
    """The ports that the run was made with."""
    counterfactual: Counterfactual
    _played: dict[Coalition, tuple[Passage, ...] | Unplayed] = field(default_factory=dict)

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

    def whom(self, member: int) -> Whom:
        return self.frozen.whom(member)

    def evidence(self, coalition: Coalition) -> tuple[Passage, ...] | Unplayed:
        """What the workflow brings without those who are absent.

        Raises:
            KeyboardInterrupt: Ctrl-C, which a run keeps to itself, stops the whole game.
        """
        absent = frozenset(self.players) - coalition
        if not absent:
            return self.frozen.evidence(coalition)
        if absent not in self._played:
            self._played[absent] = self._play(absent)
        return self._played[absent]

    def _play(self, absent: Coalition) -> tuple[Passage, ...] | Unplayed:
        withheld = self._withheld(absent)
        made = (
            _NotingRetriever if isinstance(self.deps.retriever, Noting) else _WithholdingRetriever
        )
        retriever = made(self.deps.retriever, withheld, self.counterfactual.stand_ins)
        again = run_workflow(
            self.workflow, self.run.question, replace(self.deps, retriever=retriever)
        )
        if again.status == "interrupted":
            raise KeyboardInterrupt
        if again.error is not None:
            return Unplayed(f"the repeated run failed: {again.error.message}")
        evidence = tuple(p for brought in contributions(again).values() for p in brought)
        leaks = withheld.only_in is None and any(p.key in withheld.keys for p in evidence)
        if leaks or any(s.ranked or s.new for s in again.steps if s.index in withheld.whole_steps):
            return Unplayed(ELSEWHERE)
        return evidence

    def _withheld(self, absent: Coalition) -> _Withheld:
        kept = self.counterfactual.kind == "leave-out"
        if self.step is not None:
            keys = frozenset(self.frozen.keys[member] for member in absent)
            return _Withheld(keys, only_in=self.step if kept else None)
        if kept:
            return _Withheld(frozenset(), whole_steps=absent)
        first = _found_first(self.run)
        return _Withheld(frozenset(key for step in absent for key in first[step]))


def check(run: Run, workflow: Workflow, deps: Deps) -> None:
    """Repeat a run with nothing withheld: without this, a difference could come from anything.

    Raises:
        UsageError: it is not the same again.
        KeyboardInterrupt: Ctrl-C.
    """
    for port, here, there in (
        ("reader", deps.reader.name, run.reader),
        ("corpus", deps.retriever.name, run.retriever),
    ):
        if here != there:
            raise UsageError(
                f"the run was made with the {port} {there}, not with {here}: to run it again, give "
                f"that with --{port}"
            )
    again = run_workflow(workflow, run.question, deps)
    if again.status == "interrupted":
        raise KeyboardInterrupt
    what_to_do = _what_to_do(run)
    for before, after in zip(_deeds(run), _deeds(again), strict=False):
        if before != after:
            raise UsageError(
                f"the run does not repeat itself: step {before[0]} {before[1]} was another; "
                f"{what_to_do}"
            )
    if len(run.steps) != len(again.steps):
        raise UsageError(
            f"the run does not repeat itself: {len(run.steps)} steps then, {len(again.steps)} now; "
            f"{what_to_do}"
        )


def _what_to_do(run: Run) -> str:
    """About a run that was another when it was repeated."""
    decided = [step.decision.policy for step in run.steps if step.decision]
    stopped = (run.stop_reason or "").startswith("budget_")
    if decided or stopped:
        by = f"the policy {decided[0]}" if decided else "a limit"
        return f"{by} had a say in it, which repeated runs go without: take --mode frozen"
    return "give the --entailment it was made with, and a reader that computes the same again"


def _deeds(run: Run) -> list[tuple[object, ...]]:
    return [
        (s.index, s.name, s.query, s.output, tuple(p.content_hash for p in s.evidence))
        for s in run.steps
    ]


def _found_first(run: Run) -> dict[int, frozenset[str]]:
    """The passages each step found or brought that none before it had, shown or not."""
    seen: set[str] = set()
    found: dict[int, frozenset[str]] = {}
    for step in run.steps:
        keys = {*step.new, *(hit.passage.key for hit in step.ranked)}
        found[step.index] = frozenset(keys - seen)
        seen |= keys
    return found
