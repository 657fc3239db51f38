"""Hopscope against the algorithm that SePer's authors published, with its batching.

Written anew from their paper (Dai et al. 2025, Algorithm 1) and what their code does, with its
batches but without its reshape that is wrong for several golds:

    samples    transformers' `generate` for each context alone, its N samples in one batch, no
               beginning shared; a reply ends at a stop string, the batch with its last reply
    SePer-S    each sample with each gold, as often as it was drawn, both directions; the pairs of
               a run's contexts in the order of contexts, golds and samples, `CHUNK` at a time,
               each batch padded to its longest pair
    SePer-H    for each context alone: a sample without a cluster opens one and is compared both
               ways with all later ones, in one batch; they join whether or not they have a cluster;
               the first of each cluster is compared both ways with the golds, in one batch

The entailment model is transformers' own. Both sides score the same samples, the product's, so that
credits can be compared; `generate` draws its own, whose time counts. The sides alternate, a run
each, and so do the product's approximations (`modes.py`), which are compared with its exact credit.
"""

from collections.abc import Sequence
from math import exp
from pathlib import Path
from statistics import mean, median
from typing import Any

import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    StoppingCriteria,
    StoppingCriteriaList,
)

from credit_parts import modes
from credit_parts.bench import SEED, Benchmark, N, Row
from credit_parts.contexts import contexts
from credit_parts.passes import weights_of
from credit_parts.prompted import Prompted
from credit_parts.runs import trajectories
from credit_parts.straightforward import Clock, Game, trajectory
from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.runtime.texts import answers
from hopscope.runtime.types import Generation, GenerationRequest, Run
from hopscope.tracing.entailments.nli import statement_texts

CHUNK = 8
"""Pairs computed together for SePer-S, in one direction: `computation_chunk_size` of the authors'
example."""
RELATIONS = ("contradiction", "neutral", "entailment")
Pair = tuple[str, str]


def measure(bench: Benchmark) -> Row:
    """Each meter set alone, as somebody who wants only it would run it."""
    runs = trajectories(bench)
    theirs = Authors(bench)
    return {name: compared(bench, theirs, runs, meters) for name, meters in modes.METERS.items()}


def compared(
    bench: Benchmark, theirs: "Authors", runs: Sequence[Run], meters: tuple[str, ...]
) -> Row:
    """The same credits by both, run by run, and by the product's approximations."""
    theirs.forget()
    products = {
        name: modes.product(bench, mode, meters) for name, mode in modes.available().items()
    }
    theirs.warm(next(iter(contexts(runs[0], every=False).values())))
    wholes = {name: Clock() for name in products}
    credits: dict[str, list[modes.Credits]] = {name: [] for name in products}
    ratios: dict[str, list[float]] = {name: [] for name in products}
    worst = 0.0
    for found in runs:
        before = {name: bench.seconds(clock) for name, clock in wholes.items()}
        for name, each in products.items():
            with wholes[name].running():
                credits[name].append(each.measured(found))
        spent = -bench.seconds(theirs.whole)
        wanted = theirs.credits(found, products[modes.EXACT].reader.samples, meters)
        spent += bench.seconds(theirs.whole)
        given = credits[modes.EXACT][-1]
        apart = (abs(modes.value(given[key]) - value) for key, value in wanted.items())
        worst = max([worst, *apart])
        for name, clock in wholes.items():
            ratios[name].append(spent / (bench.seconds(clock) - before[name]))
    product = products[modes.EXACT]
    return {
        "runs": len(runs),
        "contexts": theirs.contexts,
        "generation": sides(bench, theirs.generation, product.reader.clock),
        "entailment": {
            **sides(bench, theirs.entailment, product.entailment.clock),
            "authors' pairs": theirs.pairs,
            "our pairs": product.pairs,
        },
        "end to end": {
            **sides(bench, theirs.whole, wholes[modes.EXACT]),
            **spread(ratios[modes.EXACT]),
        },
        "greatest difference of credit": worst,
        "approximations": {
            name: {
                "seconds": bench.seconds(wholes[name]),
                "generation": bench.seconds(each.reader.clock),
                "pairs": each.pairs,
                "ratio": bench.ratio(theirs.whole, wholes[name]),
                **spread(ratios[name]),
                **modes.beside(credits[modes.EXACT], credits[name]),
            }
            for name, each in products.items()
            if name != modes.EXACT
        },
    }


def spread(ratios: Sequence[float]) -> Row:
    """Of the runs' ratios."""
    return {"of runs: least": min(ratios), "median": median(ratios), "greatest": max(ratios)}


def sides(bench: Benchmark, theirs: Clock, own: Clock) -> Row:
    """Seconds of both, and their ratio."""
    return {
        "authors": bench.seconds(theirs),
        "ours": bench.seconds(own),
        "ratio": bench.ratio(theirs, own),
    }


def draw(reader: Any, request: GenerationRequest, *, stopping: bool = False) -> None:
    """N samples of transformers' `generate` in one batch, with their token log-probabilities; they
    end at the request's stop strings where `stopping`."""
    model, renderer = weights_of(reader), reader._renderer
    ids = torch.tensor([renderer.prompt_ids(request.prompt)], device=model.device)
    torch.manual_seed(SEED)
    stops = [Stopping(renderer._tokenizer, request.stop, ids.shape[1])] if stopping else []
    with torch.no_grad():
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            temperature=1.0,
            top_k=0,
            num_return_sequences=N,
            max_new_tokens=request.max_tokens,
            stopping_criteria=StoppingCriteriaList(stops),
            pad_token_id=renderer._tokenizer.eos_token_id,
            return_dict_in_generate=True,
            output_scores=True,
        )
        model.compute_transition_scores(out.sequences, out.scores, normalize_logits=True)
        renderer._tokenizer.batch_decode(out.sequences[:, ids.shape[1] :])


class Authors:
    """Trajectory credit by the authors' algorithm, with a clock for each half of its work."""

    def __init__(self, bench: Benchmark) -> None:
        self._reader = bench.reader(bare=True)
        self._model: Entailment = Prompted(Batched(bench.nli, bench.device))
        self.forget()

    def forget(self) -> None:
        """Set clocks and counts to zero; nothing else is remembered."""
        self.whole, self.generation, self.entailment = Clock(), Clock(), Clock()
        self.pairs = self.contexts = 0

    def warm(self, request: GenerationRequest) -> None:
        """Do once what is only done once."""
        draw(self._reader, request, stopping=True)
        self._model.classify([Statement("Which?", "warm", "up")])

    def credits(
        self,
        found: Run,
        samples: dict[GenerationRequest, list[Generation]],
        meters: tuple[str, ...],
    ) -> dict[tuple[str, int], float]:
        """Credit of each player by each meter, from the samples given."""
        golds = answers.distinct(found.question.answers)
        requests = contexts(found, every=False)
        self.contexts += len(requests)
        with self.whole.running():
            with self.generation.running():
                for request in requests.values():
                    draw(self._reader, request, stopping=True)
            drawn = {coalition: samples[request] for coalition, request in requests.items()}
            with self.entailment.running():
                worths = {"seper": self._soft(found.question.text, golds, drawn)}
                if "seper_hard" in meters:
                    worths["seper_hard"] = {
                        coalition: self._hard(found.question.text, golds, each)
                        for coalition, each in drawn.items()
                    }
            return {
                (meter, player): credit
                for meter, worth in worths.items()
                for player, credit in trajectory(worth).items()
            }

    def _soft(
        self,
        question: str,
        golds: Sequence[str],
        drawn: dict[frozenset[int], list[Generation]],
    ) -> Game:
        pairs = [
            (sample.text.strip(), gold)
            for samples in drawn.values()
            for gold in golds
            for sample in samples
        ]
        forward: list[float] = []
        backward: list[float] = []
        for start in range(0, len(pairs), CHUNK):
            there, back = self._both(question, pairs[start : start + CHUNK])
            forward += (each.entailment for each in there)
            backward += (each.entailment for each in back)
        agreement = iter(map(max, forward, backward))
        game = {}
        for coalition, samples in drawn.items():
            shares = weights(samples)
            game[coalition] = max(sum(share * next(agreement) for share in shares) for _ in golds)
        return game

    def _hard(self, question: str, golds: Sequence[str], samples: list[Generation]) -> float:
        texts = [sample.text.strip() for sample in samples]
        cluster: list[int | None] = [None] * len(texts)
        firsts: dict[int, str] = {}
        for i, text in enumerate(texts):
            if cluster[i] is not None:
                continue
            cluster[i] = i
            firsts[i] = text
            if later := texts[i + 1 :]:
                there, back = self._both(question, [(text, other) for other in later])
                for j, both in enumerate(zip(there, back, strict=True), start=i + 1):
                    if all(_relation(each) == "entailment" for each in both):
                        cluster[j] = i
        pairs = [(text, gold) for text in firsts.values() for gold in golds]
        verdicts = [_agree(*both) for both in zip(*self._both(question, pairs), strict=True)]
        right = {
            first
            for number, first in enumerate(firsts)
            if any(verdicts[number * len(golds) : (number + 1) * len(golds)])
        }
        shares = weights(samples)
        return sum(share for share, first in zip(shares, cluster, strict=True) if first in right)

    def _both(
        self, question: str, pairs: Sequence[Pair]
    ) -> tuple[list[Probabilities], list[Probabilities]]:
        """The relations of pairs and of the same the other way round, a batch each."""
        self.pairs += 2 * len(pairs)
        there = [Statement(question, *pair) for pair in pairs]
        back = [Statement(question, *pair[::-1]) for pair in pairs]
        return self._model.classify(there), self._model.classify(back)


class Batched:
    """An entailment classifier as transformers runs it, each call in one padded batch."""

    name = "batched"

    def __init__(self, folder: Path, device: str) -> None:
        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True)
        self._model = model.to(device).eval()

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement; see the port."""
        premises, hypotheses = zip(*map(statement_texts, statements), strict=True)
        texts = self._tokenizer(
            list(premises), list(hypotheses), padding=True, truncation=True, return_tensors="pt"
        )
        with torch.no_grad():
            logits = self._model(**texts.to(self._model.device)).logits
        labels = self._model.config.id2label
        return [
            Probabilities(**{labels[i]: share for i, share in enumerate(row)})
            for row in logits.double().softmax(dim=-1).tolist()
        ]


class Stopping(StoppingCriteria):
    """Ends a reply whose text contains a stop string."""

    def __init__(self, tokenizer: Any, stops: Sequence[str], start: int) -> None:
        self._tokenizer = tokenizer
        self._stops = stops
        self._start = start

    def __call__(self, ids: torch.Tensor, scores: Any, **_: object) -> torch.Tensor:
        """Whether each row has ended."""
        texts = self._tokenizer.batch_decode(ids[:, self._start :])
        ended = [any(stop in text for stop in self._stops) for text in texts]
        return torch.tensor(ended, device=ids.device)


def weights(samples: Sequence[Generation]) -> list[float]:
    """Shares by the mean log-probability of tokens."""
    powers = [exp(mean(sample.logprobs or (sample.end_logprob or 0.0,))) for sample in samples]
    return [power / sum(powers) for power in powers]


def _relation(p: Probabilities) -> str:
    return max(RELATIONS, key=lambda name: getattr(p, name))


def _agree(one: Probabilities, other: Probabilities) -> bool:
    """No contradiction either way, and not neutral both ways."""
    relations = {_relation(one), _relation(other)}
    return "contradiction" not in relations and relations != {"neutral"}
