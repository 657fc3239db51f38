"""Which of the expressions EoR works through."""

import pytest

from hopscope.runtime.errors import UsageError
from hopscope.workflows._pool import Retriever, Unit, parse_pool


@pytest.mark.parametrize(
    ("text", "units", "compress"),
    [
        ("ReFree", (), False),
        ("PK", (Unit("PK"),), False),
        ("Wiki@10@CP", (Unit("Wiki", k=10),), True),
        ("HB@RR@10", (Unit("HB", rerank=True, k=10),), False),
        ("bm25:wiki@RR", (Unit("bm25:wiki", rerank=True),), False),
        ("SE@RR@5&Wiki@5@CP", (Unit("SE", rerank=True, k=5), Unit("Wiki", k=5)), True),
        ('"my index"@RR', (Unit("my index", rerank=True),), False),
    ],
)
def test_the_paper_s_pool_is_understood(text: str, units: tuple[Unit, ...], compress: bool) -> None:
    assert parse_pool(text) == (Retriever(units, compress),)
    assert str(parse_pool(text)[0]) == text


@pytest.mark.parametrize(
    "text", ["rrf(a,b)", "a@5@RR", "a@RR(cross_encoder:m)", "a@CP(selective_context)", "(a&b)@5"]
)
def test_what_its_nodes_cannot_work_through_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="in EoR's pool"):
        parse_pool(text)


def test_a_pool_holds_a_retriever_once() -> None:
    with pytest.raises(UsageError, match="Wiki@5 twice"):
        parse_pool("Wiki@5,PK,Wiki @5")
