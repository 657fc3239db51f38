"""No query that a command waits for reads a whole table, however large the store is."""

from collections.abc import Callable

import numpy as np
import pytest

from hopscope.store.plans import plans
from hopscope.store.store import Store
from tests.store.experiments.test_store_experiments import do, planned
from tests.store.run_examples import a_run, credits_of

Act = Callable[[Store], object]

ACTS: dict[str, Act] = {
    "ls": lambda store: store.runs(20),
    "latest": lambda store: store.latest(),
    "load": lambda store: store.load("run-0"),
    "load all": lambda store: list(store.load_all(["run-0", "run-1"])),
    "credits": lambda store: store.credits("run-0"),
    "appraisals": lambda store: store.appraisals("run-0"),
    "save": lambda store: store.save(a_run("new")),
    "save credits": lambda store: store.save_credits(credits_of(a_run("run-0"))),
    "items": lambda store: store.experiments.items("towns"),
    "item credits": lambda store: store.experiments.credits("towns", passages=False),
    "item appraisals": lambda store: store.experiments.appraisals("towns"),
    "figures": lambda store: store.experiments.result_rows("towns"),
    "retrievals": lambda store: store.experiments.retrievals("towns"),
    "columns": lambda store: store.experiments.result_columns("towns", 1),
    "retrieval columns": lambda store: store.experiments.retrieval_columns(
        "towns", 1, "seper", np.array([1, 2, 3])
    ),
    "run ids": lambda store: store.experiments.run_ids([1, 2]),
    "progress": lambda store: store.experiments.progress("towns"),
    "claim": lambda store: store.experiments.claim(1, 1),
}
FEW_ROWS = {"experiments", "arms", "sittings", "provenances"}
"""Tables that stay small: to read one whole costs nothing."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store.open(tmp_path_factory.mktemp("plans") / "runs.db")
    session = planned(store)
    do(store, session, store.experiments.claim(session, 3))
    return store


def whole(step: str) -> bool:
    """Whether a step of a plan reads all rows, or makes an index only for this query. The newest
    runs are read from the end of an index, as far as they are wanted."""
    if "ix_runs_started" in step:
        return False
    word, name = (*step.split(), "", "")[:2]
    return "AUTOMATIC" in step or (word == "SCAN" and name not in FEW_ROWS and "anon" not in name)


@pytest.mark.parametrize("act", ACTS)
def test_a_query_reads_only_what_it_needs(filled: Store, act: str) -> None:
    found = plans(filled, lambda: ACTS[act](filled))
    assert found
    assert [(p.sql, step) for p in found for step in p.steps if whole(step)] == []


def test_a_plan_that_reads_a_whole_table_is_seen(filled: Store) -> None:
    [faulty] = [p for p in plans(filled, filled.verify) if p.sql.startswith("SELECT texts.hash")]
    assert [step for step in faulty.steps if whole(step)]
