"""The inputs of a suite: readers, questions whose gold passages are known, and a corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from random import Random
from typing import Any

from hopscope import workflows
from hopscope.api import parts
from hopscope.api.presets import Presets
from hopscope.lab.suites.known import KnownQuestion, KnownSource, useless
from hopscope.runtime import components
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Entailment, Reader, Retriever
from hopscope.runtime.prompting import loading
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS, PromptSet
from hopscope.runtime.types import Passage
from hopscope.tracing import meters
from hopscope.tracing.meters.gold_logprob import GoldLogprob, Scale
from hopscope.tracing.meters.seper import SePer
from hopscope.tracing.wrappers.cached import CachedEntailment, CachedReader

NO_PRESETS = Presets()
REMEMBERED = 4_000
"""Answers of a reader that suites may share."""
DRAWN = 10_000
"""The most passages of a corpus that are drawn to find some that are of no use."""
NUMBERS = {1: "one hop", 2: "two hops", 3: "three hops", 4: "four hops"}


@dataclass(frozen=True)
class SuiteInputs:
    """The readers, questions and corpus of a suite."""

    reader: Reader
    """Caches its answers, so that suites share them."""
    other: Reader | None
    """A second reader of less ability, if there is one."""
    entailment: Entailment
    """Decides which answers mean the same."""
    seed: int
    """The seed of draws and of sampling, and of a generated world."""
    limit: int
    """Questions of a suite, at most."""
    source: KnownSource
    """The questions and the corpus."""
    presets: Presets = NO_PRESETS
    """Options of meters and workflows."""
    compared: tuple[Entailment, ...] = ()
    """Further entailments, for suites that compare them with the first."""

    def seper(
        self, *, reader: Reader | None = None, entailment: Entailment | None = None, **own: int
    ) -> SePer:
        """SePer by the presets, with this reader and entailment or the suite's own.

        Args:
            own: its options that the suite decides.
        """
        texts = self.presets.of_meters(["seper"])
        options = components.parse_options(
            SePer, {key.partition(".")[2]: text for key, text in texts.items()}
        )
        return SePer(
            reader or self.reader,
            entailment or self.entailment,
            **{"seed": self.seed, **options, **own},
        )

    def gold_logprob(
        self, scale: Scale = "logprob", *, reader: Reader | None = None
    ) -> GoldLogprob:
        """The gold's probability in the prompts of the presets, as SePer's samples are."""
        prompts = str(self.meter("gold_logprob").get("prompts", ""))
        return GoldLogprob(reader or self.reader, scale=scale, prompts=prompts)

    def meter(self, name: str) -> dict[str, Any]:
        """The options of a meter by the presets, parsed; none that they do not set."""
        texts = self.presets.of_meters([name])
        given = {key.partition(".")[2]: text for key, text in texts.items()}
        parsed = components.parse_options(components.load(meters, name).build, given)
        return {key: parsed[key] for key in given}

    def check(self, names: Sequence[str]) -> None:
        """Refuse options that the meters of these names refuse.

        Raises:
            UsageError: a value is out of range, or some exclude each other.
        """
        ports = {"reader": self.reader, "entailment": self.entailment}
        for name in names:
            build = components.load(meters, name).build
            build(
                *(port for key, port in ports.items() if key in signature(build).parameters),
                **self.meter(name),
            )

    def workflow(self, name: str, **default: str) -> dict[str, Any]:
        """All options of a workflow by the presets.

        Args:
            default: the suite's own, as texts, which presets precede.
        """
        given = {**default, **self.presets.of_workflow(name)}
        given.pop(parts.PROMPTS, None)
        return components.parse_options(components.load(workflows, name).build, given)

    def prompts(self, workflow: str) -> PromptSet:
        """The prompts of a workflow by the presets."""
        given = self.presets.of_workflow(workflow).get(parts.PROMPTS)
        return loading.load(given) if given else DEFAULT_PROMPTS

    @property
    def retriever(self) -> Retriever:
        """Searches the corpus."""
        return self.source.retriever

    @property
    def passages(self) -> Sequence[Passage]:
        """All of the corpus, in the index's order."""
        return self.source.passages

    @property
    def several(self) -> list[int]:
        """The numbers of gold passages from two on."""
        return [hops for hops in self.source.hops if hops > 1]

    def near(self, hops: int) -> int:
        """The number of gold passages nearest to this that questions have; of two the smaller."""
        return min(self.source.hops, key=lambda there: (abs(there - hops), there))

    def questions(self, hops: int, n: int | None = None) -> list[KnownQuestion]:
        """`n` different questions of so many gold passages, `limit` by default.

        Raises:
            UsageError: a generated world has fewer.
        """
        return self.source.questions(hops, self.limit if n is None else n)

    def mixed(self, n: int) -> list[KnownQuestion]:
        """`n` questions of different hops."""
        return self.source.mixed(n)

    def distractors(self, item: KnownQuestion, n: int) -> tuple[Passage, ...]:
        """`n` passages that look useful and are not: those that the data give beside the gold, then
        hits of the search that are neither gold nor contain an answer."""
        found = [passage for passage in item.candidates if not item.is_gold(passage)][:n]
        depth = n + len(item.gold)
        most = 2 * len(self.passages)
        keys = {passage.key for passage in item.candidates}
        hits: list[Passage] = []
        while len(found) + len(hits) < n and depth < most:
            depth *= 2
            [ranked] = self.retriever.search([item.question.text], k=depth)
            hits = [
                hit.passage
                for hit in ranked
                if hit.passage.key not in keys and useless(item, hit.passage)
            ]
        return tuple([*found, *hits][:n])

    def unrelated(self, item: KnownQuestion, n: int) -> tuple[Passage, ...]:
        """`n` different random passages that are neither gold nor contain an answer."""
        rng = Random(f"random {self.seed} {item.question.id}")
        size = len(self.passages)
        drawn = (self.passages[at] for at in rng.sample(range(size), min(size, DRAWN)))
        found: list[Passage] = []
        for passage in drawn:
            if len(found) == n:
                break
            if useless(item, passage):
                found.append(passage)
        return tuple(found)

    def single_passages(self, item: KnownQuestion) -> list[tuple[Passage, ...]]:
        """Contexts for a question: none, its gold passages (one with one hop), as many distractors,
        and as many drawn at random."""
        n = len(item.gold) or 1
        return [(), item.gold, self.distractors(item, n), self.unrelated(item, n)]

    def shuffled(self, item: KnownQuestion, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        """The passages in an order drawn for this question."""
        rng = Random(f"order {self.seed} {item.question.id}")
        return tuple(rng.sample(list(passages), len(passages)))


def of_source(
    source: KnownSource,
    reader: Reader,
    *,
    other: Reader | None = None,
    seed: int = 0,
    limit: int = 100,
    presets: Presets = NO_PRESETS,
    entailment: str,
    compared: Sequence[str] = (),
) -> SuiteInputs:
    """The inputs over these questions, with the entailments of these names.

    Raises:
        UsageError: two names are of one entailment, or there is no such entailment.
    """
    first, *others = (
        CachedEntailment(parts.entailment(parts.judging(name, presets.prompts)))
        for name in (entailment, *compared)
    )
    models = [each.name for each in (first, *others)]
    if twice := [name for name in models if models.count(name) > 1]:
        raise UsageError(f"--entailment names {twice[0]} twice; name it once")
    return SuiteInputs(
        reader=CachedReader(reader, size=REMEMBERED),
        other=None if other is None else CachedReader(other, size=REMEMBERED),
        entailment=first,
        seed=seed,
        limit=limit,
        source=source,
        presets=presets,
        compared=tuple(others),
    )


def worded(hops: int) -> str:
    """The number of hops in words."""
    return NUMBERS.get(hops, f"{hops} hops")
