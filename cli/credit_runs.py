"""What `hopscope credit` does to each stored run that it is asked about."""

import json as jsonlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from hopscope.cli import credit_games, render, retrieval, wiring
from hopscope.cli.appraise import METERS, RULES, VARIANTS, Appraised, Appraiser, Measuring
from hopscope.cli.credit_games import Against, Mode, Over

if TYPE_CHECKING:
    from hopscope.cli.stored import Arm
    from hopscope.runtime.ports import Retriever
    from hopscope.runtime.types import Run
    from hopscope.store.store import Store
    from hopscope.tracing.coalitions import Game
    from hopscope.tracing.games import Counterfactual, FrozenGame


EMBEDDED = ("lexical", "equivalence")
"""Entailments that come with the package."""


@dataclass(frozen=True)
class Wanted:
    """How to share, whichever run."""

    rules: Sequence[str]
    meters: Sequence[str]
    counterfactual: Against
    mode: Mode
    over: Over
    corpus: str
    reader: str
    entailment: str
    samples: int
    seed: int | None
    """None takes each run's own."""
    options: Mapping[str, str]
    golds: tuple[str, ...] = ()
    """The right answers to measure against; without any each run's own."""

    def measuring(self, seed: int) -> Measuring:
        return Measuring(
            samples=self.samples,
            seed=self.seed if self.seed is not None else seed,
            options=self.options,
            meters=self.meters,
            rules=self.rules,
        )

    @property
    def needs_corpus(self) -> bool:
        return self.counterfactual is Against.random or self.mode is Mode.replay


class Given(NamedTuple):
    """What the command line says of how to measure; None where it leaves it to `Defaults`."""

    rules: Sequence[str] | None
    meters: Sequence[str] | None
    corpus: str | None
    reader: str | None
    thinking: str | None
    entailment: str | None
    samples: int | None
    seed: int | None
    options: Mapping[str, str]
    counterfactual: Against
    mode: Mode
    over: Over
    golds: tuple[str, ...]

    def wanted(self, of: "Defaults") -> Wanted:
        rules, meters = self.rules or of.rules, self.meters or of.meters
        owners = {*rules, *meters, *(VARIANTS[name][0] for name in meters if name in VARIANTS)}
        kept = {k: text for k, text in of.options.items() if k.partition(".")[0] in owners}
        return Wanted(
            rules=rules,
            meters=meters,
            counterfactual=self.counterfactual,
            mode=self.mode,
            over=self.over,
            corpus=self.corpus or of.corpus,
            reader=wiring.reader_or_own(self.reader, of.reader, self.thinking),
            entailment=self.entailment or of.entailment,
            samples=self.samples or of.samples,
            seed=self.seed,
            options={**kept, **self.options},
            golds=self.golds,
        )


class Defaults(NamedTuple):
    """How runs were measured when they were made: what `hopscope credit` does unless told
    otherwise."""

    rules: tuple[str, ...] = RULES
    meters: tuple[str, ...] = METERS
    corpus: str = wiring.HOPLAND
    reader: str = wiring.TINY
    entailment: str = "lexical"
    samples: int = 10
    options: Mapping[str, str] = {}

    @classmethod
    def of_experiment(cls, settings: Mapping[str, Any]) -> "Defaults":
        known = {name: settings[name] for name in cls._fields if settings.get(name)}
        for name in ("rules", "meters"):
            if name in known:
                known[name] = tuple(known[name])
        return cls(**known)

    @classmethod
    def of_run(cls, store: "Store", run_id: str) -> "Defaults":
        """Of its first appraisal what that tells by name: samples, options, and an entailment that
        needs no model from elsewhere."""
        first = next(iter(store.appraisals(run_id)), None)
        if first is None:
            return cls()
        settings, entailment = first.provenance.settings, first.provenance.entailment or ""
        options = {
            key: value if isinstance(value, str) else jsonlib.dumps(value)
            for key, value in settings.items()
            if "." in key
        }
        samples, named = settings.get("samples"), entailment.partition(":")[0]
        return cls(
            samples=samples if isinstance(samples, int) else cls().samples,
            entailment=named if named in EMBEDDED else cls().entailment,
            options=options,
        )


class Prepared(NamedTuple):
    """What is to be measured of a run, and how."""

    against: "Counterfactual"
    games: "list[FrozenGame]"
    settings: dict[str, Any]
    retriever: "Retriever | None"


class Crediting:
    """Loads the models once and credits one run after the other."""

    def __init__(self, wanted: Wanted) -> None:
        """
        Raises:
            HopscopeError: what was asked for is not possible for any run.
        """
        self._wanted = wanted
        wanted.measuring(0).parse()  # tells what is wrong before anything is loaded
        retrieval.parse(wanted.corpus)
        self._judge = wiring.entailment(wanted.entailment)
        render.progress("loading the reader")
        self._model = wiring.reader(wanted.reader)
        self._appraisers: dict[int, Appraiser] = {}
        self._corpora: dict[int, Retriever] = {}
        self.appraiser(0)

    def appraiser(self, seed: int) -> Appraiser:
        """Meters and rules for a run of this seed; runs of one seed share what is remembered."""
        measuring = self._wanted.measuring(seed)
        if measuring.seed not in self._appraisers:
            self._appraisers[measuring.seed] = Appraiser(self._model, self._judge, measuring)
        return self._appraisers[measuring.seed]

    def credit(self, run: "Run") -> Appraised:
        """
        Raises:
            HopscopeError: it cannot be done for this run.
        """
        wanted, appraiser = self._wanted, self.appraiser(run.seed)
        prepared = self._prepared(run)
        games: Sequence[Game] = prepared.games
        if self._model.name != run.reader and wanted.mode is Mode.frozen:
            render.note(f"{self._model.name} measures what {run.reader or 'another'} has read")
        if wanted.golds:
            question = run.question.model_copy(update={"answers": wanted.golds})
            run = run.model_copy(update={"question": question})
        if wanted.mode is Mode.replay and prepared.retriever is not None:
            games = credit_games.replayed(
                run, games, prepared.against, appraiser, self._judge, prepared.retriever
            )
        render.progress("measuring")
        return appraiser.appraise(run, games=games, settings=prepared.settings)

    def known(self, store: "Store", run: "Run") -> Appraised | None:
        """What is stored of a run that was measured in the same way; None where anything of it is
        missing.

        Raises:
            HopscopeError: it cannot be measured in that way.
        """
        from hopscope.tracing.appraisal import shares

        appraiser, prepared = self.appraiser(run.seed), self._prepared(run)
        meters = [meter.name for meter in appraiser.meters]
        due = shares(run.question, appraiser.meters, appraiser.rules, prepared.games)
        own = appraiser.provenance(prepared.settings).settings_hash
        credits = {
            (c.step, c.passage, c.rule, c.meter): c
            for c in store.credits(run.id)
            if c.provenance.settings_hash == own
        }
        measured = [a for a in store.appraisals(run.id) if a.provenance.settings_hash == own]
        if not measured or not due <= credits.keys():
            return None
        levels = self._wanted.over is Over.steps
        found = [
            credit
            for share, credit in credits.items()
            if share in due or (levels and credit.rule == "level" and credit.meter in meters)
        ]
        return Appraised(found, measured[-1])

    def _prepared(self, run: "Run") -> "Prepared":
        wanted, appraiser = self._wanted, self.appraiser(run.seed)
        retriever = self._corpus(run, appraiser) if wanted.needs_corpus else None
        seed = wanted.measuring(run.seed).seed
        against = credit_games.against(wanted.counterfactual, run, retriever, seed)
        settings: dict[str, Any] = {
            "counterfactual": wanted.counterfactual.value,
            "mode": wanted.mode.value,
        }
        if wanted.counterfactual is Against.random and retriever is not None:
            settings["corpus"] = retriever.name
        if wanted.golds:
            settings["gold"] = list(wanted.golds)
        games = credit_games.games(wanted.over, run, against)
        return Prepared(against, games, settings, retriever)

    def _corpus(self, run: "Run", appraiser: Appraiser) -> "Retriever":
        """The run's; retrievers may draw by the run's seed and ask its reader."""
        if run.seed not in self._corpora:
            render.progress("loading the corpus")
            self._corpora[run.seed] = retrieval.retriever(
                self._wanted.corpus, appraiser.reader, seed=run.seed
            )
        credit_games.check_corpus(self._corpora[run.seed], self._wanted.corpus, run)
        return self._corpora[run.seed]


class Creditings:
    """One `Crediting` for each way of measuring that the runs' defaults lead to."""

    def __init__(self, store: "Store", given: Given) -> None:
        self._store = store
        self._given = given
        self._of_experiments: dict[str, Wanted] = {}
        self._made: list[tuple[Wanted, Crediting]] = []

    def of(self, run_id: str, arm: "Arm | None") -> Crediting:
        """
        Raises:
            HopscopeError: what was asked for is not possible for any run.
        """
        wanted = self._wanted(run_id, arm)
        known = next((made for before, made in self._made if before == wanted), None)
        if known is None:
            known = Crediting(wanted)
            self._made.append((wanted, known))
        return known

    def _wanted(self, run_id: str, arm: "Arm | None") -> Wanted:
        if arm is None:
            return self._given.wanted(Defaults.of_run(self._store, run_id))
        if arm.experiment not in self._of_experiments:
            settings = self._store.experiments.find(arm.experiment).settings
            wanted = self._given.wanted(Defaults.of_experiment(settings))
            self._of_experiments[arm.experiment] = wanted
        return self._of_experiments[arm.experiment]
