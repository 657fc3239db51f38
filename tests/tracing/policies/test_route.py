"""A router in a run: its arms as decisions on retrievals."""

from pathlib import Path

import pytest

from hopscope.api.spending import policy
from hopscope.runtime.ports import Moment
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import Decision, Question, Step
from hopscope.tracing.learned.route_file import ArmTree, PricePoint, RouteFile, RouteModel
from hopscope.tracing.signals.question_features import Level
from tests.fakes import ScriptedReader, reply, step

ASKED = Question(text="Who founded the town?")


def model(level: Level, name: str, edge: float, *chances: tuple[float, ...]) -> RouteModel:
    """The chances of the arms, by whether the input is above the edge."""
    tree = ArmTree(
        feature=(0, -1, -1),
        threshold=(edge, 0, 0),
        left=(1, 0, 0),
        right=(2, 0, 0),
        values=((), *chances),
    )
    return RouteModel(
        level=level,
        names=(name,),
        medians=(0.0,),
        scales=(1.0,),
        trees=(tree,),
        weights=((0.0, 0.0, 0.0),),
        intercepts=(0.0, 0.0, 0.0),
        platt=((1.0, 0.0),) * 3,
    )


def route(tmp_path: Path, *models: RouteModel, **changes: object) -> str:
    """Without a draft `one`; by a draft of up to two words `none`, by a longer one `ircot`."""
    always = model("question", "question_words", 99, (0.0, 0.9, 0.1), (0.0, 0.0, 0.0))
    drafted = model("draft", "draft_words", 2, (0.9, 0.9, 0.9), (0.1, 0.1, 0.9))
    file = RouteFile.model_validate(
        {
            "arms": ("none", "one", "ircot"),
            "unit": "steps",
            "price": 0.01,
            "costs": {"": {"none": 0.0, "one": 1.0, "ircot": 3.0}},
            "frontier": (PricePoint(price=0, cost=1, utility=1),),
            "models": (always, drafted),
            **changes,
        }
    )
    path = tmp_path / "route.json"
    path.write_text(file.model_dump_json())
    return f"route:{path}"


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
