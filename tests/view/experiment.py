"""A small experiment with coalition values, made by hand: two workflows, two questions."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from hopscope.runtime.ports import Answered, SampleAllocation
from hopscope.runtime.types import (
    Appraisal,
    Hit,
    MeasuredAnswers,
    Passage,
    Question,
    Run,
    Usage,
)
from hopscope.runtime.types import Provenance as Settings
from hopscope.store.experiments.records import Arm, DatasetEntry, Experiment
from hopscope.store.store import Store
from hopscope.tracing.appraisal import share
from hopscope.tracing.beliefs.answer_groups import grouped, told
from hopscope.tracing.credit import shapley, trajectory
from hopscope.tracing.games.frozen import over_passages, over_steps
from tests.fakes import NOW, FunctionMeter, run_of

NAME = "towns"
ARMS = {"naive": ("ab",), "ircot": ("ab", "c", "d")}
"""The passages that each retrieval of a workflow brings."""
QUESTIONS = ("Who is the mayor of Nalmir?", "Where was Elsa Wilby born?")
SETTINGS = Settings(
    reader="hf:small", seed=3, settings={"counterfactual": "empty", "mode": "frozen"}
)
HOSTILE = "<script>alert(1)</script>\u202e evil\x1b[31m</script>\u2028{{7*7}}"
"""Markup, direction, control characters, a separator of lines, a template."""


def belief(keys: tuple[str, ...]) -> float:
    """a and c need each other; d makes nothing better."""
    return 0.1 + 0.2 * ("a" in keys) + 0.6 * ({*"ac"} <= {*keys})


def confidence(keys: tuple[str, ...]) -> float:
    return 0.5 * len(keys)


class Telling(FunctionMeter):
    """Tells the answers behind its values, whose wrong ones are hostile."""

    def __init__(self, name: str) -> None:
        super().__init__(belief if name == "seper" else confidence)
        self.name = name

    def measure_answered(
        self,
        question: Question,
        evidences: Sequence[tuple[Passage, ...]],
        allocation: SampleAllocation | None = None,
    ) -> list[Answered]:
        measured = self.measure(question, evidences)
        return [Answered(each, self._answers(each.value or 0.0)) for each in measured]

    def _answers(self, value: float) -> MeasuredAnswers:
        if self.name == "seper":
            return grouped(["Ada Wilby", HOSTILE], [value, 1 - value], [True, False])
        return told(["Ada", f" {HOSTILE}"], [0.1, value], [0.2, 2.5], [1])


def named(name: str) -> FunctionMeter:
    return Telling(name)


def run(place: int, question: Question, workflow: str) -> Run:
    made = run_of(*ARMS[workflow], answers=question.answers)
    usage = Usage(input_tokens=400, output_tokens=20, calls=1)
    steps = tuple(
        step.model_copy(
            update={
                "usage": usage,
                "query": f"{question.text} {step.index}",
                "ranked": tuple(Hit(passage=p, score=2.5) for p in step.evidence),
            }
        )
        for step in made.steps
    )
    return made.model_copy(
        update={
            "id": f"{place:x}3767052b3dd6ef9b9365f00ba412345"[:32],
            "question": question,
            "workflow": workflow,
            "answer": "Ada Wilby" if workflow == "ircot" else "nobody",
            "reader": "hf:small",
            "retriever": "bm25:towns",
            "steps": steps,
            "started": NOW + timedelta(minutes=place),
            "seconds": 0.5,
        }
    )


def fill(store: Store, name: str = NAME, questions: tuple[str, ...] = QUESTIONS) -> list[Run]:
    """Store the experiment, all of whose items are done; its runs, in the order of the plan."""
    entries = [
        DatasetEntry(
            question=Question(text=text, answers=("Ada Wilby",), id=f"q{i}"), hops=2 - i % 2
        )
        for i, text in enumerate(questions)
    ]
    store.experiments.add(
        Experiment(
            name=name,
            settings={"data": "towns.jsonl"},
            reader="hf:small",
            retriever="bm25:towns",
            entailment="lexical",
            seed=3,
            fingerprint="f",
            created=NOW,
            arms=tuple(Arm(label=arm, workflow=arm, settings={}) for arm in ARMS),
        ),
        entries,
    )
    session = store.experiments.begin_session(name, owner="here", environment={})
    first = len(store.ids())
    runs = []
    for claimed in store.experiments.claim(session, 1000):
        made = run(first + claimed.position, claimed.entry.question, claimed.arm.workflow)
        games = [over_steps(made), *(g for s in made.steps if (g := over_passages(made, s.index)))]
        rules = [trajectory.build(), shapley.build()]
        meters = [named("seper"), named("grogu")]
        found = share(made, meters, rules, SETTINGS, games=games)
        appraisal = Appraisal(run_id=made.id, provenance=SETTINGS, measured=NOW)
        store.experiments.complete(
            session, claimed, made, credits=found.credits, appraisals=[appraisal], games=found.games
        )
        runs.append(made)
    store.experiments.end_session(session)
    return runs


def database(folder: Path) -> Path:
    """A database with the experiment `towns`, and `hostile` with a hostile question."""
    file = folder / "runs.db"
    with Store.open(file) as store:
        fill(store)
        fill(store, "hostile", (HOSTILE,))
    return file
