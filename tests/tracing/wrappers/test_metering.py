"""What measuring costs is counted where the reader is really asked."""

from hopscope.runtime.ports import Branch, BranchRequest
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Message,
    Prompt,
    ScoreRequest,
    Usage,
)
from hopscope.tracing.wrappers.cached import CachedReader
from hopscope.tracing.wrappers.metered import MeteredReader
from tests.fakes import ScriptedReader, reply, scored

PROMPT = Prompt(messages=(Message(role="user", content="Who?"),))


def test_samples_and_scores_count_and_what_is_remembered_does_not() -> None:
    first = reply("x", usage=Usage(input_tokens=7, output_tokens=1, calls=1))
    second = reply("y", usage=Usage(output_tokens=2))
    score = scored([0.1], usage=Usage(input_tokens=9, calls=1))
    metered = MeteredReader(ScriptedReader([[first, second]], [score]))
    reader = CachedReader(metered)
    assert reader.name == metered.name == "scripted"
    for _ in range(2):
        assert reader.generate([GenerationRequest(prompt=PROMPT, n=2)]) == [[first, second]]
        assert reader.score([ScoreRequest(prompt=PROMPT, continuation="x")]) == [score]
    spent = Usage(input_tokens=16, output_tokens=3, calls=2)
    assert (metered.spent, metered.take(), metered.take()) == (spent, spent, Usage())


class Branching(ScriptedReader):
    """Can draw further samples and branch."""

    def more(self, requests: list[GenerationRequest], *, first: int) -> list[list[Generation]]:
        return [[reply("z", usage=Usage(output_tokens=first, calls=1))] for _ in requests]

    def branch(self, requests: list[BranchRequest]) -> list[list[Branch]]:
        return [[Branch(1, -0.5, None)] for _ in requests]


def test_what_a_reader_can_its_metered_form_can_too() -> None:
    plain = MeteredReader(ScriptedReader())
    assert (plain.more, plain.branch) == (None, None)
    metered = MeteredReader(Branching())
    asked = GenerationRequest(prompt=PROMPT)
    assert metered.more is not None
    assert metered.branch is not None
    assert metered.more([asked], first=3)[0][0].text == "z"
    assert metered.branch([BranchRequest(asked)] * 2) == [[Branch(1, -0.5, None)]] * 2
    assert metered.spent == Usage(output_tokens=3 + 2, calls=1 + 2)
