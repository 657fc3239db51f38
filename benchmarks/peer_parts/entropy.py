"""Semantic entropy of the same samples by lm-polygraph's classes and by our meter, end to end.

Contexts are those of IRCoT's runs. lm-polygraph's side is its `SemanticMatrixCalculator`,
`SemanticClassesCalculator` and `SemanticEntropy`, with batches of 10 pairs as by its defaults, over
the same entailment model as transformers computes it. Samples come from transformers' `generate`,
N in a batch, which is less work than lm-polygraph's own sampler, one call for each. Both sides
score the same samples, ours; those of `generate` count as time only.

lm-polygraph compares the bare replies; we put the question before them, which makes pairs longer.
So its side is measured in both ways. The entropy printed is the mean of its `frequency` estimator
and of our `discrete`, which are the same formula.
"""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from statistics import mean
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from credit_parts import authors
from credit_parts.bench import SEED, Benchmark, N
from credit_parts.contexts import CONTEXT_WORDS, MAX_TOKENS, request_of
from credit_parts.prompted import Prompted
from credit_parts.runs import trajectories
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hopscope.runtime.ports import Statement
from hopscope.runtime.types import GenerationRequest, Passage, Question
from hopscope.tracing.entailments import lexical
from hopscope.tracing.entailments.nli import statement_texts
from hopscope.tracing.games.frozen import over_steps
from hopscope.tracing.meters import semantic_entropy
from hopscope.tracing.wrappers.cached import CachedEntailment
from peer_parts.rounds import PeerMissingError, Table, ratio, spread, taken_in_turn

PAIRS = 10
"""Pairs of a batch: lm-polygraph's default."""
FOLDERS = ("", ".estimators", ".stat_calculators", ".utils")
LABELS = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")

Asked = list[tuple[Question, list[tuple[Passage, ...]]]]


def measure(bench: Benchmark, rounds: int) -> list[Table]:
    classes = imported()
    asked: Asked = []
    for found in trajectories(bench):
        game = over_steps(found)
        along = [game.evidence(frozenset(game.players[:t])) for t in range(len(game.players) + 1)]
        asked.append((found.question, [each for each in along if isinstance(each, tuple)]))
    ours = Ours(bench)
    sides: dict[str, Callable[[], None]] = {"Hopscope": lambda: ours.turn(asked)}
    ours.turn(asked)  # once before the rounds, also for the samples that both score
    for label, question in (("bare replies", False), ("with the question", True)):
        theirs = Theirs(bench, classes, asked, ours, question=question)
        theirs.draw()
        sides[f"lm-polygraph, {label}"] = theirs.turn
        ours.entropies[f"lm-polygraph, {label}"] = theirs.entropies
    seconds = taken_in_turn(sides, rounds)
    contexts = sum(len(evidences) for _, evidences in asked)
    rows = [
        (
            label,
            str(spread([each / contexts for each in seconds[label]])),
            str(ratio(seconds[label], seconds["Hopscope"])),
            f"{mean(ours.entropies[label]):.3f}",
        )
        for label in sides
    ]
    heading = f"Semantic entropy of {contexts} contexts, N = {N}, end to end"
    return [Table(heading, ("", "seconds a context", "times ours", "mean entropy, nats"), rows)]


def imported() -> SimpleNamespace:
    """lm-polygraph's classes. Its packages import everything it can do, with some thirty other
    libraries; so only the modules needed are imported.

    Raises:
        PeerMissingError: they cannot be imported.
    """
    try:
        root = importlib.util.find_spec("lm_polygraph")
        if root is None or root.submodule_search_locations is None:
            raise ImportError("lm-polygraph is not installed")
        for name in FOLDERS:
            package = ModuleType(f"lm_polygraph{name}")
            places = [f"{each}{name.replace('.', '/')}" for each in root.submodule_search_locations]
            package.__path__ = places
            sys.modules.setdefault(package.__name__, package)
        load = import_module
        return SimpleNamespace(
            matrix=load("lm_polygraph.stat_calculators.semantic_matrix").SemanticMatrixCalculator,
            classes=load(
                "lm_polygraph.stat_calculators.semantic_classes"
            ).SemanticClassesCalculator,
            entropy=load("lm_polygraph.estimators.semantic_entropy").SemanticEntropy,
        )
    except (ImportError, AttributeError) as error:
        raise PeerMissingError(f"lm-polygraph cannot be imported: {error}") from error


class Ours:
    """Our meter with empty caches."""

    def __init__(self, bench: Benchmark) -> None:
        self._bench = bench
        self.entropies: dict[str, list[float]] = {"Hopscope": []}
        self.samples: list[list[str]] = []
        """Of each context, from the last turn."""

    def turn(self, asked: Asked) -> None:
        reader = self._bench.reader()
        meter = semantic_entropy.build(
            reader,
            CachedEntailment(Prompted(self._bench.model())),
            entropy="discrete",
            samples=N,
            max_tokens=MAX_TOKENS,
            context_words=CONTEXT_WORDS,
            seed=SEED,
        )
        self.entropies["Hopscope"] = [
            -(found.value or 0.0)
            for question, evidences in asked
            for found in meter.measure(question, evidences)
        ]
        self.samples = []
        for request in requests_of(asked):
            [drawn] = reader.generate([request])
            self.samples.append([each.text.strip() for each in drawn])


def requests_of(asked: Asked) -> list[GenerationRequest]:
    """The reader's request of each context."""
    return [
        request_of(question.text, evidence)
        for question, evidences in asked
        for evidence in evidences
    ]


class Theirs:
    """lm-polygraph's classes over transformers' models."""

    def __init__(
        self,
        bench: Benchmark,
        classes: SimpleNamespace,
        asked: Asked,
        ours: Ours,
        *,
        question: bool,
    ) -> None:
        self._reader = bench.reader(bare=True)
        self._requests = requests_of(asked)
        self._judge = Judge(bench.nli, bench.device)
        self._classes = classes
        self._ours = ours
        asking_of = [q.text for q, evidences in asked for _ in evidences]
        self._questions = asking_of if question else [""] * len(asking_of)
        self.entropies: list[float] = []

    def draw(self) -> None:
        """The samples of each context."""
        for request in self._requests:
            authors.draw(self._reader, request)

    def turn(self) -> None:
        self.draw()
        found = []
        for question, texts in zip(self._questions, self._ours.samples, strict=True):
            asked = [statement_texts(Statement(question, each, ""))[0] for each in texts]
            self._judge.replies = dict(zip(asked, texts, strict=True))
            given: dict[str, Any] = {"sample_texts": [asked]}
            given |= self._classes.matrix(self._judge)(given, [""], None)
            given |= self._classes.classes()(given, [""], None)
            estimator = self._classes.entropy(class_probability_estimation="frequency")
            found += [float(each) for each in estimator(given)]
        self.entropies[:] = found


class Judge:
    """The entailment model by the interface that lm-polygraph wants. As on our side nine tenths of
    each verdict are lexical, since those of random weights mean nothing."""

    batch_size = PAIRS

    def __init__(self, folder: Path, device: str) -> None:
        self.device = device
        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model: Any = AutoModelForSequenceClassification.from_pretrained(
            folder, local_files_only=True
        )
        self._model = model.to(device).eval()
        self._words = lexical.build()
        self._pairs: Sequence[tuple[str, str]] = ()
        self.replies: dict[str, str] = {}
        """The bare reply of each text."""
        self.deberta = _Model(self._logits)

    def deberta_tokenizer(self, pairs: Sequence[tuple[str, str]], **options: Any) -> Any:
        self._pairs = pairs
        return self._tokenizer(list(pairs), **options)

    def _logits(self, **encoded: Any) -> Any:
        own = self._model(**encoded).logits.softmax(dim=-1)
        bare = [(self.replies[one], self.replies[other]) for one, other in self._pairs]
        words = self._words.classify([Statement("", *pair) for pair in bare])
        by_words = torch.tensor(
            [[each.contradiction, each.neutral, each.entailment] for each in words],
            device=own.device,
        )
        return SimpleNamespace(logits=(0.9 * by_words + 0.1 * own).log())


class _Model:
    """A call with the configuration that lm-polygraph reads."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call
        self.config = SimpleNamespace(
            label2id={label: number for number, label in enumerate(LABELS)}
        )

    def __call__(self, **encoded: Any) -> Any:
        return self._call(**encoded)
