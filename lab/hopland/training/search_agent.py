"""Teach the embedded reader to search by itself, in the form of Search-R1.

    python -m hopscope.lab.hopland.training.search_agent --out FOLDER [--minutes N] [--seed N]

It starts from a Hopland reader and learns from transcripts: think of the next fact, search for it,
read what BM25 finds in a world as large as the shipped corpus, go on, answer. The loss counts only
what the reader itself writes. Between them it rehearses the prompt of the short answer, which
meters use. Writes what `export` writes, in half precision, every few minutes.
"""

import argparse
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from transformers import GenerationConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from hopscope.lab.hopland.questions import (
    COMPARISONS,
    SAME,
    GeneratedQuestion,
    chain,
    comparison,
    yesno,
)
from hopscope.lab.hopland.relations import FIXED, RELATIONS
from hopscope.lab.hopland.training import feeding, growth, tokenizer
from hopscope.lab.hopland.training.curriculum import STAGES
from hopscope.lab.hopland.training.searched import Searched
from hopscope.lab.hopland.training.train import config
from hopscope.lab.hopland.turns import Scene
from hopscope.lab.hopland.world import FIXED_FACTS, FIXED_NAMES, Fact
from hopscope.runtime.prompting import prompts
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.readers import hf
from hopscope.workflows.search_agent import tags

FORM = tags.SEARCH_R1
RATE, FINAL_SHARE, WARM_UP_STEPS = 1e-3, 0.03, 40
AVERAGING = 0.99
REHEARSED = 0.15
"""After so many of the transcripts, questions in the prompt of the short answer."""
TOGETHER = 2
"""Of one context, as many questions are answered at once."""
REHEARSAL = replace(STAGES[-1].mix, reasoning=0.0, others=0.0, passages=(1, 2, 3, 4, 5, 6))
WITHHELD = 0.1
"""The share of the facts whose passage no search finds."""
CUT = 0.12
"""The share of transcripts that must answer before they would."""
PAIRS, BY_HEART = 0.3, 0.15
"""The share of questions that compare, and of chains that end in what is known by heart."""
HOPS = (1, 2, 2, 2, 2, 3, 3, 3)
"""Facts of a chain, drawn uniformly."""
CHOICE = 8.0
"""What a token counts that chooses between another search and the answer, or between two names."""
NUMBERS = (1, 2, 3, 3, 3, 3, 3, 3, 4, 5)
"""Passages of one search, drawn uniformly."""
POOL, BATCH_TOKENS = 64, 3000
"""Rows drawn before they are sorted by length and cut into batches, and tokens of a batch."""
SAVED_EVERY = 300.0
KEPT = 0.95
"""Decay of the running average that is printed."""
WORDS = ("think", "search", "information", "answer", "Doc", "Title", " need", " still")


Piece = tuple[str, float]
"""A part of a transcript, and what its tokens count: 0 where the reader does not write it."""


@dataclass(frozen=True)
class Transcript:
    """A question and the reply to it."""

    question: str
    parts: tuple[Piece, ...]


@dataclass(frozen=True)
class Row:
    """A training sequence."""

    ids: list[int]
    own: list[float]
    """What the token counts."""


class Transcripts:
    """Draws transcripts of searches in one large world."""

    def __init__(self, sampler: Searched) -> None:
        self.sampler, self.rng = sampler, sampler.rng

    def draw(self) -> Transcript:
        """A question of any shape. A fact that no search finds is a name drawn at random, as it is
        in the reader's other prompts."""
        rng, asked, number = self.rng, self.asked(), self.rng.choice(NUMBERS)
        told: set[Fact] = set(FIXED_FACTS.values())
        parts: list[Piece] = []
        thought: list[str] = []
        facts: list[Fact] = []
        for fact in asked.steps:
            relation = RELATIONS[fact.relation]
            if asked.kind == "chain" and facts and facts[-1].object != fact.subject:
                fact = Fact(facts[-1].object, relation.name, self.sampler.anything(relation))
            withheld = fact if rng.random() < WITHHELD else None
            need = relation.noun[0].format(s=fact.subject)
            for query in (relation.questions[0].format(s=fact.subject), need):
                if fact in told:
                    break
                parts += _thought(thought, need, again=query == need)
                parts.append((_within(FORM.query, query), 1.0))
                thought = []
                passages = self.found(query, number, withheld)
                told |= {fact for place in passages for fact in self.facts(place)}
                shown = [self.sampler.world.tellings[place].passage for place in passages]
                parts.append((FORM.found(shown), 0.0))
            if fact not in told:
                fact = Fact(fact.subject, relation.name, self.sampler.anything(relation))
            facts.append(fact)
            thought.append(relation.canonical.format(s=fact.subject, o=fact.object))
        said = answered(asked, facts)
        if parts and rng.random() < CUT:
            return Transcript(asked.text, self.cut(asked, parts, told, facts, said))
        paired = asked.kind != "chain"
        if paired:  # what is compared stands side by side, as in a chain of thought
            thought = list(replace(asked, steps=tuple(facts)).sentences)
        last = _within(tags.ANSWER, said)
        parts += [*_thought(thought), (last, CHOICE if paired else 1.0)]
        return Transcript(asked.text, tuple(parts))

    def cut(
        self,
        asked: GeneratedQuestion,
        parts: Sequence[Piece],
        told: set[Fact],
        facts: Sequence[Fact],
        said: str,
    ) -> tuple[Piece, ...]:
        """The transcript up to a search, carried out or not, and the answer at once."""
        ends = [i + 1 for i, (text, _) in enumerate(parts) if FORM.query[0] in text]
        kept = list(parts[: self.rng.choice(ends) + self.rng.randint(0, 1)])
        if len(kept) < len(parts) or not told.issuperset(facts):
            lacking = [
                Fact(f.subject, f.relation, self.sampler.anything(RELATIONS[f.relation]))
                for f in facts
            ]
            said = answered(asked, lacking)
        opening = tags.ANSWER[0] if not kept[-1][1] else f"\n\n{tags.ANSWER[0]}"
        return (*kept, (opening, 0.0), (f" {said} {tags.ANSWER[1]}", 1.0))

    def asked(self) -> GeneratedQuestion:
        """A chain of facts, some of which end in what is known by heart, or a pair to compare."""
        rng, sampler = self.rng, self.sampler
        if rng.random() < PAIRS:
            table, ask = rng.choice(((COMPARISONS, comparison), (SAME, yesno)))
            pair = sampler.pair(rng.choice(sorted(table)))
            return ask(rng, *pair) if pair else self.asked()
        by_heart = rng.random() < BY_HEART
        while True:
            facts = sampler.walk(rng.choice(HOPS))
            if facts and not by_heart:
                return chain(rng, facts)
            if facts and facts[-1].object in FIXED_NAMES["country"]:
                known = FIXED_FACTS[facts[-1].object, rng.choice(FIXED).name]
                return chain(rng, [*facts, known])

    def found(self, query: str, number: int, withheld: Fact | None) -> list[int]:
        """Places of the passages that a search brings."""
        [hits] = self.sampler.index.search([query], k=number)
        places = [self.sampler.place[hit.passage.id] for hit in hits]
        return [place for place in places if withheld not in self.facts(place)]

    def facts(self, place: int) -> tuple[Fact, ...]:
        """What the passage at this place tells."""
        return self.sampler.world.tellings[place].facts


def answered(asked: GeneratedQuestion, facts: Sequence[Fact]) -> str:
    """The answer to a question where these are its facts."""
    if asked.kind == "yesno":
        return "yes" if facts[0].object == facts[1].object else "no"
    if asked.kind == "comparison":
        return min(facts, key=lambda fact: int(fact.object)).subject
    return facts[-1].object


def _thought(sentences: Sequence[str], need: str = "", *, again: bool = False) -> list[Piece]:
    """A thought of facts, which goes on to what is needed next or ends: that choice counts more."""
    begun = f"<think>{''.join(f' {sentence}' for sentence in sentences)}"
    chosen = [(" ", CHOICE)]
    if need:  # to search again is seldom right: counted so, it was chosen far too often
        still = "still " if again else ""
        chosen = [(" I", 1.0 if again else CHOICE), (f" {still}need {need}. ", 1.0)]
    return [(begun, 1.0), *chosen, ("</think>\n", 1.0)]


def _task(question: str) -> str:
    """The prompt, which is one message."""
    prompt = DEFAULT_PROMPTS.render(FORM.prompt_name, question=question, transcript="")
    return prompt.messages[0].content


def _within(pair: tuple[str, str], text: str) -> str:
    return f"{pair[0]} {text} {pair[1]}"


def row(known: PreTrainedTokenizerFast, transcript: Transcript) -> Row:
    """A transcript's tokens, as the product's own rendering and the reader's replies make them."""
    backend = known.backend_tokenizer
    user = _task(transcript.question)
    before = backend.encode(f"{tokenizer.BOS}{tokenizer.USER}{user}{tokenizer.ASSISTANT}").ids
    written = backend.encode("".join(piece for piece, _ in transcript.parts) + tokenizer.EOS)
    counts = [count for piece, count in transcript.parts for _ in piece]
    # A token belongs to its last character; the end token, behind all of them, to the reader.
    own = [1.0 if end > len(counts) else counts[end - 1] for _, end in written.offsets]
    return Row(before + written.ids, [0.0] * len(before) + own)


def rehearsal(known: PreTrainedTokenizerFast, scene: Scene) -> Row:
    """A question over passages in the prompt of the short answer."""
    prompt = prompts.short_answer(scene.asked.text, scene.passages)
    said = scene.asked.answer
    chat = [message.model_dump() for message in prompt.messages]
    text = str(known.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))
    before: list[int] = known(text, add_special_tokens=False).input_ids
    after: list[int] = known(said + tokenizer.EOS, add_special_tokens=False).input_ids
    return Row(before + after, [0.0] * len(before) + [1.0] * len(after))


def rows(known: PreTrainedTokenizerFast, seed: int) -> Iterator[Row]:
    """Transcripts without end, and between them questions that are answered at once."""
    place: Any = SimpleNamespace(value=len(STAGES) - 1)
    for sampler in feeding.worlds(seed, place, Searched):
        assert isinstance(sampler, Searched)
        if sampler.rng.random() < REHEARSED:
            example = sampler.example(REHEARSAL)
            for asked in example.asked[:TOGETHER]:
                yield rehearsal(known, sampler.scene(asked, example.passages, example.told))
        yield row(known, Transcripts(sampler).draw())


def batches(known: PreTrainedTokenizerFast, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Tokens and what counts of them, (row, token), padded on the right; rows of like length."""
    rng, source = random.Random(f"search agent {seed}"), rows(known, seed)
    while True:
        pool = sorted((next(source) for _ in range(POOL)), key=lambda row: len(row.ids))
        made: list[list[Row]] = [[]]
        for each in pool:
            if made[-1] and len(each.ids) * (len(made[-1]) + 1) > BATCH_TOKENS:
                made.append([])
            made[-1].append(each)
        rng.shuffle(made)
        for part in made:
            ids = [torch.tensor(each.ids) for each in part]
            own = [torch.tensor(each.own) for each in part]
            yield pad_sequence(ids, batch_first=True), pad_sequence(own, batch_first=True)


def loss(model: LlamaForCausalLM, ids: Tensor, own: Tensor) -> tuple[Tensor, float]:
    """Weighted cross-entropy, and the share of the reader's own tokens that were the likeliest.

    Padding is behind everything that counts, so that no token sees it.
    """
    with torch.autocast("cpu", torch.bfloat16):
        hidden = model.model(input_ids=ids).last_hidden_state
        counted = own[:, 1:] > 0
        logits = model.lm_head(hidden[:, :-1][counted]).float()
    target, weight = ids[:, 1:][counted], own[:, 1:][counted]
    right = (logits.detach().argmax(-1) == target).float().mean()
    each = functional.cross_entropy(logits, target, reduction="none")
    return (each * weight).sum() / weight.sum(), float(right)


def save(model: LlamaForCausalLM, known: PreTrainedTokenizerFast, out: Path) -> None:
    """Write the reader in half precision."""
    out.mkdir(parents=True, exist_ok=True)
    half = LlamaForCausalLM(model.config)
    half.load_state_dict(model.state_dict())
    half.generation_config = GenerationConfig(
        bos_token_id=known.bos_token_id,
        eos_token_id=known.eos_token_id,
        pad_token_id=known.pad_token_id,
    )
    half.half().save_pretrained(str(out))
    tokenizer.save(known, out)
    (out / "model.safetensors").chmod(0o644)


def words() -> list[str]:
    """What the tokenizer shall have whole tokens for: the words of the task and of the tags."""
    return sorted({f" {word}" for word in _task("").split() if word.isalpha()} | {*WORDS})


def train(start: Path, out: Path, minutes: float, seed: int) -> None:
    """Fine-tune until the minutes are spent; the running average of the weights is saved."""
    torch.manual_seed(seed)
    known = tokenizer.longer(start, words())
    small = json.loads((start / "config.json").read_text("utf-8"))
    shape = config(known, layers=small["num_hidden_layers"], width=small["hidden_size"])
    model = LlamaForCausalLM(shape)
    growth.grow(model, known, start)
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(AVERAGING))
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=0.0, betas=(0.9, 0.99), weight_decay=0.01, fused=True
    )
    began, tokens, saved, average = time.monotonic(), 0, 0.0, 0.0
    for step, (ids, own) in enumerate(batches(known, seed), start=1):
        seconds = time.monotonic() - began
        progress = min(1.0, seconds / (60 * minutes))
        if progress == 1 and step > 1:
            break
        share = FINAL_SHARE + (1 - FINAL_SHARE) * (1 + math.cos(math.pi * progress)) / 2
        for group in optimizer.param_groups:
            group["lr"] = RATE * share * min(1.0, step / WARM_UP_STEPS)
        lost, right = loss(model, ids, own)
        lost.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        averaged.update_parameters(model)
        tokens += int((ids > 0).sum())
        average = KEPT * average + (1 - KEPT) * right if step > 1 else right
        if step % 20 == 0:
            print(f"{step} {progress:.1%} right {average:.4f} tokens {tokens}", flush=True)
        if seconds - saved > SAVED_EVERY:
            saved = seconds
            save(_module(averaged), known, out)
    save(_module(averaged), known, out)


def _module(averaged: AveragedModel) -> LlamaForCausalLM:
    module = averaged.module
    assert isinstance(module, LlamaForCausalLM)
    return module


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description="Teach a Hopland reader to search by itself.")
    parser.add_argument("--out", type=Path, required=True, help="folder of the reader to write")
    parser.add_argument("--start", type=Path, default=Path(hf.__file__).parent / "hopland")
    parser.add_argument("--minutes", type=float, default=40)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.minutes <= 0:
        parser.error("--minutes of more than 0 are needed")
    if not (given.start / "model.safetensors").is_file():
        parser.error(f"--start: {given.start} holds no model.safetensors")
    torch.set_num_threads(1)
    train(given.start, given.out, given.minutes, given.seed)


if __name__ == "__main__":
    main()
