"""Whatever becomes of a worker, every item comes back once."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from hopscope.lab.experiments.concurrency import ONE
from hopscope.lab.experiments.engine import trial
from hopscope.lab.experiments.experiment import Models
from hopscope.lab.experiments.workers import ItemResult, Pool
from hopscope.runtime.errors import HopscopeError, UsageError
from hopscope.runtime.types import Question, Run
from hopscope.store.experiments.records import Arm, ClaimedItem, DatasetEntry


@dataclass(frozen=True)
class Opening:
    """A bench that does what the question says."""

    trouble: str = ""

    @contextmanager
    def __call__(self) -> Iterator["Bench"]:
        if self.trouble == "usage":
            raise UsageError("no such model")
        if self.trouble == "death":
            os._exit(7)
        yield Bench()


MEETING = threading.Barrier(3)
"""In the process of a worker."""


class Bench:
    models = Models(reader="r", retriever="b", entailment="e")
    at_once = ONE

    def do(self, claimed: ClaimedItem) -> ItemResult:
        asked = claimed.entry.question
        match asked.text:
            case "raise":
                raise ZeroDivisionError("a meter is wrong")
            case "die":
                os._exit(3)
            case "meet":
                MEETING.wait(60)
        run = Run(id=f"{os.getpid()}", question=asked, workflow="w", started=datetime.now(UTC))
        time.sleep(0.05)
        return ItemResult(run)


def asked(*texts: str) -> list[ClaimedItem]:
    arm = Arm(label="w", workflow="w", settings={})
    return [
        ClaimedItem(entry=DatasetEntry(question=Question(text=text)), arm=arm, position=place)
        for place, text in enumerate(texts)
    ]


@pytest.mark.slow
def test_every_item_comes_back_once_with_its_run_or_its_error() -> None:
    items = asked("a", "raise", "b", "die", "c", "d", "e")
    with Pool(Opening(), workers=2) as pool:
        assert pool.first().models == Bench.models
        assert pool.first().hardware["cores"] == os.cpu_count()
        found = trial(pool, items)
        pids = [worker.process.pid for worker in pool._workers]
    assert sorted(c.position for c, _ in found) == list(range(7))
    errors = {c.entry.question.text: done.error for c, done in found if done.error}
    assert {text: error.type for text, error in errors.items()} == {
        "raise": "ZeroDivisionError",
        "die": "WorkerDied",
    }
    assert "exit code 3" in errors["die"].message
    assert all((done.run is None) == (c.entry.question.text in errors) for c, done in found)
    for pid in pids:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(
    ("trouble", "raised", "told"),
    [("usage", UsageError, "no such model"), ("death", HopscopeError, "exit code 7 before")],
)
def test_a_bench_that_cannot_be_made_is_told(
    trouble: str, raised: type[Exception], told: str
) -> None:
    with Pool(Opening(trouble), workers=1) as pool, pytest.raises(raised, match=told):
        pool.first()


@pytest.mark.slow
def test_a_worker_is_at_several_items_and_only_the_one_that_kills_it_fails() -> None:
    """One at a time the three would never meet. Those beside the one that dies are done again."""
    with Pool(Opening(), workers=1, threads=3) as pool:
        pool.first()
        assert pool.idle == 3
        met = trial(pool, asked("meet", "meet", "meet"))
        again = trial(pool, asked("die", "a", "b", "die", "c"))
        assert (pool.idle, pool.busy) == (3, 0)
    assert [done.error for _, done in met] == [None] * 3
    assert sorted(claimed.position for claimed, _ in met) == [0, 1, 2]
    assert sorted(claimed.position for claimed, _ in again) == [0, 1, 2, 3, 4]
    failed = [(c.entry.question.text, done.error.type) for c, done in again if done.error]
    assert failed == [("die", "WorkerDied")] * 2
