"""Rerankers that ask a reader or a meter, on scripted replies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.runtime.errors import ContextOverflowError, UsageError
from hopscope.runtime.readers import hf
from hopscope.runtime.rerankers import listwise, utility
from hopscope.runtime.stages import Candidates, Reranking
from hopscope.runtime.types import Hit, Question
from hopscope.tracing.meters.grogu import GroGU
from tests.fakes import FunctionMeter, ScriptedReader, passage, reply, scored
from tests.models import tiny_llama
from tests.talk import Talker


def candidates(keys: str, query: str = "Who?") -> Candidates:
    hits = (Hit(passage=passage(key), score=10.0 - i) for i, key in enumerate(keys))
    return Candidates(query, tuple(hits))


def order(reranked: Reranking) -> str:
    return "".join(hit.passage.key for hit in reranked.hits)


def test_the_reader_writes_the_order() -> None:
    reader = Talker(["[3] > [1]"])
    [found] = listwise.build(reader=reader).rerank([candidates("abcd")])
    assert order(found) == "cabd"
    assert [hit.score for hit in found.hits] == [1, 1 / 2, 1 / 3, 1 / 4]
    assert found.ok is True
    assert "[4]" in str(reader.requests[0].prompt.messages)
    assert "relevance to the question" in reader.requests[0].prompt.messages[-1].content


def test_long_lists_are_ranked_in_windows_from_the_tail() -> None:
    """What a window puts first goes on into the next one."""
    reader = Talker(["[4] > [3]", "[4] > [1]"])
    reranker = listwise.build(reader=reader, window=4, stride=2)
    [found] = reranker.rerank([candidates("abcdef")])
    # cdef -> fecd; abfe -> eabf: the head has seen the best two of the tail.
    assert [request.prompt.shown for request in reader.requests] == [tuple("cdef"), tuple("abfe")]
    assert order(found) == "eabfcd"


def test_a_reply_that_names_nothing_leaves_the_order_and_says_so() -> None:
    reader = Talker(["[2] > [1]", "I cannot tell.", "[2] > [1]"])
    one, other = listwise.build(reader=reader, window=2, stride=1).rerank(
        [candidates("abc"), candidates("xy", "Where?")]
    )
    assert (order(one), one.ok) == ("acb", False)
    assert (order(other), other.ok) == ("yx", True)


@given(st.integers(1, 30), st.integers(1, 25), st.data())
def test_whatever_is_replied_nothing_is_lost(n: int, window: int, data: st.DataObject) -> None:
    stride = data.draw(st.integers(1, window))
    texts = st.text(alphabet="[]> 0123456789", max_size=12)
    reader = ScriptedReader([[reply(data.draw(texts))] for _ in range(40)])
    given_hits = tuple(Hit(passage=passage(f"p{i}"), score=0.0) for i in range(n))
    reranker = listwise.build(reader=reader, window=window, stride=stride)
    [found] = reranker.rerank([Candidates("Who?", given_hits)])
    assert sorted(hit.passage.key for hit in found.hits) == sorted(f"p{i}" for i in range(n))


def test_windows_that_do_not_fit_the_reader_are_halved() -> None:
    overflow = ContextOverflowError("talker", 900, 20, 512)
    reader = Talker([overflow, overflow, "[2] > [1]", "[2] > [1]", "[2] > [1]"])
    [found] = listwise.build(reader=reader, window=8, stride=4).rerank([candidates("abcd")])
    shown = ["".join(request.prompt.shown) for request in reader.requests]
    assert shown == ["abcd", "abcd", "cd", "bd", "ad"]
    assert order(found) == "dabc"
    with pytest.raises(ContextOverflowError):
        listwise.build(reader=Talker([overflow]), window=2, stride=1).rerank([candidates("abc")])


def test_windows_that_leave_gaps_are_refused() -> None:
    with pytest.raises(UsageError, match="a stride of 3 in windows of 2"):
        listwise.build(reader=Talker([]), window=2, stride=3)


def test_utility_ranks_by_each_passage_alone() -> None:
    values = {"a": 0.1, "b": 0.7, "c": None, "d": 0.1}
    meter = FunctionMeter(lambda keys: values[keys[0]])
    reranker = utility.build(reader=Talker([]), meter=meter)
    [found] = reranker.rerank([candidates("cabd")])
    assert order(found) == "badc"  # equal ones as they came, the unmeasured last
    assert meter.calls == [[("c",), ("a",), ("b",), ("d",)]]
    assert [hit.score for hit in found.hits][:3] == [0.7, 0.1, 0.1]
    assert (reranker.name, found.ok) == ("utility(by=function)", None)


def test_utility_by_grogu_prefers_what_makes_the_reader_sure() -> None:
    """Key entropy of the answers: 2 nats with no evidence, then 1.5, 0.2 and 0.9 with each."""
    answers = [
        [reply("x", entropies=(entropy,), logprobs=(-1.0,))] for entropy in (2.0, 1.5, 0.2, 0.9)
    ]
    reader = ScriptedReader(answers, [scored((5.0,))] * 3)
    reranker = utility.build(reader=reader, meter=GroGU(reader))
    [found] = reranker.rerank([candidates("abc")])
    assert order(found) == "bca"
    assert [hit.score for hit in found.hits] == pytest.approx([1.8, 1.1, 0.5])
    [asked] = reader.generated
    assert [request.prompt.shown for request in asked] == [(), ("a",), ("b",), ("c",)]


def test_utility_by_grogu_on_a_real_reader_is_the_meter_s_own_order(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    reader = hf.build(model=str(tiny_llama(tmp_path_factory.mktemp("llama"))), device="cpu")
    meter = GroGU(reader, max_tokens=8)
    asked = candidates("abcd", "Where was Bruno Costa born?")
    values = meter.measure(Question(text=asked.query), [(p,) for p in asked.passages])
    [found] = utility.build(reader=reader, meter=meter).rerank([asked])
    known = {p.key: m.value for p, m in zip(asked.passages, values, strict=True)}
    measured = {key: value for key, value in known.items() if value is not None}
    assert measured, "nothing was measured, the test shows nothing"
    found_order = [hit.passage.key for hit in found.hits if hit.passage.key in measured]
    assert found_order == sorted(measured, key=lambda key: -measured[key])


def test_utility_by_item_puts_what_the_reader_judges_useful_first() -> None:
    reader = Talker(["Velora Tarn\nmore", "My selection:[[4],[2]]."])
    reranker = utility.build(by="item", reader=reader, seed=7)
    [found] = reranker.rerank([candidates("abcd")])
    assert order(found) == "bdac"  # each group in its old order
    assert found.ok is True
    draft, judgment = reader.requests
    assert draft.prompt.shown == judgment.prompt.shown == tuple("abcd")
    assert "Velora Tarn" in judgment.prompt.messages[-1].content
    assert {draft.seed, judgment.seed} == {7}


def test_utility_by_item_can_judge_each_passage_for_itself() -> None:
    reader = Talker(["Tarn", "My judgment: No.", "My judgment: Yes.", "perhaps"])
    reranker = utility.build(by="item", judgment="pointwise", reader=reader)
    [found] = reranker.rerank([candidates("abc")])
    assert (order(found), found.ok) == ("bac", False)


def test_without_a_meter_grogu_is_refused() -> None:
    with pytest.raises(UsageError, match="needs its meter"):
        utility.build(reader=Talker([]))
