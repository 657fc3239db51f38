"""Export and back again."""

import json
from io import StringIO

import pytest
from hypothesis import given

from hopscope.runtime.errors import StoreError
from hopscope.runtime.types import Run
from hopscope.store.exporters import jsonl
from hopscope.store.store import Store
from tests.store.run_examples import a_run, credits_of, games_of
from tests.store.run_strategies import any_run


def test_exported_runs_read_back_equal(store: Store) -> None:
    for minute, name in enumerate(("one", "two")):
        store.save(a_run(name, minute=minute))
    store.save_credits(credits_of(a_run("two")), games=games_of(a_run("two")))
    file = StringIO()
    assert jsonl.export(store, file) == 2
    file.seek(0)
    one, two = jsonl.read(file)
    assert (one.run, one.credits) == (a_run("one"), ())
    assert two.run == a_run("two", minute=1)
    assert list(two.credits) == store.credits("two")
    assert list(two.games) == games_of(a_run("two"))
    assert json.loads(file.getvalue().splitlines()[0])["run"]["id"] == "one"


def test_some_runs_can_be_exported(store: Store) -> None:
    for name in ("one", "two"):
        store.save(a_run(name))
    file = StringIO()
    assert jsonl.export(store, file, run_ids=["tw"]) == 1
    assert json.loads(file.getvalue())["run"]["id"] == "two"


@given(any_run)
def test_any_run_survives_a_line(run: Run) -> None:
    line = jsonl.Line(run=run).model_dump_json()
    assert "\n" not in line
    assert next(jsonl.read(StringIO(line))).run == run


def test_a_broken_line_is_named() -> None:
    good = jsonl.Line(run=a_run()).model_dump_json()
    lines = jsonl.read(StringIO(f"{good}\n{good[:100]}\n"))
    next(lines)
    with pytest.raises(StoreError, match="line 2: JSON: Invalid JSON"):
        next(lines)
