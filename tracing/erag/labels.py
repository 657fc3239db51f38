"""eRAG: the value of each retrieved passage alone to the reader, and measures of the ranking.

The reader answers from one passage at a time, with the prompt of naive RAG; a metric of the answer
is the passage's label; measures of rankings aggregate the labels (Salemi & Zamani 2024,
arXiv 2404.13781, section 2).

Invariants: equal passages are read once and have the same label at every rank; a ranking with an
unlabelled passage, or without passages, has no measures: means leave it out and count it.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Reader
from hopscope.runtime.types import Measurement, Passage, Question, Record, Run
from hopscope.tracing.asking import asking
from hopscope.tracing.asking.asking import Content, Unmeasured
from hopscope.tracing.erag import ranking
from hopscope.tracing.reports.shown import shown_passages
from hopscope.tracing.scoring.metric import AnswerMetric, Case


class Ranking(Record):
    """A ranking with its labels and measures."""

    step: int | None = None
    """The step that retrieved it; None for the run's own ranking of all passages shown."""
    passages: tuple[str, ...]
    """Keys, best rank first."""
    labels: tuple[Measurement, ...]
    measures: dict[str, Measurement]
    """By name; see `tracing.erag.ranking`."""


@dataclass(frozen=True)
class ERAG:
    """Labels passages by the answers that a reader gives from each alone."""

    reader: Reader
    metric: AnswerMetric
    _: KW_ONLY
    max_tokens: int = 64
    seed: int = 0
    cutoffs: tuple[int, ...] = ()
    prompts: str = ""
    """A set of prompts, or its folder, whose `meter/answer` asks for the answers."""

    def __post_init__(self) -> None:
        """Raises UsageError for invalid options."""
        if self.max_tokens < 1 or any(cutoff < 1 for cutoff in self.cutoffs):
            raise UsageError("eRAG needs at least one token and cutoffs from 1 on")

    @property
    def estimator(self) -> str:
        return (
            f"erag(label={self.metric.estimator}, reader={self.reader.name}, temperature=0, "
            f"max_tokens={self.max_tokens}, prompt={asking.prompt_name(self.prompts)})"
        )

    def labels(self, question: Question, passages: Sequence[Passage]) -> dict[Content, Measurement]:
        """The label of each distinct passage by its content; one call to the reader.

        Raises:
            ReaderError, EntailmentError: a model failed.
        """
        alone = {asking.content([passage]): passage for passage in passages}
        requests = asking.requests(
            question.text,
            [(passage,) for passage in alone.values()],
            n=1,
            temperature=0.0,
            max_tokens=self.max_tokens,
            seed=self.seed,
            prompts=self.prompts,
        )
        replies = asking.generate(self.reader, list(requests.values())) if requests else []
        written = {
            key: reply[0].text.strip()
            for key, reply in zip(requests, replies, strict=True)
            if not isinstance(reply, Unmeasured)
        }
        scored = self.metric.score(
            [Case(question, text, (alone[key],)) for key, text in written.items()]
        )
        labels = dict(zip(written, scored, strict=True))
        for key, reply in zip(requests, replies, strict=True):
            if isinstance(reply, Unmeasured):
                labels[key] = Measurement(value=None, reason=reply.reason)
        drawn = [reply[0] for reply in replies if not isinstance(reply, Unmeasured)]
        update = {"estimator": asking.as_asked(self.estimator, drawn)}
        return {key: label.model_copy(update=update) for key, label in labels.items()}

    def rank(self, question: Question, rankings: Sequence[Sequence[Passage]]) -> list[Ranking]:
        """Each ranking with labels and measures.

        Raises:
            ReaderError, EntailmentError: a model failed.
        """
        labels = self.labels(question, [passage for ranked in rankings for passage in ranked])
        return [
            self._ranking(ranked, [labels[asking.content([p])] for p in ranked])
            for ranked in rankings
        ]

    def appraise(self, run: Run) -> list[Ranking]:
        """The ranking of each step that retrieved, without passages that no model was shown; last
        the run's own ranking (`tracing.reports.shown`) of all passages shown.

        Raises:
            ReaderError, EntailmentError: a model failed.
        """
        shown = shown_passages(run)
        steps = run.retrievals
        rankings = [
            [hit.passage for hit in step.ranked if hit.passage.key in shown] for step in steps
        ]
        ranked_all = self.rank(run.question, [*rankings, list(shown.values())])
        indices = [step.index for step in steps]
        return [
            ranked.model_copy(update={"step": index})
            for ranked, index in zip(ranked_all, [*indices, None], strict=True)
        ]

    def unmeasured(self, reason: str) -> Ranking:
        """The placeholder of a run that could not be measured."""
        measures = {
            name: Measurement(value=None, reason=reason, estimator=f"{name} of {self.estimator}")
            for name in ranking.names(self.cutoffs)
        }
        return Ranking(passages=(), labels=(), measures=measures)

    def _ranking(self, ranked: Sequence[Passage], labels: Sequence[Measurement]) -> Ranking:
        return Ranking(
            passages=tuple(passage.key for passage in ranked),
            labels=tuple(labels),
            measures=self._measures(labels),
        )

    def _measures(self, labels: Sequence[Measurement]) -> dict[str, Measurement]:
        values = [label.value for label in labels if label.value is not None]
        reason = None
        if not labels:
            reason = "no passage was retrieved and shown"
        elif len(values) < len(labels):
            why = next(label.reason for label in labels if label.value is None)
            reason = f"{len(labels) - len(values)} of {len(labels)} passages have no label: {why}"
        if reason is not None:
            measures: dict[str, float | None] = dict.fromkeys(ranking.names(self.cutoffs))
        else:
            measures = ranking.measures(values, binary=self.metric.binary, cutoffs=self.cutoffs)
            reason = f"not defined for labels between 0 and 1, as those of {self.metric.name}"
        return {
            name: Measurement(
                value=value,
                reason=reason if value is None else None,
                estimator=f"{name} of {self.estimator}",
            )
            for name, value in measures.items()
        }
