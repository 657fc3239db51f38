"""Per-step credit by the straightforward loop, the reference of benchmarks/credit.py.

It takes one context at a time and one sample at a time, with the prompt read anew for each, and
gives every pair of texts to the entailment model alone, repeated ones, too, without any cache. From
the product it takes the reader and the form of a pair; the entailment model is transformers' own,
and the arithmetic is written here a second time, so that equal scores are evidence.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations, permutations
from math import exp, factorial
from pathlib import Path
from statistics import mean
from time import perf_counter, process_time
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.runtime.types import Generation, GenerationRequest
from hopscope.tracing.entailments.nli import statement_texts

Game = dict[frozenset[int], float]
"""The value of each coalition of players."""


class Clock:
    """Seconds inside the block: wall time and processor time."""

    def __init__(self) -> None:
        self.wall = self.processor = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        wall, processor = perf_counter(), process_time()
        try:
            yield
        finally:
            self.wall += perf_counter() - wall
            self.processor += process_time() - processor


class Scores(NamedTuple):
    """SePer of one context."""

    soft: float
    hard: float


class Plain:
    """An entailment classifier as transformers runs it, for one pair at a time."""

    name = "plain"

    def __init__(self, folder: Path, device: str) -> None:
        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True)
        self._model = model.to(device).eval()

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement, after one forward pass for each."""
        found = []
        for statement in statements:
            texts = self._tokenizer(*statement_texts(statement), return_tensors="pt")
            with torch.inference_mode():
                logits = self._model(**texts.to(self._model.device)).logits[0]
            shares = logits.double().softmax(dim=-1).tolist()
            by_label = {self._model.config.id2label[i]: share for i, share in enumerate(shares)}
            found.append(Probabilities(**by_label))
        return found


class Loop:
    """The loop, with a clock for each half of its work."""

    def __init__(self, reader: Any, model: Entailment) -> None:
        """Neither reader nor model may have a cache."""
        self._reader = reader
        self._model = model
        self.generation, self.entailment = Clock(), Clock()
        self.pairs = 0
        self.samples: dict[GenerationRequest, list[Generation]] = {}
        """The samples, for comparison only."""

    def score(self, question: str, golds: Sequence[str], request: GenerationRequest) -> Scores:
        with self.generation.running():
            drawn = self.draw(request)
        drawn.sort(key=lambda s: (s.text.strip(), s.logprobs, s.token_ids))
        with self.entailment.running():
            return self._scores(question, golds, drawn)

    def draw(self, request: GenerationRequest) -> list[Generation]:
        one = request.model_copy(update={"n": 1})
        drawn = [self._reader.more([one], first=i)[0][0] for i in range(request.n)]
        self.samples[request] = list(drawn)
        return drawn

    def ask(self, question: str, premise: str, hypothesis: str) -> Probabilities:
        if not premise or not hypothesis:
            return Probabilities(0.0, 1.0, 0.0)
        self.pairs += 1
        return self._model.classify([Statement(question, premise, hypothesis)])[0]

    def _scores(self, question: str, golds: Sequence[str], drawn: list[Generation]) -> Scores:
        texts = [sample.text.strip() for sample in drawn]
        forward = [[self.ask(question, text, gold) for gold in golds] for text in texts]
        backward = [[self.ask(question, gold, text) for gold in golds] for text in texts]
        among = {
            (i, j): self.ask(question, texts[i], texts[j])
            for i, j in permutations(range(len(texts)), 2)
        }
        weights = _weights(drawn)
        agreement = [
            [max(f.entailment, b.entailment) for f, b in zip(*rows, strict=True)]
            for rows in zip(forward, backward, strict=True)
        ]  # (sample, gold)
        soft = max(
            sum(w * row[g] for w, row in zip(weights, agreement, strict=True))
            for g in range(len(golds))
        )
        firsts: list[int] = []
        hard = 0.0
        for j, text in enumerate(texts):
            # A model with random weights may judge a text different from itself.
            i = next(
                (i for i in firsts if texts[i] == text or _same(among[i, j], among[j, i])), None
            )
            if i is None:
                firsts.append(i := j)
            if any(_agrees(f, b) for f, b in zip(forward[i], backward[i], strict=True)):
                hard += weights[j]
        return Scores(soft, hard)


def trajectory(worth: Game) -> dict[int, float]:
    """Trajectory credit: each player's gain over those before it."""
    players = sorted(frozenset().union(*worth))
    return {
        player: worth[frozenset(players[: t + 1])] - worth[frozenset(players[:t])]
        for t, player in enumerate(players)
    }


def shapley(worth: Game) -> dict[int, float]:
    """Shapley credit: each player's mean gain over all orders of joining."""
    players = sorted(frozenset().union(*worth))
    count = len(players)
    shares = dict.fromkeys(players, 0.0)
    for player in players:
        others = [other for other in players if other != player]
        for size in range(count):
            share = factorial(size) * factorial(count - size - 1) / factorial(count)
            for chosen in map(frozenset, combinations(others, size)):
                shares[player] += share * (worth[chosen | {player}] - worth[chosen])
    return shares


def _weights(drawn: Sequence[Generation]) -> list[float]:
    means = [mean(s.logprobs or (s.end_logprob or 0.0,)) for s in drawn]
    powers = [exp(value - max(means)) for value in means]
    return [power / sum(powers) for power in powers]


def _relation(p: Probabilities) -> str:
    return max(("contradiction", "neutral", "entailment"), key=lambda name: getattr(p, name))


def _same(forward: Probabilities, backward: Probabilities) -> bool:
    return _relation(forward) == _relation(backward) == "entailment"


def _agrees(forward: Probabilities, backward: Probabilities) -> bool:
    relations = {_relation(forward), _relation(backward)}
    return "contradiction" not in relations and relations != {"neutral"}
