"""The expressions that name EoR's retrievers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.errors import UsageError
from hopscope.workflows._grammar import REFREE, Retriever, Unit, parse, parse_pool

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,5}(:[A-Za-z0-9_.-]{1,5})?", fullmatch=True)
UNITS = st.builds(
    Unit, NAMES.filter(lambda name: name != REFREE), st.booleans(), st.none() | st.integers(1, 99)
)
RETRIEVERS = st.just(Retriever()) | st.builds(
    Retriever, st.lists(UNITS, min_size=1, max_size=3).map(tuple), st.booleans()
)


@pytest.mark.parametrize(
    ("text", "units", "compress"),
    [
        ("ReFree", (), False),
        ("PK", (Unit("PK"),), False),
        ("Wiki@10@CP", (Unit("Wiki", k=10),), True),
        ("HB@RR@10", (Unit("HB", rerank=True, k=10),), False),
        ("bm25:wiki@RR", (Unit("bm25:wiki", rerank=True),), False),
        ("SE@RR@5&Wiki@5@CP", (Unit("SE", rerank=True, k=5), Unit("Wiki", k=5)), True),
        ("RR@RR & CP@CP", (Unit("RR", rerank=True), Unit("CP")), True),
    ],
)
def test_operators_bind_in_the_order_of_the_paper(
    text: str, units: tuple[Unit, ...], compress: bool
) -> None:
    """@CP written behind the last unit compresses the whole, not that unit."""
    assert parse(text) == Retriever(units, compress)
    assert str(parse(text)) == text.replace(" ", "")


@given(RETRIEVERS)
def test_the_canonical_form_names_the_same_retriever(retriever: Retriever) -> None:
    assert parse(str(retriever)) == retriever


@given(st.lists(RETRIEVERS, min_size=1, max_size=4, unique=True))
def test_a_pool_is_a_list_of_them(pool: list[Retriever]) -> None:
    assert parse_pool(", ".join(map(str, pool))) == tuple(pool)


@given(st.text(alphabet="RefSWikCP@&,:0159 é", max_size=12))
def test_any_text_is_a_retriever_or_a_message(text: str) -> None:
    try:
        retriever = parse(text)
    except UsageError:
        return
    assert parse(str(retriever)) == retriever


@pytest.mark.parametrize(
    ("text", "position", "expected", "found"),
    [
        ("", 1, "name of a source", "the end"),
        ("Wiki@5@RR", 8, "order is @RR, @k, &, @CP", "'RR'"),
        ("Wiki@CP&SE", 8, "nothing after @CP", "'&'"),
        ("Wiki@CP@CP", 8, "nothing after @CP", "'@'"),
        ("ReFree@5", 7, "nothing after ReFree", "'@'"),
        ("Wiki&ReFree", 6, "name of a source", "'ReFree'"),
        ("Wiki@0", 6, "from 1", "'0'"),
        ("Wiki@", 6, "RR, a number or CP", "the end"),
        ("Wiki@RR@x", 9, "a number or CP", "'x'"),
        ("Wiki&", 6, "name of a source", "the end"),
        ("Wiki 5", 6, "& or the end", "'5'"),
        ("Wiki@5,SE@5", 7, "& or the end", "','"),
        ("Wiki@5 + SE", 8, "a name", "'+'"),
    ],
)
def test_a_broken_expression_is_told_with_its_place(
    text: str, position: int, expected: str, found: str
) -> None:
    with pytest.raises(UsageError) as error:
        parse(text)
    message = str(error.value)
    assert f"character {position}: " in message
    assert expected in message
    assert message.endswith(f"found {found}")


def test_a_pool_holds_a_retriever_once() -> None:
    with pytest.raises(UsageError, match="Wiki@5 twice"):
        parse_pool("Wiki@5,PK, Wiki @ 5")
