"""The expressions that name retrievers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.errors import UsageError
from hopscope.runtime.pipelines.expression import (
    Compress,
    Expression,
    Fuse,
    Join,
    Keep,
    NoRetrieval,
    Part,
    Rerank,
    Source,
    size,
    sources,
)
from hopscope.runtime.pipelines.expression_parser import parse, parse_pool
from hopscope.runtime.specs import Spec

ODD = st.text(alphabet='aR5:/.-_é "@&,()*=', max_size=8)
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.:/-]{0,6}", fullmatch=True) | ODD
OPTIONS = st.dictionaries(NAMES, NAMES, max_size=2).map(lambda found: tuple(found.items()))
COMPONENTS = st.from_regex(r"[A-Za-z][A-Za-z0-9_. -]{0,6}", fullmatch=True)
CHOICES = st.builds(Spec, COMPONENTS, NAMES, OPTIONS)
WEIGHTS = st.floats(0, exclude_min=True, allow_infinity=False, allow_nan=False)


def larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    parts = st.lists(st.builds(Part, inner, st.just(1.0) | WEIGHTS), min_size=2, max_size=3)
    return (
        st.builds(Keep, inner, st.integers(1, 999_999_999))
        | st.builds(Rerank, inner, st.none() | CHOICES)
        | st.builds(Compress, inner, st.none() | CHOICES)
        | st.builds(Join, st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(Fuse, CHOICES, parts.map(tuple))
    )


RETRIEVERS = st.just(NoRetrieval()) | st.recursive(st.builds(Source, NAMES), larger, max_leaves=5)
BY = Spec("cross_encoder", "BAAI/bge-reranker-base", (("device", "cpu"),))


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("ReFree", NoRetrieval()),
        ("PK", Source("PK")),
        ("Wiki@10@CP", Compress(Keep(Source("Wiki"), 10))),
        ("HB@RR@10", Keep(Rerank(Source("HB")), 10)),
        ("HB@50@RR@10", Keep(Rerank(Keep(Source("HB"), 50)), 10)),
        (
            "bm25:wiki@RR@5&dense:wiki@3@CP",
            Compress(Join((Keep(Rerank(Source("bm25:wiki")), 5), Keep(Source("dense:wiki"), 3)))),
        ),
        ("RR@RR & CP@CP", Compress(Join((Rerank(Source("RR")), Source("CP"))))),
        ("(a@CP)&b", Join((Compress(Source("a")), Source("b")))),
        ("(a&b)@RR", Rerank(Join((Source("a"), Source("b"))))),
        ("a@RR(cross_encoder:BAAI/bge-reranker-base,device=cpu)", Rerank(Source("a"), BY)),
        (
            "rrf(a@50,0.5*b&c@CP,k=10)@5",
            Keep(
                Fuse(
                    Spec("rrf", options=(("k", "10"),)),
                    (
                        Part(Keep(Source("a"), 50)),
                        Part(Compress(Join((Source("b"), Source("c")))), 0.5),
                    ),
                ),
                5,
            ),
        ),
        ('"my corpus"@5', Keep(Source("my corpus"), 5)),
        ('searxng:"http://h/?a=b"', Source("searxng:http://h/?a=b")),
        ('"ReFree"&"7"', Join((Source("ReFree"), Source("7")))),
    ],
)
def test_operators_bind_in_the_order_of_the_paper(text: str, expression: Expression) -> None:
    """@CP written behind the last unit compresses the whole, not that unit."""
    assert parse(text) == expression


@pytest.mark.parametrize(
    "text", ["SE@RR@5&Wiki@5@CP", "rrf(a,0.5*b,k=10)@5", "(a&b)@RR(x:y)", '"my corpus"@5', "ReFree"]
)
def test_a_plain_expression_is_its_own_canonical_form(text: str) -> None:
    assert str(parse(text)) == text
    assert str(parse(text.replace("&", " & ").replace(",", " ,"))) == text


@given(RETRIEVERS)
def test_the_canonical_form_names_the_same_retriever(retriever: Expression) -> None:
    assert parse(str(retriever)) == retriever


@given(st.lists(RETRIEVERS, min_size=1, max_size=4, unique=True))
def test_a_pool_is_a_list_of_them(pool: list[Expression]) -> None:
    assert parse_pool(", ".join(map(str, pool))) == tuple(pool)


@given(st.text(alphabet='RefSWikCP@&,:0159 é()*="', max_size=12))
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
        ("Wiki@CP&SE", 8, "nothing after @CP", "'&'"),
        ("Wiki@CP@CP", 8, "nothing after @CP", "'@'"),
        ("ReFree@5", 7, "nothing after ReFree", "'@'"),
        ("Wiki&ReFree", 6, "which ReFree is not", "'ReFree'"),
        ("(ReFree)", 2, "which ReFree is not", "'ReFree'"),
        ("5", 1, "name of a source", "'5'"),
        ("Wiki@0", 6, "from 1", "'0'"),
        ("Wiki@9999999999", 6, "from 1", "'9999999999'"),
        ("Wiki@", 6, "RR, a number or CP", "the end"),
        ("Wiki@RR@x", 9, "RR, a number or CP", "'x'"),
        ("Wiki&", 6, "name of a source", "the end"),
        ("Wiki 5", 6, "& or the end", "'5'"),
        ("Wiki@5,SE@5", 7, "& or the end", "','"),
        ("Wiki@5 + SE", 8, "& or the end", "'+'"),
        ("(Wiki", 6, ") for the ( of character 1", "the end"),
        ("Wiki)", 5, "& or the end", "')'"),
        ("rrf(a)", 6, "another retriever", "')'"),
        ("rrf(a,", 7, "name of a source", "the end"),
        ("rrf(a,k=5)", 7, "another retriever", "'k'"),
        ("rrf(a,b,k=5,c)", 14, "= and a value", "')'"),
        ("rrf(a,b,k=)", 11, "a value", "')'"),
        ("rrf(a,b,k=1,k=2)", 13, "each option once", "'k'"),
        ("rrf(a,0*b)", 7, "a weight above 0", "'0'"),
        ("rrf(a,x*b)", 7, "a weight above 0", "'x'"),
        ("rrf(a,inf*b)", 7, "a weight above 0", "'inf'"),
        ("a@RR()", 6, "name of a component", "')'"),
        ("a@RR(x,y)", 9, "= and a value", "')'"),
        ('a&"b', 3, "a closing quote", "'\"'"),
        ("(" * 60 + "a", 51, "at most 50 parentheses", "'('"),
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ReFree", 0),
        ("a", None),
        ("a@RR@5", 5),
        ("a@5@RR", None),
        ("a@5@7", 5),
        ("a@5&b@3@CP", 8),
        ("a@5&b", None),
        ("(a@5&b@3)@4", 4),
        ("rrf(a@5,b@3)", None),
        ("rrf(a@5,b@3)@2", 2),
    ],
)
def test_how_many_it_gives_by_its_own_numbers(text: str, expected: int | None) -> None:
    """What is reranked or fused are candidates: their number is not how many are given."""
    assert size(parse(text)) == expected


def test_its_sources_are_named_once_in_order() -> None:
    assert sources(parse("rrf(b@5,a&b)@RR&c@CP")) == ("b", "a", "c")
