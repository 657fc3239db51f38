"""The options of commands that measure."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from hopscope.api import parts
from hopscope.api.appraiser import RULES
from hopscope.cli.options import code_options
from hopscope.cli.options.help import MEASURING
from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.literals import whole_number
from hopscope.tracing.meters import DEFAULT_METERS

ALL = "all"
NONE = "none"


def _meters(without: str) -> Any:
    return code_options.component(
        "--meter",
        metavar="METER",
        help="A meter: seper, seper_hard, grogu, semantic_entropy, gold_logprob or "
        f"gold_probability; repeatable. By default the first three{without}.",
        envvar="HOPSCOPE_METER",
        rich_help_panel=MEASURING,
    )


def _samples(default: str) -> Any:
    return typer.Option(
        min=1,
        help=f"Answers sampled for each belief{default}.",
        envvar="HOPSCOPE_SAMPLES",
        rich_help_panel=MEASURING,
    )


def _seed(default: str) -> Any:
    return typer.Option(
        help=f"Seed of all sampling{default}.",
        envvar="HOPSCOPE_SEED",
        rich_help_panel=MEASURING,
    )


Golds = Annotated[
    list[str] | None,
    typer.Option(
        "--gold",
        metavar="A",
        help="A right answer; repeat for aliases. SePer needs one. [env var: HOPSCOPE_GOLD, one a "
        "line]",
        rich_help_panel=MEASURING,
    ),
]
Samples = Annotated[int, _samples("")]
OwnSamples = Annotated[int | None, _samples("; by default as many as in the first measurement")]
Seed = Annotated[int, _seed("")]
OwnSeed = Annotated[int | None, _seed("; by default the run's")]
Meters = Annotated[list[str] | None, _meters("")]
MetersOrNone = Annotated[list[str] | None, _meters("; none only answers")]
Rules = Annotated[
    list[str] | None,
    code_options.component(
        "--rule",
        metavar="RULE",
        help="A rule that shares the gain: trajectory, solo, leave-one-out, shapley or all; "
        "repeatable. By default all but solo.",
        envvar="HOPSCOPE_RULE",
        rich_help_panel=MEASURING,
    ),
]
OwnReader = Annotated[
    str | None,
    code_options.component(
        "--reader",
        metavar="READER",
        help="The reader that measures; by default the experiment's, else tiny.",
        envvar="HOPSCOPE_READER",
    ),
]
OwnEntailment = Annotated[
    str | None,
    code_options.component(
        "--entailment",
        metavar="NAME",
        help="The judge of equal meaning; by default the experiment's, or the embedded one "
        "that first measured the run, else lexical.",
        envvar="HOPSCOPE_ENTAILMENT",
    ),
]
MeterOptions = Annotated[
    list[str] | None,
    code_options.component(
        "-o",
        metavar="KEY=VALUE",
        help="An option of a meter or rule, as in seper.weight=uniform; repeatable; see "
        "`hopscope list meters` and `list credit`. [env var: HOPSCOPE_METER_OPTIONS, one "
        "a line]",
        rich_help_panel=MEASURING,
    ),
]
Presets = Annotated[
    list[str] | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="A named set of options of meters and workflows, such as a paper's settings; see "
        "`hopscope list presets`. Your own -o precede it; repeatable. [env var: "
        "HOPSCOPE_PRESETS, one a line]",
        rich_help_panel=MEASURING,
    ),
]


Prompts = Annotated[
    str | None,
    typer.Option(
        "--prompts",
        metavar="DIR",
        help="A folder of prompts in place of the default ones, or the name of a set that is "
        "shipped; `hopscope new prompts DIR` writes one to edit.",
        envvar="HOPSCOPE_PROMPTS",
        rich_help_panel=MEASURING,
    ),
]
OwnPrompts = Annotated[
    str | None,
    typer.Option(
        "--prompts",
        metavar="DIR",
        help="A folder of prompts, or a set that is shipped, for the meters; by default the "
        "experiment's, or those that first measured the run. Runs keep theirs.",
        envvar="HOPSCOPE_PROMPTS",
        rich_help_panel=MEASURING,
    ),
]
JudgePrompts = Annotated[
    str | None,
    typer.Option(
        "--prompts",
        metavar="DIR",
        help="A folder of prompts, or a set that is shipped, for metrics that ask a model.",
        envvar="HOPSCOPE_PROMPTS",
        rich_help_panel=MEASURING,
    ),
]


def presets(given: Sequence[str] | None) -> tuple[str, ...]:
    """The names of presets."""
    return tuple(given or parts.lines("HOPSCOPE_PRESETS"))


def meters(given: Sequence[str] | None) -> tuple[str, ...]:
    """The names of meters, with `_` for `-`; `none` alone is no meter."""
    chosen = tuple(dict.fromkeys(_plain(name) for name in given or DEFAULT_METERS))
    return () if chosen == (NONE,) else chosen


def rules(given: Sequence[str] | None) -> tuple[str, ...]:
    """The names of rules, with `_` for `-`; `all` is every rule."""
    from hopscope.runtime import components
    from hopscope.tracing import credit

    chosen = tuple(dict.fromkeys(_plain(name) for name in given or RULES))
    return tuple(components.names(credit)) if ALL in chosen else chosen


def _plain(name: str) -> str:
    from hopscope.runtime import code_files

    return name if code_files.is_code(name) else name.replace("-", "_")


def credit_budget(text: str) -> int:
    """The calls of `--credit-budget calls=N`.

    Raises:
        UsageError: the text is something else.
    """
    key, _, calls = text.partition("=")
    number = whole_number(calls)
    if key != "calls" or number is None or number < 0:
        raise UsageError(f"--credit-budget {text}: give the calls of a run, as in calls=40")
    return number
