"""What servers of OpenAI's API take beyond it. All of them draw from truncated distributions
unless they are told not to, so that is told where it can be.

Sources: the servers' own documentation (vLLM 0.32, llama.cpp's server).
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Server = Literal["auto", "plain", "openai", "vllm", "llamacpp"]


class Dialect(NamedTuple):
    """The fields that a kind of server knows."""

    length: str = "max_tokens"
    """What limits the tokens of a reply."""
    sampling: Mapping[str, Any] = {}
    """Turns off what truncates or changes the distribution."""
    templates: bool = False
    """Whether a chat can give its template variables (`chat_template_kwargs`)."""
    budget: str | None = None
    """What limits the tokens of a thought."""
    continues: Mapping[str, Any] = {}
    """Of a chat whose last turn is to be continued."""
    by_id: Mapping[str, Any] = {}
    """Makes it spell tokens by their ids."""
    shows_special: Mapping[str, Any] = {}
    """Makes it write special tokens out, as the marks of some models' thoughts are."""
    forces: str | None = None
    """Takes the ids among which the next token is drawn, while its log-probability stays that
    among all."""


NO_EFFORT = {"reasoning_effort": "none"}
"""How servers whose templates cannot be told are asked not to think."""

DIALECTS: Mapping[str, Dialect] = {
    "plain": Dialect(),
    "openai": Dialect(length="max_completion_tokens"),
    "vllm": Dialect(
        sampling={"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
        templates=True,
        continues={"continue_final_message": True, "add_generation_prompt": False},
        by_id={"return_tokens_as_token_ids": True},
        shows_special={"skip_special_tokens": False},
        forces="allowed_token_ids",
    ),
    "llamacpp": Dialect(
        sampling={"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0},
        templates=True,
        budget="reasoning_budget_tokens",
    ),
}
