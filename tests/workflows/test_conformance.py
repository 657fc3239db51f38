"""What holds for every workflow there is: a new file in `workflows/` is tested at once.

A workflow that loops needs a reader that makes it loop: add a `Probe` to PROBES if what the
reader says by default does not.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, cycle
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopscope import workflows
from hopscope.runtime import components
from hopscope.runtime.errors import ContextOverflowError, UsageError
from hopscope.runtime.execution.run import Workflow, run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.types import Generation, GenerationRequest, Passage, Question, Run, StopReason
from hopscope.tracing.entailments import lexical
from tests.probes import Say, Speaker
from tests.talk import ScriptedRetriever

NAMES = components.own(workflows)
QUESTION = Question(text="Where was the director of Moon Harbor born?", answers=("Miskel",))
PASSAGES = [Passage(id=str(i), title=f"Town {i}", text=f"Town {i} is old.") for i in range(12)]
CITATION = re.compile(r"arXiv \d{4}\.\d{5}|et al\.,? \d{4}")
UNCITED = {"closed_book"}  # no retrieval, no method: the baseline of every utility
LOOP = "↑"  # how a drawing shows that the graph goes back


ENDLESS = "Town {} is old. More of it follows."


def numbered(template: str) -> Callable[[], Say]:
    """A reader that never tires and never says the same twice."""

    def start() -> Say:
        numbers = count(1)
        return lambda request: template.format(next(numbers))

    return start


@dataclass(frozen=True)
class Probe:
    """How to make a workflow loop until it stops by itself."""

    say: Callable[[], Say] = field(default_factory=lambda: numbered(ENDLESS))
    unsure: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    stop: StopReason | None = None
    """Why it ends; by default `max_steps` if it loops, else `answered`."""


CALLED = 'Old.\n<tool_call>{{"name": "search", "arguments": {{"query": "Town {0}"}}}}</tool_call>'
BOTH = "<search> Town {0} </search><|begin_of_query|> Town {0} <|end_of_query|>"
PROBES = {
    "eor": Probe(stop="answered"),  # always the whole pool
    "flare": Probe(unsure=("old",), stop="max_tokens"),
    "flare_instruct": Probe(numbered("Town {0} is old. [Search(Town {0})]")),
    "k_sampling": Probe(stop="answered"),  # always as many samples
    "rankgpt": Probe(options={"window": 4, "stride": 2}, stop="answered"),  # always all windows
    "react": Probe(numbered(CALLED)),
    "search_agent": Probe(numbered(BOTH)),
    "self_ask": Probe(numbered("Town {0}.\nFollow up: How old is Town {0}?")),
}


def load(name: str) -> ModuleType:
    return components.load(workflows, name)


def build(name: str, **options: Any) -> Workflow:
    options = {**PROBES.get(name, Probe()).options, **options}
    return Workflow(name, load(name).build(**options), options)


def cases() -> Iterator[Any]:
    """Each workflow as it is, and with each choice of each option that is a closed set."""
    for name in NAMES:
        yield pytest.param(name, {}, id=name)
        for option, hint in get_type_hints(load(name).build).items():
            values = get_args(hint) if get_origin(hint) is Literal else ()
            for value in (True, False) if hint is bool else values:
                try:
                    build(name, **{option: value})
                except UsageError:  # does not go with the other options, and says so
                    continue
                yield pytest.param(name, {option: value}, id=f"{name} {option}={value}")


def ask(
    name: str,
    say: Say | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    found: list[Passage] | None = None,
    seed: int = 0,
) -> tuple[Run, Speaker]:
    probe = PROBES.get(name, Probe())
    reader = Speaker(say or probe.say(), unsure=probe.unsure)
    retriever = ScriptedRetriever(lambda query: PASSAGES if found is None else found)
    deps = Deps(reader=reader, retriever=retriever, seed=seed, entailment=lexical.build())
    return run(build(name, **(options or {})), QUESTION, deps), reader


def nodes_on_a_cycle(name: str) -> set[str]:
    edges: dict[str, set[str]] = {}
    for edge in build(name).graph.compile().get_graph().edges:
        edges.setdefault(edge.source, set()).add(edge.target)

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        left = list(edges.get(start, ()))
        while left:
            node = left.pop()
            if node not in seen:
                seen.add(node)
                left.extend(edges.get(node, ()))
        return seen

    return {node for node in edges if node in reachable(node)}


def loops(name: str) -> bool:
    return LOOP in (load(name).__doc__ or "")


CASES = list(cases())
LOOPING = [name for name in NAMES if loops(name)]


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_cites_the_paper_and_draws_every_node(name: str) -> None:
    text = load(name).__doc__ or ""
    assert name in UNCITED or CITATION.search(text)
    assert text.splitlines()[0].endswith("."), "the first line is the summary"
    assert "START" in text
    nodes = set(build(name).graph.compile().get_graph().nodes) - {"__start__", "__end__"}
    assert [node for node in sorted(nodes) if node not in text] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_short_and_its_options_are_named(name: str) -> None:
    module = load(name)
    assert len(inspect.getsource(module).splitlines()) < 120
    parameters = inspect.signature(module.build).parameters.values()
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in parameters)


@pytest.mark.parametrize("name", NAMES)
def test_the_graph_loops_where_the_drawing_does(name: str) -> None:
    """A loop inside a node would leave one step where the paper has many."""
    assert bool(nodes_on_a_cycle(name)) == loops(name)


@pytest.mark.parametrize("name", LOOPING)
def test_it_loops_at_least_twice(name: str) -> None:
    result, _ = ask(name)
    assert result.status == "ok", result.error
    visits = [step.name for step in result.steps if step.name in nodes_on_a_cycle(name)]
    most = max(map(visits.count, visits), default=0)
    assert most >= 3, f"{name} went round {most - 1} times: give it a probe that makes it loop"


@pytest.mark.parametrize("name", NAMES)
def test_it_stops_at_its_limit(name: str) -> None:
    result, _ = ask(name)
    assert result.status == "ok", result.error
    expected = PROBES.get(name, Probe()).stop or ("max_steps" if loops(name) else "answered")
    assert result.stop_reason == expected
    assert result.answer is not None


@pytest.mark.parametrize(("name", "options"), CASES)
def test_every_execution_of_a_node_is_one_step(name: str, options: dict[str, Any]) -> None:
    """LangGraph's own count and names against ours."""
    probe = PROBES.get(name, Probe())
    reader = Speaker(probe.say(), unsure=probe.unsure)
    deps = Deps(
        reader=reader,
        retriever=ScriptedRetriever(lambda query: PASSAGES),
        entailment=lexical.build(),
    )
    updates = (
        build(name, **options)
        .graph.compile()
        .stream(
            {"question": QUESTION}, {"recursion_limit": 1000}, context=deps, stream_mode="updates"
        )
    )
    executed = [(node, update["steps"]) for each in updates for node, update in each.items()]
    assert [[step.name for step in steps] for _, steps in executed] == [[n] for n, _ in executed]
    assert [step.index for _, steps in executed for step in steps] == list(range(len(executed)))


@pytest.mark.parametrize(("name", "options"), CASES)
def test_it_survives_an_empty_index(name: str, options: dict[str, Any]) -> None:
    result, _ = ask(name, options=options, found=[])
    assert result.status == "ok", result.error
    assert result.evidence == ()


@pytest.mark.parametrize(("name", "options"), CASES)
def test_it_survives_a_reader_that_says_nothing(name: str, options: dict[str, Any]) -> None:
    result, reader = ask(name, lambda request: "", options=options)
    assert result.status == "ok", result.error
    assert result.answer == ""
    assert len(reader.requests) < 100


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_run(name: str) -> None:
    def facts(seed: int) -> list[object]:
        result, reader = ask(name, seed=seed)
        clock = {"started", "seconds", "span_id", "exchanges"}
        return [*(step.model_dump(exclude=clock) for step in result.steps), *reader.requests]

    assert facts(7) == facts(7)


@pytest.mark.parametrize("name", NAMES)
def test_every_request_carries_the_seed(name: str) -> None:
    _, reader = ask(name, seed=7)
    assert {request.seed for request in reader.requests} == {7}


@pytest.mark.parametrize(("name", "options"), CASES)
def test_the_tokens_of_the_steps_are_what_the_reader_counted(
    name: str, options: dict[str, Any]
) -> None:
    result, reader = ask(name, options=options)
    assert result.usage == reader.spent
    assert result.usage.calls == len(reader.requests)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_what_is_shown_has_been_found(name: str, options: dict[str, Any]) -> None:
    result, _ = ask(name, options=options)
    found: set[str] = set()
    for step in result.steps:
        assert set(step.shown) <= found
        found |= {hit.passage.key for hit in step.ranked}


SAID = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from(
            [
                "So the answer is: X.",
                "[Search(a)]",
                "Follow up: who?",
                "<think> who? </think>",
                '<tool_call>{"name": "search", "arguments": {"query": "a"}}</tool_call>',
                '{"name": "look", "parameters": {}}',
                "[TOOL_CALLS]",
                "<search> a </search>",
                "<answer>",
                "<|begin_of_query|>",
                "Intermediate answer: b\n",
                "So the final answer is: c",
                "My selection:[[1],[0],[99]].",
                "[2] > [1] > [1] > [9]",
                "My judgment: No",
                "Necessary information: [x]",
                "Yes.",
                "U.S. ",
                "\n\n",
            ]
        ),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize(("name", "options"), CASES)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(said=st.lists(SAID.map("".join), min_size=1, max_size=4))
def test_it_survives_whatever_the_reader_says(
    name: str, options: dict[str, Any], said: list[str]
) -> None:
    replies = cycle(said)
    result, reader = ask(name, lambda request: next(replies), options=options)
    assert result.status == "ok", result.error
    assert result.answer is not None
    assert result.usage == reader.spent


JUDGES = {"item", "k_sampling", "rankgpt", "uj_expa", "uj_impa", "vanilla"}
"""They compare all candidates in one prompt: what does not fit is told rather than left out."""


class Narrow(Speaker):
    """Has room for one passage."""

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        for request in requests:
            if len(request.prompt.shown) > 1:
                raise ContextOverflowError(self.name, 100, 10, 50)
        return super().generate(requests)


@pytest.mark.parametrize("name", NAMES)
def test_evidence_gives_way_where_a_prompt_does_not_fit(name: str) -> None:
    probe = PROBES.get(name, Probe())
    reader = Narrow(probe.say(), unsure=probe.unsure)
    retriever = ScriptedRetriever(lambda query: PASSAGES)
    result = run(build(name), QUESTION, Deps(reader=reader, retriever=retriever))
    if name in JUDGES and result.error:
        assert result.error.type == "ContextOverflowError"
    else:
        assert result.status == "ok", result.error


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_read_from_text_as_its_default_is_written(name: str) -> None:
    make = load(name).build
    defaults = {key: p.default for key, p in components.options(make).items()}
    written = {key: str(value) for key, value in defaults.items() if value is not None}
    assert components.parse_options(make, written) == defaults


MEANT = {("eor", "layer")}
"""Numbers below zero that mean something: layers are counted from the last."""


@pytest.mark.parametrize("name", NAMES)
def test_a_number_without_sense_is_refused_before_the_run(name: str) -> None:
    """`-o k=-1` once dropped the last passage, `iterations=0` answered once, and `max_tokens=0`
    failed when the corpus had been searched."""
    make = load(name).build
    hints = get_type_hints(make)
    numbers = {n for n, hint in hints.items() if {int, float} & {hint, *get_args(hint)}}
    assert numbers, "each has at least max_tokens"
    for option in sorted(numbers):
        for text in ("nan", "inf", *([] if (name, option) in MEANT else ["-1"])):
            with pytest.raises(UsageError, match=f"option {option}={text}"):
                components.parse_options(make, {option: text})
