"""Any run and any credit that the records allow.

Integers that count things fit the columns; seeds, token ids and JSON may hold any.
"""

from datetime import datetime, timedelta, timezone

from hypothesis import strategies as st

from hopscope.runtime.types import (
    Credit,
    Decision,
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
    Thought,
    Usage,
)

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
_usages = st.builds(
    Usage,
    input_tokens=_small,
    output_tokens=_small,
    calls=_small,
    thinking_tokens=_small,
    cached_tokens=_small,
    uncounted=_small,
)
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
    thought=st.none() | _words,
)
_thoughts = st.builds(
    Thought, text=_words, tokens=_small, end=st.sampled_from(["closed", "forced", "open"])
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
    thought=st.none() | _thoughts,
    refused=_keys,
)
_exchanges = st.builds(
    Exchange,
    request=_requests,
    generations=st.lists(_generations, max_size=2).map(tuple),
    seconds=_floats,
    span_id=_words,
)
_decisions = st.builds(
    Decision,
    policy=_words,
    retrieve=st.booleans(),
    reason=_words,
    retrieval=_small,
    stage=st.none() | _words,
    signals=st.dictionaries(_words, _floats, max_size=2),
    **dict.fromkeys(("gain", "low", "high", "cost", "price"), st.none() | _floats),
    usage=_usages,
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
    decision=st.none() | _decisions,
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
    certain=st.booleans(),
)
any_credit = st.builds(
    Credit,
    step=st.none() | _small,
    passage=st.none() | st.text(min_size=1, max_size=12),
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
