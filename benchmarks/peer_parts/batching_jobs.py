"""What all sides of `continuous_batching` do: the prompts of real work, and replies of given
lengths.

Answering asks one greedy reply of each question, with the passages that `naive` shows after an
instruction that all prompts share. Replies differ in length, as real ones do: otherwise nothing
would be gained by letting others join. Measuring asks N samples for each context along IRCoT runs;
a context begins with most of the one before it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from credit_parts.bench import Benchmark
from credit_parts.contexts import contexts
from credit_parts.runs import trajectories

from hopscope.api import parts
from hopscope.runtime.corpora import hopland
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.readers import tiny
from hopscope.runtime.types import GenerationRequest, Question

SHOWN = 5
"""Passages in a prompt of `naive`: our default."""
SOLVED = 6
"""Questions with their answers in the instruction."""
LENGTHS = (4, 8, 12, 24)
"""Tokens of the greedy replies, in turn."""
SAMPLE = 12
"""Tokens of a sample."""


class Reply(NamedTuple):
    """A reply by any side."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]


Replies = list[list[Reply]]
"""Of each request, in their order."""


class Job(NamedTuple):
    """What all sides do."""

    name: str
    calls: list[list[GenerationRequest]]
    """The requests by the call that asks for them: a question, or a run."""
    reader: Any
    """Whose tokens prompts become."""

    @property
    def requests(self) -> list[GenerationRequest]:
        return [request for call in self.calls for request in call]

    @property
    def prompts(self) -> list[list[int]]:
        """The tokens of each request's prompt."""
        return [list(self.reader.prompt_ids(request)) for request in self.requests]

    @property
    def sampled(self) -> bool:
        """Whether chance decides."""
        return self.requests[0].temperature > 0

    @property
    def drawn(self) -> int:
        """The tokens of all replies."""
        return sum(request.n * request.max_tokens for request in self.requests)

    def __str__(self) -> str:
        lengths = sorted(map(len, self.prompts))
        return (
            f"{self.name}: {len(lengths)} prompts of {lengths[0]} to {lengths[-1]} tokens, "
            f"{needed(self.prompts)} of {sum(lengths)} to read if none is read twice; "
            f"{sum(request.n for request in self.requests)} replies, {self.drawn} tokens"
        )


def answering(reader: Any, prompts: int) -> Job:
    retriever = parts.corpus(parts.HOPLAND)
    items = hopland.questions("dev")
    asked, solved = items[:prompts], items[prompts : prompts + SOLVED]
    instruction = "\n".join(f"{each.question.text} {_answer(each.question)}" for each in solved)
    calls = []
    for place, item in enumerate(asked):
        [hits] = retriever.search([item.question.text], k=SHOWN)
        shown = [hit.passage for hit in hits]
        prompt = DEFAULT_PROMPTS.render("naive/answer", shown, question=item.question.text)
        first, *rest = prompt.messages
        first = first.model_copy(update={"content": f"{instruction}\n{first.content}"})
        prompt = prompt.model_copy(update={"messages": (first, *rest)})
        length = LENGTHS[place % len(LENGTHS)]
        calls.append([GenerationRequest(prompt=prompt, max_tokens=length)])
    return Job("Answering", calls, reader)


def _answer(question: Question) -> str:
    return next(iter(question.answers), "")


def measuring(reader: Any, bench: Benchmark) -> Job:
    """By runs of the embedded reader, which finds its way through Hopland."""
    found = trajectories(bench._replace(spec=f"hf:{tiny.FOLDER}"))
    calls = [
        [
            request.model_copy(update={"stop": (), "max_tokens": SAMPLE})
            for request in contexts(run, every=False).values()
        ]
        for run in found
    ]
    return Job("Measuring", calls, reader)


def needed(prompts: Sequence[list[int]]) -> int:
    """The tokens of all prompts, their common beginnings once."""
    count = 0
    last: list[int] = []
    for prompt in sorted(prompts):
        shared = 0
        while shared < min(len(last), len(prompt)) and last[shared] == prompt[shared]:
            shared += 1
        count += len(prompt) - shared
        last = prompt
    return count
