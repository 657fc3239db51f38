"""A router in a run: its arms as decisions on retrievals."""

from pathlib import Path

import pytest

from hopscope.api.spending import policy
from hopscope.runtime.errors import UsageError
from hopscope.runtime.ports import Moment
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import Decision, Question, Step
from hopscope.tracing.learned.route_file import Asked, RouteFile
from tests.fakes import ScriptedReader, reply, step
from tests.tracing.policies.routers import route

ASKED = Question(text="Who founded the town?")


def decide(spec: str, reader: ScriptedReader, *steps: Step, workflow: str = "flare") -> Decision:
    found = policy(Spec.parse(spec), workflow=workflow, reader_name=reader.name)
    assert found is not None
    return found.decide(Moment(ASKED, steps), reader)


def after(decision: Decision) -> Step:
    """A retrieval that the decision allowed or declined."""
    done = step(0, ["a"] if decision.retrieve else [], query="q" if decision.retrieve else None)
    return done.model_copy(update={"decision": decision})


@pytest.mark.parametrize(
    ("draft", "arm", "first", "second"),
    [("Ina Dorn", 0, False, False), ("I do not know", 2, True, True)],
)
def test_a_draft_is_routed_once(
    tmp_path: Path, draft: str, arm: int, first: bool, second: bool
) -> None:
    """The second decision asks the reader nothing."""
    spec, reader = route(tmp_path), ScriptedReader([[reply(draft)]])
    decided = decide(spec, reader)
    assert decided.signals["arm"] == arm
    assert decided.retrieve is first
    assert decided.stage == "draft"
    assert decide(spec, reader, after(decided)).retrieve is second
    assert len(reader.generated) == 1


def test_one_allows_one_retrieval(tmp_path: Path) -> None:
    """Without a draft, no reader is needed."""
    spec, reader = route(tmp_path) + ",draft=false", ScriptedReader()
    decided = decide(spec, reader)
    assert (decided.retrieve, decided.stage, decided.signals["arm"]) == (True, "question", 1)
    assert "one is worth most" in decided.reason
    assert not decide(spec, reader, after(decided)).retrieve


def test_a_price_can_close_all_arms_but_the_cheapest(tmp_path: Path) -> None:
    spec = route(tmp_path, price=2.0) + ",draft=false"
    assert decide(spec, ScriptedReader()).signals["arm"] == 0
    spec = route(tmp_path, price=2.0, prices={"mine": 0.0}) + ",draft=false,set=mine"
    assert decide(spec, ScriptedReader()).signals["arm"] == 1


def test_a_router_fits_every_workflow(tmp_path: Path) -> None:
    for name in ("ircot", "naive"):
        assert decide(route(tmp_path) + ",draft=false", ScriptedReader(), workflow=name).retrieve


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"feature":[0,-1,-1]', '"feature":[3,-1,-1]', "does not fit its inputs and arms"),
        ('"feature":[0,-1,-1]', '"feature":[-2,-1,-1]', "a node with no input"),
        ("[0.1,0.1,0.9]", "[0.1,0.1]", "does not fit its inputs and arms"),
        ('"weights":[[0.0,0.0,0.0]]', '"weights":[[0.0,0.0]]', "does not fit its inputs and arms"),
        ('"scales":[1.0]', '"scales":[0.0]', "a scale that is not above 0"),
        ('"level":"question"', '"level":"draft"', "not in the order of question, draft"),
    ],
)
def test_a_damaged_file_is_refused(old: str, new: str, told: str, tmp_path: Path) -> None:
    spec = route(tmp_path)
    path = Path(spec.partition(":")[2])
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError, match=told):
        decide(spec, ScriptedReader())


def test_a_question_without_the_texts_that_a_router_needs_is_told(tmp_path: Path) -> None:
    spec = route(tmp_path)
    file = RouteFile.model_validate_json(Path(spec.partition(":")[2]).read_bytes())
    drafted = file.model_copy(update={"models": file.models[1:]})
    with pytest.raises(
        UsageError, match="needs the draft of a question, and one has only question"
    ):
        drafted.route(Asked("Who?"))
