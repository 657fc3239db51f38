"""Translates our requests into bodies for a server, and its replies into our records."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hopscope.runtime.errors import CapabilityError
from hopscope.runtime.generation.texts.rendering import TEMPLATE_OPTIONS, plain_text
from hopscope.runtime.prompting import tool_calls
from hopscope.runtime.servers import reasoning, replies
from hopscope.runtime.servers.alignment import ending
from hopscope.runtime.servers.dialect import NO_EFFORT, Dialect
from hopscope.runtime.servers.endpoint import ModelAddress
from hopscope.runtime.servers.replies import CompletionChoice, Token
from hopscope.runtime.thinking.marks import LIMIT, Thinking, switched
from hopscope.runtime.types import Generation, GenerationRequest, Prompt, Usage

if TYPE_CHECKING:  # it imports torch
    from hopscope.runtime.generation.vocabularies import Vocabulary

Alternatives = int | Literal["all", "none"]


class Wire(NamedTuple):
    """A model on a server, and the form of requests to it."""

    where: ModelAddress
    dialect: Dialect
    chat: bool
    """Whether to send messages to /chat/completions, or text or tokens to /completions."""
    alternatives: Alternatives
    vocabulary: "Vocabulary | None" = None
    """The model's vocabulary; if known, prompts are sent as its tokens."""
    context: int | None = None
    """Most tokens of prompt and reply, if the server reports it."""
    thinking: Thinking = "auto"

    @property
    def name(self) -> str:
        """Model, server, the template of prompts (the server's, the model's own applied here, or
        plain text), and whether the model thinks, if the user chose that."""
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
        """Most tokens of a thought."""
        return self.thinking if isinstance(self.thinking, int) else LIMIT

    @property
    def path(self) -> str:
        return "/chat/completions" if self.chat else "/completions"

    def prompt(self, prompt: Prompt, thought: str | None = None) -> Any:
        """The prompt to send: tokens, text or messages.

        Raises:
            ReaderError: the chat template rejects the messages, or a thought cannot be given.
        """
        if self.vocabulary:
            return self.vocabulary.renderer.prompt_ids(prompt, thought)
        if thought is not None:  # an empty one may be a thought that the server does not return
            raise CapabilityError(
                f"{self.name} cannot continue a given thought: that needs the model's tokenizer "
                "(tokenizer=FOLDER_OR_ID)"
            )
        if not self.chat:
            if tool_calls.tools(prompt.messages):
                raise CapabilityError(
                    f"{self.name} cannot call tools by plain text: that needs api=chat, or the "
                    "model's tokenizer (tokenizer=FOLDER_OR_ID)"
                )
            return plain_text(prompt)
        turns = tool_calls.chat(prompt.messages, written=True)
        return [*turns, {"role": "assistant", "content": prompt.prefix}] if prompt.prefix else turns

    def tools(self, prompt: Prompt) -> dict[str, Any]:
        """The field that offers a prompt's tools; a prompt in tokens holds them itself."""
        offered = tool_calls.tools(prompt.messages) if self.chat else []
        return {"tools": offered} if offered else {}

    def body(self, prompt: Any, *, max_tokens: int, temperature: float) -> dict[str, Any]:
        """The body of a request for one continuation of the result of `prompt`."""
        body: dict[str, Any] = {
            "model": self.where.model,
            self.dialect.length: max_tokens,
            "temperature": temperature,
            "top_p": 1.0,
            **self.dialect.sampling,
        }
        if self.chat:
            continued = prompt[-1]["role"] == "assistant"
            body |= {"messages": prompt, **self._switched("off" if continued else self.thinking)}
            if continued:
                body |= self.dialect.continues
        else:
            body["prompt"] = prompt
        return body | self._probabilities()

    def _switched(self, thinking: Thinking) -> dict[str, Any]:
        """The fields that switch thinking on or off in a chat."""
        budget = self.dialect.budget if isinstance(thinking, int) else None
        fields: dict[str, Any] = {budget: thinking} if budget else {}
        if self.dialect.templates:
            return fields | {"chat_template_kwargs": {**TEMPLATE_OPTIONS, **switched(thinking, "")}}
        return NO_EFFORT if thinking == "off" and self.thinking == "off" else fields

    def _probabilities(self) -> dict[str, Any]:
        if self.alternatives == "none":
            return {}
        whole = self.alternatives == "all" and self.vocabulary
        count = whole.size if whole else self.alternatives
        fields = {"logprobs": True, "top_logprobs": count} if self.chat else {"logprobs": count}
        # Completions without a tokenizer here need the tokens' texts.
        by_id = self.dialect.by_id if self.chat or self.vocabulary else {}
        return {**fields, **by_id}

    def generation(
        self,
        prompt: Any,
        request: GenerationRequest,
        choice: CompletionChoice,
        usage: Usage,
    ) -> Generation:
        """The record of one continuation, without values that the server did not return."""
        thought = reasoning.thought(choice, usage.thinking_tokens)
        if thought is not None or len(choice.tokens) > request.max_tokens:
            choice = reasoning.answer_only(choice, self._pieces(prompt, choice.tokens), request)
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
        """The entropy of each token's distribution, and whether the distributions are truncated."""
        if not all(token.alternatives for token in tokens):
            return (), False
        size = self.vocabulary.size if self.vocabulary else None
        whole = all(len(token.alternatives) == size for token in tokens)
        entropies = (replies.entropy(token.alternatives, whole=whole) for token in tokens)
        return tuple(entropies), not whole

    def _pieces(self, prompt: Any, tokens: Sequence[Token]) -> list[str] | None:
        """The text of each token, if all are known."""
        ids = [token.id for token in tokens if token.id is not None]
        if self.vocabulary and len(ids) == len(tokens):
            return self.vocabulary.pieces(prompt, ids)
        known = [token.piece for token in tokens if token.piece is not None]
        return known if len(known) == len(tokens) else None


def _stopped(choice: CompletionChoice, stop: Sequence[str]) -> CompletionChoice:
    """The choice cut at its first stop string, if the server did not cut it."""
    stops = [(at, end) for end in stop if end and (at := choice.text.find(end)) >= 0]
    if not stops:
        return choice
    at, end = min(stops)
    return choice._replace(text=choice.text[:at], finish="stop", stopped_by=end)
