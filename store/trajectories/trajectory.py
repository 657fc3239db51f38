"""The record of a run, made from what happened in it, in order.

Rules of reading, the same for all formats:

- A search is a step of kind `retrieve`, one for each query. Its passages join the evidence; the
  evidence of a run that drops none is all that it has found so far.
- A reply of a model is a step of kind `generate`. It saw all evidence there was, unless the format
  knows its prompt.
- A ranking is a step of kind `rank`: its passages replace those that it was given, in its order.
- Tokens that nobody counted are unknown and not zero.
- A passage without an id gets one from its title and text. If two texts come under one id, the
  later gets that id with a hash of its text behind it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from typing import Any

from hopscope.runtime import key_lists
from hopscope.runtime.adapters.passages import ranking
from hopscope.runtime.execution.state import merge
from hopscope.runtime.types import (
    IMPORTED,
    Decision,
    Hit,
    Passage,
    Question,
    Run,
    RunError,
    Step,
    StepKind,
    Usage,
)
from hopscope.store.trajectories.splitting import RULES, Rule, part

UNCOUNTED = Usage(calls=1, uncounted=1)
"""A call of a model whose tokens nobody counted."""
NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""The start of what tells no time; the import replaces it by its own time."""


@dataclass(frozen=True)
class Moment:
    """When a step happened, and the span that tells of it."""

    started: datetime = NO_TIME
    seconds: float = 0.0
    span_id: str = ""


NO_MOMENT = Moment()


@dataclass
class Trajectory:
    """A run in the making."""

    question: Question
    _: KW_ONLY
    source: str = ""
    """Where passages came from that do not say so themselves."""
    steps: list[Step] = field(default_factory=list)
    evidence: tuple[Passage, ...] = ()
    parted: dict[str, Rule] = field(default_factory=dict)
    """The rule that parted glued passages, by the index of the step."""
    _known: dict[str, str] = field(default_factory=dict)
    _brought: set[str] = field(default_factory=set)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the evidence."""
        return tuple(passage.key for passage in self.evidence)

    def reply(
        self,
        text: str | None,
        *,
        name: str = "think",
        shown: Iterable[str] | None = None,
        usage: Usage = UNCOUNTED,
        moment: Moment = NO_MOMENT,
    ) -> None:
        """A reply of a model.

        Args:
            shown: keys of the passages in its prompt; by default all evidence.
        """
        keys = self.keys if shown is None else tuple(dict.fromkeys(shown))
        self._add(name, "generate", moment, shown=keys, output=text, usage=usage)

    def found(
        self,
        query: str,
        passages: Any,
        *,
        name: str = "search",
        moment: Moment = NO_MOMENT,
        decision: Decision | None = None,
    ) -> None:
        """A search, with what it found, as `runtime.adapters.passages.ranking` reads it.

        Args:
            decision: that it was worth it, if somebody decided.

        Raises:
            MalformedRecordError: there is something else than passages in it.
        """
        hits = tuple(map(self._told_apart, ranking(passages, source=self.source)))
        self.evidence = merge(self.evidence, hits)
        usage = decision.usage if decision else Usage()
        self._add(
            name, "retrieve", moment, query=query, ranked=hits, decision=decision, usage=usage
        )

    def declined(
        self, decision: Decision, *, name: str = "search", moment: Moment = NO_MOMENT
    ) -> None:
        """A search that was not worth it."""
        told = decision.reason
        self._add(name, "retrieve", moment, output=told, decision=decision, usage=decision.usage)

    def glued(
        self,
        query: str,
        text: str,
        *,
        rules: Sequence[Rule] = RULES,
        name: str = "search",
        moment: Moment = NO_MOMENT,
        decision: Decision | None = None,
    ) -> None:
        """A search whose passages were glued into one text.

        Raises:
            MalformedRecordError: as `found`.
        """
        parted = part(text, rules)
        if parted.rule is not None:
            self.parted[str(len(self.steps))] = parted.rule
        self.found(query, parted.passages, name=name, moment=moment, decision=decision)

    def ranked(
        self,
        given: Any,
        passages: Any,
        *,
        name: str = "rerank",
        moment: Moment = NO_MOMENT,
    ) -> None:
        """A ranking: of the passages that it was given, these are left, in this order.

        Raises:
            MalformedRecordError: as `found`.
        """
        before = {self._told_apart(hit).passage.key for hit in ranking(given, source=self.source)}
        hits = [self._told_apart(hit) for hit in ranking(passages, source=self.source)]
        kept = [passage for passage in self.evidence if passage.key not in before]
        held = {passage.key: passage for passage in self.evidence}
        after = [hit.passage for hit in hits]
        # A passage keeps the source that its search told.
        self.evidence = merge(kept, [Hit(passage=held.get(p.key, p), score=0.0) for p in after])
        self._add(name, "rank", moment, output=key_lists.write(after))

    def run(
        self,
        format: str,
        *,
        answer: str | None,
        error: RunError | None = None,
        moment: Moment | None = None,
        reader: str = "",
        trace_id: str = "",
        **options: Any,
    ) -> Run:
        """The run. Without an answer it has failed.

        Args:
            options: what else its record tells of it.
        """
        if answer is None and error is None:
            error = RunError(type="NoAnswer", message="the record holds no answer")
        shown = {key for step in self.steps for key in step.shown}
        steps = tuple(
            step.model_copy(update={"dangling": lost})
            if (lost := tuple(key for key in step.new if key not in shown))
            else step
            for step in self.steps
        )
        at = moment or Moment()
        told: dict[str, Any] = {"format": format, **options}
        if self.parted:
            told["split"] = dict(self.parted)
        return Run(
            id="",
            question=self.question,
            workflow=IMPORTED + format,
            options=told,
            reader=reader,
            steps=steps,
            answer=answer,
            status="failed" if error else "ok",
            stop_reason=None if error else "answered",
            error=error,
            started=at.started,
            seconds=at.seconds,
            trace_id=trace_id,
            span_id=at.span_id,
        )

    def _told_apart(self, hit: Hit) -> Hit:
        """The hit, under another id if its own is that of another text."""
        passage, content = hit.passage, hit.passage.content_hash
        if self._known.setdefault(passage.id, content) == content:
            return hit
        id = f"{passage.id}#{content[:8]}"
        self._known[id] = content
        return hit.model_copy(update={"passage": passage.model_copy(update={"id": id})})

    def _add(self, name: str, kind: StepKind, moment: Moment, **fields: Any) -> None:
        new = tuple(key for key in self.keys if key not in self._brought)
        self._brought.update(new)
        step = Step(
            index=len(self.steps),
            name=name,
            kind=kind,
            new=new,
            evidence=self.evidence,
            started=moment.started,
            seconds=moment.seconds,
            span_id=moment.span_id,
            **fields,
        )
        self.steps.append(step)
