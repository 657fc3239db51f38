"""A tokenizer over the library `tokenizers` alone, for the embedded readers. It has the part of
transformers' interface that readers use; importing theirs takes a second."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer

from hopscope.runtime.texts.literals import json_value


class Encoded(NamedTuple):
    """A text in tokens."""

    input_ids: list[int]


class FastTokenizer:
    """The tokenizer of a folder saved with `save_pretrained`: `tokenizer.json`, and a chat template
    in `tokenizer_config.json`."""

    def __init__(self, folder: Path) -> None:
        settings = json_value((folder / "tokenizer_config.json").read_bytes())
        self.backend_tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.chat_template: str = settings["chat_template"]
        self._marks = {key: settings[key] for key in ("bos_token", "eos_token")}
        self.eos_token_id = self.backend_tokenizer.token_to_id(settings["eos_token"])
        self.unk_token_id: int | None = None
        """Every text can be written in bytes."""
        self.added_tokens_decoder = self.backend_tokenizer.get_added_tokens_decoder()

    def __call__(
        self, text: str, *, add_special_tokens: bool = True, verbose: bool = True
    ) -> Encoded:
        """The tokens of a text. It warns of none that is too long, whatever `verbose` says."""
        encoded = self.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens)
        return Encoded(encoded.ids)

    def decode(
        self,
        ids: list[int],
        *,
        skip_special_tokens: bool,
        clean_up_tokenization_spaces: bool = False,
    ) -> str:
        """The text of tokens, whose spaces stay as they are."""
        text: str = self.backend_tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)
        return text

    def get_vocab(self) -> dict[str, int]:
        """The number of each token."""
        vocabulary: dict[str, int] = self.backend_tokenizer.get_vocab()
        return vocabulary

    def apply_chat_template(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        tokenize: bool,
        add_generation_prompt: bool,
        **variables: Any,
    ) -> str:
        """The text of a chat."""
        text: str = self._template.render(
            messages=messages,
            add_generation_prompt=add_generation_prompt,
            **self._marks,
            **variables,
        )
        return text

    @cached_property
    def _template(self) -> Any:
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        return ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(
            self.chat_template
        )
