"""Meters on a real reader, tiny and random: what must hold whatever a model says."""

import models
import pytest
from fakes import run_of

from hopscope.runtime.ports import Reader
from hopscope.runtime.readers import hf
from hopscope.runtime.types import Provenance
from hopscope.tracing.appraisal import appraise
from hopscope.tracing.caching import CachedReader
from hopscope.tracing.credit import leave_one_out, shapley, solo, trajectory
from hopscope.tracing.entailments import lexical
from hopscope.tracing.meters import grogu, seper

RULES = [trajectory.build(), leave_one_out.build(), shapley.build(), solo.build()]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return hf.build(model=str(models.tiny_llama(tmp_path_factory.mktemp("llama"))), device="cpu")


def test_identities_hold_and_the_same_seed_gives_the_same_credits(reader: Reader) -> None:
    run = run_of("alba", "", "costa", answers=["a", "e", "1"])

    def credits(reader: Reader) -> dict[tuple[str, str, int | None], float | None]:
        meters = [
            seper.build(reader, lexical.build(), max_tokens=3),
            seper.build(reader, lexical.build(), max_tokens=3, kind="hard"),
            grogu.build(reader, max_tokens=8),
        ]
        found = appraise(run, meters, RULES, Provenance(reader=reader.name))
        return {(c.meter, c.rule, c.step): c.measurement.value for c in found}

    found = credits(reader)
    assert found == credits(CachedReader(reader))
    for meter in ("seper", "seper_hard", "grogu"):
        assert found[meter, "trajectory", 1] == 0
        moved = sum(found[meter, "trajectory", t] or 0 for t in range(3))
        assert moved == pytest.approx(found[meter, "total", None], abs=1e-12)
    assert found["seper", "shapley", 1] == 0
    assert found["grogu", "level", None] == 0
    assert found["grogu", "level", 2] is not None


def test_a_run_without_retrieval_earns_exactly_nothing(reader: Reader) -> None:
    meters = [seper.build(reader, lexical.build(), max_tokens=3), grogu.build(reader, max_tokens=8)]
    found = appraise(run_of("", answers=["a"]), meters, RULES, Provenance(reader=reader.name))
    gains = [c.measurement.value for c in found if c.rule not in ("level",)]
    assert gains
    assert set(gains) == {0}
