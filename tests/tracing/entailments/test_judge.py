"""A reader as a judge of answers."""

import pytest

from hopscope.runtime.errors import EntailmentError, ReaderError
from hopscope.runtime.ports import Statement
from hopscope.runtime.readers import tiny
from hopscope.runtime.types import Generation, GenerationRequest
from hopscope.tracing.entailments import judge
from tests.fakes import ScriptedReader, reply

PAIR = Statement("Who?", "Ana Silva", "Bruno Costa")
TURNED = Statement("Who?", "Bruno Costa", "Ana Silva")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Same", (1, 0, 0)),
        ("DIFFERENT.", (0, 0, 1)),
        ("**Unclear**", (0, 1, 0)),
        ("They are the same", (1, 0, 0)),
        ("Different, not the same", (0, 0, 1)),
        ("banana", (0, 1, 0)),
        ("", (0, 1, 0)),
        ("samey", (0, 1, 0)),
    ],
)
def test_replies(said: str, expected: tuple[float, float, float]) -> None:
    reader = ScriptedReader([[reply(said)]])
    assert tuple(judge.build(reader=reader).classify([PAIR])[0]) == expected


def test_each_pair_is_asked_once_and_equal_answers_never() -> None:
    reader = ScriptedReader([[reply("same")], [reply("different")]])
    same = Statement("Who?", "The Bruno Costa", "bruno costa.")
    found = judge.build(reader=reader).classify([PAIR, same, TURNED, PAIR])
    assert [p.entailment for p in found] == [1, 1, 0, 1]
    [requests] = reader.generated
    assert [r.prompt.messages[1].content.splitlines()[1] for r in requests] == [
        "First answer: Ana Silva",
        "First answer: Bruno Costa",
    ]
    assert all(r.temperature == 0 for r in requests)


def test_equal_answers_need_no_reader() -> None:
    same = Statement("Who?", "Ana", "ana")
    assert judge.build(reader=ScriptedReader()).classify([same])[0].entailment == 1


def test_a_failing_reader_is_an_entailment_error() -> None:
    class Failing(ScriptedReader):
        def generate(self, requests: object) -> list[list[Generation]]:
            raise ReaderError("out of memory")

    with pytest.raises(EntailmentError, match="judge:scripted: out of memory"):
        judge.build(reader=Failing()).classify([PAIR])


def test_the_embedded_reader_replies() -> None:
    """It knows nothing of the task; what counts is that any reader can be asked."""
    model = judge.build(reader=tiny.build())
    assert sum(model.classify([PAIR])[0]) == 1
    assert model.name.startswith("judge:")


def test_the_request_is_short_and_greedy() -> None:
    reader = ScriptedReader([[reply("same")]])
    judge.build(reader=reader).classify([PAIR])
    [[request]] = reader.generated
    assert isinstance(request, GenerationRequest)
    assert (request.n, request.max_tokens) == (1, judge.MAX_TOKENS)
