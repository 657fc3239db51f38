"""The engine of experiments: whatever one item brings, the others are done."""

from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from hopscope.lab.experiments import engine
from hopscope.lab.experiments.workers import ItemResult, Ready
from hopscope.runtime.types import Question, Run, Step, Usage
from hopscope.store.experiments.records import Arm, ClaimedItem, DatasetEntry, Experiment
from hopscope.store.store import Store

NOW = "2026-01-01T00:00:00Z"


class AtOnce:
    """An executor that has done what it is given: of the first question in a run with a number
    that no database takes."""

    def __init__(self) -> None:
        self.done: list[tuple[ClaimedItem, ItemResult]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

    def first(self) -> Ready:
        raise NotImplementedError

    @property
    def idle(self) -> int:
        return 1 - len(self.done)

    @property
    def busy(self) -> int:
        return len(self.done)

    def submit(self, claimed: ClaimedItem) -> None:
        tokens = 2**70 if claimed.position == 0 else 1
        step = Step.model_validate(
            {"index": 0, "name": "answer", "kind": "generate", "started": NOW, "seconds": 0.0}
        ).model_copy(update={"usage": Usage(input_tokens=tokens)})
        run = Run.model_validate(
            {"id": f"run-{claimed.position}", "question": claimed.entry.question,
             "workflow": "w", "steps": (step,), "started": NOW}
        )  # fmt: skip
        self.done.append((claimed, ItemResult(run)))

    def wait(self, seconds: float) -> list[tuple[ClaimedItem, ItemResult]]:
        found, self.done = self.done, []
        return found


def test_what_the_database_does_not_take_is_a_failed_row(tmp_path: Path) -> None:
    entries = [DatasetEntry(question=Question(text=f"Who is {i}?")) for i in range(3)]
    experiment = Experiment.model_validate(
        {"name": "e", "settings": {}, "reader": "r", "retriever": "b", "entailment": "l", "seed": 0,
         "fingerprint": "f", "created": NOW, "arms": (Arm(label="w", workflow="w", settings={}),)}
    )  # fmt: skip
    told: list[str | None] = []

    def report(_: ClaimedItem, done: ItemResult) -> None:
        told.append(done.error and done.error.type)

    with Store.open(tmp_path / "runs.db") as store:
        store.experiments.add(experiment, entries)
        session = store.experiments.begin_session("e", owner="here/1", environment={})
        stop = engine.Stop(lambda: pytest.fail("nobody wanted it to stop"))
        engine.work(store.experiments, session, AtOnce(), stop=stop, report=report)
        items = store.experiments.items("e")
    assert told == ["UnstorableError", None, None]
    assert [item.status for item in items] == ["failed", "ok", "ok"]
    assert items[0].error
    assert "too large" in items[0].error.message
