"""What measuring costs is counted where the reader is really asked."""

from fakes import ScriptedReader, reply, scored

from hopscope.runtime.types import GenerationRequest, Message, Prompt, ScoreRequest, Usage
from hopscope.tracing.caching import CachedReader
from hopscope.tracing.metering import MeteredReader

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
    assert metered.spent == Usage(input_tokens=16, output_tokens=3, calls=2)
