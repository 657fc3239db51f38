from hopscope.runtime.execution.state import merge
from hopscope.runtime.types import Hit, Passage


def hit(name: str, text: str = "") -> Hit:
    return Hit(passage=Passage(id=name, text=text or name), score=1.0)


def test_merge_keeps_the_first_of_equal_passages_and_their_order() -> None:
    first = merge((), [hit("b", "old"), hit("a")])
    merged = merge(first, [hit("b", "new"), hit("c")])
    assert [p.id for p in merged] == ["b", "a", "c"]
    assert merged[0].text == "old"


def test_merge_stops_at_the_cap() -> None:
    assert [p.id for p in merge((), [hit(n) for n in "abcd"], cap=2)] == ["a", "b"]


def test_passages_without_an_id_are_the_same_when_only_case_and_spacing_differ() -> None:
    one, other = Passage(text="The  Cat\nsat."), Passage(text="the cat sat.")
    assert one.key == other.key
    assert one.content_hash != other.content_hash
