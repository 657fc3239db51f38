"""From a request of ours to the body that a server is sent, and from its reply to our record."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hopscope.runtime.errors import NotOffered
from hopscope.runtime.readers import _choices, _reasoning
from hopscope.runtime.readers._alignment import ending
from hopscope.runtime.readers._choices import Choice, Token
from hopscope.runtime.readers._dialect import NO_EFFORT, Dialect
from hopscope.runtime.readers._endpoint import Address
from hopscope.runtime.readers._rendering import TEMPLATE_OPTIONS, plain_text
from hopscope.runtime.readers._thinking import LIMIT, Thinking, switched
from hopscope.runtime.types import Generation, GenerationRequest, Prompt, Usage

if TYPE_CHECKING:  # it imports torch
    from hopscope.runtime.readers._vocabulary import Vocabulary

Alternatives = int | Literal["all", "none"]


class Wire(NamedTuple):
    """What is known of a model on a server, and how it is asked."""

    where: Address
    dialect: Dialect
    chat: bool
    """Whether messages are sent to /chat/completions, or else text or tokens to /completions."""
    alternatives: Alternatives
    vocabulary: "Vocabulary | None" = None
    """Of the model; where it is known, prompts are sent as its tokens."""
    context: int | None = None
    """Tokens of prompt and reply, if the server tells."""
    thinking: Thinking = "auto"

    @property
    def name(self) -> str:
        """Model, server, and how prompts are laid out: by the server's template, by the model's own
        template here, or as running text; and whether it thinks, as far as that was asked for."""
        how = "chat" if self.chat else "tokens" if self.vocabulary else "text"
        return f"{self.where.model}@{self.where.host}:{how}{self._suffix}"

    @property
    def _suffix(self) -> str:
        if self.vocabulary:
            return self.vocabulary.renderer.habit.suffix
        if not self.chat or self.thinking == "auto":
            return ""
        return {"on": ":thinking", "off": ":thinking=off"}.get(
            str(self.thinking), f":thinking={self.thinking}"
        )

    @property
    def limit(self) -> int:
        """Tokens of a thought at most."""
        return self.thinking if isinstance(self.thinking, int) else LIMIT

    @property
    def path(self) -> str:
        return "/chat/completions" if self.chat else "/completions"

    def prompt(self, prompt: Prompt, thought: str | None = None) -> Any:
        """Tokens, text or messages, whichever is sent.

        Raises:
            ReaderError: the chat template rejects the messages, or a thought cannot be given.
        """
        if self.vocabulary:
            return self.vocabulary.renderer.prompt_ids(prompt, thought)
        if thought is not None:  # empty, it may be one that the server keeps to itself
            raise NotOffered(
                f"{self.name} cannot be given a thought: that takes the model's tokenizer "
                "(tokenizer=FOLDER_OR_ID)"
            )
        if not self.chat:
            return plain_text(prompt)
        turns = [turn.model_dump() for turn in prompt.messages]
        return [*turns, {"role": "assistant", "content": prompt.prefix}] if prompt.prefix else turns

    def body(self, prompt: Any, *, max_tokens: int, temperature: float) -> dict[str, Any]:
        """What asks for one continuation of what `prompt` gave."""
        body: dict[str, Any] = {
            "model": self.where.model,
            self.dialect.length: max_tokens,
            "temperature": temperature,
            "top_p": 1.0,
            **self.dialect.sampling,
        }
        if self.chat:
            begun = prompt[-1]["role"] == "assistant"
            body |= {"messages": prompt, **self._switched("off" if begun else self.thinking)}
            if begun:
                body |= self.dialect.continues
        else:
            body["prompt"] = prompt
        return body | self._probabilities()

    def _switched(self, thinking: Thinking) -> dict[str, Any]:
        """How a chat is told whether to think."""
        budget = self.dialect.budget if isinstance(thinking, int) else None
        told: dict[str, Any] = {budget: thinking} if budget else {}
        if self.dialect.templates:
            return told | {"chat_template_kwargs": {**TEMPLATE_OPTIONS, **switched(thinking, "")}}
        return NO_EFFORT if thinking == "off" and self.thinking == "off" else told

    def _probabilities(self) -> dict[str, Any]:
        if self.alternatives == "none":
            return {}
        whole = self.alternatives == "all" and self.vocabulary
        count = whole.size if whole else self.alternatives
        asked = {"logprobs": True, "top_logprobs": count} if self.chat else {"logprobs": count}
        # Completions without a tokenizer here need the tokens' texts.
        by_id = self.dialect.by_id if self.chat or self.vocabulary else {}
        return {**asked, **by_id}

    def generation(
        self,
        prompt: Any,
        request: GenerationRequest,
        choice: Choice,
        usage: Usage,
    ) -> Generation:
        """The record of one continuation. What the server did not tell is not in it."""
        thought = _reasoning.thought(choice, usage.thinking_tokens)
        if thought is not None or len(choice.tokens) > request.max_tokens:
            choice = _reasoning.answer_only(choice, self._pieces(prompt, choice.tokens), request)
        choice = _stopped(choice, request.stop)
        end = ending(choice, self._pieces(prompt, choice.tokens), request.stop)
        kept = choice.tokens[: len(end.pieces)]
        ids = tuple(token.id for token in kept if token.id is not None)
        entropies, approx = self.entropies(kept)
        return Generation(
            text=choice.text,
            tokens=end.pieces,
            token_ids=ids if len(ids) == len(kept) else (),
            logprobs=tuple(token.logprob for token in kept),
            entropies=entropies,
            end_logprob=None if end.by is None else choice.tokens[end.by].logprob,
            finish_reason=end.reason,
            usage=usage,
            approx=approx,
            refused=choice.refused,
            thought=thought,
        )

    def entropies(self, tokens: Sequence[Token]) -> tuple[tuple[float, ...], bool]:
        """Of each token's distribution, and whether that was truncated."""
        if not all(token.alternatives for token in tokens):
            return (), False
        size = self.vocabulary.size if self.vocabulary else None
        whole = all(len(token.alternatives) == size for token in tokens)
        found = (_choices.entropy(token.alternatives, whole=whole) for token in tokens)
        return tuple(found), not whole

    def _pieces(self, prompt: Any, tokens: Sequence[Token]) -> list[str] | None:
        """The text of each token, if all are known."""
        ids = [token.id for token in tokens if token.id is not None]
        if self.vocabulary and len(ids) == len(tokens):
            return self.vocabulary.pieces(prompt, ids)
        known = [token.piece for token in tokens if token.piece is not None]
        return known if len(known) == len(tokens) else None


def _stopped(choice: Choice, stop: Sequence[str]) -> Choice:
    """Cut at the first stop string, where the server did not do so."""
    found = [(at, end) for end in stop if end and (at := choice.text.find(end)) >= 0]
    if not found:
        return choice
    at, end = min(found)
    return choice._replace(text=choice.text[:at], finish="stop", stopped_by=end)
