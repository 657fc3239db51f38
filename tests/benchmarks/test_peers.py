"""The comparison with peers: turns, ratios, a missing peer; and the arithmetic of the estimate."""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
OWN = ("credit_parts", "peer_parts", "experiments")


@pytest.fixture(scope="module")
def parts() -> Iterator[dict[str, ModuleType]]:
    """The modules of the benchmarks, which find each other beside the script."""
    known = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        names = ("rounds", "gpu_estimate", "batching_jobs")
        yield {name: import_module(f"peer_parts.{name}") for name in names}
    for name in set(sys.modules) - known:
        if name.startswith(OWN):
            del sys.modules[name]


def test_every_other_round_begins_with_the_last_side(parts: dict[str, ModuleType]) -> None:
    """Else one side would always run on what the other left in the processor's caches."""
    order: list[str] = []
    sides = {name: (lambda name=name: order.append(name)) for name in "abc"}
    seconds = parts["rounds"].taken_in_turn(sides, 2)
    assert "".join(order) == "abccba"
    assert all(len(each) == 2 for each in seconds.values())


def test_a_ratio_is_taken_round_by_round(parts: dict[str, ModuleType]) -> None:
    """By hand: 4/2, 9/3 and 2/2; the ratio of the medians would be 2."""
    found = parts["rounds"].ratio([4.0, 9.0, 2.0], [2.0, 3.0, 2.0])
    assert found == (2.0, 1.0, 3.0)


def test_a_pass_takes_the_longer_of_moving_weights_and_computing(
    parts: dict[str, ModuleType],
) -> None:
    """By hand: 2 passes over 10 weights of 2 bytes at 4 bytes a second take 10 s; 5 tokens of 20
    operations each at half of 8 operations a second take 25 s."""
    estimate = parts["gpu_estimate"]
    gpu = estimate.Gpu("slow", 4.0, 8.0)
    assert estimate._seconds(gpu, 10, 2, 1) == 10
    assert estimate._seconds(gpu, 10, 2, 5) == 25


def test_a_common_beginning_is_read_once(parts: dict[str, ModuleType]) -> None:
    """By hand: 4 tokens, then 1 after two shared ones, then 2 of another beginning."""
    assert parts["batching_jobs"].needed([[1, 2, 3, 4], [7, 8], [1, 2, 5]]) == 7


@pytest.mark.skipif(find_spec("flashrag") is not None, reason="FlashRAG is installed here")
def test_a_missing_peer_is_told_and_the_others_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ended with a traceback, and nothing after it was measured."""
    monkeypatch.setenv("PYTHONPATH", str(FOLDER), prepend=os.pathsep)
    command = [sys.executable, "-m", "peer_parts", "--only", "naive", "ircot"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "naive: not measured. FlashRAG cannot be imported" in done.stdout
    assert "ircot: not measured. FlashRAG cannot be imported" in done.stdout
