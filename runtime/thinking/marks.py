"""The thoughts of reasoning models: their marks, and where in a reply the answer begins.

A model thinks between two marks before it answers; its chat template or its added tokens name the
marks. Invariants: a thought is never part of the answer; time is linear in the length of a reply; a
mark counts only where the reader may write one, so the same letters within an answer or a passage
are text.

Sources: the models' chat templates and cards (DeepSeek-R1, Qwen3, GLM-4.5, Magistral, gpt-oss and
its harmony format, Seed-OSS, Command A Reasoning, Apertus, Kimi, LongCat, Gemma 4, Granite 3.2).
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from hopscope.runtime.types import ThoughtEnd

Thinking = Literal["auto", "on", "off"] | Annotated[int, Field(ge=1)]
"""Whether a reader thinks before it answers: by default of its chat template, always, never, or
always with a limit of tokens."""
LIMIT = 4096
"""Default limit of a thought in tokens."""
SEPARATORS = 8
"""Most tokens of white space before a thought, and of white space or chat format after it."""


class Marks(NamedTuple):
    """The texts around a thought."""

    open: str
    close: str
    """The answer begins after it."""
    before_close: str = ""
    """Text that a forced end needs before the closing mark."""
    after_close: str = ""
    """Text that a forced end needs between the closing mark and the answer."""


MARKS = (
    Marks("<think>", "</think>"),
    Marks("<thinking>", "</thinking>"),
    Marks("<thought>", "</thought>"),
    Marks("<reasoning>", "</reasoning>"),
    Marks("<seed:think>", "</seed:think>"),
    Marks("<longcat_think>", "</longcat_think>"),
    Marks("[THINK]", "[/THINK]"),
    Marks("◁think▷", "◁/think▷"),
    Marks("<|begin_of_thought|>", "<|end_of_thought|>"),
    Marks("<|inner_prefix|>", "<|inner_suffix|>"),
    Marks("<|START_THINKING|>", "<|END_THINKING|>", after_close="<|START_RESPONSE|>"),
    Marks("<|channel>thought\n", "<channel|>"),
    # All channels before the final one are thoughts.
    Marks(
        "<|channel|>analysis<|message|>",
        "<|channel|>final<|message|>",
        before_close="<|end|><|start|>assistant",
    ),
    Marks("Here is my thought process:", "Here is my response:"),
)
SWITCHES = ("enable_thinking", "thinking", "reasoning")
"""Names of the switch in chat templates: Qwen3, GLM and others; DeepSeek-V3.1 and Granite; Command
A Reasoning."""


class Opening(NamedTuple):
    """The possible beginnings of a reply."""

    marks: tuple[Marks, ...]
    """The marks in which the model may think."""
    opened: Marks | None
    """The marks that the prompt has opened: the reply begins within the thought."""
    limit: int
    """Most tokens of the thought, its marks included."""
    bridges: tuple[tuple[int, ...], ...] = ()
    """For each of the marks, the tokens that end a thought by force."""

    @property
    def room(self) -> int:
        """Most tokens before the answer."""
        return self.limit + max(map(len, self.bridges), default=0) + SEPARATORS


def known_marks(template: str, added: Sequence[str]) -> tuple[Marks, ...]:
    """The marks that a chat template or the added tokens of a vocabulary name."""
    tokens = set(added)
    return tuple(
        marks
        for marks in MARKS
        if named_by(template, marks) or marks.open in tokens or marks.close in tokens
    )


def named_by(template: str, marks: Marks) -> bool:
    """Whether a chat template names these marks."""
    return marks.open.strip() in template or marks.close in template


def left_open(tail: str, marks: Sequence[Marks]) -> Marks | None:
    """The marks of the thought in which a prompt ends; `tail` is the text after its last
    message."""
    for each in marks:
        opened = tail.rfind(each.open.strip())
        if opened >= 0 and tail.rfind(each.close) < opened:
            return each
    return None


class Watch:
    """Follows a reply, piece by piece, until its answer begins.

    `pieces` include the text of special tokens, since some models' marks are such.
    """

    def __init__(self, opening: Opening) -> None:
        self._marks = opening.marks
        self.within: Marks | None = opening.opened
        """The marks of the current thought; None outside one."""
        self.answering = False
        """Whether the thought, if there was one, is over."""
        self.rest = ""
        """The part of the last piece that belongs to the answer, if a thought ended within it."""
        self._begun: str | None = None if opening.opened else ""
        """The reply so far, while it may yet turn out to begin with a mark."""
        self._blanks = 0
        """Pieces of white space before it."""
        self._thought: list[str] = []
        self._tail = ""
        """The end of the thought, in which the closing mark may have begun."""

    @property
    def thought(self) -> str:
        """The text between the marks so far."""
        return "".join(self._thought)

    def add(self, piece: str) -> None:
        """Read the next piece."""
        if self.within is not None:
            self._think(piece)
            return
        assert self._begun is not None
        self._begun = begun = (self._begun + piece).lstrip()
        for marks in self._marks:
            for mark in (marks.open, marks.close):
                if begun.startswith(mark):
                    self.within = marks
                    self._think(begun[len(mark) :] if mark is marks.open else begun)
                    return
        marks_begun = (m.startswith(begun) for pair in self._marks for m in (pair.open, pair.close))
        self._blanks += not begun
        self.answering = self._blanks > SEPARATORS or not any(marks_begun)

    def _think(self, piece: str) -> None:
        assert self.within is not None
        close = self.within.close
        self._thought.append(piece)
        text = self._tail + piece
        at = text.find(close)
        if at < 0:
            self._tail = text[-(len(close) - 1) :]
            return
        inside = sum(map(len, self._thought)) - len(text) + at
        whole = self.thought
        self._thought = [whole[:inside]]
        self.rest = whole[inside + len(close) :]
        self.answering = True


class SplitReply(NamedTuple):
    """A reply split into thought and answer."""

    thought: str | None
    """None without a thought."""
    answer: str
    end: ThoughtEnd = "closed"


def part(text: str, marks: Sequence[Marks] = MARKS) -> SplitReply:
    """Split a whole reply. If it has a closing mark and no opening one, the prompt opened the
    thought."""
    reply = text.lstrip()
    for each in marks:
        if reply.startswith(each.open):
            inside, closed, answer = reply[len(each.open) :].partition(each.close)
            if not closed:
                return SplitReply(inside, "", "open")
            return SplitReply(inside, answer.lstrip())
    for each in marks:
        inside, closed, answer = text.partition(each.close)
        words = each.close[0].isalpha()  # an answer may hold them, too
        if closed and not words and each.open not in inside:
            return SplitReply(inside, answer.lstrip())
    return SplitReply(None, text)


def switched(thinking: Thinking, template: str) -> dict[str, Any]:
    """The variables that switch thinking in chat templates; empty for `auto`."""
    if thinking == "auto":
        return {}
    on = thinking != "off"
    variables: dict[str, Any] = dict.fromkeys(SWITCHES, on)
    if not on and "reasoning_effort" in template:
        variables["reasoning_effort"] = "low" if "<|channel|>" in template else "none"
    elif on and "reasoning_effort" in template and "<|channel|>" not in template:
        variables["reasoning_effort"] = "high"
    if isinstance(thinking, int):
        variables["thinking_budget"] = thinking
    return variables
