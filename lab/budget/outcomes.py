"""What every arm did on every question, from a file of JSON lines, whoever made it.

An arm is a way to answer: no retrieval, one, IRCoT. One object a line:

    {"question": "Who founded Ravo?", "answers": ["Ina Dorn"], "dataset": "hotpotqa",
     "predictions": {"none": "Tom Hale", "one": "Ina Dorn"},
     "accurate": {"none": 0, "one": 1}, "steps": {"none": 0, "one": 1}}

Only `question` and the scores are needed. Scores are `accurate`, numbers from 0 to 1 by arm; where
an arm has none, whether a gold answer of `answers` stands in its text in `predictions`. Costs are
numbers by arm in `steps`, `tokens`, `seconds` or `money`; with a model's price, money follows from
`input_tokens`, `cached_tokens`, `output_tokens` and `retrievals` by arm. Signals are
`closed_book_reasoning` (or `reasoning`), `draft` (else the prediction of `none`), `logprobs` and
`entropies` of the draft's tokens, and numbers by name in `signals`. `prompts` names the set of
prompts that the arms answered with. Other fields are ignored, and null is as good as absent.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from hopscope.runtime.budget.prices import Price
from hopscope.runtime.errors import CorpusError, UsageError, unreadable
from hopscope.runtime.texts.answers import contains
from hopscope.runtime.texts.literals import json_value
from hopscope.runtime.types import Record, Usage
from hopscope.runtime.validation import first
from hopscope.tracing.signals.gathering import confidence

Floats = NDArray[np.float64]
Unit = Literal["steps", "tokens", "seconds", "money"]
UNITS: tuple[Unit, ...] = get_args(Unit)
STEPS_OF: Mapping[str, float] = {"none": 0.0, "one": 1.0}
"""Steps of the arms whose name tells them."""
PUBLISHED: Mapping[tuple[str, str], float] = {
    ("hotpotqa", "ircot"): 3.4,
    ("2wikimultihopqa", "ircot"): 4.4,
    ("musique", "ircot"): 4.1,
    ("nq", "ircot"): 2.8,
    ("squad", "ircot"): 2.7,
    ("trivia", "ircot"): 2.7,
}
"""Mean steps by set and arm in the files of AdaRAGUE (arXiv 2501.12835, Llama-3.1-8B-Instruct),
whose rows do not tell them."""
ALL = ""
"""The set of rows that name none."""


class OutcomeRow(Record):
    """One question, and what each arm did."""

    question: str
    id: str = ""
    set: str = ALL
    scores: dict[str, float]
    """By arm, from 0 to 1; an arm that was not tried is absent."""
    costs: dict[Unit, dict[str, float]] = Field(default_factory=dict)
    """By unit and arm; what is not known is absent."""
    usage: dict[str, Usage] = Field(default_factory=dict)
    """By arm, where its tokens are counted."""
    retrievals: dict[str, int] = Field(default_factory=dict)
    """Queries by arm."""
    draft: str | None = None
    """The closed-book answer."""
    reasoning: str | None = None
    """The closed-book reasoning before it."""
    signals: dict[str, float] = Field(default_factory=dict)
    prompts: str = ""
    """The set of prompts that it was answered with; empty if not known."""


class Cost(NamedTuple):
    """The cost of an arm that rows do not tell, in one set or in all."""

    arm: str
    value: float
    set: str | None = None
    """None holds for all sets."""


class Outcomes(Record):
    """Rows of one or more files, all with the same arms."""

    rows: tuple[OutcomeRow, ...]
    arms: tuple[str, ...]
    """The cheapest first, by mean cost."""
    unit: Unit
    """Of the costs; each row has one for each arm."""
    assumed: dict[str, str] = Field(default_factory=dict)
    """By arm, where its costs come from, if not from the rows."""
    left_out: int = 0
    """Rows that lack an arm."""

    @property
    def scores(self) -> Floats:
        """(row, arm)"""
        return np.array([[row.scores[arm] for arm in self.arms] for row in self.rows])

    @property
    def costs(self) -> Floats:
        """(row, arm)"""
        return np.array([[row.costs[self.unit][arm] for arm in self.arms] for row in self.rows])

    @property
    def sets(self) -> tuple[str, ...]:
        """In the order of their first rows."""
        return tuple(dict.fromkeys(row.set for row in self.rows))

    @property
    def prompts(self) -> tuple[str, ...]:
        """The sets of prompts that rows name."""
        return tuple(sorted({row.prompts for row in self.rows if row.prompts}))

    @property
    def distinct(self) -> "Outcomes":
        """Each question of a set once, by its first row: what is said twice is no more evidence."""
        first: dict[tuple[str, str], int] = {}
        for place, row in enumerate(self.rows):
            first.setdefault((row.set, row.question), place)
        return self.of(first.values())

    def of(self, places: Iterable[int]) -> "Outcomes":
        """Some of the rows."""
        return self.model_copy(update={"rows": tuple(self.rows[place] for place in places)})


def read(
    paths: Sequence[Path],
    *,
    unit: Unit = "steps",
    arms: Sequence[str] = (),
    costs: Sequence[Cost] = (),
    known: Mapping[tuple[str | None, str], float] | None = None,
    price: Price | None = None,
) -> Outcomes:
    """The rows of files that have a score and a cost of every arm.

    A cost is the row's own, else the one in `costs`, else, in steps, what the name of the arm tells
    (`STEPS_OF`), else the one in `known`, else, in steps, what AdaRAGUE reports (`PUBLISHED`).

    Args:
        arms: by default all that some row has.
        known: costs by set and arm, such as a policy has learned; the set None holds for all.
        price: of the model, for the money that rows do not tell.

    Raises:
        UsageError: a file cannot be read, a cost is not known, or no row has all arms.
        CorpusError: a line is no such row.
    """
    rows = [row for path in paths for row in _rows(path)]
    if price is not None:
        rows = [_paid(row, price) for row in rows]
    found = dict.fromkeys(arm for row in rows for arm in row.scores)
    for arm in arms:
        if arm not in found:
            raise UsageError(
                f"{_names(paths)}: no row has the arm {arm}; there are {', '.join(found)}"
            )
    wanted = tuple(arms) or tuple(found)
    whole = [row for row in rows if all(arm in row.scores for arm in wanted)]
    if not whole:
        raise UsageError(
            f"{_names(paths)}: no row has a score of every arm ({', '.join(wanted)}): "
            "name those to compare with --arms"
        )
    given = {(cost.set, cost.arm): cost.value for cost in costs}
    assumed: dict[str, str] = {}
    priced = tuple(_priced(row, wanted, unit, given, known or {}, assumed) for row in whole)
    made = Outcomes(
        rows=priced,
        arms=wanted,
        unit=unit,
        assumed=assumed,
        left_out=len(rows) - len(whole),
    )
    order = np.argsort(made.costs.mean(axis=0), kind="stable")
    return made.model_copy(update={"arms": tuple(wanted[place] for place in order)})


def questions(path: Path) -> list[OutcomeRow]:
    """The questions of a file of rows, which need no scores.

    Raises:
        UsageError: the file cannot be read.
        CorpusError: a line is no such row.
    """
    return _rows(path, scored=False)


def cost(text: str) -> Cost:
    """The cost that `ARM=N` or `SET:ARM=N` gives.

    Raises:
        UsageError: the text is not of this form.
    """
    name, equals, number = text.rpartition("=")
    within, colon, arm = name.rpartition(":")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not (equals and arm and 0 <= value < float("inf")):
        raise UsageError(f"--cost {text}: give ARM=N or SET:ARM=N, with N from 0 on")
    return Cost(arm, value, within if colon else None)


def _paid(row: OutcomeRow, price: Price) -> OutcomeRow:
    """The row with the money that its tokens and queries cost."""
    found = {
        arm: price.of(usage, queries=row.retrievals.get(arm, 0)) for arm, usage in row.usage.items()
    }
    money = {arm: value for arm, value in found.items() if value is not None}
    return row.model_copy(
        update={"costs": {**row.costs, "money": money | row.costs.get("money", {})}}
    )


def _priced(
    row: OutcomeRow,
    arms: Sequence[str],
    unit: Unit,
    given: Mapping[tuple[str | None, str], float],
    known: Mapping[tuple[str | None, str], float],
    assumed: dict[str, str],
) -> OutcomeRow:
    """The row with a cost of each arm."""
    costs = dict(row.costs.get(unit, {}))
    places = ((row.set, arm) for arm in arms if arm not in costs)
    for place, arm in places:
        in_steps = unit == "steps"
        sources: tuple[tuple[str | None, float | None], ...] = (
            (None, given.get((place, arm), given.get((None, arm)))),
            (None, STEPS_OF.get(arm) if in_steps else None),
            ("the policy's", known.get((place, arm), known.get((None, arm)))),
            ("AdaRAGUE's mean of the set", PUBLISHED.get((place, arm)) if in_steps else None),
        )
        source, value = next((each for each in sources if each[1] is not None), (None, None))
        if value is None:
            where = f" in {place}" if place else ""
            raise UsageError(
                f"{arm}'s cost in {unit} is not known{where}: give --cost {arm}=N, or rows with "
                f'"{unit}": {{"{arm}": N}}'
                + (", or their tokens and --model NAME, which has a price" * (unit == "money"))
            )
        costs[arm] = value
        if source:
            assumed[arm] = source
    return row.model_copy(update={"costs": {**row.costs, unit: costs}})


def _absent(value: object) -> object:
    """The value without its nulls."""
    if isinstance(value, dict):
        return {name: each for name, each in value.items() if each is not None}
    return value


def _listed(value: object) -> object:
    """A text as a list of one."""
    return [value] if isinstance(value, str) else value


_ByArm = Annotated[dict[str, Annotated[float, Field(ge=0)]], BeforeValidator(_absent)]


_Counts = Annotated[dict[str, Annotated[int, Field(ge=0)]], BeforeValidator(_absent)]


class _Line(BaseModel):
    """A line of the file, without its nulls."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, coerce_numbers_to_str=True)

    question: str = Field(min_length=1)
    id: str | int = ""
    dataset: str = ""
    set: str = ""
    answers: Annotated[list[str], BeforeValidator(_listed)] = []
    predictions: Annotated[dict[str, str], BeforeValidator(_absent)] = {}
    accurate: Annotated[
        dict[str, Annotated[float, Field(ge=0, le=1)]], BeforeValidator(_absent)
    ] = {}
    steps: _ByArm = {}
    tokens: _ByArm = {}
    seconds: _ByArm = {}
    money: _ByArm = {}
    input_tokens: _Counts = {}
    cached_tokens: _Counts = {}
    output_tokens: _Counts = {}
    retrievals: _Counts = {}
    draft: str | None = None
    closed_book_reasoning: str | None = None
    reasoning: str | None = None
    logprobs: list[Annotated[float, Field(le=1e-3)]] = []
    entropies: list[Annotated[float, Field(ge=-1e-3)]] = []
    signals: Annotated[dict[str, float], BeforeValidator(_absent)] = {}
    prompts: str = ""

    def row(self, *, scored: bool) -> OutcomeRow:
        """
        Args:
            scored: whether an arm must have a score.

        Raises:
            ValueError: no arm has a score.
        """
        judged = {
            arm: float(any(contains(text, gold) for gold in self.answers))
            for arm, text in self.predictions.items()
            if self.answers
        }
        scores = judged | self.accurate
        if scored and not scores:
            raise ValueError(
                "no arm has a score: give `accurate` by arm, or `answers` and `predictions` by arm"
            )
        usage = {
            arm: Usage(
                input_tokens=count,
                cached_tokens=min(count, self.cached_tokens.get(arm, 0)),
                output_tokens=self.output_tokens.get(arm, 0),
            )
            for arm, count in self.input_tokens.items()
        }
        counted: dict[str, float] = {arm: each.tokens for arm, each in usage.items()}
        units: dict[Unit, dict[str, float]] = {
            "steps": self.steps,
            "tokens": counted | self.tokens,
            "seconds": self.seconds,
            "money": self.money,
        }
        return OutcomeRow(
            question=self.question,
            id=str(self.id),
            set=self.set or self.dataset,
            scores=scores,
            costs={unit: by_arm for unit, by_arm in units.items() if by_arm},
            usage=usage,
            retrievals=self.retrievals,
            draft=self.predictions.get("none") if self.draft is None else self.draft,
            reasoning=self.closed_book_reasoning or self.reasoning,
            signals=confidence(self.logprobs, self.entropies) | self.signals,
            prompts=self.prompts,
        )


def _rows(path: Path, *, scored: bool = True) -> list[OutcomeRow]:
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(unreadable(path, error, "outcomes of arms")) from None
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(_line(line).row(scored=scored))
        except ValidationError as error:
            raise CorpusError(
                f"{path}, line {number}: {first(error, whole='the line')}; one line is an object "
                "with `question`, and `accurate`, or `answers` and `predictions`, by arm"
            ) from None
        except ValueError as error:
            raise CorpusError(f"{path}, line {number}: {error}") from None
    if not found:
        raise UsageError(f"{path} holds no rows")
    return found


def _line(text: str) -> _Line:
    """
    Raises:
        ValueError: the text is no JSON object, or not one of these.
    """
    try:
        found = json_value(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError("expected one JSON object a line")
    return _Line.model_validate(_absent(found))


def _names(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths))
