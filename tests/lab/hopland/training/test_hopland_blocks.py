"""Tokens, packed blocks, copying data."""

import random
import re

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from hopscope.lab.hopland import world
from hopscope.lab.hopland.contexts import Example, Mix, Sampler
from hopscope.lab.hopland.names import Forge
from hopscope.lab.hopland.training import blocks, guidance, tokenizer
from hopscope.lab.hopland.training.blocks import Packed, Source
from hopscope.lab.hopland.training.losses import copying
from hopscope.runtime.prompting import prompts
from tests.lab.hopland.training.tokenizers_learned import learned


def shape(layers: int) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(learned()),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=2,
        initializer_range=0.2,
        tie_word_embeddings=True,
    )


def examples(n: int) -> list[Example]:
    rng = random.Random(0)
    drawn = Sampler(world.make(1, split="train"), rng, Forge(rng, "train", world.RESERVED))
    mix = Mix((0, 2, 5), (("1", 1.0), ("2", 1.0), ("yesno", 1.0)), 0.4, 0.3, 0.3, 5, others=0.6)
    kinds = (drawn.example, drawn.example, drawn.dialogue, drawn.aside)
    return [kinds[i % 4](mix) for i in range(n)]


def mask(segments: torch.Tensor) -> torch.Tensor:
    """Who may attend to whom, (sequence, 1, query, key): the opening and the own block."""
    rows = torch.arange(len(segments)).repeat_interleave(segments.shape[1])
    queries = torch.arange(segments.shape[1]).repeat(len(segments))
    seen = blocks.seen(segments, rows, queries)
    return seen.view(len(segments), 1, segments.shape[1], segments.shape[1])


def ids(text: str) -> list[int]:
    found: list[int] = learned()(text).input_ids
    return found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Song of Balvik was directed by Ada Corden.", " Ada Corden was born in Port Galwin."),
        ("It was released in 1947.", " So the answer is: 1947."),
    ],
)
def test_sentences_tokenise_alike_together_and_apart(first: str, second: str) -> None:
    """IRCoT tokenises its prefix again at each step: other tokens would be another prompt."""
    assert ids(first) + ids(second) == ids(first + second)


def test_a_name_has_the_same_tokens_at_the_start_of_an_answer_and_inside_a_passage() -> None:
    assert ids("Ada Corden") == ids(" Ada Corden")
    inside = ids("by Ada Corden.")
    assert inside[1:-1] == ids("Ada Corden")
    assert learned().decode(ids("Ada Corden, 1947.")).strip() == "Ada Corden, 1947."


def test_the_template_gives_one_beginning_of_text_and_ends_where_the_answer_begins() -> None:
    prompt = prompts.short_answer("Who directed Song of Balvik?")
    messages = [m.model_dump() for m in prompt.messages]
    text = learned().apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    tokens = learned().convert_ids_to_tokens(ids(text))
    assert tokens.count(tokenizer.BOS) == 1
    assert tokens[-1] == tokenizer.ASSISTANT


def test_a_block_has_the_logits_of_the_single_conversation_the_product_sends() -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(shape(layers=2)).eval()
    drawn = examples(8)
    for part in (drawn[:4], drawn[4:]):
        batch = blocks.collate(blocks.pack(learned(), part, passage_weight=0.0))
        with torch.inference_mode():
            together = model(
                input_ids=batch.ids,
                attention_mask=mask(batch.segments),
                position_ids=batch.positions,
            ).logits
            for row, example in enumerate(part):
                for number, turn in enumerate(example.turns, start=1):
                    messages = [m.model_dump() for m in example.opening]
                    messages.append({"role": "user", "content": turn.user})
                    messages.append({"role": "assistant", "content": turn.begun + turn.said})
                    text = learned().apply_chat_template(messages, tokenize=False)
                    alone = model(input_ids=torch.tensor([ids(text)])).logits[0]
                    own = (batch.segments[row] == 0) | (batch.segments[row] == number)
                    torch.testing.assert_close(together[row, own], alone, atol=1e-4, rtol=1e-4)


def test_the_loss_counts_answers_and_their_end_token_only() -> None:
    drawn = examples(1)
    [packed] = blocks.pack(learned(), drawn, passage_weight=0.0)
    counted = [i for i, w in zip(packed.ids, packed.weights, strict=True) if w]
    assert counted.count(learned().eos_token_id) == len(drawn[0].turns)
    assert learned().convert_tokens_to_ids(tokenizer.USER) not in counted
    assert learned().convert_tokens_to_ids(tokenizer.ASSISTANT) not in counted


def test_a_source_holds_the_token_that_is_to_be_read_there() -> None:
    packed = blocks.pack(learned(), examples(30), passage_weight=0.0)
    found = [(p, s) for p in packed for s in p.sources if s.before == 0 and not numbered(p, s)]
    assert len(found) > 100
    for p, s in found:
        assert p.ids[s.query + 1] == p.ids[s.key]
        assert p.segments[s.key] == 0
        assert p.weights[s.query + 1] > 0


def numbered(packed: Packed, source: Source) -> bool:
    """Whether the token to be read is a passage's number, "[3" or "[10"."""
    return "[" in learned().decode(packed.ids[source.query - 1 : source.query + 1])


def test_a_number_is_read_at_the_fact_that_its_passage_tells() -> None:
    rng = random.Random(3)
    drawn = Sampler(world.make(3, split="train"), rng, Forge(rng, "train", world.RESERVED))
    mix = Mix((5,), (("1", 1.0), ("2", 2.0), ("yesno", 1.0)), 0.4, 0.1, 0.1, judged=(10, 12))
    packed = blocks.pack(learned(), [drawn.dialogue(mix) for _ in range(20)], passage_weight=0.0)
    checked = 0
    for p in packed:
        marks = {s.query: s.key for s in p.sources if s.head == 1}
        assert all(key < query for query, key in marks.items())
        for s in p.sources:
            if s.head == 0 and s.before == 0 and numbered(p, s):
                said = learned().decode(p.ids[s.query + 1 : s.query + 3])
                [number] = re.findall(r"^\s*(\d+)", said)
                header = learned().decode(p.ids[: marks[s.key] + 1])
                begun = learned().decode(p.ids[s.query]).strip().removeprefix("[")
                assert header[header.rindex("[") + 1 :] == begun + number
                checked += 1
    assert checked > 50


def test_what_is_read_last_is_found_by_way_of_the_end_of_an_object_of_the_chain() -> None:
    drawn = examples(40)
    packed = blocks.pack(learned(), drawn, passage_weight=0.0)
    pairs = zip(drawn, packed, strict=True)
    found = [(e, p, s) for e, p in pairs for s in p.sources if s.before and s.head == 0]
    assert found
    for example, p, s in found:
        bridges = {fact.object for asked in example.asked for fact in asked.steps}
        start = " ".join(learned().decode(p.ids[: s.key + 1]).split())
        assert any(start.endswith(bridge) for bridge in bridges)


def test_guidance_falls_as_the_guided_head_looks_where_it_should() -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(shape(layers=3))
    batch = blocks.collate(blocks.pack(learned(), examples(4), passage_weight=0.0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    values = []
    for _ in range(12):
        inputs, _ = guidance.states(model, batch)
        value = guidance.pointing(model, inputs, batch)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        values.append(float(value.detach()))
    assert values[-1] < 0.7 * values[0]


def test_the_guided_forward_pass_is_the_models_own() -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(shape(layers=2)).eval()
    batch = blocks.collate(blocks.pack(learned(), examples(8), passage_weight=0.0))
    lines = [(row, line[line >= 0]) for row in range(8) for line in batch.own[row]]
    assert any(len(batch.segments[row, line].unique()) > 1 for row, line in lines)
    with torch.inference_mode():
        _, hidden = guidance.states(model, batch)
        own = model.lm_head(hidden)
        plain = model(
            input_ids=batch.ids,
            attention_mask=mask(batch.segments),
            position_ids=batch.positions,
        ).logits
    counted = batch.segments >= 0
    torch.testing.assert_close(own[counted], plain[counted], atol=1e-4, rtol=1e-4)


def test_copying_counts_repeats_only() -> None:
    batch = copying(torch.arange(6, 70), 3, torch.Generator().manual_seed(0))
    for row, query, key, before, head in batch.sources.tolist():
        assert head == 0
        assert key == query - 1 if before == 2 else batch.ids[row, key] == batch.ids[row, query + 1]
    for row, weights in zip(batch.ids.tolist(), batch.weights.tolist(), strict=True):
        period = weights.index(1.0)
        assert 4 <= period < 32
        assert all(row[i] == row[i - period] for i in range(period, len(row)))
