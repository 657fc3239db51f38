"""Requests to a reader, and its replies.

Invariant: log-probabilities and entropies are natural logarithms of the reader's raw distribution
(before temperature and truncation).
"""

from typing import Literal

from pydantic import Field

from hopscope.runtime.types.record import Record, Text, Texts
from hopscope.runtime.types.usage import Usage

Role = Literal["system", "user", "assistant", "tools", "calls", "tool"]
"""The last three are those of conversations with tools, see `runtime.prompting.tool_calls`."""
FinishReason = Literal["eos", "stop", "length"]
ThoughtEnd = Literal["closed", "forced", "open"]


class Message(Record):
    """One turn of a chat."""

    role: Role
    content: Text


class Prompt(Record):
    """The input of a reader."""

    messages: tuple[Message, ...]
    prefix: Text = ""
    """Text of the assistant turn that the reader continues; part of the prompt, not the output."""
    shown: Texts = ()
    """Keys of the passages in the messages, in order."""

    @property
    def text(self) -> str:
        """The prompt as one string, for records and for seeding. Models read the messages."""
        turns = [f"[{m.role}]\n{m.content}" for m in self.messages]
        return "\n".join([*turns, f"[assistant]\n{self.prefix}"])


class GenerationRequest(Record):
    """A request for `n` continuations of one prompt."""

    prompt: Prompt
    n: int = Field(default=1, ge=1)
    temperature: float = Field(default=0.0, ge=0.0)
    """0 is greedy. Recorded log-probabilities do not depend on it."""
    max_tokens: int = Field(default=64, ge=1)
    """The limit of the answer. The reader sets a separate limit for a thought."""
    stop: Texts = ()
    """The answer ends before the first of these strings."""
    seed: int = 0
    """Sample i draws from its own stream, derived from (seed, prompt, i)."""
    thought: Text | None = None
    """A given thought: the reader answers after it and does not think again. With an empty one it
    answers at once; None leaves thinking to the reader."""
    keeps: Literal["first_sentence"] | None = None
    """All that the caller keeps of the reply. A reader may end the reply once later text cannot
    change that; None needs the whole reply."""


class Thought(Record):
    """The reader's reasoning before its answer."""

    text: Text
    """The text without marks; empty where a server does not return it."""
    tokens: int = 0
    """Output tokens of the thought, its marks included."""
    end: ThoughtEnd = "closed"
    """`closed`: the reader closed it. `forced`: the runtime closed it, at the limit of its length
    or where the reply would have ended within it. `open`: the reply ended within it, so there is
    no answer."""


class Generation(Record):
    """One continuation. Each sequence has one entry per token of `tokens`, which spell `text`. The
    end token and the thought are in none of them."""

    text: Text
    tokens: Texts = ()
    """The text of each token. A stop string can cut the last one short in `text`."""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    """ln p of each token under the raw distribution."""
    entropies: tuple[float, ...] = ()
    """Entropy in nats of the raw next-token distribution each token was drawn from."""
    end_logprob: float | None = None
    """ln p of the end token, if the reader generated one. If the text begins with the stop string,
    ln p of the token that wrote it. An empty text has no other likelihood."""
    finish_reason: FinishReason = "eos"
    usage: Usage = Usage()
    """Output tokens of this sample; the prompt's tokens stand on the first sample only."""
    approx: bool = False
    """True when entropies come from a truncated distribution."""
    refused: tuple[str, ...] = ()
    """Options of the request that had no effect, because the server refuses them."""
    thought: Thought | None = None
    """The thought before the answer; None in a reply without one."""

    @property
    def unanswered(self) -> str | None:
        """Why there is no answer, if the reply ended within its thought; else None."""
        if self.thought is None or self.thought.end != "open":
            return None
        return (
            f"the reply ended within its thought, after {self.thought.tokens} tokens: give it "
            "more, thinking=TOKENS (--thinking TOKENS), or none, thinking='off' (--thinking off)"
        )


class ScoreRequest(Record):
    """A request for the likelihood of `continuation` after `prompt` (teacher forcing)."""

    prompt: Prompt
    continuation: Text = ""
    token_ids: tuple[int, ...] = ()
    """The continuation's tokens, where known; else the reader tokenises `continuation`."""
    thought: Text | None = None
    """A thought before the continuation; None is no thought."""


class Scored(Record):
    """Per-token likelihoods of a given continuation, without an end token."""

    tokens: Texts
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    entropies: tuple[float, ...]
    usage: Usage = Usage()
    approx: bool = False


class Exchange(Record):
    """One request to the reader within a step, and its reply."""

    request: GenerationRequest
    generations: tuple[Generation, ...]
    seconds: float
    span_id: str = ""
