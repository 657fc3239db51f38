"""The number of questions at a time, where the user leaves it open."""

from pathlib import Path
from typing import Any

import pytest

from hopscope.lab.experiments.concurrency import Situation, chosen
from hopscope.lab.experiments.item_runner import shared
from hopscope.runtime.models import devices
from hopscope.runtime.readers import tiny
from hopscope.runtime.specs import Spec
from hopscope.runtime.wrappers.kept_reader import KeptReader
from tests.probes import Speaker

GB = 10**9


@pytest.fixture(scope="module")
def reader() -> Any:
    return tiny.build()


def situation(reader: str | None = "tiny", questions: int = 1000, **others: Any) -> Situation:
    known = {"foreign": False, "served": False, "timed": False, **others}
    return Situation(Spec.parse(reader) if reader else None, questions=questions, **known)


@pytest.mark.parametrize(
    ("now", "free_bytes", "threads", "reason"),
    [
        (situation(), 64 * GB, 64, "a local model"),
        (situation(questions=20), 64 * GB, 20, "as many as there are"),
        (situation(questions=0), 64 * GB, 1, "as many as there are"),
        # Keys and values of a row: 2 sides, 6 layers, 192 numbers, 4 bytes, 2,048 tokens: 18.9 MB.
        (situation(), GB, 26, "memory"),
        (situation(workers=4), GB, 6, "memory"),
        (situation(), 10_000, 1, "memory"),
        (situation(), 0, 1, "memory"),
        (situation("openai:http://localhost#m"), 0, 8, "a server"),
        (situation(served=True), 64 * GB, 8, "a server"),
        (situation(served=True, workers=4), GB, 6, "memory"),
        (situation("elsewhere"), 64 * GB, 1, "the reader elsewhere may not bear threads"),
        (situation(None), 64 * GB, 1, "parts that are not Hopscope's may not bear threads"),
        (situation(foreign=True), 64 * GB, 1, "parts that are not Hopscope's may not bear threads"),
        (situation(timed=True), 64 * GB, 1, "--max-seconds counts each alone"),
        (situation(deterministic=True), 64 * GB, 1, "--deterministic computes each alone"),
    ],
)
def test_it_depends_on_memory_and_questions(
    reader: Any, now: Situation, free_bytes: int, threads: int, reason: str
) -> None:
    assert chosen(reader, now, free_bytes=free_bytes) == (threads, reason)


def test_by_default_it_asks_the_machine(reader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    free = devices.free_bytes("cpu")
    assert free is None or free > 0
    monkeypatch.setattr(devices, "free_bytes", lambda _: 0)
    assert chosen(reader, situation()).threads == 1
    monkeypatch.setattr(devices, "free_bytes", lambda _: None)  # as on macOS
    assert chosen(reader, situation()).threads == 64


def test_a_container_bounds_the_memory(tmp_path: Path) -> None:
    assert devices._of_group(tmp_path) is None
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 200\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert devices._of_group(tmp_path) is None
    (tmp_path / "memory.max").write_text("1000\n")
    assert devices._of_group(tmp_path) == 500
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 4 kB\n")
    assert devices._of_machine(tmp_path / "meminfo") == 4096
    assert devices._of_machine(tmp_path / "none") is None


def test_threads_share_what_is_behind_a_cache() -> None:
    class Nothing:
        def get(self, keys: Any) -> dict[str, str]:
            return {}

        def put(self, answers: Any) -> None: ...

    kept = KeptReader(Speaker(lambda _: "x"), Nothing())
    with shared(kept, 4, named=Spec.parse("tiny")) as reader:
        assert isinstance(reader, KeptReader)
        assert reader.inner is not kept.inner
        assert reader.name == kept.name
