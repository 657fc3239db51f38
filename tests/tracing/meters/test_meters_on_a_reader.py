"""Meters on a real reader, tiny and random: what must hold whatever a model says."""

import pytest

from hopscope.runtime import components
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Reader
from hopscope.runtime.readers import hf
from hopscope.runtime.types import Provenance
from hopscope.tracing import meters
from hopscope.tracing.appraisal import appraise
from hopscope.tracing.credit import leave_one_out, shapley, solo, trajectory
from hopscope.tracing.entailments import lexical
from hopscope.tracing.meters import grogu, seper
from hopscope.tracing.wrappers.cached import CachedReader
from tests import models
from tests.fakes import Ending, ScriptedReader, run_of

RULES = [trajectory.build(), leave_one_out.build(), shapley.build(), solo.build()]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    folder = models.tiny_llama(tmp_path_factory.mktemp("llama"))
    return Ending(hf.build(model=str(folder), device="cpu"))


def test_identities_hold_and_the_same_seed_gives_the_same_credits(reader: Reader) -> None:
    run = run_of("alba", "", "costa", answers=["a", "e", "1"])

    def credits(reader: Reader) -> dict[tuple[str, str, int | None], float | None]:
        asked = [
            seper.build(reader, lexical.build(), max_tokens=3),
            seper.build(reader, lexical.build(), max_tokens=3, kind="hard"),
            grogu.build(reader, max_tokens=8),
        ]
        found = appraise(run, asked, RULES, Provenance(reader=reader.name))
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
    asked = [seper.build(reader, lexical.build(), max_tokens=3), grogu.build(reader, max_tokens=8)]
    found = appraise(run_of("", answers=["a"]), asked, RULES, Provenance(reader=reader.name))
    gains = [c.measurement.value for c in found if c.rule not in ("level",)]
    assert gains
    assert set(gains) == {0}


@pytest.mark.parametrize("option", ["samples", "max_tokens", "temperature", "threshold"])
def test_options_that_make_no_sense_are_refused(option: str) -> None:
    with pytest.raises(UsageError, match="SePer needs"):
        seper.build(ScriptedReader(), lexical.build(), **{option: -1})  # type: ignore[arg-type]


def test_meters_are_components_whose_options_are_read_by_type() -> None:
    """A dataclass as `build`: its keyword-only fields are the options."""
    assert components.names(meters) == ["gold_logprob", "grogu", "semantic_entropy", "seper"]
    options = components.parse_options(seper.build, {"samples": "20", "weight": "uniform"})
    assert seper.build(ScriptedReader(), lexical.build(), **options).samples == 20
    with pytest.raises(UsageError, match="weight=heavy"):
        components.parse_options(seper.build, {"weight": "heavy"})
    with pytest.raises(UsageError, match="alpha"):
        components.parse_options(grogu.build, {"beta": "1"})
