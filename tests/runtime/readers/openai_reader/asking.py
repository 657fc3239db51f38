"""Requests to the server of these tests, and readers of it."""

from pathlib import Path
from typing import Any

from hopscope.runtime.prompting import prompts
from hopscope.runtime.readers import openai
from hopscope.runtime.types import (
    GenerationRequest,
    Passage,
    Prompt,
)
from tests.servers import openai_api
from tests.servers.openai_api import Service

EVIDENCE = [Passage(title="Alba", text="Alba is a film directed by Bruno Costa.")]
PROMPT = prompts.short_answer("Who?", EVIDENCE)
BEGUN = prompts.chain_of_thought("Who directed Alba?", EVIDENCE[:1], ["Alba is a film."])


def reader(service: Service, **options: Any) -> Any:
    return openai.build(model=f"{service.url}#{openai_api.MODEL}", **{"retries": 0, **options})


def request(prompt: Prompt = PROMPT, **options: Any) -> GenerationRequest:
    return GenerationRequest(prompt=prompt, **{"max_tokens": 10, **options})


def exact(service: Service, folder: Path) -> Any:
    return reader(service, tokenizer=str(folder), alternatives="all")
