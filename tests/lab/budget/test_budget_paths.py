"""Paths of real runs: what a policy would have done is what it does."""

import json
from collections.abc import Sequence
from pathlib import Path as File

import pytest

from hopscope.lab.budget.batch import options, questions_of, share_out
from hopscope.lab.budget.paths import moments, path, simulate
from hopscope.lab.budget.questions import SHARES, mixture
from hopscope.lab.budget.stored import walked
from hopscope.runtime.errors import CorpusError, UsageError
from hopscope.runtime.execution.run import Run, Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Policy
from hopscope.runtime.types import GenerationRequest, Passage, Question
from hopscope.tracing.learned.forest import Forest
from hopscope.tracing.learned.value_file import Bin, Head, RetrievalPlan, StageModel, ValueFile
from hopscope.tracing.policies import fixed, repeat
from hopscope.tracing.signals.gathering import NAMES
from hopscope.workflows import ircot
from tests.probes import Speaker
from tests.talk import ScriptedRetriever

ASKED = Question(text="Where was the director of Alba born?", answers=("Lisbon",))


def say(request: GenerationRequest) -> str:
    """Knows the answer from the third passage on; a short answer changes until then."""
    seen = len(request.prompt.shown)
    if "step by step" in request.prompt.messages[-1].content:
        done = seen >= 4
        return "So the answer is: Lisbon." if done else f"Fact {seen} holds."
    return "Lisbon" if seen >= 3 else f"town {min(seen, 2)}"


def ask(policy: Policy | None = None) -> tuple[Run, Speaker]:
    reader = Speaker(say)
    found = iter(range(100))

    def one(query: str) -> Sequence[Passage]:
        number = next(found)
        return [Passage(id=f"p{number}", title=f"T{number}", text=f"{number} " * (number + 2))]

    deps = Deps(reader=reader, retriever=ScriptedRetriever(one), policy=policy)
    return run(Workflow("ircot", ircot.build(), {}), ASKED, deps), reader


NATIVE, _ = ask()
RUNS = [ask(fixed.build(k=k))[0] for k in range(len(moments(NATIVE)))] + [NATIVE]


def right(result: Run) -> float:
    return float(result.answer == "Lisbon")


def test_moments_are_those_before_each_retrieval() -> None:
    found = moments(NATIVE)
    assert [moment.retrievals for moment in found] == [0, 1, 2, 3]
    assert [len(moment.evidence) for moment in found] == [0, 1, 2, 3]


def test_a_path_tells_each_stop() -> None:
    found = path(RUNS, Speaker(say), right)
    assert [stop.utility for stop in found.stops] == [0, 0, 0, 0, 1]
    assert [stop.tokens for stop in found.stops] == [each.usage.tokens for each in RUNS]
    assert [each["free"] for each in found.asked] == [0, 0, 0, 0]
    drafts = [each["draft"] for each in found.asked]
    assert drafts[0] > 0
    assert drafts == sorted(drafts), "more evidence, longer prompts"
    compared = [each["change"] for each in found.asked]
    assert compared == [0, *drafts[:-1]], "it takes the draft before, as if nothing were remembered"
    assert [known["repeats"] for known in found.known[1:]] == [0, 0, 0]


def test_a_simulated_policy_does_what_it_does_in_a_run() -> None:
    """The stop, the answer and every token, deciding included."""
    found = path(RUNS, Speaker(say), right)
    for policy in (repeat.build(), fixed.build(k=2)):
        real, reader = ask(policy)
        expected = simulate(policy, found, moments(NATIVE), Speaker(say))
        assert expected.stop == sum(step.query is not None for step in real.steps)
        assert expected.utility == right(real)
        assert expected.tokens == real.usage.tokens == reader.spent.tokens


def test_a_stored_run_has_the_short_answers_as_its_stops() -> None:
    found = walked(NATIVE, Speaker(say), "correctness").path
    assert [stop.utility for stop in found.stops] == [0, 0, 0, 1, 1]
    assert found.stops[-1].tokens == NATIVE.usage.tokens
    assert found.stops[0].tokens == 0, "what the draft takes is counted with the signals"


def test_runs_that_cannot_teach_are_refused() -> None:
    with pytest.raises(UsageError, match="cut short"):
        walked(RUNS[1], Speaker(say), "correctness")
    with pytest.raises(UsageError, match="seper was not measured"):
        walked(NATIVE, Speaker(say), "seper")


def test_a_batch_is_shared_out_by_predictions(tmp_path: File) -> None:
    head = Head(
        stages=(
            StageModel(
                stage="free",
                gain=Forest(start=0.0),
                cost=Forest(start=0.0),
                bins=(Bin(score=0.0, gain=0.0, low=0.0, high=0.0),),
            ),
        ),
        medians={},
    )
    file = ValueFile(
        workflow="ircot",
        reader="speaker",
        utility="correctness",
        budget=1,
        price=0,
        signals=NAMES,
        heads=(head,),
        plans=(
            RetrievalPlan(gain=Forest(start=0.3), cost=Forest(start=100)),
            RetrievalPlan(gain=Forest(start=0.5), cost=Forest(start=250)),
        ),
    )
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"question": "a?"}\n\n{"question": "b?"}\n')
    asked = questions_of(questions)
    assert [o.cost for o in options(asked[0], file, Speaker(say), 0)] == [0, 100, 250]
    shared = share_out(asked, file, Speaker(say), total=350)
    assert sorted(o.retrievals for o in shared.chosen) == [1, 2]
    assert shared.bound == pytest.approx(0.8)
    with pytest.raises(UsageError, match="has no plans"):
        share_out(asked, file.model_copy(update={"plans": ()}), Speaker(say), total=1)


@pytest.mark.parametrize("line", ["{", '"text"', json.dumps({"q": 1}), "[" * 99_999])
def test_a_broken_batch_says_where(tmp_path: File, line: str) -> None:
    questions = tmp_path / "q.jsonl"
    questions.write_text(f'{{"question": "a?"}}\n{line}\n')
    with pytest.raises(CorpusError, match="line 2"):
        questions_of(questions)
    questions.write_text("")
    with pytest.raises(UsageError, match="holds no questions"):
        questions_of(questions)


def test_a_mixture_has_its_shares_and_lacks_what_nothing_answers() -> None:
    made = mixture(77, 40)
    counted = {need: sum(p.need == need for p in made.questions) for need in SHARES}
    assert counted == {need: int(40 * share) for need, share in SHARES.items()}
    texts = " ".join(passage.text for passage in made.passages)
    for posed in made.questions:
        assert bool(posed.question.answers) == (posed.need != "unanswerable")
        if posed.need in ("one hop", "two hops", "three hops"):
            assert posed.question.answers[0] in texts
    assert made == mixture(77, 40)
