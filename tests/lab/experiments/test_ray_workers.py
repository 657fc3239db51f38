"""Experiments on a real Ray cluster of two nodes of this machine: what is lost with a worker is
done again, and nothing else is."""

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from hopscope.lab.experiments import engine, environment
from hopscope.lab.experiments.experiment import Models
from hopscope.lab.experiments.ray_workers import CHUNK, RayPool
from hopscope.lab.experiments.workers import ItemResult
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Question, Run
from hopscope.store.experiments.records import Arm, ClaimedItem, DatasetEntry, Experiment
from hopscope.store.store import Store

# Ray looks at these when it is imported.
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled")
pytest.importorskip("ray", reason="the extra ray is not installed")

STARTED = datetime(2026, 11, 21, tzinfo=UTC)
ITEMS = 60


@dataclass
class Clerk:
    """Notes what it is at, then takes its time; of the item `deadly` it dies, `times` times."""

    notes: Path
    deadly: int
    times: int
    seconds: float
    models = Models(reader="r", retriever="c", entailment="e")

    def do(self, claimed: ClaimedItem) -> ItemResult:
        with self.notes.open("a") as file:
            file.write(f"{os.getpid()} {claimed.position}\n")
        dies = claimed.position == self.deadly
        if dies and attempts(self.notes)[self.deadly] <= self.times:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.seconds)
        question = claimed.entry.question
        return ItemResult(
            Run(id=question.id, question=question, workflow="w", started=STARTED, seconds=0.0)
        )


@dataclass
class Opening:
    notes: Path
    deadly: int = -1
    times: int = 1
    seconds: float = 0.02

    @contextmanager
    def __call__(self) -> Iterator[Clerk]:
        yield Clerk(self.notes, self.deadly, self.times, self.seconds)


class Broken(Opening):
    @contextmanager
    def __call__(self) -> Iterator[Clerk]:
        raise UsageError("no model there")
        yield


def carry_this_file() -> None:
    """The benches of this file are not installed where workers look for modules."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a cluster of two nodes with a processor each."""
    from ray.cluster_utils import Cluster

    carry_this_file()
    small: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
    cluster = Cluster()
    try:
        cluster.add_node(**small, include_dashboard=False)
        cluster.add_node(**small)
    except Exception as error:  # Ray raises nothing narrower
        cluster.shutdown()
        pytest.skip(f"no Ray cluster can be started here: {error}")
    yield cluster.address
    cluster.shutdown()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "runs.db") as opened:
        arms = (Arm(label="w", workflow="w", settings={}),)
        planned = Experiment(
            name="towns", settings={}, reader="r", retriever="c", entailment="e", seed=0,
            fingerprint="f", created=STARTED, arms=arms,
        )  # fmt: skip
        entries = [
            DatasetEntry(question=Question(text=f"Who {i}?", id=f"q{i}")) for i in range(ITEMS)
        ]
        opened.experiments.add(planned, entries)
        yield opened


def work(store: Store, pool: RayPool) -> int:
    """Do all that is left; how many items came back, each once."""
    assert pool.first().models == Clerk.models
    session = store.experiments.begin_session("towns", owner=environment.owner(), environment={})
    came: list[int] = []
    engine.work(
        store.experiments,
        session,
        pool,
        stop=engine.Stop(lambda: None),
        report=lambda claimed, _: came.append(claimed.position),
    )
    store.experiments.end_session(session)
    assert len(came) == len(set(came))
    return len(came)


def drive(database: Path, address: str, opening: Opening) -> None:
    """As a command does: end dead sessions, begin one and work."""
    carry_this_file()
    with Store.open(database) as store, RayPool(opening, workers=2, address=address) as pool:
        engine.end_dead_sessions(store.experiments, "towns")
        work(store, pool)


def attempts(notes: Path) -> Counter[int]:
    """How often each item was begun."""
    return Counter(int(line.split()[1]) for line in notes.read_text().splitlines())


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_its_chunk_and_no_row(
    address: str, store: Store, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    with RayPool(Opening(notes, deadly=22), workers=2, address=address) as pool:
        assert work(store, pool) == ITEMS
    found = store.experiments.items("towns")
    assert {item.status for item in found} == {"ok"}
    assert sorted(store.ids()) == sorted(f"q{i}" for i in range(ITEMS))
    tried = attempts(notes)
    again = [position for position, count in tried.items() if count > 1]
    assert set(tried) == set(range(ITEMS))
    assert 22 in again
    assert len(again) <= CHUNK
    assert max(tried.values()) == 2


@pytest.mark.slow
def test_a_driver_that_is_killed_is_begun_again_and_loses_and_doubles_no_row(
    address: str, store: Store, tmp_path: Path
) -> None:
    """What was with its two actors, or had come back and was not written, is done again."""
    opening = Opening(tmp_path / "notes", seconds=0.2)
    given = (tmp_path / "runs.db", address, opening)
    driver = get_context("spawn").Process(target=drive, args=given)
    driver.start()
    try:
        while store.experiments.progress("towns").ok < ITEMS // 4 and driver.is_alive():
            time.sleep(0.02)
    finally:
        driver.kill()
        driver.join()
    done = store.experiments.progress("towns").ok
    assert 0 < done < ITEMS, "it was killed at work"

    drive(*given)
    assert {item.status for item in store.experiments.items("towns")} == {"ok"}
    assert sorted(store.ids()) == sorted(f"q{i}" for i in range(ITEMS))
    tried = attempts(opening.notes)
    assert set(tried) == set(range(ITEMS))
    assert 0 < sum(count > 1 for count in tried.values()) <= 4 * CHUNK
    assert max(tried.values()) == 2


@pytest.mark.slow
def test_a_question_that_ends_every_worker_is_a_row_with_its_error(
    address: str, store: Store, tmp_path: Path
) -> None:
    """Others of its chunk are done; a second command goes on with what failed."""
    notes = tmp_path / "notes"
    with RayPool(Opening(notes, deadly=7, times=99), workers=2, address=address) as pool:
        assert work(store, pool) == ITEMS
    [failed] = store.experiments.items("towns", status="failed")
    assert (failed.entry.question.id, failed.error and failed.error.type) == ("q7", "WorkerDied")
    assert attempts(notes)[7] == 3
    assert store.experiments.progress("towns").ok == ITEMS - 1
    store.experiments.retry_failed("towns")
    with RayPool(Opening(notes), workers=1, address=address) as pool:
        assert work(store, pool) == 1
    assert store.experiments.progress("towns").ok == ITEMS


@pytest.mark.slow
def test_models_that_cannot_be_loaded_are_the_user_s_error(address: str, tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="no model there"),
        RayPool(Broken(tmp_path / "notes"), workers=1, address=address) as pool,
    ):
        pool.first()


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nonsense"])
def test_no_cluster_there(tmp_path: Path, address: str) -> None:
    with pytest.raises(UsageError, match=rf"no Ray cluster at {address}: .*`ray start --head`"):
        RayPool(Opening(tmp_path / "notes"), workers=1, address=address)
