"""What `hopscope credit` does to each stored run that it is asked about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from hopscope.cli import credit_games, render, retrieval, wiring
from hopscope.cli.appraise import Appraised, Appraiser, Measuring
from hopscope.cli.credit_games import Against, Mode, Over

if TYPE_CHECKING:
    from hopscope.runtime.ports import Retriever
    from hopscope.runtime.types import Run
    from hopscope.store.store import Store
    from hopscope.tracing.coalitions import Game
    from hopscope.tracing.games import Counterfactual, FrozenGame


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
