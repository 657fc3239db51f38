"""Several processes and threads at once: nothing lost, nothing doubled, no lock error."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from multiprocessing.synchronize import Barrier
from pathlib import Path

from hopscope.store.store import Store
from tests.store.run_examples import a_run, counts, credits_of

PROCESSES, RUNS = 8, 12


def save_many(url: str, ids: list[str], barrier: Barrier) -> None:
    """One process: opens the database while the others do, then saves its runs."""
    barrier.wait(60)
    with Store.open(url) as store:
        for run_id in ids:
            run = a_run(run_id)
            store.save(run)
            store.save_credits(credits_of(run))


def save_at_once(url: str, ids: list[str], barrier: Barrier) -> None:
    """One process: saves its runs in one transaction."""
    with Store.open(url) as store:
        barrier.wait(60)
        store.save_all([a_run(run_id) for run_id in ids])


def in_processes(
    url: str, shares: list[list[str]], save: Callable[..., None] = save_many
) -> list[int | None]:
    """Exit codes of one process for each share of run ids."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.store.run_examples", "hopscope.store.store"])
    barrier = context.Barrier(len(shares))
    workers = [context.Process(target=save, args=(url, ids, barrier)) for ids in shares]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(240)
    return [worker.exitcode for worker in workers]


def test_processes_that_make_and_fill_one_database_lose_nothing(url: str) -> None:
    """All open an empty database at the same moment and add the same passages."""
    shares = [[f"run-{p}-{i}" for i in range(RUNS)] for p in range(PROCESSES)]
    assert in_processes(url, shares) == [0] * PROCESSES
    with Store.open(url) as store:
        found = {summary.id: summary for summary in store.runs(None)}
        assert found.keys() == set(chain(*shares))
        assert {(s.steps, s.credits) for s in found.values()} == {(6, 14)}
        assert counts(store)["passages"] == 15
        assert store.load("run-3-7") == a_run("run-3-7")
        assert store.verify() == []


def test_processes_that_save_the_same_runs_keep_each_once(url: str) -> None:
    ids = [f"run-{i}" for i in range(10)]
    assert in_processes(url, [ids, ids[::-1], ids]) == [0, 0, 0]
    with Store.open(url) as store:
        assert sorted(s.id for s in store.runs(None)) == sorted(ids)
        assert all(store.load(run_id) == a_run(run_id) for run_id in ids)
        assert store.verify() == []


def test_processes_that_save_many_at_once_do_not_wait_for_each_other(url: str) -> None:
    """In whatever order each gives them: else PostgreSQL ends one of them for a deadlock."""
    ids = [f"run-{i}" for i in range(60)]
    assert in_processes(url, [ids, ids[::-1], ids[30:] + ids[:30]], save_at_once) == [0, 0, 0]
    with Store.open(url) as store:
        assert sorted(s.id for s in store.runs(None)) == sorted(ids)
        assert store.verify() == []


def test_threads_share_a_store(store: Store) -> None:
    ids = [f"run-{i}" for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda run_id: store.save(a_run(run_id)), ids))
    assert sorted(s.id for s in store.runs(None)) == sorted(ids)
    assert store.verify() == []


def save_one(url: str, run_id: str) -> None:
    with Store.open(url) as store:
        store.save(a_run(run_id))


def test_a_second_store_of_a_process_gives_up_no_lock_of_the_first(tmp_path: Path) -> None:
    """Another process that ends would remove the log that the first store still writes to."""
    url = str(tmp_path / "runs.db")
    spawned = multiprocessing.get_context("spawn")
    with Store.open(url) as first:
        first.save(a_run("run-1"))
        with Store.open(url) as second:
            second.save(a_run("run-2"))
            other = spawned.Process(target=save_one, args=(url, "run-3"))
            other.start()
            other.join()
            assert other.exitcode == 0
            assert Path(f"{url}-wal").exists()
            first.save(a_run("run-4"))
    with Store.open(url) as store:
        assert {each.id for each in store.runs()} == {f"run-{n}" for n in range(1, 5)}
