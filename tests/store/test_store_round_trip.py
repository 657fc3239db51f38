"""What is loaded equals what was saved."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopscope.runtime.errors import MissingRunError, StoreError
from hopscope.runtime.types import Credit, Passage, Run, RunError, Step
from hopscope.store.store import Store
from tests.store.run_examples import STARTED, a_run, counts, credits_of
from tests.store.run_strategies import any_credit, any_run

shared_store = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def test_a_run_comes_back_equal(store: Store) -> None:
    run = a_run()
    store.save(run)
    assert store.load(run.id) == run
    assert store.verify() == []


def test_many_runs_come_back_equal_in_the_order_asked(store: Store) -> None:
    """Each with its own steps, prompts and passages, though their numbers are alike."""
    runs = [a_run(f"run-{i}", hops=1 + i % 3, k=1 + i % 2) for i in range(4)]
    for run in runs:
        store.save(run)
    ids = ["run-2", "run-0", "run-3"]
    assert [*store.load_all(ids)] == [runs[2], runs[0], runs[3]]
    with pytest.raises(MissingRunError, match="no run 'run'"):
        list(store.load_all(["run-0", "run"]))


@shared_store
@given(any_run)
def test_any_run_comes_back_equal(store: Store, run: Run) -> None:
    store.save(run)
    assert store.load(run.id) == run


@shared_store
@given(st.lists(any_credit, max_size=4))
def test_any_credit_comes_back_equal(store: Store, credits: list[Credit]) -> None:
    run = a_run(f"run-{len(store.runs(None))}")
    store.save(run)
    kept = {
        (c.step, c.passage, c.rule, c.meter, c.provenance.settings_hash): c.model_copy(
            update={"run_id": run.id}
        )
        for c in credits
    }
    store.save_credits(kept.values())
    found = store.credits(run.id)
    assert sorted(found, key=repr) == sorted(kept.values(), key=repr)


def test_a_failed_run_and_an_interrupted_one_are_kept_as_they_are(store: Store) -> None:
    whole = a_run()
    error = RunError(type="ReaderError", message="")
    failed = whole.model_copy(
        update={"id": "f", "steps": whole.steps[:1], "status": "failed", "error": error}
    )
    stopped = whole.model_copy(update={"id": "i", "status": "interrupted", "steps": ()})
    for run in (failed, stopped):
        store.save(run)
        assert store.load(run.id) == run


def test_text_is_never_cut_or_changed(store: Store) -> None:
    """NUL, which PostgreSQL refuses, and the escape that stands for it; a megabyte of text."""
    texts = ["", "\x00", "\x1b0\x00\x1b", "Ωμέγα 日本 🜁 e\u0301", "long " * 200_000]
    evidence = tuple(Passage(text=text, title=text[:9]) for text in texts)
    steps = tuple(
        Step(index=i, name="n", kind="judge", output=text, started=STARTED, seconds=0.1 + 0.2)
        for i, text in enumerate(texts)
    )
    last = steps[-1].model_copy(update={"evidence": evidence})
    run = a_run().model_copy(update={"steps": (*steps[:-1], last)})
    store.save(run)
    assert store.load(run.id) == run
    assert store.verify() == []


def test_saving_the_same_run_twice_changes_nothing(store: Store) -> None:
    run = a_run()
    store.save(run)
    store.save_credits(credits_of(run))
    before = counts(store)
    store.save(run)
    store.save_credits(credits_of(run))
    assert counts(store) == before
    assert store.load(run.id) == run


def test_a_run_that_went_on_replaces_its_first_part_and_that_part_s_credits(store: Store) -> None:
    run = a_run()
    part = run.model_copy(update={"steps": run.steps[:3], "status": "interrupted"})
    store.save(part)
    store.save_credits(credits_of(part))
    store.save(run)
    assert store.load(run.id) == run
    assert store.credits(run.id) == []


def test_credits_computed_again_replace_the_old_ones(store: Store) -> None:
    run = a_run()
    store.save(run)
    old = credits_of(run)
    store.save_credits(old)
    unmeasured = old[-1].measurement
    again = [credit.model_copy(update={"measurement": unmeasured}) for credit in old]
    store.save_credits(again)
    assert {c.measurement for c in store.credits(run.id)} == {unmeasured}
    assert len(store.credits(run.id)) == len(old)


def test_passages_and_prompts_are_kept_once(store: Store) -> None:
    store.save(a_run("a"))
    before = counts(store)
    store.save(a_run("b"))
    after = counts(store)
    for table in ("passages", "listings"):
        assert after[table] == before[table] == 15
    assert after["texts"] == before["texts"] + 3  # the three user messages name the run
    assert after["placements"] == 2 * before["placements"]


def test_the_same_content_in_two_indexes_is_one_passage_with_two_listings(store: Store) -> None:
    one, other = Passage(id="a", text="same"), Passage(id="b", text="same", source="s")
    step = Step(
        index=0,
        name="r",
        kind="retrieve",
        evidence=(one, other),
        new=("b", "a"),
        started=STARTED,
        seconds=0.0,
    )
    run = a_run().model_copy(update={"steps": (step,)})
    store.save(run)
    assert store.load(run.id) == run
    assert (counts(store)["passages"], counts(store)["listings"]) == (1, 2)


def test_credits_of_an_unsaved_run_are_refused_whole(store: Store) -> None:
    run = a_run()
    store.save(run)
    stray = credits_of(run)[0].model_copy(update={"run_id": "nowhere"})
    with pytest.raises(StoreError, match=r"nowhere.*save it first"):
        store.save_credits([*credits_of(run), stray])
    assert store.credits(run.id) == []


def test_many_runs_are_saved_as_they_come(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several transactions; what came before the source failed is kept, and doubles are not."""
    monkeypatch.setattr("hopscope.store.store.BATCH", 3)
    runs = [a_run(f"run-{i}", minute=i) for i in range(8)]

    def source() -> Iterator[Run]:
        yield from runs[:5]
        yield runs[1]
        yield from runs[5:7]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.save_all(source())
    assert {s.id for s in store.runs()} == {f"run-{i}" for i in range(5)}
    store.save_all(reversed(runs))
    assert [store.load(run.id) for run in runs] == runs
    assert [s.id for s in store.runs()] == [run.id for run in reversed(runs)]
    assert counts(store)["passages"] == 15
    assert store.verify() == []
