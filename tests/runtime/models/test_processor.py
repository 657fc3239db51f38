"""What torch is told about the processor."""

import os

import pytest

from hopscope.runtime.models.processor import settle_processor

ISA, CAPABILITY, WAIT = "ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY", "OMP_WAIT_POLICY"


def settled(monkeypatch: pytest.MonkeyPatch, **given: str) -> dict[str, str | None]:
    for name in (ISA, CAPABILITY, WAIT):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settle_processor()
    return {name: os.environ.get(name) for name in (ISA, WAIT)}


@pytest.mark.parametrize("limit", ["default", "avx2", "DEFAULT"])
def test_one_limit_of_instructions_holds_for_all_of_torch(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settled(monkeypatch, **{CAPABILITY: limit}) == {ISA: "AVX2", WAIT: "passive"}


@pytest.mark.parametrize("given", [{}, {CAPABILITY: "avx512"}])
def test_other_processors_keep_all_their_instructions(
    given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settled(monkeypatch, **given) == {ISA: None, WAIT: "passive"}


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {CAPABILITY: "default", ISA: "SSE41", WAIT: "active"}
    assert settled(monkeypatch, **own) == {ISA: "SSE41", WAIT: "active"}
