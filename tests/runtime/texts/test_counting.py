"""A number with its noun."""

from hopscope.runtime.texts.counting import counted


def test_one_is_singular_and_thousands_have_a_separator() -> None:
    told = [counted(n, "run") for n in (0, 1, 2, 12_345)]
    assert told == ["0 runs", "1 run", "2 runs", "12,345 runs"]


def test_a_plural_of_its_own_may_have_a_verb() -> None:
    assert counted(1, "query is", "queries are") == "1 query is"
    assert counted(1_000, "query is", "queries are") == "1,000 queries are"
