"""A reader that always says the same; the more documents it sees, the surer it is."""

from collections.abc import Sequence
from dataclasses import dataclass

from hopscope.runtime.ports import Reader
from hopscope.runtime.types import Generation, GenerationRequest, Scored, ScoreRequest, Usage


@dataclass(frozen=True)
class Parrot:
    says: str

    @property
    def name(self) -> str:
        return f"parrot:{self.says}"

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        reply = Generation(
            text=self.says,
            tokens=(self.says,),
            token_ids=(1,),
            logprobs=(-0.5,),
            entropies=(0.5,),
            usage=Usage(input_tokens=10, output_tokens=1, calls=1),
        )
        return [[reply] * request.n for request in requests]

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        unsure = [1 / (1 + len(request.prompt.shown)) for request in requests]
        return [
            Scored(tokens=(self.says,), token_ids=(1,), logprobs=(-each,), entropies=(each,))
            for each in unsure
        ]


def build(*, model: str = "Polly") -> Reader:
    return Parrot(model)
