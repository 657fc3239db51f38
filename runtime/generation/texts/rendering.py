"""Turns a prompt into the tokens of a model's input.

Invariant: rendering is a pure function of the prompt and the tokenizer. Tokens of the prompt are
the tokens of its text alone, so a continuation never changes them, and there is at most one
beginning-of-text token.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Lock
from typing import Any

from jinja2 import TemplateError

from hopscope.runtime.errors import CapabilityError, ReaderError
from hopscope.runtime.generation.texts.defusing import Defuser
from hopscope.runtime.prompting import tool_calls
from hopscope.runtime.thinking.habit import Habit
from hopscope.runtime.thinking.marks import Opening, Thinking
from hopscope.runtime.types import GenerationRequest, Message, Prompt

TEMPLATE_OPTIONS = {
    # Templates that print today's date would make yesterday's scores incomparable.
    "date_string": "26 Jul 2024",
}


NORMALISED = 4
"""Most characters that a tokenizer's normalisation may merge into one."""


KEPT = 1 << 16
"""Tokens of the prompts last rendered that are kept: a run asks for those of a prompt again when it
counts what its reader had at hand."""


class Kept:
    """Tokens of the prompts used last, `KEPT` together at most. Threads may share it."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[tuple[Prompt, str | None], tuple[int, ...]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def get(
        self, prompt: Prompt, thought: str | None, render: Callable[[], Sequence[int]]
    ) -> list[int]:
        """The tokens of a prompt, rendered if they are not kept."""
        key = prompt, thought
        with self._lock:
            known = self._tokens.get(key)
            if known is not None:
                self._tokens.move_to_end(key)
                return list(known)
        ids = tuple(render())
        with self._lock:
            if key not in self._tokens:
                self._tokens[key] = ids
                self._size += len(ids)
            while self._size > KEPT:
                _, oldest = self._tokens.popitem(last=False)
                self._size -= len(oldest)
        return list(ids)


class Renderer:
    """Renders prompts by a model's chat template and tokenizer."""

    def __init__(
        self, tokenizer: Any, name: str, end_ids: frozenset[int], thinking: Thinking = "auto"
    ) -> None:
        """
        Raises:
            UsageError: `thinking` is on, and the model cannot think.
        """
        self.habit = Habit(tokenizer, name, thinking)
        self._tokenizer = tokenizer
        self._name = name
        self._end_ids = end_ids
        self._chat = bool(tokenizer.chat_template)
        self._defuse = Defuser(tokenizer, name).defuse
        self._kept = Kept()

    def fewest(self, prompt: Prompt, context: int) -> int:
        """A lower bound on the prompt's tokens, if it may exceed the context; else 0.

        Computed from its length: tokenizing a text of ten megabytes takes gigabytes.
        """
        texts = [*(message.content for message in prompt.messages), prompt.prefix]
        if sum(map(len, texts)) <= context:
            return 0
        if sum(map(len, texts)) > context * self._most_characters:
            # White space may have no tokens.
            length = sum(len(" ".join(text.split())) for text in texts)
            return length // self._most_characters
        return 0

    @cached_property
    def _most_characters(self) -> int:
        """Most characters of a text per token; normalising may merge a few into one."""
        return NORMALISED * max(map(len, self._tokenizer.get_vocab()))

    def prompt_ids(self, prompt: Prompt, thought: str | None = None) -> list[int]:
        """The prompt's tokens, up to the point where the reader continues: with a thought, if it
        thinks, or after the given thought; an empty one is none. A prefix is never followed by one.

        Raises:
            ReaderError: the chat template rejects the messages.
            CapabilityError: a thought is given to a model that does not think, or tools to one
                that cannot call them.
        """
        return self._kept.get(prompt, thought, lambda: self._rendered(prompt, thought))

    def _rendered(self, prompt: Prompt, thought: str | None) -> list[int]:
        offered = tool_calls.tools(prompt.messages)
        if offered and not self._chat:
            raise self._toolless("it has no chat template")
        prompt = self._defused(prompt)
        if thought and not self.habit.marks:
            raise CapabilityError(
                f"{self._name} does not think, so it cannot continue a given thought"
            )
        if self._chat:
            if thought:
                thought = self._defuse(thought)
            elif prompt.prefix or self.habit.thinking == "off":
                thought = ""
            text = self._chat_text(prompt.messages, self.habit.options(thought))
            return self._tokenize(text + self.habit.before_answer(thought) + prompt.prefix)
        ids: list[int] = self._tokenizer(plain_text(prompt), verbose=False).input_ids
        while ids and ids[-1] in self._end_ids:  # some tokenizers append an end token to every text
            ids.pop()
        return ids

    def continuation_ids(self, prompt: Prompt, continuation: str) -> list[int]:
        """The tokens of a text that follows the prompt.

        Between plain text and a continuation there is a space, which most tokenizers write into
        the first token; it is added if the caller left it out.
        """
        follows_text = bool(prompt.prefix) or not self._chat
        if follows_text and continuation and not continuation[0].isspace():
            before = prompt.prefix or plain_text(prompt)
            continuation = continuation if before[-1].isspace() else f" {continuation}"
        return self._tokenize(continuation)

    def _defused(self, prompt: Prompt) -> Prompt:
        """The prompt without marks of the chat format in its text: passages are untrusted."""
        defuse = self._defuse
        messages = (
            m if m.role == "tools" else m.model_copy(update={"content": defuse(m.content)})
            for m in prompt.messages
        )
        update = {"messages": tuple(messages), "prefix": defuse(prompt.prefix)}
        return prompt.model_copy(update=update)

    def opening(
        self, request: GenerationRequest, prompt: list[int], context: int | None
    ) -> Opening | None:
        """The possible beginnings of a reply to the request; see `Habit.opening`."""
        return self.habit.opening(request, len(prompt), context, self._tokenize)

    def _tokenize(self, text: str) -> list[int]:
        # verbose would warn of a prompt that is too long, which the reader refuses itself.
        ids: list[int] = self._tokenizer(text, add_special_tokens=False, verbose=False).input_ids
        return ids

    def _chat_text(self, messages: Sequence[Message], options: dict[str, Any]) -> str:
        system = [message.content for message in messages if message.role == "system"]
        try:
            text = self._apply_template(messages, options)
            if all(content.strip() in text for content in system):
                return text
        except TemplateError:
            pass  # usually a template without a system role
        try:
            return self._apply_template(fold_system(messages), options)
        except TemplateError as error:
            reason = str(error).splitlines()[0] if str(error) else "no reason given"
            if tool_calls.tools(messages):
                raise self._toolless(f"its chat template fails: {reason}") from error
            raise ReaderError(f"{self._name}: its chat template fails: {reason}") from error

    def _toolless(self, reason: str) -> CapabilityError:
        return CapabilityError(
            f"{self._name} cannot call tools: {reason}; take a model whose chat template has a "
            "place for tools, as those of Qwen, Llama 3.1 and Mistral, or a workflow without "
            "(search_agent, self_ask, flare_instruct)"
        )

    def _apply_template(self, messages: Sequence[Message], options: dict[str, Any]) -> str:
        offered = tool_calls.tools(messages)
        text: str = self._tokenizer.apply_chat_template(
            tool_calls.chat(messages),
            tokenize=False,
            add_generation_prompt=True,
            **({"tools": offered} if offered else {}),
            **TEMPLATE_OPTIONS,
            **options,
        )
        if not all(tool["function"]["description"] in text for tool in offered):
            raise self._toolless("its chat template leaves them out")
        return text


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """The messages with all system text moved to the head of the first user turn."""
    system = [message.content for message in messages if message.role == "system"]
    offered = [message for message in messages if message.role == "tools"]
    turns = [message for message in messages if message.role not in ("system", "tools")]
    if not turns or turns[0].role != "user":
        return [*offered, Message(role="user", content="\n\n".join(system)), *turns]
    head = Message(role="user", content="\n\n".join([*system, turns[0].content]))
    return [*offered, head, *turns[1:]]


def plain_text(prompt: Prompt) -> str:
    """The prompt for models without a chat template: the messages as one document that ends before
    the answer."""
    labels = {"system": "", "user": "", "assistant": "Answer: "}
    turns = [f"{labels[message.role]}{message.content}" for message in prompt.messages]
    text = "\n\n".join(turns) + "\nAnswer:"
    return f"{text} {prompt.prefix}" if prompt.prefix else text
