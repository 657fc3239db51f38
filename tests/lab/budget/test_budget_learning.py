"""A policy learned from several experiments, and for another workflow and reader than theirs."""

import pytest

from hopscope.lab.budget.learning import learn
from hopscope.lab.budget.paths import Path, Stop
from hopscope.lab.budget.promises.guarantee import learn_promised
from hopscope.lab.budget.stored import Walked, Walks, joined
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Question
from hopscope.tracing.learned.promise import parse_all
from hopscope.tracing.learned.value_file import ValueFile
from tests.probes import Speaker


def path(number: int) -> Path:
    right = number % 2
    stops = (Stop(utility=right, tokens=10), Stop(utility=1.0, tokens=110))
    known = {"draft_found": float(right), "retrievals": 0.0}
    return Path(question=Question(text=f"q{number}"), stops=stops, known=(known,), asked=({},))


def walks(count: int, *, workflow: str = "ircot", reader: str = "old@1") -> Walks:
    named = Speaker(lambda _: "nobody")
    named.name = reader
    found = tuple(Walked(path(n), ()) for n in range(count))
    return Walks(found, named, workflow, prompts=(f"of {workflow}",))


def test_the_experiments_of_one_workflow_and_reader_are_one_source() -> None:
    pytest.importorskip("sklearn")
    made = learn(joined([walks(30), walks(20)]), tokens=80)
    assert (made.questions, made.learned.learned["questions"]) == (50, 50)


def test_a_promise_counts_a_question_of_two_experiments_once() -> None:
    """Else it would teach the policy and be evidence for it, too."""
    pytest.importorskip("sklearn")
    made = learn_promised(joined([walks(60), walks(60)]), parse_all(["loss<=.5"]))
    assert made.questions == 60
    assert isinstance(made.learned, ValueFile)
    assert made.learned.learned["questions"] == 30


def test_questions_of_a_promise_are_not_learned_from_in_another_workflow() -> None:
    """20 of the 70 others are the same questions; what they did elsewhere is no fresh evidence."""
    pytest.importorskip("sklearn")
    made = learn_promised(walks(20), parse_all(["loss<=.5"]), others=[walks(70, workflow="flare")])
    assert isinstance(made.learned, ValueFile)
    assert (made.learned.workflow, made.learned.prompts) == ("ircot", ("of ircot",))
    assert (made.learned.learned["questions"], made.learned.learned["adapted_to"]) == (50, 10)


def test_experiments_of_several_readers_or_workflows_need_one_to_adapt_to() -> None:
    """A policy is for one workflow and one reader."""
    with pytest.raises(UsageError, match=r"of the readers new@1, old@1.*--adapt EXP"):
        joined([walks(30), walks(20, reader="new@1")])
    with pytest.raises(UsageError, match="of the workflows flare, ircot"):
        joined([walks(30), walks(20, workflow="flare")])


def test_a_policy_is_for_the_workflow_and_the_reader_that_it_adapts_to() -> None:
    pytest.importorskip("sklearn")
    sources = [walks(60), walks(30, workflow="flare")]
    made = learn(walks(20, workflow="self_ask", reader="new@1"), others=sources, tokens=80)
    assert isinstance(made.learned, ValueFile)
    assert (made.learned.workflow, made.learned.reader) == ("self_ask", "new@1")
    assert made.learned.learned["adapted_to"] == 20
    assert made.learned.prompts == ("of self_ask",), "a policy is for the prompts of its runs, too"
    assert made.questions == 110


def test_only_value_policies_adapt_to_runs() -> None:
    with pytest.raises(UsageError, match="kind tasr cannot adapt"):
        learn(walks(30), "tasr", others=[walks(30)])
