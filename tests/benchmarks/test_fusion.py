"""The benchmark of eRAG's Table 2: what each way asks the reader, and how costs are told."""

import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from tests import models

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "reader" / "fusion.py"


@pytest.fixture(scope="module")
def fusion() -> Iterator[ModuleType]:
    """The script."""
    with pytest.MonkeyPatch.context() as patch:
        spec = spec_from_file_location("fusion", SCRIPT)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        patch.setitem(sys.modules, "fusion", module)
        spec.loader.exec_module(module)
        yield module


def test_each_way_reads_the_same_passages(fusion: ModuleType) -> None:
    work = fusion.Work(passages=3, length=8, questions=1, tokens=2)
    shapes = {}
    for way, (calls, _) in fusion.WAYS.items():
        made = calls(work, 0)
        shapes[way] = [[len(request.prompt.messages) for request in call] for call in made]
        texts = [m.content for call in made for request in call for m in request.prompt.messages]
        words = " ".join(texts).split()
        assert all(word in words for p in fusion._passages(work, 0) for word in p.text.split())
        assert {request.max_tokens for call in made for request in call} == {2}
    assert list(shapes.values()) == [[[3]], [[3]], [[1]], [[1, 1, 1]], [[1], [1], [1]]]


def test_a_way_has_its_seconds_and_its_memory(fusion: ModuleType, tmp_path: Path) -> None:
    work = fusion.Work(passages=2, length=8, questions=1, tokens=2)
    found = fusion.cost(models.tiny_t5(tmp_path / "t5"), work, next(iter(fusion.WAYS)))
    assert found.seconds > 0
    assert 0 <= found.megabytes < 1000


def test_costs_are_compared_with_fusion_in_decoder(fusion: ModuleType) -> None:
    costs = [fusion.Cost("all", 4.0, 100.0), fusion.Cost("labels", 2.0, 2000.0)]
    assert fusion.table(costs).splitlines()[2:] == [
        "| all | 4.0 | 1.00 | 100 | 1.00 |",
        "| labels | 2.0 | 0.50 | 2,000 | 20.00 |",
    ]
