"""What `hopscope credit` does to each stored run that it is asked about."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hopscope.cli import credit_games, render, retrieval, wiring
from hopscope.cli.appraise import Appraised, Appraiser, Measuring
from hopscope.cli.credit_games import Against, Mode, Over
from hopscope.cli.show import find

if TYPE_CHECKING:
    from hopscope.runtime.ports import Retriever
    from hopscope.runtime.types import Run
    from hopscope.store.store import Store
    from hopscope.tracing.coalitions import Game


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


def ids(store: "Store", specs: Iterable[str]) -> list[str]:
    """The runs named, each once: by id, its beginning or `last`, and all answered ones of an
    experiment by its name.

    Raises:
        UsageError: there is no such run or several, or the experiment has no run yet.
    """
    from hopscope.runtime.errors import UsageError

    found: dict[str, None] = {}
    for spec in specs:
        if store.experiments.known(spec) is None:
            found[find(store, spec).id] = None
            continue
        answered = [item.outcome.run_id for item in store.experiments.items(spec) if item.outcome]
        if not answered:
            raise UsageError(f"experiment {spec} has answered no question yet")
        found.update(dict.fromkeys(answered))
    return list(found)


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
        if self._model.name != run.reader and wanted.mode is Mode.frozen:
            render.note(f"{self._model.name} measures what {run.reader or 'another'} has read")
        retriever = self._corpus(run, appraiser) if wanted.needs_corpus else None
        seed = wanted.measuring(run.seed).seed
        against = credit_games.against(wanted.counterfactual, run, retriever, seed)
        games: Sequence[Game] = credit_games.games(wanted.over, run, against)
        if wanted.mode is Mode.replay and retriever is not None:
            games = credit_games.replayed(run, games, against, appraiser, self._judge, retriever)
        settings: dict[str, Any] = {
            "counterfactual": wanted.counterfactual.value,
            "mode": wanted.mode.value,
        }
        if wanted.counterfactual is Against.random and retriever is not None:
            settings["corpus"] = retriever.name
        render.progress("measuring")
        return appraiser.appraise(run, games=games, settings=settings)

    def _corpus(self, run: "Run", appraiser: Appraiser) -> "Retriever":
        """The run's; retrievers may draw by the run's seed and ask its reader."""
        if run.seed not in self._corpora:
            render.progress("loading the corpus")
            self._corpora[run.seed] = retrieval.retriever(
                self._wanted.corpus, appraiser.reader, seed=run.seed
            )
        credit_games.check_corpus(self._corpora[run.seed], self._wanted.corpus, run)
        return self._corpora[run.seed]
