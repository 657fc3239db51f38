"""Which of the expressions EoR works through."""

import pytest

from hopscope.runtime.errors import UsageError
from hopscope.runtime.pipelines.expression import Fuse, Keep, Part, Source
from hopscope.runtime.specs import Spec
from hopscope.workflows.eor._pool import PoolRetriever, PoolUnit, parse_pool

SE, WIKI = Source("SE"), Source("Wiki")
FUSED = Fuse(Spec("rrf", options=(("k", "10"),)), (Part(SE), Part(Keep(WIKI, 5), 2)))


@pytest.mark.parametrize(
    ("text", "units", "compress"),
    [
        ("ReFree", (), False),
        ("PK", (PoolUnit(Source("PK")),), False),
        ("Wiki@10@CP", (PoolUnit(WIKI, k=10),), True),
        ("HB@RR@10", (PoolUnit(Source("HB"), rerank=True, k=10),), False),
        ("bm25:wiki@RR", (PoolUnit(Source("bm25:wiki"), rerank=True),), False),
        ("SE@RR@5&Wiki@5@CP", (PoolUnit(SE, rerank=True, k=5), PoolUnit(WIKI, k=5)), True),
        ('"my index"@RR', (PoolUnit(Source("my index"), rerank=True),), False),
        ("rrf(SE,2*Wiki@5,k=10)", (PoolUnit(FUSED),), False),
        ("SE@RR(encoder:m)@5", (PoolUnit(SE, True, 5, by=Spec("encoder", "m")),), False),
        (
            "rrf(SE,2*Wiki@5,k=10)@RR(encoder:m)",
            (PoolUnit(FUSED, True, by=Spec("encoder", "m")),),
            False,
        ),
        ("rrf(SE,2*Wiki@5,k=10)@RR@3&SE@CP", (PoolUnit(FUSED, True, 3), PoolUnit(SE)), True),
    ],
)
def test_the_paper_s_pool_is_understood(
    text: str, units: tuple[PoolUnit, ...], compress: bool
) -> None:
    assert parse_pool(text) == (PoolRetriever(units, compress),)
    assert str(parse_pool(text)[0]) == text


@pytest.mark.parametrize(
    "text",
    [
        "a@5@RR",
        "a@CP(selective_context)",
        "(a&b)@5",
        "rrf(a@RR,b)",
        "rrf(a,b&c)",
        "rrf(a,rrf(b,c))@RR@5",
    ],
)
def test_what_its_nodes_cannot_work_through_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="in EoR's pool"):
        parse_pool(text)


def test_a_pool_holds_a_retriever_once() -> None:
    with pytest.raises(UsageError, match="Wiki@5 twice"):
        parse_pool("Wiki@5,PK,Wiki @5")


def test_as_many_are_asked_for_as_are_kept_anywhere() -> None:
    [retriever] = parse_pool("rrf(a@30,b)@5&c@40&d")
    assert [unit.deepest for unit in retriever.units] == [30, 40, 0]
    assert [unit.sources for unit in retriever.units] == [("a", "b"), ("c",), ("d",)]
