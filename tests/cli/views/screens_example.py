"""A small experiment made by hand, with names as long as real ones: what tables must show."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hopscope.runtime.types import (
    Appraisal,
    Credit,
    Decision,
    Hit,
    Measurement,
    PairCounts,
    Passage,
    Provenance,
    Question,
    Run,
    Step,
    Usage,
)
from hopscope.store.experiments.records import Arm, DatasetEntry, Experiment
from hopscope.store.store import Store

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
NAME = "towns"
ARMS = ("naive", "ircot:policy=margin:0.9,max_tokens=2000")
ENTRIES = (
    DatasetEntry(
        question=Question(
            text="What is the headquarters city of the company that employs Elsa Wilby?",
            answers=("Grand Rovmar",),
            id="q1",
        ),
        hops=2,
        kind="chain",
    ),
    DatasetEntry(
        question=Question(text="Who is the mayor of Nalmir?", answers=("Ada Ølberg",), id="q2"),
        hops=1,
        kind="fact",
    ),
)
ANSWERS = ("Salwin Pictures", "Ada Ølberg", "Grand Rovmar", "Ada Ølberg")
"""Of the items in the order of the plan: question by question, arm by arm."""
SETTINGS = {"counterfactual": "empty", "mode": "frozen", "samples": 10}


def passages() -> tuple[Passage, ...]:
    named = ("Elsa Wilby", "Salwin Pictures", "Grand Rovmar")
    return tuple(
        Passage(id=str(i), title=title, text=f"{title} is a name.") for i, title in enumerate(named)
    )


def run_of(place: int) -> Run:
    entry, arm = ENTRIES[place // 2], ARMS[place % 2]
    found = passages()
    hits = tuple(Hit(passage=each, score=9.5 - i) for i, each in enumerate(found))
    retrieve = Step(
        index=0,
        name="retrieve",
        kind="retrieve",
        query=entry.question.text,
        ranked=hits,
        new=tuple(each.key for each in found),
        shown=tuple(each.key for each in found),
        evidence=found,
        decision=Decision(
            policy="margin:0.9",
            retrieve=True,
            reason="the draft's margin is .31, below .9",
            signals={"margin": 0.31, "least_probability": 0.12},
        ),
        started=NOW,
        seconds=0.02,
    )
    read = Step(
        index=1,
        name="read",
        kind="generate",
        evidence=found,
        output=f"So the answer is: {ANSWERS[place]}.",
        usage=Usage(input_tokens=1200, output_tokens=34, calls=1),
        stop_reason="answer_marker",
        started=NOW,
        seconds=0.5,
    )
    return Run(
        id=f"{place:x}3767052b3dd6ef9b9365f00ba412345"[:32],
        question=entry.question,
        workflow=arm.partition(":")[0],
        reader="hf:models/Qwen3-8B@9c925d64",
        retriever="bm25:towns@31f0c7aa",
        steps=(retrieve, read),
        answer=ANSWERS[place],
        stop_reason="answer_marker",
        started=NOW + timedelta(minutes=place),
        seconds=0.52,
    )


def appraised(run: Run, gain: float) -> tuple[list[Credit], Appraisal]:
    provenance = Provenance(reader=run.reader, entailment="lexical", seed=0, settings=SETTINGS)
    rows: list[tuple[str, int | None, str, float]] = [
        ("seper", None, "level", 0.25),
        ("seper", 0, "level", 0.25 + gain),
        ("seper", 1, "level", 0.25 + gain),
        *(("seper", 0, rule, gain) for rule in ("trajectory", "leave_one_out", "shapley")),
        ("seper", None, "total", gain),
        ("grogu", 0, "level", 1.5),
        ("grogu", 0, "trajectory", gain),
        ("grogu", None, "total", gain),
    ]
    credits = [
        Credit(
            run_id=run.id,
            step=step,
            rule=rule,
            meter=meter,
            measurement=Measurement(value=value, low=value - 0.25, high=value + 0.25, n=10),
            provenance=provenance,
        )
        for meter, step, rule, value in rows
    ]
    appraisal = Appraisal(
        run_id=run.id,
        provenance=provenance,
        measured=NOW + timedelta(hours=1),
        usage=Usage(input_tokens=2256, output_tokens=336, calls=14),
        seconds=0.38,
        pairs=PairCounts(asked=179, computed=119),
    )
    return credits, appraisal


def fill(file: Path) -> None:
    """The experiment, all of whose items are done; their gains are 1/8, 2/8, …"""
    with Store.open(file) as store:
        store.experiments.add(
            Experiment(
                name=NAME,
                settings={"data": "towns.jsonl", "reader": "hf:models/Qwen3-8B", "samples": 10},
                reader="hf:models/Qwen3-8B@9c925d64",
                retriever="bm25:towns@31f0c7aa",
                entailment="lexical",
                seed=0,
                fingerprint="f",
                created=NOW,
                arms=tuple(
                    Arm(label=arm, workflow=arm.partition(":")[0], settings={}) for arm in ARMS
                ),
            ),
            ENTRIES,
        )
        session = store.experiments.begin_session(NAME, owner="here", environment={})
        for claimed in store.experiments.claim(session, 100):
            run = run_of(claimed.position)
            credits, appraisal = appraised(run, (claimed.position + 1) / 8)
            store.experiments.complete(
                session, claimed, run, credits=credits, appraisals=[appraisal]
            )
