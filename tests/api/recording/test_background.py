"""`measure="sample:…"`: some recorded runs are measured in the background, and nobody waits."""

import logging
import threading
from collections.abc import Iterator, Sequence

import pytest

import hopscope
from hopscope.runtime.types import Generation, GenerationRequest, Run, Scored, ScoreRequest
from tests.api.recording.shelf import look_up

ASKED = "What company employs Elsa Wilby?"
search = hopscope.retrieval(look_up)


@pytest.fixture
def store() -> Iterator[hopscope.Store]:
    with hopscope.Store.open("sqlite://") as opened:
        yield opened


def record(store: hopscope.Store, measure: str | hopscope.Measure) -> hopscope.Recording:
    with hopscope.recording(ASKED, "Salwin Pictures", store=store, measure=measure) as run:
        search("Elsa Wilby")
        run.answer = "Salwin Pictures"
    return run


class Waiting:
    """A reader that waits until it is told to fail."""

    name = "waiting"

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        self.go_on.wait()
        raise hopscope.HopscopeError("the server is gone")

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        raise AssertionError


def test_runs_are_measured_by_a_real_reader_and_flushed_on_closing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A store closed with runs in the queue would lose their credit."""
    file = tmp_path_factory.mktemp("runs") / "runs.db"
    measure = hopscope.Measure("sample:1", samples=4, meters=("seper",), rules=("shapley",))
    with hopscope.Store.open(file) as store:
        ids = [record(store, measure).id for _ in range(2)]
    assert store.background[measure].measured == 2
    with hopscope.Store.open(file) as store:
        for id in ids:
            values = [row.value for row in store.run(id).credits if row.rule == "shapley"]
            assert values == pytest.approx([1.0, 0.0], abs=0.1)


def test_a_full_queue_drops_with_a_count_and_never_waits(
    store: hopscope.Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    reader = Waiting()
    measure = hopscope.Measure("sample:1", reader=reader, queue=2, meters=("seper",))
    runs = [record(store, measure) for _ in range(6)]
    background = store.background[measure]
    assert background.dropped in (3, 4)  # one may have left the queue to be measured
    assert background.dropped + background.waiting in (5, 6)
    assert all(run.record is not None and not run.problems for run in runs)
    reader.go_on.set()
    background.flush()
    assert background.waiting == background.measured == 0
    assert background.failed == 6 - background.dropped
    assert "is not measured: the server is gone" in caplog.text
    assert len(store.ids()) == 6


def test_the_seed_chooses_the_runs(store: hopscope.Store) -> None:
    chosen = []
    for _ in range(2):
        measure = hopscope.Measure("sample:0.3", reader=Waiting(), queue=1, seed=3)
        of_store = hopscope.api.recording.background.of(store, measure)
        of_store._thread = threading.current_thread()  # nothing leaves the queue
        counts = []
        for _ in range(40):
            run = record(store, measure)
            assert run.record is not None
            counts.append(of_store.waiting + of_store.dropped)
        of_store._thread = None
        chosen.append(counts)
    assert chosen[0] == chosen[1]
    assert 5 <= chosen[0][-1] <= 20


def test_mistakes_are_told_at_once(store: hopscope.Store) -> None:
    for wrong in ("sample:2", "sample:", "all", "sample:0"):
        with pytest.raises(hopscope.UsageError, match="give the share of runs to measure"):
            hopscope.recording(ASKED, store=store, measure=wrong)
    with pytest.raises(hopscope.UsageError, match="open the store yourself"):
        hopscope.recording(ASKED, store="sqlite://", measure="sample:0.05")
    with pytest.raises(hopscope.UsageError, match="seeper"):
        hopscope.HopscopeHandler(store, measure=hopscope.Measure("sample:1", meters=("seeper",)))


def test_a_run_offered_while_it_closes_is_dropped(store: hopscope.Store) -> None:
    """A second worker could take the first one's end, and closing would wait for ever."""
    reader = Waiting()
    measure = hopscope.Measure("sample:1", reader=reader, meters=("seper",))
    run = record(store, measure).record
    assert run is not None
    background = hopscope.api.recording.background.of(store, measure)
    put, offered = background._queue.put, []

    def offer_and_put(item: Run | None) -> None:
        offered.append(background.offer(run))
        put(item)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(background._queue, "put", offer_and_put)
        patch.setattr(background._queue, "put_nowait", put)
        reader.go_on.set()
        closing = threading.Thread(target=background.close, daemon=True)
        closing.start()
        closing.join(timeout=30)
    assert not closing.is_alive()
    assert offered == [False]
    assert background.offer(run) is False
    assert (background.dropped, background.failed) == (2, 1)
    background.close()
