"""The cost of eRAG's labels beside the cost of an answer from all passages, as in eRAG's Table 2.

A model of the shape of T5-small with random weights reads `--passages` passages of `--length`
tokens for each question and writes `--tokens` tokens. An answer from all is given by
Fusion-in-Decoder, or from one prompt; labels are answers from one passage each, in one call for
each question or for each passage. Each way is measured in a process of its own, after a small call:
the seconds of the processor for a question, and the most memory beyond that of the loaded model.
Random weights take as long as others, but say nothing about the quality of answers.

    python benchmarks/reader/fusion.py [--passages 50] [--questions 2] [--model FOLDER] [--json]

Salemi and Zamani 2024 (arXiv 2404.13781), section 3.3. Memory is that of the process, from Linux.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from hopscope.runtime.ports import Reader
from hopscope.runtime.prompting import loading
from hopscope.runtime.readers import fid
from hopscope.runtime.types import GenerationRequest, Passage

WORDS = 32_000
BATCH = 16_384
"""Positions computed together, the reader's default."""


@dataclass(frozen=True)
class Work:
    """What each question asks for."""

    passages: int
    length: int
    """Tokens of a passage."""
    questions: int
    tokens: int
    """Of a reply."""


@dataclass(frozen=True)
class Cost:
    """What a question costs."""

    way: str
    seconds: float
    megabytes: float
    """Most memory beyond that of the loaded model."""


Calls = list[list[GenerationRequest]]
"""The calls of the reader for one question."""


def apart(work: Work, number: int) -> Calls:
    """An answer from all passages, each of which is encoded alone."""
    return [[_request("fid", work, number, _passages(work, number))]]


def in_one_prompt(work: Work, number: int) -> Calls:
    """An answer from all passages in one input."""
    return [[_request("fid-in-prompt", work, number, _passages(work, number))]]


def labels(work: Work, number: int) -> Calls:
    """An answer from each passage, in one call."""
    return [[_request("fid", work, number, [each]) for each in _passages(work, number)]]


def labels_one_by_one(work: Work, number: int) -> Calls:
    """An answer from each passage, in a call of its own."""
    return [[request] for request in labels(work, number)[0]]


WAYS: dict[str, tuple[Callable[[Work, int], Calls], int]] = {
    "answer from all, Fusion-in-Decoder": (apart, BATCH),
    "the same, passages encoded one by one": (apart, 1),
    "answer from all, one prompt": (in_one_prompt, BATCH),
    "eRAG's labels, one call for a question": (labels, BATCH),
    "eRAG's labels, one call for a passage": (labels_one_by_one, BATCH),
}
"""The calls of each way, and the positions computed together."""


def measure(folder: Path, work: Work, ways: Sequence[str] = tuple(WAYS)) -> list[Cost]:
    """The cost of each way; each has a fresh process."""
    context = get_context("spawn")
    costs = []
    for way in ways:
        with context.Pool(1) as pool:
            costs.append(pool.apply(cost, (folder, work, way)))
    return costs


def cost(folder: Path, work: Work, way: str) -> Cost:
    """The cost of one way, in this process."""
    calls, area = WAYS[way]
    reader = fid.build(model=str(folder), device="cpu", max_batch_tokens=area)
    small = Work(passages=1, length=8, questions=1, tokens=2)
    _ask(reader, apart(small, 0))
    before = _resident()
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here on
    begun = process_time()
    for number in range(work.questions):
        _ask(reader, calls(work, number))
    seconds = (process_time() - begun) / work.questions
    return Cost(way, seconds, (_resident(peak=True) - before) / 1e6)


def small_t5(folder: Path) -> Path:
    """A model of the shape of T5-small with random weights, whose tokens are words `w0`, `w1`, …"""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    shape: dict[str, Any] = {"decoder_start_token_id": 0}
    T5ForConditionalGeneration(T5Config(**shape)).save_pretrained(folder)
    known = ["<pad>", "</s>", "<unk>", "question", "title", "context", ":"]
    known += [f"w{number}" for number in range(WORDS)]
    words = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(known)}, unk_token="<unk>")
    )
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)
    return folder


def _ask(reader: Reader, calls: Calls) -> None:
    for requests in calls:
        reader.generate(requests)


def _request(
    prompts: str, work: Work, number: int, passages: Sequence[Passage]
) -> GenerationRequest:
    prompt = loading.load(prompts).render(
        "naive/answer", passages, question=_text(Random(f"question {number}"), 12)
    )
    return GenerationRequest(prompt=prompt, max_tokens=work.tokens)


def _passages(work: Work, number: int) -> list[Passage]:
    drawn = Random(number)
    return [Passage(text=_text(drawn, work.length)) for _ in range(work.passages)]


def _text(drawn: Random, words: int) -> str:
    return " ".join(f"w{drawn.randrange(WORDS)}" for _ in range(words))


def _resident(*, peak: bool = False) -> int:
    """Bytes of this process in memory, now or at most."""
    name = "VmHWM:" if peak else "VmRSS:"
    lines = Path("/proc/self/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith(name)]
    return int(line.split()[1]) * 1024


def table(costs: Sequence[Cost]) -> str:
    """The costs as Markdown, with those of Fusion-in-Decoder as the unit."""
    unit = costs[0]
    lines = ["| | seconds | as many times | memory, MB | as many times |", "|---|---|---|---|---|"]
    for each in costs:
        times, more = each.seconds / unit.seconds, each.megabytes / unit.megabytes
        cells = f"{each.seconds:.1f} | {times:.2f} | {each.megabytes:,.0f} | {more:.2f}"
        lines.append(f"| {each.way} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=50)
    parser.add_argument("--length", type=int, default=150, help="tokens of a passage")
    parser.add_argument("--questions", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=16, help="tokens of a reply")
    parser.add_argument("--model", type=Path, help="a folder; by default random weights")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    work = Work(given.passages, given.length, given.questions, given.tokens)
    if min(asdict(work).values()) < 1:
        parser.error("give numbers of at least 1")
    with TemporaryDirectory() as folder:
        costs = measure(given.model or small_t5(Path(folder)), work)
    if given.json:
        json.dump([asdict(each) for each in costs], sys.stdout, indent=2)
    else:
        print(table(costs))


if __name__ == "__main__":
    main()
