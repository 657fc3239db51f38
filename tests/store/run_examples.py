"""Runs to store: one as a workflow makes them, and any that the records allow."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st

from hopscope.runtime.types import (
    Credit,
    Exchange,
    Generation,
    GenerationRequest,
    Hit,
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


# Any record. Integers that count things fit the columns; seeds and JSON may hold any.
_small = st.integers(0, 2**31 - 1)
_floats = st.floats(allow_nan=False, allow_infinity=False)
_words = st.text(max_size=12)
_keys = st.lists(_words, max_size=3).map(tuple)
_zones = st.integers(-720, 720).map(lambda minutes: timezone(timedelta(minutes=minutes)))
_times = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=_zones)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | _floats | _words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_words, inner, max_size=2),
    max_leaves=4,
)
_settings = st.dictionaries(_words, _json, max_size=3)
_passages = st.builds(Passage, id=_words, title=_words, text=_words, source=_words)
_usages = st.builds(Usage, input_tokens=_small, output_tokens=_small, calls=_small)
_prompts = st.builds(
    Prompt,
    messages=st.lists(st.builds(Message, content=_words), max_size=3).map(tuple),
    prefix=_words,
    shown=_keys,
)
_requests = st.builds(
    GenerationRequest,
    prompt=_prompts,
    n=st.integers(1, 100),
    temperature=st.floats(0, 5),
    max_tokens=st.integers(1, 2**31 - 1),
    stop=_keys,
    seed=st.integers(-(2**80), 2**80),
)
_generations = st.builds(
    Generation,
    text=_words,
    tokens=_keys,
    token_ids=st.lists(st.integers(-(2**70), 2**70), max_size=4).map(tuple),
    logprobs=st.lists(_floats | st.floats(width=32, allow_nan=False, allow_infinity=False)).map(
        tuple
    ),
    entropies=st.lists(_floats, max_size=4).map(tuple),
    end_logprob=st.none() | _floats,
    usage=_usages,
    approx=st.booleans(),
)
_exchanges = st.builds(
    Exchange,
    request=_requests,
    generations=st.lists(_generations, max_size=2).map(tuple),
    seconds=_floats,
    span_id=_words,
)
_steps = st.builds(
    Step,
    index=_small,
    name=_words,
    query=st.none() | _words,
    ranked=st.lists(st.builds(Hit, passage=_passages, score=_floats), max_size=3).map(tuple),
    new=_keys,
    shown=_keys,
    evidence=st.lists(_passages, max_size=3).map(tuple),
    exchanges=st.lists(_exchanges, max_size=2).map(tuple),
    output=st.none() | _words,
    parse_ok=st.none() | st.booleans(),
    dangling=_keys,
    usage=_usages,
    started=_times,
    seconds=_floats,
    span_id=_words,
)
any_run = st.builds(
    Run,
    id=st.uuids().map(lambda u: u.hex),
    question=st.builds(Question, text=_words, answers=_keys, id=_words),
    workflow=_words,
    options=_settings,
    reader=_words,
    retriever=_words,
    seed=st.integers(-(2**80), 2**80),
    steps=st.lists(_steps, max_size=3).map(tuple),
    answer=st.none() | _words,
    started=_times,
    seconds=_floats,
    trace_id=_words,
    span_id=_words,
)
_measured = st.builds(
    Measurement,
    value=_floats,
    n=_small,
    seed=st.none() | st.integers(-(2**80), 2**80),
    estimator=_words,
    low=st.none() | _floats,
    high=st.none() | _floats,
)
any_credit = st.builds(
    Credit,
    step=st.none() | _small,
    rule=_words,
    meter=_words,
    measurement=_measured | st.builds(Measurement, value=st.none(), reason=_words),
    provenance=st.builds(
        Provenance,
        reader=_words,
        entailment=st.none() | _words,
        seed=st.integers(-(2**80), 2**80),
        settings=_settings,
    ),
)
