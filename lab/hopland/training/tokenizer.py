"""The reader's tokenizer: byte-level BPE learned on Hopland text, with a chat template.

Invariants: digits stand alone, punctuation is split off, and every stretch of text between
special tokens begins with a space. So a name has the same tokens at the start of an answer
as inside a passage, and "S1." followed by " S2." has the tokens of "S1. S2.".
"""

import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from hopscope.lab.export import preferences
from hopscope.lab.hopland import names
from hopscope.lab.hopland.questions import COMPARISONS, MARKER, SAME
from hopscope.lab.hopland.relations import RELATIONS
from hopscope.runtime.prompting import prompt_checks, prompts
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.types import Passage

VOCABULARY = 1024
UNTRAINED = ("compressor/", "judge/contribution", "judge/correctness", "react/", "search_agent/")
"""Beginnings of the names of prompts that the reader is not trained on."""
BOS, EOS, PAD = "<s>", "</s>", "<pad>"
SYSTEM, USER, ASSISTANT = "<|system|>", "<|user|>", "<|assistant|>"
SPECIAL = (PAD, BOS, EOS, SYSTEM, USER, ASSISTANT)
WORDS = (
    *names.GIVEN_NAMES,
    *names.FILM_NOUNS,
    *names.CITY_WORDS,
    *names.COMPANY_WORDS,
    *names.UNIVERSITY_WORDS,
)
"""The words of names that are not composed of syllables."""
ENDINGS = (
    *names.ENDINGS,
    *names.COUNTRY_ENDINGS,
    *names.LANGUAGE_ENDINGS,
    *names.CURRENCY_ENDINGS,
    *names.CONTINENT_ENDINGS,
)
PIECES = r" ?[^\s\p{L}\p{N}]| ?\p{L}+|\p{N}|\s"
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def text(seed: int) -> Iterator[str]:
    """Text to learn the merges from, weighted so that names split at their syllables.

    Words made of syllables come once each, words that stand alone come often; text drawn from
    worlds would spend merges on whole names of the fixed facts.
    """
    rng = random.Random(f"tokenizer {seed}")
    for stem in names.STEMS:
        yield f"Doc ({stem} {stem} {stem}" + f" {stem}" * 90
        for ending in ENDINGS:
            yield f" {stem}{ending}"
    for ending in ENDINGS:
        yield f"({ending}" * 90
    for word in WORDS:
        yield f"({word} {word}" + f" {word}" * 60
    for _ in range(180):
        for relation in RELATIONS.values():
            named = {"s": rng.choice(WORDS), "o": rng.choice(WORDS)}
            for pattern in (*relation.seen, *relation.questions, *relation.noun):
                yield pattern.format(**named)
        for asked in (*COMPARISONS.values(), *SAME.values()):
            yield from (a.format(a=rng.choice(WORDS), b="yes no") for a in asked)
        for line in _shared_lines():
            yield f"{line}\n{line}"
        yield f"Question: {MARKER}\nDoc 1 ({rng.choice(WORDS)}):"


def learn(seed: int = 0) -> PreTrainedTokenizerFast:
    """Train the tokenizer; the same seed gives the same merges."""
    backend = Tokenizer(models.BPE())
    # A space in front, unless the text begins with one already.
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend(" "), normalizers.Replace(Regex("^  "), " ")]
    )
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(text(seed), trainer)
    return wrap(extended(backend, prompted_words()))


def longer(folder: Path, words: Iterable[str] | None = None) -> PreTrainedTokenizerFast:
    """A saved tokenizer with whole tokens for the words of the prompts, or for others."""
    added = prompted_words() if words is None else words
    return wrap(extended(load(folder).backend_tokenizer, added))


def extended(backend: Tokenizer, words: Iterable[str]) -> Tokenizer:
    """The same with whole tokens for words that it would spell, with the space before them or not.

    Names and sentences of the world keep their tokens: a word whose merges would change those
    stays spelled.
    """
    names_and_sentences = list(dict.fromkeys(_unchanged()))
    before = [e.tokens for e in backend.encode_batch(names_and_sentences)]
    for word in words:
        spaced = word.startswith(" ")
        tokens = backend.encode(word if spaced else f"\n{word}").tokens[0 if spaced else 2 :]
        if len(tokens) == 1:
            continue
        state = json.loads(backend.to_str())
        for end in range(2, len(tokens) + 1):
            merged = "".join(tokens[:end])
            state["model"]["merges"].append(["".join(tokens[: end - 1]), tokens[end - 1]])
            state["model"]["vocab"].setdefault(merged, len(state["model"]["vocab"]))
        longer = Tokenizer.from_str(json.dumps(state))
        if [e.tokens for e in longer.encode_batch(names_and_sentences)] == before:
            backend = longer
    return backend


def prompted_words() -> list[str]:
    """The words of all prompts, each after a space."""
    return sorted({f" {word}" for line in prompted() for word in re.findall("[A-Za-z]+", line)})


def _unchanged() -> Iterator[str]:
    for stem in names.STEMS:
        yield from (f" {stem}{ending}" for ending in ENDINGS)
    yield from (f" {word} ({word}" for word in WORDS)
    for relation in RELATIONS.values():
        for pattern in (*relation.phrasings, *relation.questions, *relation.noun):
            yield pattern.format(s=WORDS[0], o=WORDS[1])
    for asked in (*COMPARISONS.values(), *SAME.values()):
        yield from (a.format(a=WORDS[0], b="yes no") for a in asked)
    yield " ".join([*_shared_lines(), MARKER])


def _shared_lines() -> tuple[str, str, str, str]:
    """The role, the heading of the documents, the task of an answer and that of a thought."""
    role, documents = prompts.system([Passage(text="")]).content.split("\n")[:2]
    asked = prompts.short_answer(""), prompts.chain_of_thought("")
    answer, thought = (each.messages[-1].content.split("\n")[-1] for each in asked)
    return role, documents, answer, thought


def prompted() -> tuple[str, ...]:
    """The texts of all prompts."""
    rendered = (
        text
        for name in prompt_checks.names()
        if not name.startswith(UNTRAINED)
        for prompt in prompt_checks.renderings(DEFAULT_PROMPTS, name)
        for text in (*(message.content for message in prompt.messages), prompt.prefix)
    )
    return (
        *dict.fromkeys(rendered),
        preferences.INSTRUCTION,
        "not known",
    )


def name_tokens(learned: PreTrainedTokenizerFast) -> torch.Tensor:
    """The tokens that names are made of."""
    words = [f" {word}" for word in (*names.STEMS, *WORDS)]
    words += [f" {names.STEMS[0]}{ending}" for ending in ENDINGS]
    return torch.tensor(sorted({token for word in words for token in learned(word).input_ids}))


def wrap(backend: Tokenizer) -> PreTrainedTokenizerFast:
    """Give a trained backend its special tokens and chat template."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        additional_special_tokens=[SYSTEM, USER, ASSISTANT],
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def save(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write the tokenizer so that older and newer transformers load the same one."""
    tokenizer.save_pretrained(str(folder), save_jinja_files=False)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text("utf-8"))
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    # The other markers are special in tokenizer.json; older versions reject this list.
    for name in ("backend", "is_local", "local_files_only", "extra_special_tokens"):
        settings.pop(name, None)
    path.write_text(json.dumps(settings, indent=2) + "\n", "utf-8")


def load(folder: Path) -> PreTrainedTokenizerFast:
    """Load a tokenizer saved with `save_pretrained`."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(str(folder))
    assert isinstance(tokenizer, PreTrainedTokenizerFast)
    return tokenizer
