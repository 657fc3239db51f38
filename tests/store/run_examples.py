"""Runs to store, as a workflow makes them, and what the tables then hold."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select

from hopscope.runtime.types import (
    AnswerGroup,
    AnswerToken,
    CoalitionValue,
    Credit,
    Exchange,
    GameValues,
    Generation,
    GenerationRequest,
    Hit,
    MeasuredAnswers,
    Measurement,
    Message,
    Passage,
    Prompt,
    Provenance,
    Question,
    Run,
    Step,
    Usage,
)
from hopscope.store.database.schema import metadata
from hopscope.store.store import Store

STARTED = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def passages(count: int) -> list[Passage]:
    words = "the river town of {i} was founded by people who came from the north " * 6
    return [
        Passage(id=f"p{i}", title=f"Town {i}", text=words.format(i=i), source="towns:1f3a")
        for i in range(count)
    ]


def a_run(run_id: str = "run-1", *, hops: int = 3, k: int = 5, minute: int = 0) -> Run:
    """An IRCoT-like run: each hop retrieves `k` passages and then generates a thought."""
    held: list[Passage] = []
    steps: list[Step] = []
    for hop in range(hops):
        found = passages(hops * k)[hop * k : hop * k + k]
        held += found
        new = tuple(p.key for p in found)
        started = STARTED + timedelta(minutes=minute, seconds=2 * hop)
        steps.append(
            Step(
                index=len(steps),
                name="retrieve",
                kind="retrieve",
                query=f"who founded town {hop} of {run_id}?",
                ranked=tuple(Hit(passage=p, score=9.7 / (i + 1)) for i, p in enumerate(found)),
                new=new,
                evidence=tuple(held),
                dangling=new[-1:],
                started=started,
                seconds=0.01,
            )
        )
        keys = tuple(p.key for p in held)
        steps.append(
            Step(
                index=len(steps),
                name="reason",
                kind="generate",
                shown=keys,
                evidence=tuple(held),
                exchanges=(_exchange(run_id, held, keys),),
                output="It was founded by people from the north.",
                parse_ok=True,
                usage=Usage(input_tokens=400, output_tokens=12, calls=1),
                started=started + timedelta(seconds=1),
                seconds=0.2,
            )
        )
    return Run(
        id=run_id,
        question=Question(text="Who founded the town?", answers=("people", "they"), id="q1"),
        workflow="ircot",
        options={"k": k, "max_steps": hops},
        reader="tiny@1",
        retriever="bm25@1f3a",
        seed=7,
        steps=tuple(steps),
        answer="people from the north",
        stop_reason="answer_marker",
        started=STARTED + timedelta(minutes=minute),
        seconds=1.5,
    )


def _exchange(run_id: str, held: list[Passage], keys: tuple[str, ...]) -> Exchange:
    context = "\n\n".join(f"{p.title}\n{p.text}" for p in held)
    prompt = Prompt(
        messages=(
            Message(role="system", content="Answer from the passages. " * 20),
            Message(role="user", content=f"{context}\n\nQ of {run_id}: who founded it?"),
        ),
        prefix="So far:",
        shown=keys,
    )
    return Exchange(
        request=GenerationRequest(prompt=prompt, max_tokens=32, stop=("\n",), seed=2**63 + 11),
        generations=(
            Generation(
                text="It was founded by people from the north.",
                tokens=tuple(f" t{i}" for i in range(12)),
                token_ids=tuple(range(100, 112)),
                logprobs=tuple(-1 / (i + 3) for i in range(12)),
                entropies=tuple(0.5**i for i in range(12)),
                end_logprob=-0.01,
                usage=Usage(input_tokens=400, output_tokens=12, calls=1),
            ),
        ),
        seconds=0.2,
        span_id="00f067aa0ba902b7",
    )


PROVENANCE = Provenance(reader="tiny@1", entailment="lexical", seed=7, settings={"n": 10})


def credits_of(run: Run) -> list[Credit]:
    """Shares by two rules for each step, and one step that was not measured."""
    values = [Measurement(value=0.1 * s.index, n=10, low=0.0, high=0.9) for s in run.steps]
    values[-1] = Measurement(value=None, reason="empty answer")
    return [
        Credit(
            run_id=run.id,
            step=step,
            rule=rule,
            meter="seper",
            measurement=value,
            provenance=PROVENANCE,
        )
        for rule in ("shapley", "trajectory")
        for step, value in [(None, values[0]), *enumerate(values)]
    ]


def games_of(run: Run, meter: str = "seper") -> list[GameValues]:
    """The values of some coalitions of the steps, and of the passages of step 1; one is missing."""
    told = [
        Measurement(value=0.25, n=10, seed=7, estimator="mean of 10", low=0.1, high=0.5),
        Measurement(value=0.75, n=10, seed=7, estimator="mean of 10", dropped=("a",)),
        Measurement(value=None, reason="empty answer", estimator="mean of 10"),
    ]
    answers = MeasuredAnswers(
        tokens=(
            AnswerToken(text="Grand", value=0.25, without=1.5, key=True),
            AnswerToken(text=" \x00\u202eRovmar", value=0.0, key=False),
        ),
        groups=(
            AnswerGroup(answer="Grand Rovmar", mass=0.75, right=True),
            AnswerGroup(answer="<b>", mass=0.25, right=False),
        ),
    )
    sets = [((), "e0", told[0]), ((0,), "e1", told[1]), ((0, 2), None, told[2])]
    values = tuple(
        CoalitionValue(
            members=members,
            evidence=evidence,
            measurement=measurement,
            unseen=("b",) if members == (0,) else (),
            answers=answers if members == (0,) else None,
        )
        for members, evidence, measurement in sets
    )
    steps = GameValues(
        run_id=run.id,
        provenance=PROVENANCE,
        meter=meter,
        step=None,
        members=(0, 1, 2),
        players=(0, 2),
        measured=3,
        values=values,
    )
    inside = {"step": 1, "keys": ("a", "b", "c"), "remark": ", mode=replay", "comparable": False}
    return [steps, steps.model_copy(update={**inside, "measured": 9})]


def counts(store: Store) -> dict[str, int]:
    """Rows by table."""
    with store._database.reading() as connection:
        return {
            name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in metadata.tables.items()
        }
