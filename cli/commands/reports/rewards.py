"""`hopscope rewards`: write the rewards of the turns of runs for those who train agents."""

import json as jsonlib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopscope.api import parts, stored
from hopscope.api.credit_games import CounterfactualName, Mode, Over
from hopscope.api.credit_runs import CreditArguments
from hopscope.api.views import render
from hopscope.cli.options import code_options, measuring
from hopscope.cli.options.help import MEASURING, PLACES, SELECTION
from hopscope.cli.options.models import ThinkingSpec
from hopscope.cli.options.places import Database
from hopscope.cli.options.written import Overwrite, check_free
from hopscope.runtime import specs
from hopscope.runtime.texts.counting import counted
from hopscope.tracing import proxies

if TYPE_CHECKING:
    from pydantic import JsonValue

    from hopscope.tracing.rewards.formats import RewardFormat
    from hopscope.tracing.rewards.turns import TurnRewards

BATCH = 256
"""Rollouts of a file that are scored together."""
REASONS = 5
"""The largest number of reasons printed."""
KINDS = 1_000
"""The most different reasons that are counted."""
HELD = 10_000
"""The most unmeasured runs that are held back to write nothing if no run is measured."""

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN|EXPERIMENT|FILE",
        help="Names of experiments, ids of runs or their beginnings, or a file of rollouts.",
    ),
]


def rewards(
    runs: Runs,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            envvar="HOPSCOPE_REWARDS_FORMAT",
            help="The trainer that reads the file: trl, verl, prime-rl or areal; jsonl has all "
            "that is known.",
        ),
    ] = "jsonl",
    meter: Annotated[
        str,
        code_options.component(
            "--meter",
            metavar="METER",
            envvar="HOPSCOPE_REWARDS_METER",
            help="The meter of the belief; see `hopscope list meters`.",
            rich_help_panel=MEASURING,
        ),
    ] = "seper",
    rule: Annotated[
        str,
        code_options.component(
            "--rule",
            metavar="RULE",
            envvar="HOPSCOPE_REWARDS_RULE",
            help="The rule that shares the gain: trajectory, shapley or leave-one-out.",
            rich_help_panel=MEASURING,
        ),
    ] = "trajectory",
    reader: Annotated[
        str | None,
        code_options.component(
            "--reader",
            metavar="READER",
            envvar="HOPSCOPE_REWARDS_READER",
            help="Measure the runs with this reader, as `hopscope credit` does, unless that is "
            "done. By default nothing is measured: stored credits are read.",
        ),
    ] = None,
    thinking: ThinkingSpec = None,
    entailment: measuring.OwnEntailment = None,
    samples: measuring.OwnSamples = None,
    seed: measuring.OwnSeed = None,
    option: measuring.MeterOptions = None,
    read_as: Annotated[
        str,
        typer.Option(
            "--read-as",
            metavar="NAME",
            envvar="HOPSCOPE_REWARDS_READ_AS",
            help="The format of a file of rollouts, one of `hopscope list formats`; auto finds it.",
            rich_help_panel=SELECTION,
        ),
    ] = "auto",
    gold: Annotated[
        Path | None,
        typer.Option(
            "--gold",
            metavar="FILE",
            envvar="HOPSCOPE_REWARDS_GOLD",
            help="Right answers of the rollouts in a file: JSON lines with question or id, and "
            "answers.",
            rich_help_panel=PLACES,
        ),
    ] = None,
    file: code_options.Files = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            envvar="HOPSCOPE_REWARDS_OUT",
            help="The file to write; by default stdout.",
            rich_help_panel=PLACES,
        ),
    ] = None,
    overwrite: Overwrite = False,
    db: Database = None,
) -> None:
    """Write the reward of each search of runs, for those who train search agents.

    A reward is a share of the gain in belief in the gold answer. An experiment that was measured
    needs no model; a file of rollouts needs --reader, and its rewards are written in its order and
    not stored. --thinking, --entailment, --samples, --seed and -o go with --reader. Rewards that
    were not measured are null; if a whole run was not, the exit code is 1.
    """
    from hopscope.api.turn_rewards import scoring
    from hopscope.api.turn_rewards import stored as of_stored
    from hopscope.runtime.errors import UsageError
    from hopscope.store.store import Store

    sharing = scoring.checked_rule(rule)
    [named] = measuring.meters([meter])
    writer = _writer(form)
    if writer.levels and not sharing.telescopes:
        raise UsageError(
            f"{form} takes levels, and shares by {rule} do not sum to the outcome, so there are "
            "none: choose --rule trajectory or shapley"
        )
    if out is not None:
        check_free([out], overwrite=overwrite)
    tally = _Tally(hint=reader is None)
    if _is_file(runs[0], db):
        if reader is None or len(runs) > 1:
            raise UsageError(f"{runs[0]} is a file of rollouts: name it alone, and give --reader")
        scored = _of_file(
            Path(runs[0]),
            read_as,
            gold,
            reader=parts.thoughtful(reader, thinking),
            meter=named,
            rule=sharing,
            entailment=entailment or "lexical",
            samples=samples or 10,
            seed=seed or 0,
            options=specs.pairs(option or code_options.lines("HOPSCOPE_METER_OPTIONS")),
        )
        _write(writer.lines(tally.counted(scored)), out)
    else:
        with Store.open(db, create=False, reading=reader is None) as store:
            ids = stored.ids(store, runs)
            if reader is None:
                found = of_stored.known(store, ids, meter=named, rule=sharing)
            else:
                given = CreditArguments(
                    rules=(sharing,),
                    meters=(named,),
                    corpus=None,
                    reader=reader,
                    thinking=thinking,
                    entailment=entailment,
                    samples=samples,
                    seed=seed,
                    options=specs.pairs(option or code_options.lines("HOPSCOPE_METER_OPTIONS")),
                    counterfactual=CounterfactualName.empty,
                    mode=Mode.frozen,
                    over=Over.steps,
                    golds=(),
                )
                found = of_stored.measured(store, ids, given, meter=named, rule=sharing)
            _write(writer.lines(tally.counted(found)), out)
    render.progress("")
    tally.tell()
    if tally.missing:
        raise typer.Exit(1)


def _writer(form: str) -> "RewardFormat":
    """
    Raises:
        UsageError: there is no such format.
    """
    from hopscope.runtime import components
    from hopscope.runtime.errors import UsageError
    from hopscope.tracing.rewards import formats

    names = {name.replace("_", "-"): name for name in components.names(formats)}
    name = names.get(form.replace("_", "-"))
    if name is None:
        raise UsageError(f"--format {form}: choose from {', '.join(names)}")
    writer: RewardFormat = components.load(formats, name).build()
    return writer


def _is_file(name: str, db: str | None) -> bool:
    """Whether a file of this name is to be read.

    Raises:
        UsageError: it is the name of a file, but there is none, nor an experiment of that name.
    """
    from hopscope.runtime.errors import MissingDatabaseError, UsageError
    from hopscope.store.importers.importing import SUFFIXES
    from hopscope.store.store import Store

    path = Path(name)
    if path.is_file():
        return True
    if path.suffix.lower() not in SUFFIXES and len(path.parts) < 2:
        return False
    try:
        with Store.open(db, create=False, reading=True) as store:
            if store.experiments.known(name) is not None:
                return False
    except MissingDatabaseError:
        pass
    what = "is a folder: name one file of rollouts" if path.is_dir() else "there is no such file"
    raise UsageError(f"{name}: {what}")


def _of_file(
    path: Path, format: str, gold: Path | None, *, reader: str, **how: Any
) -> "Iterator[TurnRewards]":
    """The rewards of a file's rollouts, a batch at a time."""
    from hopscope.api import given
    from hopscope.api.turn_rewards import rollouts, scoring
    from hopscope.store.importers.golds import Golds

    golds = None if gold is None else Golds.read(gold)
    read = rollouts.of_file(path, format, golds)
    model = None
    while batch := list(islice(read, BATCH)):
        model = model or given.reader(given.named(reader))
        yield from scoring.rewards(batch, reader=model, **how)


class _Tally:
    """Counts what was measured."""

    def __init__(self, *, hint: bool) -> None:
        """
        Args:
            hint: says how runs without credits are measured.
        """
        self.runs = self.turns = self.missing = 0
        self._reasons: Counter[str] = Counter()
        self._measured: dict[str, Counter[str]] = {}
        """The runs by the reader that ran, by the reader that measured."""
        self._hint = "; give --reader to measure them" if hint else ""

    def counted(self, found: "Iterable[TurnRewards]") -> "Iterator[TurnRewards]":
        """The same rewards, none before the first run that was measured or the first 10,000.

        Raises:
            UsageError: no run was measured.
        """
        from hopscope.runtime.errors import UsageError

        before: list[TurnRewards] = []
        for each in found:
            self.runs += 1
            self.turns += len(each.turns)
            self.missing += each.provenance is None
            if each.provenance is not None:
                self._measured.setdefault(each.provenance.reader, Counter())[each.ran] += 1
            counted = each.reason in self._reasons or len(self._reasons) < KINDS
            if each.reason is not None and counted:
                self._reasons[each.reason] += 1
            before.append(each)
            if self.missing < self.runs or len(before) == HELD:
                yield from before
                before.clear()
        if self.missing == self.runs:
            raise UsageError(f"nothing is measured: {next(iter(self._reasons))}{self._hint}")

    def tell(self) -> None:
        render.note(f"{counted(self.turns, 'turn')} of {counted(self.runs, 'run')}")
        for reader, ran in self._measured.items():
            if remark := proxies.told_of_runs(ran, reader):
                render.note(render.plain(remark))
        for reason, count in self._reasons.most_common(REASONS):
            render.note(
                f"{counted(count, 'run lacks', 'runs lack')} a reward: {render.plain(reason)}"
            )
        if self.missing:
            render.note(f"{counted(self.missing, 'run is', 'runs are')} not measured{self._hint}")


def _write(lines: "Iterable[JsonValue]", out: Path | None) -> None:
    if out is None:
        for line in lines:
            render.say(jsonlib.dumps(line, allow_nan=False))
        return
    from hopscope.lab.export.sheets import whole

    with whole(out) as unfinished, unfinished.open("w", encoding="utf-8") as file:
        for line in lines:
            print(jsonlib.dumps(line, ensure_ascii=False, allow_nan=False), file=file)
