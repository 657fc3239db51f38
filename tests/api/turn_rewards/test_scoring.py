"""`hopscope.rewards` scores a batch of rollouts by the embedded reader."""

import time
from collections.abc import Sequence

import pytest

import hopscope
from hopscope.api import parts
from hopscope.runtime.errors import ReaderError
from hopscope.runtime.ports import Reader
from hopscope.runtime.types import Generation, GenerationRequest, Passage, Question, Run, Scored
from hopscope.runtime.types import ScoreRequest as Request
from tests.fakes import NOW, step

WHO = "What is the headquarters city of the company that employs Elsa Wilby?"
EMPLOYER = Passage(id="e", title="Elsa Wilby", text="Elsa Wilby is employed by Salwin Pictures.")
CITY = Passage(id="c", title="Salwin Pictures", text="Salwin Pictures is based in Grand Rovmar.")
OTHER = Passage(id="o", title="Road", text="Road was directed by Ida Norvik.")


def rollout(*found: Passage, gold: str = "Grand Rovmar", question: str = WHO) -> Run:
    """Each search found one passage."""
    steps = [
        step(i, [p.key], query=f"search {i}", evidence=found[: i + 1]) for i, p in enumerate(found)
    ]
    answers = (gold,) if gold else ()
    return Run(
        id="-".join(p.key for p in found),
        question=Question(text=question, answers=answers),
        workflow="agent",
        steps=tuple(steps),
        answer=gold,
        started=NOW,
    )


@pytest.fixture(scope="module")
def reader() -> Reader:
    return parts.reader("tiny")


def test_a_batch_is_scored_in_order(reader: Reader) -> None:
    batch = [rollout(EMPLOYER, CITY), rollout(OTHER, EMPLOYER), rollout(CITY, OTHER, EMPLOYER)]
    found = hopscope.rewards(batch, reader=reader, rule="shapley")
    assert [each.run for each in found] == ["e-c", "o-e", "c-o-e"]
    assert [len(each.turns) for each in found] == [2, 2, 3]
    assert found[0].reward == pytest.approx(1, abs=0.1)
    assert found[0].differences == pytest.approx([0.5, 0.5], abs=0.1)
    assert found[1].reward == pytest.approx(0, abs=0.1)
    for each in found:
        assert each.rest == pytest.approx(0, abs=1e-9)
    # Measured as one by one.
    [alone] = hopscope.rewards(batch[2:], reader=reader, rule="shapley", threads=1)
    assert alone.levels == pytest.approx(found[2].levels, abs=1e-6)


class Counting:
    """Counts the calls and the requests of a reader."""

    def __init__(self, inner: Reader) -> None:
        self._inner, self.name = inner, inner.name
        self.calls = self.requests = 0

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        self.calls += 1
        self.requests += len(requests)
        return self._inner.generate(requests)

    def score(self, requests: Sequence[Request]) -> list[Scored]:
        return self._inner.score(requests)


def test_rollouts_of_one_question_share_what_they_have_in_common(reader: Reader) -> None:
    """A group of GRPO would pay for each closed-book belief and for each first hop again."""
    counted = Counting(reader)
    hopscope.rewards([rollout(EMPLOYER), rollout(EMPLOYER, CITY)] * 3, reader=counted, samples=2)
    assert counted.requests == 3  # nothing; the employer; the employer and the city


def test_questions_are_measured_together(reader: Reader) -> None:
    """One call for each rollout leaves a GPU idle."""
    counted = Counting(reader)
    batch = [rollout(EMPLOYER, question=f"{WHO} ({i})") for i in range(6)]
    hopscope.rewards(batch, reader=counted, samples=2, threads=6)
    assert counted.requests == 12
    assert counted.calls < 6


class Broken(Counting):
    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        if any("fails" in request.prompt.text for request in requests):
            raise ReaderError("the server is gone")
        return super().generate(requests)


def test_a_rollout_that_cannot_be_measured_has_none(reader: Reader) -> None:
    batch = [rollout(EMPLOYER, question="This fails"), rollout(CITY, gold=""), rollout(CITY)]
    broken, without, good = hopscope.rewards(batch, reader=Broken(reader), threads=2, samples=2)
    assert (broken.reward, broken.levels) == (None, [None, None])
    assert broken.reason == "the server is gone"
    assert (without.reward, without.differences) == (None, [None])
    assert without.reason is not None
    assert "gold" in without.reason
    assert good.reward is not None


class Interrupted(Counting):
    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        self.calls += 1
        if self.calls == 1:
            raise KeyboardInterrupt
        time.sleep(0.5)  # meanwhile the questions that wait are given up
        return self._inner.generate(requests)


def test_after_ctrl_c_no_further_question_is_measured(reader: Reader) -> None:
    interrupted = Interrupted(reader)
    batch = [rollout(EMPLOYER, question=f"{WHO} ({i})") for i in range(8)]
    with pytest.raises(KeyboardInterrupt):
        hopscope.rewards(batch, reader=interrupted, samples=2, threads=1)
    assert interrupted.calls < 8


def test_mistakes_are_told_before_anything_is_loaded() -> None:
    for arguments, told in (
        ({"rule": "solo"}, "choose from trajectory, shapley, leave-one-out"),
        ({"meter": "sepper"}, "no 'sepper' among meters"),
        ({"options": {"seper.wait": 1}}, "unknown option 'wait'"),
        ({"threads": 0}, "threads=0: give 1 or more"),
        ({"reader": "hf:/nowhere"}, "rollouts: give runs or records of rollouts, not str"),
    ):
        with pytest.raises(hopscope.UsageError, match=told):
            hopscope.rewards(["text"] if "reader" in arguments else [], **arguments)  # type: ignore[arg-type]
    assert hopscope.rewards([]) == []
