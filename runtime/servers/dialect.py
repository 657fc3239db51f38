"""Extensions of OpenAI's API by its servers. By default all of them sample from truncated
distributions, so requests switch that off where the server allows it.

Sources: the servers' own documentation (vLLM 0.32, llama.cpp's server).
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Server = Literal["auto", "plain", "openai", "vllm", "llamacpp"]


class Dialect(NamedTuple):
    """The fields of requests to a kind of server."""

    length: str = "max_tokens"
    """The field that limits the tokens of a reply."""
    sampling: Mapping[str, Any] = {}
    """Fields that switch off every change of the distribution."""
    templates: bool = False
    """Whether a chat accepts variables of its template (`chat_template_kwargs`)."""
    budget: str | None = None
    """The field that limits the tokens of a thought."""
    continues: Mapping[str, Any] = {}
    """Fields of a chat that continues its last turn."""
    by_id: Mapping[str, Any] = {}
    """Fields that make the server spell tokens by their ids."""
    shows_special: Mapping[str, Any] = {}
    """Fields that make the server return special tokens, such as the marks of some thoughts."""
    forces: str | None = None
    """The field for the ids that the next token is drawn from; its log-probability is still that
    among all tokens."""


NO_EFFORT = {"reasoning_effort": "none"}
"""Fields that switch thinking off on servers without template variables."""

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
