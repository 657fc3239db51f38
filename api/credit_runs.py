"""Measures stored runs again with chosen settings, as `hopscope credit` does."""

import json as jsonlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from hopscope.api import credit_games, given, parts, retrieval
from hopscope.api.appraiser import RULES, Appraiser, Measuring
from hopscope.api.credit_games import CounterfactualName, Mode, Over
from hopscope.api.given import EntailmentPart, ReaderPart, RetrieverPart
from hopscope.api.parts import PROMPTS
from hopscope.api.presets import Presets
from hopscope.api.views.credit_costs import CreditCost
from hopscope.runtime import code_files
from hopscope.runtime.errors import UsageError
from hopscope.tracing.meters import DEFAULT_METERS, VARIANTS
from hopscope.tracing.proxies import told
from hopscope.tracing.reports.appraised import Appraised

if TYPE_CHECKING:
    from hopscope.runtime.budget.prices import Prices
    from hopscope.runtime.ports import Retriever
    from hopscope.runtime.types import GameValues, Run
    from hopscope.store.store import Store
    from hopscope.tracing.games.coalitions import Game
    from hopscope.tracing.games.frozen import Counterfactual, FrozenGame

_log = logging.getLogger(__name__)

EMBEDDED = ("lexical", "equivalence")
"""Entailments that come with the package."""


@dataclass(frozen=True)
class CreditSettings:
    """The settings of a measurement, for any run."""

    rules: Sequence[str]
    meters: Sequence[str]
    counterfactual: CounterfactualName
    mode: Mode
    over: Over
    corpus: RetrieverPart
    reader: ReaderPart
    entailment: EntailmentPart
    samples: int
    seed: int | None
    """None: each run's own."""
    options: Mapping[str, str]
    golds: tuple[str, ...] = ()
    """The right answers; if empty, each run's own."""
    calls: int | None = None
    """The credit budget of each run and meter, in replies; None for no limit."""

    def __post_init__(self) -> None:
        """Raises UsageError for settings that exclude each other."""
        if self.calls is not None and self.calls < 1:
            raise UsageError(f"a credit budget of {self.calls} calls: give 1 or more")
        if self.calls is not None and self.mode is Mode.replay:
            raise UsageError(
                "a credit budget counts replies to evidence, and mode replay runs the workflow "
                "again: give --mode frozen, or leave the budget out"
            )

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
        return self.counterfactual is CounterfactualName.random or self.mode is Mode.replay


class CreditArguments(NamedTuple):
    """The settings given on the command line; None for those left to `Defaults`."""

    rules: Sequence[str] | None
    meters: Sequence[str] | None
    corpus: str | None
    reader: str | None
    thinking: str | None
    entailment: str | None
    samples: int | None
    seed: int | None
    options: Mapping[str, str]
    counterfactual: CounterfactualName
    mode: Mode
    over: Over
    golds: tuple[str, ...]
    presets: Presets = Presets()
    calls: int | None = None

    def wanted(self, of: "Defaults") -> CreditSettings:
        rules, meters = self.rules or of.rules, self.meters or of.meters
        owners = {*rules, *meters, *(VARIANTS[name][0] for name in meters if name in VARIANTS)}
        owners = set(map(code_files.stem, owners))
        self.presets.check(meters=meters, workflows=())
        kept = {k: text for k, text in of.options.items() if k.partition(".")[0] in owners}
        presets = self.presets
        if not presets.prompts and not any(k.partition(".")[2] == PROMPTS for k in kept):
            presets = replace(presets, prompts=parts.prompts_of(self.reader))
        if self.presets.prompts:  # also where the set has the default prompt of the meters
            kept = {k: text for k, text in kept.items() if k.partition(".")[2] != PROMPTS}
        return CreditSettings(
            rules=rules,
            meters=meters,
            counterfactual=self.counterfactual,
            mode=self.mode,
            over=self.over,
            corpus=self.corpus or of.corpus,
            reader=parts.reader_or_own(self.reader, of.reader, self.thinking),
            entailment=parts.judging(
                self.entailment or of.entailment,
                self.presets.prompts,
                anew=self.entailment is None,
            ),
            samples=self.samples or of.samples,
            seed=self.seed,
            options={**kept, **presets.of_meters(meters), **self.options},
            golds=self.golds,
            calls=self.calls,
        )


class Defaults(NamedTuple):
    """The settings of the first measurement of a run, which `hopscope credit` uses by default."""

    rules: tuple[str, ...] = RULES
    meters: tuple[str, ...] = DEFAULT_METERS
    corpus: str = parts.HOPLAND
    reader: str = parts.TINY
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
        """The samples, options and embedded entailment of the run's first appraisal."""
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
    """The games and settings of one run's measurement."""

    against: "Counterfactual"
    games: "list[FrozenGame]"
    settings: dict[str, Any]
    retriever: "Retriever | None"


class Crediting:
    """Loads the models once and credits one run after the other."""

    def __init__(self, wanted: CreditSettings) -> None:
        """
        Raises:
            HopscopeError: the settings are not possible for any run.
        """
        self._wanted = wanted
        wanted.measuring(0).parse()  # reports mistakes before anything is loaded
        if isinstance(wanted.corpus, str):
            retrieval.parse(wanted.corpus)
        self._judge = given.entailment(wanted.entailment)
        _log.info("loading the reader")
        self._model = given.reader(wanted.reader)
        self._appraisers: dict[int, Appraiser] = {}
        self._corpora: dict[int, Retriever] = {}
        self.appraiser(0)

    def appraiser(self, seed: int) -> Appraiser:
        """Meters and rules for a run of this seed; runs of one seed share a cache."""
        measuring = self._wanted.measuring(seed)
        if measuring.seed not in self._appraisers:
            self._appraisers[measuring.seed] = Appraiser(self._model, self._judge, measuring)
        return self._appraisers[measuring.seed]

    def proxy(self, run: "Run") -> str | None:
        """The remark that another reader measures the run than ran it, or that this is unknown;
        None where the same reader does, as a replay requires."""
        return None if self._wanted.mode is Mode.replay else told(run.reader, self._model.name)

    def credit(self, run: "Run", stored: "Iterable[GameValues]" = ()) -> Appraised:
        """
        Args:
            stored: values of the run, which are not measured again.

        Raises:
            HopscopeError: this run cannot be measured in this way.
        """
        wanted, appraiser = self._wanted, self.appraiser(run.seed)
        prepared = self._prepared(run)
        games: Sequence[Game] = prepared.games
        if wanted.golds:
            question = run.question.model_copy(update={"answers": wanted.golds})
            run = run.model_copy(update={"question": question})
        if wanted.mode is Mode.replay and prepared.retriever is not None:
            games = credit_games.replayed(
                run, games, prepared.against, appraiser, self._judge, prepared.retriever
            )
        _log.info("measuring")
        return appraiser.appraise(
            run, games=games, settings=prepared.settings, stored=stored, calls=wanted.calls
        )

    def plan(self, run: "Run", prices: "Prices") -> list[CreditCost]:
        """What measuring this run costs each meter. Nothing is measured.

        Raises:
            HopscopeError: this run cannot be measured in this way.
        """
        appraiser, prepared = self.appraiser(run.seed), self._prepared(run)
        price = prices.of(self._model.name)
        return credit_games.credit_costs(run, appraiser, prepared.games, self._wanted.calls, price)

    def measure_without(self, run: "Run", names: Iterable[str]) -> Appraised:
        """Measure the run's evidence without these steps and passages, named as in `show`.

        Raises:
            HopscopeError: this run cannot be measured in this way.
        """
        from hopscope.tracing.games.frozen import over_all_passages
        from hopscope.tracing.what_if.without import kept, parts

        if self._wanted.mode is Mode.replay:
            raise UsageError(
                "--without keeps later queries as recorded: give --mode frozen, or --rule shapley "
                "with --mode replay"
            )
        prepared = self._prepared(run)
        coalition = kept(run, parts(run, names), prepared.against)
        if self._wanted.golds:
            question = run.question.model_copy(update={"answers": self._wanted.golds})
            run = run.model_copy(update={"question": question})
        game = over_all_passages(run, prepared.against)
        return self.appraiser(run.seed).measure(run, game, [coalition], prepared.settings)

    def known(self, store: "Store", run: "Run") -> Appraised | None:
        """The stored credits of a run with the same settings; None if any is missing.

        Raises:
            HopscopeError: this run cannot be measured in this way.
        """
        from hopscope.tracing.appraisal import credit_keys

        appraiser, prepared = self.appraiser(run.seed), self._prepared(run)
        meters = [meter.name for meter in appraiser.meters]
        due = credit_keys(run.question, appraiser.meters, appraiser.rules, prepared.games)
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

    def not_shared(self, found: Appraised, run: "Run") -> dict[str, list[str]]:
        """The rules that gave nothing of a meter, by its name: GroGU with key tokens has no credit
        by rules that weigh its value without evidence in."""
        there = {(credit.meter, credit.rule) for credit in found.credits}
        appraiser = self.appraiser(run.seed)
        missing = {
            meter.name: [r.name for r in appraiser.rules if (meter.name, r.name) not in there]
            for meter in appraiser.meters
        }
        return {meter: rules for meter, rules in missing.items() if rules}

    def _prepared(self, run: "Run") -> "Prepared":
        wanted, appraiser = self._wanted, self.appraiser(run.seed)
        retriever = self._corpus(run, appraiser) if wanted.needs_corpus else None
        seed = wanted.measuring(run.seed).seed
        against = credit_games.against(wanted.counterfactual, run, retriever, seed)
        settings: dict[str, Any] = {
            "counterfactual": wanted.counterfactual.value,
            "mode": wanted.mode.value,
        }
        if wanted.counterfactual is CounterfactualName.random and retriever is not None:
            settings["corpus"] = retriever.name
        if wanted.golds:
            settings["gold"] = list(wanted.golds)
        if wanted.calls is not None:
            settings["credit_budget"] = wanted.calls
        games = credit_games.games(wanted.over, run, against)
        return Prepared(against, games, settings, retriever)

    def _corpus(self, run: "Run", appraiser: Appraiser) -> "Retriever":
        """The corpus of the run; retrievers may use its seed and its reader."""
        if run.seed not in self._corpora:
            _log.info("loading the corpus")
            self._corpora[run.seed] = given.retriever(
                self._wanted.corpus, appraiser.reader, seed=run.seed
            )
        credit_games.check_corpus(self._corpora[run.seed], self._wanted.corpus, run)
        return self._corpora[run.seed]
