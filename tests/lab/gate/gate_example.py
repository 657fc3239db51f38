"""Experiments made by hand, of one workflow and as many questions as wanted, without a model."""

from collections.abc import Sequence
from pathlib import Path

from hopscope.runtime.types import Credit, Measurement, Provenance, Question, Run, RunError
from hopscope.store.experiments.records import Arm, DatasetEntry, Experiment
from hopscope.store.store import Store
from tests.fakes import NOW

HOSTILE = "</testcase>@everyone see #1 ![x](http://evil) \x1b[31m\x00 |"


def question(place: int, id: str | None = None) -> Question:
    return Question(text=f"Where is town {place}?", answers=("Nalmir",), id=id or f"q{place}")


def fill(
    file: Path,
    name: str,
    right: Sequence[bool | None],
    *,
    levels: Sequence[float | None] = (),
    label: str = "naive",
    seed: int = 0,
    questions: Sequence[Question] | None = None,
    retriever: str = "bm25:towns",
) -> None:
    """One run for each question: right, wrong, or failed (None). With `levels`, SePer measured that
    much for each, or nothing."""
    asked = questions or [question(place) for place in range(len(right))]
    with Store.open(file) as store:
        store.experiments.add(
            Experiment(
                name=name,
                settings={"data": "towns.jsonl"},
                reader="hf:reader@1",
                retriever=retriever,
                entailment="lexical",
                seed=seed,
                fingerprint="f",
                created=NOW,
                arms=(Arm(label=label, workflow="naive", settings={}),),
            ),
            [DatasetEntry(question=each) for each in asked],
        )
        session = store.experiments.begin_session(name, owner="here", environment={})
        for claimed in store.experiments.claim(session, len(asked)):
            place = claimed.position
            if right[place] is None:
                error = RunError(type="ReaderError", message="no answer")
                store.experiments.complete(session, claimed, None, error=error)
                continue
            run = Run(
                id=f"{place:04x}{abs(hash((name, label))):028x}"[:32],
                question=asked[place],
                workflow="naive",
                reader="hf:reader@1",
                retriever=retriever,
                steps=(),
                answer="Nalmir" if right[place] else "Salwin",
                stop_reason="answer_marker",
                started=NOW,
                seconds=0.5,
            )
            level = levels[place] if levels else None
            found = [] if level is None else [(None, "level", 0.0), (None, "total", level)]
            credits = [
                Credit(
                    run_id=run.id,
                    step=step,
                    rule=rule,
                    meter="seper",
                    measurement=Measurement(value=value),
                    provenance=Provenance(reader="hf:reader@1", seed=seed),
                )
                for step, rule, value in found
            ]
            store.experiments.complete(session, claimed, run, credits=credits)
