"""Compressors, on likelihoods given by hand and on a real reader."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer
from transformers.models.auto.modeling_auto import AutoModelForCausalLM

from hopscope.runtime.compressors import _budget, long_llmlingua, selective_context, summary
from hopscope.runtime.compressors._budget import Unit, units
from hopscope.runtime.compressors._rates import ends, rates
from hopscope.runtime.errors import ContextOverflowError, ReaderError, UsageError
from hopscope.runtime.generation.texts.rendering import plain_text
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.readers import hf
from hopscope.runtime.stages import Candidates, Compression
from hopscope.runtime.types import Hit, Passage, Scored
from tests.fakes import ScriptedReader, scored
from tests.models import tiny_llama
from tests.talk import Talker

ALBA = "Alba is a film. It was directed by Bruno Costa."
LISBON = "Bruno Costa was born in Lisbon."


def candidates(*texts: str, query: str = "Who directed Alba?") -> Candidates:
    named = enumerate(texts)
    hits = (
        Hit(passage=Passage(id=f"p{i}", title=f"T{i}", text=t), score=9.0 - i) for i, t in named
    )
    return Candidates(query, tuple(hits))


def spoken(**logprobs: float) -> Scored:
    """A text of these words, one token each, with their log-probabilities."""
    tokens = [word if i == 0 else f" {word}" for i, word in enumerate(logprobs)]
    return scored((0.0,) * len(tokens), tuple(logprobs.values())).model_copy(
        update={"tokens": tuple(tokens)}
    )


def texts(found: Compression) -> dict[str, str]:
    return {hit.passage.id: hit.passage.text for hit in found.hits}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llama(tmp_path_factory.mktemp("llama"), chat=False)


@given(st.text(alphabet="ab .!?\n\tä。", max_size=40), st.data())
def test_units_together_are_the_text(text: str, data: st.DataObject) -> None:
    """However the tokens lie across words and sentences, those of a real tokenizer's included."""
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)) | {0, len(text)})
    tokens = [text[a:b] for a, b in pairwise(cuts)]
    values = [float(i) for i in range(len(tokens))]
    for kind in ("token", "sentence"):
        pieces = units(tokens, values, kind)  # type: ignore[arg-type]
        assert "".join(unit.text for unit in pieces) == text
        assert sum(unit.tokens for unit in pieces) == len(tokens)
    words = units(tokens, values, "word")
    assert [unit.text.strip() for unit in words] == text.split()


def test_a_unit_s_value_is_the_mean_over_the_tokens_that_begin_in_it() -> None:
    tokens = ["Mos", "cow", " is", " far", ".", " Very", " far."]
    values = [4.0, 2.0, 1.0, 5.0, 0.0, 3.0, 7.0]
    assert units(tokens, values, "word") == [
        Unit("Moscow", 2, 3.0),
        Unit(" is", 1, 1.0),
        Unit(" far.", 2, 2.5),
        Unit(" Very", 1, 3.0),
        Unit(" far.", 1, 7.0),
    ]
    assert [(u.text.strip(), u.tokens, u.value) for u in units(tokens, values, "sentence")] == [
        ("Moscow is far.", 5, 2.4),
        ("Very far.", 2, 5.0),
    ]


def test_what_is_strictly_below_the_percentile_is_dropped() -> None:
    """Information 1, 2, 3, 4, 5: the percentile .5 is 3, which stays."""
    reader = ScriptedReader(scores=[spoken(one=-1, four=-4, two=-2), spoken(three=-3, five=-5)])
    compressor = selective_context.build(reader=reader, ratio=0.5)
    [found] = compressor.compress([candidates("one four two", "three five")])
    assert texts(found) == {"p0": "four", "p1": "three five"}
    assert (found.tokens_before, found.tokens_after) == (5, 3)
    assert [hit.score for hit in found.hits] == [9.0, 8.0]
    assert [hit.passage.title for hit in found.hits] == ["T0", "T1"]


def test_a_budget_keeps_the_most_informative_and_leaves_out_what_is_emptied() -> None:
    reader = ScriptedReader(
        scores=[spoken(one=-1, four=-4, two=-2), spoken(half=-0.5), spoken(three=-3, five=-5)]
    )
    compressor = selective_context.build(reader=reader, tokens=3)
    [found] = compressor.compress([candidates("one four two", "half", "three five")])
    assert texts(found) == {"p0": "four", "p2": "three five"}
    assert (found.tokens_before, found.tokens_after) == (6, 3)


def test_sentences_stay_or_go_as_a_whole() -> None:
    tokens = ("Alba", " is", " a", " film.", " Costa", " directed", " it.")
    told = scored((0.0,) * 7, (-1, -1, -1, -1, -3, -3, -3)).model_copy(update={"tokens": tokens})
    compressor = selective_context.build(
        reader=ScriptedReader(scores=[told]), unit="sentence", ratio=0.5
    )
    [found] = compressor.compress([candidates("".join(tokens))])
    assert texts(found) == {"p0": "Costa directed it."}
    assert (found.tokens_before, found.tokens_after) == (7, 3)


def test_a_passage_without_an_id_keeps_its_key() -> None:
    """Its key is a hash of its text; the evidence must stay what was retrieved."""
    passage = Passage(text="one two")
    reader = ScriptedReader(scores=[spoken(one=-1, two=-2)])
    given_hits = Candidates("Who?", (Hit(passage=passage, score=1.0),))
    [found] = selective_context.build(reader=reader, tokens=1).compress([given_hits])
    assert found.hits[0].passage.text == "two"
    assert found.hits[0].passage.key == passage.key


def test_queries_are_compressed_for_themselves_in_one_call() -> None:
    reader = ScriptedReader(scores=[spoken(a=-1, b=-2), spoken(c=-8, d=-9)])
    asked = [candidates("a b"), candidates("c d", query="Where?")]
    one, other = selective_context.build(reader=reader, ratio=0.6).compress(asked)
    assert (texts(one), texts(other)) == ({"p0": "b"}, {"p0": "d"})
    assert len(reader.scored) == 1


def test_information_is_that_of_the_reader(folder: Path) -> None:
    """Against the model itself, asked without our reader; a third of the words goes."""
    reader = hf.build(model=str(folder), device="cpu")
    [found] = selective_context.build(reader=reader, ratio=0.4).compress([candidates(ALBA, LISBON)])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    auto: Any = AutoModelForCausalLM
    model = auto.from_pretrained(folder).eval()
    prompt = tokenizer(plain_text(DEFAULT_PROMPTS.render(selective_context.PROMPT))).input_ids
    words: list[tuple[str, str, float]] = []
    count = 0
    for name, text in (("p0", ALBA), ("p1", LISBON)):
        ids = tokenizer(" " + text, add_special_tokens=False).input_ids
        with torch.inference_mode():
            logits = model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
        information = -logits.double().log_softmax(-1)[range(len(ids)), ids]
        pieces = [tokenizer.decode([i]) for i in ids]
        groups: list[list[float]] = []
        for piece, value in zip(pieces, information.tolist(), strict=True):
            if piece.startswith(" ") or not groups:
                groups.append([])
            groups[-1].append(value)
        count += len(ids)
        assert len(groups) == len(text.split())
        words += [
            (name, word, sum(group) / len(group))
            for word, group in zip(text.split(), groups, strict=True)
        ]
    least = np.percentile([value for *_, value in words], 40)
    expected = {
        name: " ".join(w for n, w, value in words if n == name and value >= least)
        for name in ("p0", "p1")
    }
    assert texts(found) == {name: text for name, text in expected.items() if text}
    assert found.tokens_before == count
    assert len(" ".join(expected.values()).split()) < len(words)


RANKED = [
    spoken(q=-3, r=-3), spoken(a=-1, b=-1, c=-1), spoken(a=-1, b=-1, c=-1),
    spoken(q=-1, r=-1), spoken(d=-1, e=-2, f=-3), spoken(d=-2, e=-2, f=-2),
    spoken(q=-2, r=-2), spoken(g=-1, h=-1), spoken(g=-1.5, h=-3),
]  # fmt: skip
"""r is 3, 1 and 2 nats a token; 8 tokens; contrasts: d 1, e 0, f -1, g .5, h 2, the others 0."""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # Two passages of the order p1, p2, p0 have the 4 tokens, of which all keep a share of .8:
        # 2.4 and 1.6, so the first two of p1 and, as .4 are left, two of p2.
        ({"rate": 0.5, "slack": 0, "spread": 0}, {"p1": "d e", "p2": "g h"}),
        # (x + .6) 3 + (x - .6) 2 = 4 would have the first keep more than all: it keeps all.
        ({"rate": 0.5, "slack": 0, "spread": 0.6}, {"p1": "d e f", "p2": "h"}),
        # With two tokens of slack p0 is taken, too; x = .5: .8, .5 and .2 of 3, 2 and 3 tokens.
        ({"rate": 0.5, "slack": 2, "spread": 0.3}, {"p1": "d e", "p2": "h", "p0": "a"}),
        ({"tokens": 1, "slack": 0}, {"p1": "d"}),
        ({"tokens": 8}, {"p1": "d e f", "p2": "g h", "p0": "a b c"}),
    ],
)
def test_the_question_ranks_the_passages_and_the_first_keep_most(
    options: dict[str, Any], expected: dict[str, str]
) -> None:
    asked = [candidates("a b c", "d e f", "g h")]
    reader = ScriptedReader(scores=RANKED)
    [found] = long_llmlingua.build(reader=reader, **options).compress(asked)
    assert texts(found) == expected
    assert [hit.passage.id for hit in found.hits] == list(expected)
    order = {"p0": -3, "p1": -1, "p2": -2}
    assert [hit.score for hit in found.hits] == [order[key] for key in expected]
    kept = len(" ".join(expected.values()).split())
    assert (found.tokens_before, found.tokens_after) == (8, kept)


def test_rates_fall_by_rank_about_one_that_keeps_the_budget() -> None:
    """Of 10 tokens each 15: .5 in the middle. Of 10, 40 and 10 tokens 24: x such that
    (x + .3) 10 + 40 x + (x - .3) 10 = 24, so x = .4. Where one would have less than nothing, it has
    nothing, and the others more: (x + .3) 10 + 10 x = 6 leaves x - .3 below 0."""
    assert rates([10, 10, 10], 15, 0.3) == pytest.approx([0.8, 0.5, 0.2])
    assert rates([10, 40, 10], 24, 0.3) == pytest.approx([0.7, 0.4, 0.1])
    assert rates([10, 10, 10], 6, 0.3) == pytest.approx([0.45, 0.15, 0])
    assert rates([10], 4, 0.3) == pytest.approx([0.4])
    assert rates([4, 0, 4], 8, 0.3) == [1, 1, 1]
    assert rates([], 4, 0.3) == []


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.integers(1, 300), st.floats(0, 1))
def test_rates_keep_to_the_budget_and_use_it(lengths: list[int], room: int, spread: float) -> None:
    found = rates(lengths, room, spread)
    assert found == sorted(found, reverse=True)
    assert all(0 <= rate <= 1 for rate in found)
    assert ends(lengths, room, spread)[-1] == min(room, sum(lengths))


def test_the_question_is_scored_after_each_passage_alone() -> None:
    scores = [spoken(q=-1)] * 6
    reader = ScriptedReader(scores=scores)
    long_llmlingua.build(reader=reader, tokens=9).compress([candidates("a", "b")])
    [asked] = reader.scored
    assert [request.prompt.shown for request in asked[::3]] == [("p0",), ("p1",)]
    assert {r.continuation for r in asked[::3]} == {
        f"Who directed Alba? {long_llmlingua.RESTRICTION}"
    }
    assert [request.continuation for request in asked[1::3]] == ["a", "b"]
    assert "Who directed Alba?" in asked[1].prompt.text
    assert "Who directed Alba?" not in asked[2].prompt.text


@pytest.mark.parametrize("kind", ["token", "word", "sentence"])
@pytest.mark.parametrize("tokens", [1, 7, 15, 10_000])
def test_a_budget_holds_on_a_real_reader(folder: Path, kind: _budget.UnitKind, tokens: int) -> None:
    reader = hf.build(model=str(folder), device="cpu")
    asked = [candidates(ALBA, LISBON, ALBA + " " + LISBON)]
    for compressor in (
        selective_context.build(reader=reader, tokens=tokens, unit=kind),
        long_llmlingua.build(reader=reader, tokens=tokens, unit=kind),
    ):
        [found] = compressor.compress(asked)
        assert found.tokens_after <= tokens
        assert found.tokens_after <= found.tokens_before
        if tokens == 10_000:
            assert found.tokens_after == found.tokens_before
            assert {ALBA, LISBON} <= set(texts(found).values())


def test_empty_texts_are_left_out(folder: Path) -> None:
    reader = hf.build(model=str(folder), device="cpu")
    for compressor in (
        selective_context.build(reader=reader),
        long_llmlingua.build(reader=reader),
    ):
        [found] = compressor.compress([candidates("  ", ALBA)])
        assert set(texts(found)) == {"p1"}
        [nothing] = compressor.compress([candidates("  ")])
        assert nothing == Compression((), 0, 0)


def test_a_reader_without_likelihoods_is_refused() -> None:
    told = spoken(a=-1).model_copy(update={"logprobs": ()})
    compressor = selective_context.build(reader=ScriptedReader(scores=[told]))
    with pytest.raises(ReaderError, match=r"which scripted does not give.*@CP\(summary\)"):
        compressor.compress([candidates("a")])


def test_a_summary_takes_the_place_of_the_passages() -> None:
    reader = Talker(["  Costa directed\nAlba.  "])
    [found] = summary.build(reader=reader, seed=5).compress([candidates(ALBA, LISBON)])
    [hit] = found.hits
    assert (hit.passage.title, hit.passage.text) == ("Summary", "Costa directed Alba.")
    assert (found.tokens_before, found.tokens_after) == (10, 3)
    [asked] = reader.requests
    assert asked.prompt.shown == ("p0", "p1")
    assert "at most 200 words" in asked.prompt.text
    assert (asked.seed, asked.max_tokens) == (5, 300)


def test_a_summary_is_cut_at_its_words_and_shows_as_many_passages_as_fit() -> None:
    overflow = ContextOverflowError("talker", 900, 20, 512)
    reader = Talker([overflow, "one two three four"])
    [found] = summary.build(reader=reader, words=3).compress([candidates(ALBA, LISBON)])
    assert found.hits[0].passage.text == "one two three"
    assert [request.prompt.shown for request in reader.requests] == [("p0", "p1"), ("p0",)]


def test_an_empty_summary_leaves_nothing() -> None:
    [found] = summary.build(reader=Talker([" \n"])).compress([candidates(ALBA)])
    assert found.hits == ()


def test_passages_that_do_not_fit_are_not_summarised() -> None:
    """Asked without documents, a reader makes a summary up."""
    reader = Talker([ContextOverflowError("talker", 900, 20, 512)])
    [found] = summary.build(reader=reader).compress([candidates(ALBA)])
    assert found == ((), 0, 0)
    assert [request.prompt.shown for request in reader.requests] == [("p0",)]


def test_summaries_of_different_passages_have_different_keys() -> None:
    found = summary.build(reader=Talker(["Same.", "Same."])).compress(
        [candidates(ALBA), candidates(ALBA, LISBON)]
    )
    assert found[0].hits[0].passage.key != found[1].hits[0].passage.key


@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        (selective_context.build, {"ratio": 1.5}, "a share of 1.5"),
        (selective_context.build, {"tokens": 0}, "keep one token or more"),
        (long_llmlingua.build, {"rate": -0.1}, "a share of -0.1"),
        (long_llmlingua.build, {"spread": 1.5}, "a share of 1.5"),
        (long_llmlingua.build, {"slack": -1}, "slack=-1: take 0 tokens or more"),
        (summary.build, {"words": 0}, "one word or more"),
    ],
)
def test_budgets_that_cannot_be_kept_to_are_refused(
    build: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        build(reader=Talker([]), **options)
