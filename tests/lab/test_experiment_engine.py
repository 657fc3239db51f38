"""The engine of experiments: whatever one item brings, the others are done."""

from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from hopscope.lab import experiment_engine
from hopscope.lab.workers import Done, Ready
from hopscope.runtime.types import Question, Run, Step, Usage
from hopscope.store.experiment_records import Arm, Claimed, Entry, Experiment
from hopscope.store.store import Store

NOW = "2026-01-01T00:00:00Z"


class AtOnce:
    """An executor that has done what it is given: of the first question in a run with a number
    that no database takes."""

    def __init__(self) -> None:
        self.done: list[tuple[Claimed, Done]] = []

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

    def submit(self, claimed: Claimed) -> None:
        tokens = 2**70 if claimed.position == 0 else 1
        step = Step.model_validate(
            {"index": 0, "name": "answer", "kind": "generate", "started": NOW, "seconds": 0.0}
        ).model_copy(update={"usage": Usage(input_tokens=tokens)})
        run = Run.model_validate(
            {"id": f"run-{claimed.position}", "question": claimed.entry.question,
             "workflow": "w", "steps": (step,), "started": NOW}
        )  # fmt: skip
        self.done.append((claimed, Done(run)))

    def wait(self, seconds: float) -> list[tuple[Claimed, Done]]:
        found, self.done = self.done, []
        return found


def test_what_the_database_does_not_take_is_a_failed_row(tmp_path: Path) -> None:
    entries = [Entry(question=Question(text=f"Who is {i}?")) for i in range(3)]
    experiment = Experiment.model_validate(
        {"name": "e", "settings": {}, "reader": "r", "retriever": "b", "entailment": "l", "seed": 0,
         "fingerprint": "f", "created": NOW, "arms": (Arm(label="w", workflow="w", settings={}),)}
    )  # fmt: skip
    told: list[str | None] = []

    def report(_: Claimed, done: Done) -> None:
        told.append(done.error and done.error.type)

    with Store.open(tmp_path / "runs.db") as store:
        store.experiments.add(experiment, entries)
        sitting = store.experiments.sit("e", owner="here/1", environment={})
        stop = experiment_engine.Stop(lambda: pytest.fail("nobody wanted it to stop"))
        experiment_engine.work(store.experiments, sitting, AtOnce(), stop=stop, report=report)
        items = store.experiments.items("e")
    assert told == ["Unstorable", None, None]
    assert [item.status for item in items] == ["failed", "ok", "ok"]
    assert items[0].error
    assert "too large" in items[0].error.message
