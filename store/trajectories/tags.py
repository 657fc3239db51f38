"""Rollouts whose queries, passages and answers stand between tags.

    thought <query>…</query> <documents>…</documents> thought … <answer>…</answer>

Each stretch of documents is one search, whose query is the last one before it. A query without
documents found nothing out and stays part of the thought.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hopscope.runtime.corpora.records.fields import keys, string
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.types import Run
from hopscope.store.trajectories import fields
from hopscope.store.trajectories.sources import Source, Unread, each_record
from hopscope.store.trajectories.splitting import Rule
from hopscope.store.trajectories.trajectory import Trajectory

TEXTS = (
    "gen_text_store",
    "output",
    "response",
    "rollout",
    "trajectory",
    "completion",
    "sequences_str",
    "generated_text",
    "text",
)
"""Fields that may hold a rollout; the first one with a tag counts."""
ANSWERS = ("pred_ans", "pred", "prediction")
"""Fields that may hold the answer, if it stands between no tags."""
_ASSISTANT = ("<|im_start|>assistant", "<|start_header_id|>assistant<|end_header_id|>")
"""Marks behind which the model speaks, in texts that begin with the prompt."""


class Searched(NamedTuple):
    """A search of a rollout."""

    thought: str
    query: str
    documents: str
    end: int
    """The place behind it in the text."""


@dataclass(frozen=True)
class TaggedRollouts:
    """A format of such rollouts: its tags, and the rules that part its passages."""

    format: str
    query: tuple[str, str]
    documents: tuple[str, str]
    rules: tuple[Rule, ...]
    golds: Sequence[str] = fields.GOLDS
    answer: tuple[str, str] = ("<answer>", "</answer>")

    def fits(self, source: Source) -> bool:
        """Whether one of the first records searches by these tags."""
        marks = (self.query[0], self.documents[0])
        return any(
            isinstance(text := value.get(name), str) and any(mark in text for mark in marks)
            for value in source.head
            for name in TEXTS
        )

    def runs(self, sources: Sequence[Source]) -> Iterator[Run | Unread]:
        """As `RunFormat`."""
        return each_record(sources, self.run)

    def run(self, value: Mapping[str, Any]) -> Run:
        """The run of a record.

        Raises:
            MalformedRecordError: it holds no rollout, or tags that do not close.
        """
        text = self._text(value)
        trajectory = Trajectory(fields.question(value, golds=self.golds))
        end = 0
        for searched in self._searches(text):
            end = searched.end
            trajectory.reply(searched.thought.strip())
            trajectory.glued(searched.query.strip(), searched.documents, rules=self.rules)
        last = text[end:]
        answer = self._answer(last)
        if answer is None:
            named = (string(value, name) for name in ANSWERS)
            answer = next((each.strip() for each in named if each.strip()), None)
        if last.strip():
            trajectory.reply(last.strip(), name="think" if answer is None else "answer")
        return trajectory.run(self.format, answer=answer)

    def _text(self, value: Mapping[str, Any]) -> str:
        texts = [text for name in TEXTS if isinstance(text := value.get(name), str)]
        marks = (self.documents[0], self.query[0], self.answer[0])
        found = next((t for t in texts if any(mark in t for mark in marks)), None)
        if found is None:
            raise MalformedRecordError(
                f"no rollout with {' or '.join(marks)} among the keys {keys(value)}: it may stand "
                f"in {', '.join(TEXTS)}"
            )
        for mark in _ASSISTANT:
            found = found.partition(mark)[2] if mark in found else found
        return found

    def _searches(self, text: str) -> Iterator[Searched]:
        at = 0
        while (begin := text.find(self.documents[0], at)) >= 0:
            end = text.find(self.documents[1], begin)
            if end < 0:
                raise MalformedRecordError(
                    f"{self.documents[0]} at character {begin} has no {self.documents[1]}, so that "
                    "it is not known where the passages end"
                )
            asked = text.rfind(self.query[0], at, begin)
            closed = text.find(self.query[1], asked, begin) if asked >= 0 else -1
            if closed < 0:
                raise MalformedRecordError(
                    f"{self.documents[0]} at character {begin} has no query before it"
                )
            thought = text[at:asked]
            at = end + len(self.documents[1])
            yield Searched(
                thought=thought,
                query=text[asked + len(self.query[0]) : closed],
                documents=text[begin + len(self.documents[0]) : end],
                end=at,
            )

    def _answer(self, text: str) -> str | None:
        begin = text.rfind(self.answer[0])
        end = text.find(self.answer[1], begin) if begin >= 0 else -1
        return text[begin + len(self.answer[0]) : end].strip() if end >= 0 else None
