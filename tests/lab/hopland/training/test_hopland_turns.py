"""What the reader is to say to each prompt of the product, read by the product's own parsers."""

import random
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM

from hopscope.lab.hopland import world
from hopscope.lab.hopland.contexts import Example, Mix, Sampler
from hopscope.lab.hopland.names import Forge
from hopscope.lab.hopland.training import growth, tokenizer
from hopscope.lab.hopland.training.train import config
from hopscope.lab.hopland.turns import Turn
from hopscope.runtime.judgments.permutation import permutation
from hopscope.runtime.judgments.selection import necessary_information, selection, verdict
from hopscope.runtime.readers import hf
from hopscope.runtime.texts.continuation import extract_answer
from hopscope.tracing.entailments import judge
from hopscope.workflows import flare_instruct
from hopscope.workflows.flare import questions
from hopscope.workflows.self_ask import dialogue_form
from tests.lab.hopland.training.tokenizers_learned import learned

MIX = Mix((3, 5), (("1", 1.0), ("2", 2.0), ("fixed", 0.5)), 0.1, 0.3, 0.3, others=0.9)
CLOSED = Mix((0,), (("1", 1.0), ("2", 1.0), ("fixed", 2.0)), 0.1, 0.0, others=0.9)


@dataclass(frozen=True)
class Case:
    example: Example
    place: int

    @property
    def turn(self) -> Turn:
        return self.example.turns[self.place]

    @property
    def facts(self) -> set[world.Fact]:
        return {fact for facts in self.example.told for fact in facts}


@pytest.fixture(scope="module")
def cases() -> dict[str, list[Case]]:
    rng = random.Random(8)
    sampler = Sampler(world.make(8, split="train", scale=3), rng, Forge(rng, "train", frozenset()))
    drawn = [sampler.example(MIX) for _ in range(60)]
    drawn += [sampler.example(CLOSED) for _ in range(20)]
    drawn += [sampler.dialogue(MIX) for _ in range(60)]
    drawn += [sampler.aside(MIX) for _ in range(20)]
    found: dict[str, list[Case]] = {}
    for example in drawn:
        for place, turn in enumerate(example.turns):
            found.setdefault(turn.kind, []).append(Case(example, place))
    return found


def test_every_prompt_is_drawn(cases: dict[str, list[Case]]) -> None:
    assert set(cases) == {
        *("answer", "reasoned", "search", "self_ask", "information", "summary", "enough"),
        *("background", "expand", "ask", "rewrite", "same", "judge", "rank", "select", "tail"),
        *("select after explicit", "select after implicit"),
    }


def test_a_selection_names_the_passages_that_tell_a_step(cases: dict[str, list[Case]]) -> None:
    sizes = Counter[int]()
    for kind in ("select", "select after explicit", "select after implicit"):
        for case in cases[kind]:
            asked = case.example.asked[case.place]
            useful = {
                number
                for number, facts in enumerate(case.example.told, start=1)
                if set(facts) & set(asked.steps)
            }
            n = len(case.example.passages)
            picked = selection(case.turn.said, n, after_text=kind != "select")
            assert picked.ok
            assert set(picked.positions) == useful
            sizes[len(useful)] += 1
            if kind == "select after implicit":
                assert necessary_information(case.turn.said.splitlines()[0])
    assert sizes[0] > 5
    assert sizes[2] > 5


def test_a_ranking_has_all_passages_the_useful_first(cases: dict[str, list[Case]]) -> None:
    for case in cases["rank"]:
        steps = case.example.asked[case.place].steps
        n = len(case.example.passages)
        order = permutation(case.turn.said, n)
        assert order.ok
        assert case.turn.said.count("[") == n
        useful = [bool(set(case.example.told[i - 1]) & set(steps)) for i in order.positions]
        assert useful == sorted(useful, reverse=True)


def test_a_tail_completes_a_ranking_in_the_order_of_the_passages(
    cases: dict[str, list[Case]],
) -> None:
    begun = 0
    for case in cases["tail"]:
        numbers = [int(n) for n in re.findall(r"\d+", case.turn.begun + case.turn.said)]
        rest = [int(n) for n in re.findall(r"\d+", case.turn.said)]
        assert sorted(numbers) == list(range(1, len(numbers) + 1))
        assert rest == sorted(rest)
        assert f"Rank the {len(numbers)} passages" in case.turn.user
        begun += len(rest) < len(numbers)
    assert begun > 5


def test_a_search_is_asked_for_exactly_where_a_fact_is_unknown(
    cases: dict[str, list[Case]],
) -> None:
    searched = 0
    for case in cases["search"]:
        asked, turn = case.example.asked[case.place], case.turn
        kept, query = flare_instruct.asked(turn.said)
        whole = (turn.begun + kept).strip()
        written = sum(sentence in whole for sentence in asked.sentences)
        known = case.facts | set(world.FIXED_FACTS.values())
        if query is None:
            assert extract_answer(whole) == asked.answer
        else:
            searched += 1
            assert asked.steps[written] not in known
            assert asked.steps[written].subject in query
        begun = sum(sentence in turn.begun for sentence in asked.sentences)
        assert set(asked.steps[begun:written]) <= known
    assert 10 < searched < len(cases["search"])


def test_a_dialogue_of_follow_ups_reads_turn_by_turn(cases: dict[str, list[Case]]) -> None:
    for case in cases["self_ask"]:
        asked = case.example.asked[case.place]
        reply, answers = case.turn.said, []
        while True:
            turn = dialogue_form.read(reply)
            if turn.answer is not None:
                break
            assert turn.follow_up
            following = reply.index(turn.follow_up) + len(turn.follow_up)
            reply = reply[following:].strip()
            answers.append(reply.removeprefix(dialogue_form.INTERMEDIATE).split("\n")[0].strip())
        assert turn.answer == asked.answer
        if len(asked.steps) > 1:
            assert answers == [fact.object for fact in asked.steps]


def test_replies_of_one_word_can_be_read(cases: dict[str, list[Case]]) -> None:
    for case in cases["enough"]:
        assert case.turn.said == ("No" if case.turn.absent else "Yes")
    assert {judge.relation(case.turn.said).entailment for case in cases["same"]} == {0.0, 1.0}
    assert {verdict(case.turn.said) for case in cases["judge"]} == {True, False}
    for case in cases["ask"]:
        assert questions.question(case.turn.said) == case.turn.said


def test_a_question_about_a_span_asks_for_it(cases: dict[str, list[Case]]) -> None:
    for case in (*cases["ask"], *cases["rewrite"]):
        asked = case.example.asked[case.place]
        assert any(fact.subject in case.turn.said for fact in asked.steps)
        assert not any(fact.object in case.turn.said for fact in asked.steps[-1:])


def test_a_grown_reader_says_at_first_what_the_smaller_one_said() -> None:
    folder = Path(hf.__file__).parent / "hopland"
    small = LlamaForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()
    learned = tokenizer.load(folder)
    layers, width = small.config.num_hidden_layers + 1, small.config.hidden_size
    large = LlamaForCausalLM(config(learned, layers=layers, width=width)).eval()
    growth.grow(large, learned, folder)
    ids = torch.tensor([learned("Song of Balvik was directed by Ada Corden.").input_ids])
    with torch.inference_mode():
        torch.testing.assert_close(large(ids).logits, small(ids).logits, atol=1e-4, rtol=1e-4)
    with pytest.raises(ValueError, match="more layers"):
        growth.grow(LlamaForCausalLM(config(learned, layers=1, width=width)), learned, folder)


def test_words_of_the_prompts_are_whole_and_names_keep_their_tokens() -> None:
    assert len(learned()("Rank the passages by their utility").input_ids) == 6
    assert len(learned()("Song of Balvik").input_ids) == 4
