"""A router that is made by hand."""

from pathlib import Path

from hopscope.tracing.learned.route_file import ArmTree, PricePoint, RouteFile, RouteModel
from hopscope.tracing.signals.question_features import Level


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
