"""ITEM's methods of judgment over given candidates, each the product's own workflow."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hopscope.lab.suites.answering import answer
from hopscope.lab.validity.item.selections import Choice
from hopscope.runtime import key_lists
from hopscope.runtime.execution.run import Workflow
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Reader
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS, PromptSet
from hopscope.runtime.types import Hit, Passage, Question, Run
from hopscope.workflows import item, k_sampling, uj_expa, uj_impa, vanilla
from hopscope.workflows.selection.choosing import Graph

FEWEST, MOST = 5, 10
"""The numbers of a question's candidates."""
ROUNDS = 5
"""The largest m."""
BASELINE = "Vanilla"
JUDGES = "judge_utility"
NO_OPTIONS: Mapping[str, Mapping[str, Any]] = {}


class Listed(NamedTuple):
    """A question and its candidate passages."""

    question: Question
    candidates: tuple[Passage, ...]
    gold: frozenset[str]
    """Keys of the gold passages."""
    grades: Mapping[str, int]
    """The grades of judged passages by key; those without one have 0."""


class Way(NamedTuple):
    """A method of judgment."""

    name: str
    build: Callable[..., Graph]
    options: Mapping[str, Any]
    decides: str
    """The name of the steps that output a choice."""
    rounds: int = 1

    def over(self, most: int) -> Graph:
        """The workflow over so many candidates."""
        own = {"m": self.rounds} if self.rounds > 1 else {}
        return self.build(**{**self.options, **own, "candidates": most})


def ways(options: Mapping[str, Mapping[str, Any]] = NO_OPTIONS) -> tuple[Way, ...]:
    """The methods.

    Args:
        options: of their workflows by name; the number of rounds, the variant and the candidates
            are the suite's.
    """
    of_item = options.get("item", {})
    found = [
        Way(BASELINE, vanilla.build, options.get("vanilla", {}), JUDGES),
        Way("UJ-ExpA", uj_expa.build, options.get("uj_expa", {}), JUDGES),
        Way("UJ-ImpA", uj_impa.build, options.get("uj_impa", {}), JUDGES),
    ]
    listwise = of_item.get("judgment", "listwise") == "listwise"
    if listwise:
        found.append(Way("k-sampling", k_sampling.build, options.get("k_sampling", {}), "vote"))
    implicit = {**of_item, "variant": "As", "answer": "implicit"}
    found += [
        Way("ITEM-As", item.build, {**of_item, "variant": "As"}, JUDGES, ROUNDS),
        Way("ITEM-As implicit", item.build, implicit, JUDGES, ROUNDS),
    ]
    if listwise:
        last = {**of_item, "variant": "ARs"}
        found.append(Way("ITEM-ARs", item.build, last, JUDGES, ROUNDS))
    return tuple(found)


@dataclass(frozen=True)
class FixedRetriever:
    """A retriever that returns the same passages for every query."""

    passages: tuple[Passage, ...]
    name: str = "given"

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        found = [Hit(passage=p, score=1 / place) for place, p in enumerate(self.passages, start=1)]
        return [found[:k] for _ in queries]


def judge(
    reader: Reader,
    asked: Sequence[Listed],
    judging: Sequence[Way],
    *,
    seed: int,
    tell: Callable[[str], object] = str,
    prompts: PromptSet = DEFAULT_PROMPTS,
) -> dict[str, list[Choice]]:
    """The choice for each question, by method; `(m)` follows the name of a method with rounds.
    `tell` gets the errors of runs that failed."""
    made: dict[str, list[Choice]] = {}
    most = max([MOST, *(len(row.candidates) for row in asked)])
    for way in judging:
        workflow = Workflow(way.name, way.over(most), {})
        for row in asked:
            deps = Deps(
                reader,
                FixedRetriever(row.candidates),
                seed=seed,
                capture_content=False,
                prompts=prompts,
            )
            done = answer(workflow, row.question, deps)
            if done.error:
                tell(done.error.message)
            found = choices(done, way)
            for m, choice in enumerate(found, start=1):
                name = f"{way.name} ({m})" if way.rounds > 1 else way.name
                made.setdefault(name, []).append(choice)
    return made


def choices(found: Run, way: Way) -> tuple[Choice, ...]:
    """The choices with m = 1, 2, ..., `way.rounds`."""
    if found.status != "ok":
        return (None,) * way.rounds
    made = [
        list(key_lists.read(step.output) or ()) for step in found.steps if step.name == way.decides
    ]
    return (*made, *made[-1:] * (way.rounds - len(made)))
