"""A small experiment whose tables can be worked out on paper.

Four questions by two arms. `one` has q0, q1 and q2 right and fails on q3; `two` has q1 right only.
"""

from collections.abc import Sequence
from typing import Any

from hopscope.lab.experiments.results import Results
from hopscope.store.experiments.records import Arm, Experiment
from hopscope.store.experiments.result_rows import QuestionRow, ResultRow, Retrieval, Utility, Value
from hopscope.tracing.answer_metrics import exact_match, f1
from hopscope.tracing.statistics.over_questions import Bootstrap
from tests.fakes import NOW

QUESTIONS = [
    QuestionRow(f"q{i}", f"Where is town {i}?", ("north", "the north"), hops=hops)
    for i, hops in enumerate((1, 1, 2, 2))
]
ONE = ("north", "The North", "north", None)
TWO = ("south", "north", "south", "up north")


def experiment(name: str = "towns", *, reader: str = "tiny@1", **settings: Any) -> Experiment:
    return Experiment(
        name=name,
        settings=settings,
        reader=reader,
        retriever="bm25",
        entailment="lexical",
        seed=0,
        fingerprint="f",
        created=NOW,
        arms=(
            Arm(label="one", workflow="naive", settings={"options": {"k": 5}}),
            Arm(label="two", workflow="ircot", settings={"options": {"k": 3}}),
        ),
    )


NO_GOLD = ("no gold answer", "no gold answer")


def figures(name: str = "towns") -> list[ResultRow]:
    found = []
    for i, asked in enumerate(QUESTIONS):
        failed = ONE[i] is None
        found.append(
            ResultRow(
                name,
                "one",
                asked,
                None if failed else f"one-{i}",
                error="ReaderError: gone" if failed else None,
                answer=ONE[i],
                retrievals=1,
                calls=1,
                input_tokens=90,
                output_tokens=10,
                seconds=0.5,
                utilities={"seper": Utility(0.5 + 0.1 * i, 0.2 + 0.1 * i)},
            )
        )
        found.append(
            ResultRow(
                name,
                "two",
                asked,
                f"two-{i}",
                answer=TWO[i],
                retrievals=2,
                calls=4,
                input_tokens=450,
                output_tokens=50 + 100 * i,
                seconds=2.0,
                utilities={"seper": Utility(0.4, 0.1) if i < 2 else Utility(*NO_GOLD)},
            )
        )
    return found


def shares(trajectory: Value, shapley: Value) -> dict[str, dict[str, Value]]:
    return {"seper": {"trajectory": trajectory, "shapley": shapley}}


def retrievals() -> list[Retrieval]:
    """Of arm two: the first retrieval is worth .3 and .1, the second, where there is one, -.2."""
    return [
        Retrieval("two-0", 1, 0, 200, shares(0.3, 0.2)),
        Retrieval("two-0", 2, 2, 300, shares(-0.2, -0.1)),
        Retrieval("two-1", 1, 0, 100, shares(0.1, 0.1)),
        Retrieval("two-2", 1, 0, 150, shares(*NO_GOLD)),
    ]


def results(
    *experiments: Experiment, rows: Sequence[ResultRow] | None = None, **options: Any
) -> Results:
    known = experiments or (experiment(),)
    return Results(
        rows or [row for each in known for row in figures(each.name)],
        {each.name: each for each in known},
        metrics={"exact_match": exact_match.build(), "f1": f1.build()},
        verdict="exact_match",
        bootstrap=Bootstrap(resamples=500),
        load_retrievals=retrievals,
        **options,
    )
