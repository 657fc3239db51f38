"""Whether a model's chat template makes it think, and how to switch that.

The template is tested, not parsed: it renders one short chat by default, with thinking on and with
thinking off, and the text after the message shows whether it opens a thought, writes an empty one,
or ignores the switch.
"""

from collections.abc import Callable
from typing import Any

from jinja2 import TemplateError

from hopscope.runtime.errors import UsageError
from hopscope.runtime.thinking.marks import (
    LIMIT,
    Marks,
    Opening,
    Thinking,
    known_marks,
    left_open,
    named_by,
    switched,
)
from hopscope.runtime.types import GenerationRequest

PROBE = "hopscope"
"""The message of the test chat."""


class Habit:
    """A model's way of thinking. Models without a chat template do not think."""

    def __init__(self, tokenizer: Any, name: str, thinking: Thinking) -> None:
        """
        Raises:
            UsageError: `thinking` is on, and the model has no marks of a thought.
        """
        self.thinking = thinking
        template = _source(tokenizer)
        added = [token.content for token in tokenizer.added_tokens_decoder.values()]
        self.marks = known_marks(template, added) if template else ()
        required = thinking not in ("auto", "off")
        if required and not self.marks:
            raise UsageError(
                f"{name} cannot think: neither its chat template nor its tokens name marks of a "
                "thought such as <think>; leave out thinking (--thinking)"
            )
        default, on, off = (_laid_out(tokenizer, switched(t, template)) for t in _MODES)
        named = any(named_by(template, marks) for marks in self.marks)
        self.switch = on != off
        """Whether the template can switch thinking off."""
        self.thinks = required or (
            thinking == "auto" and named and (default != off if self.switch else True)
        )
        """Whether replies are expected to begin with a thought."""
        self._told = switched(thinking, template)
        self._on = switched("on", template) if thinking in ("auto", "off") else self._told
        self._off = switched("off", template) if self.thinks or thinking == "off" else {}
        tail = {"auto": default, "off": off}.get(str(thinking), on)
        self._opened = left_open(tail, self.marks) if self.thinks else None
        self._lead, self._before, self._after = _separators(off, self._usual)
        self._silence = self._silenced(off, named) if self._off else ""

    @property
    def suffix(self) -> str:
        """The suffix of the reader's name: scores with and without thoughts do not compare."""
        if not self.thinks:
            return ""
        return f":thinking={self.thinking}" if isinstance(self.thinking, int) else ":thinking"

    @property
    def limit(self) -> int:
        """Most tokens of a thought."""
        return self.thinking if isinstance(self.thinking, int) else LIMIT

    @property
    def note(self) -> str | None:
        """A note to the user where the model does not follow the setting; else None."""
        if self.thinking == "off" and self.marks and self._silence:
            return (
                "its chat template cannot switch thinking off: an empty thought is put before "
                "each answer"
            )
        return None

    def options(self, thought: str | None) -> dict[str, Any]:
        """The template's variables. With None the model thinks if it does; a text is a given
        thought, an empty one none."""
        if thought:
            return self._on
        return self._told if thought is None else self._off

    def before_answer(self, thought: str | None) -> str:
        """The text after the template's, so that the answer comes next; see `options`."""
        if thought is None:
            return ""
        if not thought:
            return self._silence
        marks = self._usual
        opening = "" if self._opened else marks.open.rstrip() + self._lead
        return opening + thought + self._closing(marks)

    def awaits_thought(self, request: GenerationRequest) -> bool:
        """Whether a reply to the request is expected to begin with a thought. None follows a prefix
        or a given thought."""
        return self.thinks and request.thought is None and not request.prompt.prefix

    def opening(
        self,
        request: GenerationRequest,
        prompt: int,
        context: int | None,
        tokenize: Callable[[str], list[int]],
    ) -> Opening | None:
        """The possible beginnings of a reply to a prompt of `prompt` tokens; None if the model
        cannot think. An unexpected thought is detected and gets as many tokens as the answer, or
        as many as the context leaves.
        """
        if not self.marks:
            return None
        bridges = tuple(tuple(tokenize(self._closing(marks))) for marks in self.marks)
        expected = self.awaits_thought(request)
        limit = self.limit if expected else request.max_tokens
        opening = Opening(self.marks, self._opened if expected else None, limit, bridges)
        if expected and isinstance(self.thinking, int):
            return opening._replace(limit=self.thinking)
        if context is None:
            return opening
        bridge = opening.room - opening.limit
        room = context - prompt - request.max_tokens - bridge
        if room < 1 and not expected:
            return None
        return opening._replace(limit=max(1, min(limit, room)))

    @property
    def _usual(self) -> Marks:
        return self._opened or self.marks[0] if self.marks else Marks("", "")

    def _closing(self, marks: Marks) -> str:
        """The text that ends a thought by force."""
        return self._before + marks.before_close + marks.close + marks.after_close + self._after

    def _silenced(self, off: str, named: bool) -> str:
        """The text after the template's that an answer without a thought needs."""
        if not self.marks:
            return ""
        if opened := left_open(off, self.marks):
            return self._closing(opened)
        if self.switch or not named:
            return ""
        marks = self._usual
        if marks.before_close:  # the answer has a mark of its own
            return marks.close
        return marks.open.rstrip() + self._lead + self._closing(marks)


_MODES: tuple[Thinking, ...] = ("auto", "on", "off")


def _source(tokenizer: Any) -> str:
    """The chat template's text; some tokenizers have several."""
    template = tokenizer.chat_template
    if isinstance(template, dict):
        return "\n".join(map(str, template.values()))
    return template or ""


def _laid_out(tokenizer: Any, options: dict[str, Any]) -> str:
    """The template's text after a message; empty if it fails or there is none."""
    if not tokenizer.chat_template:
        return ""
    try:
        text: str = tokenizer.apply_chat_template(
            [{"role": "user", "content": PROBE}],
            tokenize=False,
            add_generation_prompt=True,
            **options,
        )
    except (TemplateError, ValueError, TypeError):
        return ""
    before, found, behind = text.rpartition(PROBE)
    return f"{before}\0{behind}" if found else text


def _separators(off: str, marks: Marks) -> tuple[str, str, str]:
    """White space after the opening mark of a thought, before its closing mark, and after that: as
    in the template, else as most models write it."""
    opened = off.rfind(marks.open.rstrip()) if marks.open else -1
    closed = off.rfind(marks.close) if marks.close else -1
    if 0 <= opened < closed:
        inside = off[opened + len(marks.open.rstrip()) : closed]
        half = inside[: (len(inside) + 1) // 2]
        return half, inside[len(half) :], off[closed + len(marks.close) :]
    if not marks.open.startswith("<") or marks.open.startswith("<|"):
        return "", "", ""
    return "\n", "\n", "\n\n"
