"""The stored coalition values of one measurement of a run, as games that rules can share.

In mode `frozen` with the counterfactuals `empty` and `leave-out`, the evidence of a coalition
follows from the run's record, so that a value is found by its evidence, whichever game measured
it. Random stand-ins and repeated runs are not stored: there a value is found by its game and
coalition.
"""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from hopscope.runtime import components
from hopscope.runtime.types import (
    Credit,
    GameValues,
    MeasuredAnswers,
    Measurement,
    Passage,
    Provenance,
    Question,
    Run,
)
from hopscope.tracing import credit
from hopscope.tracing.appraisal import share
from hopscope.tracing.credit import shapley
from hopscope.tracing.credit.shapley import Shapley
from hopscope.tracing.games.coalitions import (
    Coalitions,
    Content,
    EvidenceValues,
    Game,
    content,
)
from hopscope.tracing.games.frozen import (
    Counterfactual,
    FrozenGame,
    over_all_passages,
    over_passages,
    over_steps,
)
from hopscope.tracing.games.recorded import RecordedGame, known
from hopscope.tracing.games.recorded_answers import answers
from hopscope.tracing.games.rule import CreditRule
from hopscope.tracing.meters import DEFAULT_METERS

Players = Literal["steps", "passages"]


@dataclass(frozen=True)
class RecordedMeter:
    """A meter that measures nothing new."""

    name: str
    comparable_baseline: bool
    reason: str
    """Why evidence without a stored value is unmeasured."""
    cut: Mapping[Content, tuple[str, ...]]
    """Keys of the passages that the reader did not see, by the evidence."""

    def measure(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Measurement]:
        return [Measurement(value=None, reason=self.reason) for _ in evidences]

    def unseen(self, evidence: tuple[Passage, ...]) -> tuple[str, ...]:
        return self.cut.get(content(evidence), ())


class Recall:
    """One measurement of a run."""

    def __init__(
        self,
        run: Run,
        provenance: Provenance,
        games: Iterable[GameValues],
        *,
        options: Sequence[str] = ("--rule", "shapley"),
    ) -> None:
        """
        Args:
            games: stored values of the run; those with other settings are left out. Options of
                rules are no such settings: values do not depend on them.
            options: of the command that measures what is missing.
        """
        self.run = run
        self.provenance = provenance
        self._options = tuple(options)
        # `measured_by` looks at all installed packages, and equal settings need no such look.
        self._games = [
            game
            for game in games
            if game.provenance == provenance
            or measured_by(game.provenance) == measured_by(provenance)
        ]

    def asking(self, *options: str) -> "Recall":
        """The same, but the command that measures what is missing has these options."""
        return Recall(self.run, self.provenance, self._games, options=options)

    @property
    def meters(self) -> tuple[str, ...]:
        """The meters with stored values, in the order of their measurement."""
        return tuple(dict.fromkeys(game.meter for game in self._games))

    @property
    def rebuildable(self) -> bool:
        """Whether the evidence of every coalition follows from the run's record."""
        return not self.repeats and self.provenance.settings.get("counterfactual") != "random"

    @property
    def repeats(self) -> bool:
        """Whether the workflow ran again for each coalition."""
        return self.provenance.settings.get("mode") == "replay"

    @cached_property
    def counterfactual(self) -> Counterfactual:
        """That of the measurement, without the stand-ins."""
        left_out = self.provenance.settings.get("counterfactual") == "leave-out"
        return Counterfactual("leave-out" if left_out else "empty")

    def values(self, meter: str) -> EvidenceValues:
        """The stored values of a meter."""
        return EvidenceValues(self.run.question, self._recorded(meter), self.known(meter))

    def games(self, meter: str, over: Players) -> list[Game]:
        """The game of the steps, or those of the passages of each step."""
        if over == "steps":
            return [self._game(meter, over_steps(self.run, self.counterfactual))]
        inside = [over_passages(self.run, s.index, self.counterfactual) for s in self.run.steps]
        return [self._game(meter, game) for game in inside if game is not None]

    def all_passages(self, meter: str) -> Game:
        """The game among all passages of the run."""
        return self._game(meter, over_all_passages(self.run, self.counterfactual))

    def coalitions(self, meter: str, over: Players) -> list[Coalitions]:
        values = self.values(meter)
        return [Coalitions(game, values) for game in self.games(meter, over)]

    def sampling(self, coalitions: Coalitions) -> Shapley:
        """The Shapley rule whose coalitions have stored values, or else the one of the settings."""
        meter = coalitions.values.meter.name
        settings = [self.provenance, *(game.provenance for game in self._of(meter))]
        rules = [_shapley(each) for each in settings]
        known = self.known(meter)
        complete = (
            rule
            for rule in rules
            if all(coalitions.key(each) in known for each in rule.needs(coalitions.players))
        )
        return next(complete, rules[0])

    def share(self, rules: Sequence[CreditRule], over: Players) -> list[Credit]:
        """Credits by these rules, equal to those that the measurement would give."""
        return [
            found
            for meter in self.meters
            for found in share(
                self.run,
                [self._recorded(meter)],
                rules,
                self.provenance,
                games=self.games(meter, over),
                known={meter: self.known(meter)},
            ).credits
        ]

    def command(self, *options: str) -> str:
        """The command that measures more with the settings of this measurement."""
        words = ["hopscope", "credit", self.run.id[:12], *options]
        settings = self.provenance.settings
        if not {*self.meters} <= {*DEFAULT_METERS}:
            words += [word for meter in self.meters for word in ("--meter", meter)]
        if "samples" in settings:
            words += ["--samples", str(settings["samples"])]
        if self.provenance.seed != self.run.seed:
            words += ["--seed", str(self.provenance.seed)]
        for name, default in (("mode", "frozen"), ("counterfactual", "empty")):
            if (value := settings.get(name, default)) != default:
                words += [f"--{name}", str(value)]
        golds = settings.get("gold")
        for gold in golds if isinstance(golds, list) else ():
            words += ["--gold", str(gold)]
        for key, value in settings.items():
            if "." in key:
                words += ["-o", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
        return f"`{shlex.join(words)}` with the reader {self.provenance.reader}"

    def _game(self, meter: str, frozen: FrozenGame) -> Game:
        if self.rebuildable:
            return frozen
        stored = self._stored(meter, frozen)
        none = GameValues(
            run_id=self.run.id,
            provenance=self.provenance,
            meter=meter,
            step=frozen.step,
            keys=frozen.keys,
            members=frozen.members,
            players=frozen.players,
            measured=0,
            values=(),
        )
        return RecordedGame(stored or none, frozen, self._reason(stored, frozen))

    def _stored(self, meter: str, frozen: FrozenGame) -> GameValues | None:
        same = (g for g in self._of(meter) if (g.step, g.keys) == (frozen.step, frozen.keys))
        return next(same, None)

    def _of(self, meter: str) -> list[GameValues]:
        return [game for game in self._games if game.meter == meter]

    def known(self, meter: str) -> dict[Content, Measurement]:
        """The stored values of a meter by the hash of their evidence."""
        return known(self._of(meter))

    def answers(self, meter: str) -> dict[Content, MeasuredAnswers]:
        """The stored answers behind a meter's values, by the hash of their evidence."""
        return answers(self._of(meter))

    def _recorded(self, meter: str) -> RecordedMeter:
        games = self._of(meter)
        cut = {v.evidence: v.unseen for game in games for v in game.values if v.evidence}
        bounded = next((game for game in games if game.measured > len(game.values)), None)
        comparable = all(game.comparable for game in games)
        return RecordedMeter(meter, comparable, self._reason(bounded, None), cut)

    def _reason(self, stored: GameValues | None, frozen: FrozenGame | None) -> str:
        over = ("--over", "passages") if frozen is not None and frozen.step is not None else ()
        command = self.command(*self._options, *over)
        if stored is None or stored.measured == len(stored.values):
            return f"no value of this coalition is stored: {command} measures it"
        return (
            f"of {stored.measured:,} coalitions measured {len(stored.values):,} are stored, and "
            f"this needs another: {command} measures it"
        )


def _shapley(provenance: Provenance) -> Shapley:
    """The rule with the settings' options."""
    prefix = "shapley."
    options: dict[str, Any] = {
        key.removeprefix(prefix): value
        for key, value in provenance.settings.items()
        if key.startswith(prefix)
    }
    rule = shapley.build(**{"seed": provenance.seed, **options})
    assert isinstance(rule, Shapley)
    return rule


def measured_by(provenance: Provenance) -> tuple[object, ...]:
    """The settings that coalition values depend on: all but options of rules."""
    rules = set(components.names(credit))
    kept = {
        key: value
        for key, value in provenance.settings.items()
        if "." not in key or key.partition(".")[0] not in rules
    }
    return provenance.reader, provenance.entailment, provenance.seed, kept
