"""Runs validity suites by name, one after the other, with the same readers and world."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import NamedTuple

from hopscope.api import parts, retrieval
from hopscope.lab import validity
from hopscope.lab.dataset.dataset import EMBEDDED
from hopscope.lab.suites import figures, files, inputs, worlds
from hopscope.lab.suites.files import QuestionFile
from hopscope.lab.suites.known import Need
from hopscope.lab.suites.settings import Owners
from hopscope.lab.table_forms.table import Table
from hopscope.runtime import components
from hopscope.runtime.errors import UsageError
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Measurement

_log = logging.getLogger(__name__)

SECONDS = {
    "eor": (0.4, 0.5),
    "erag": (0.0, 3.0),
    "gold_logprob": (0.3, 0.5),
    "grogu": (0.3, 0.6),
    "item": (0.0, 1.5),
    "proxy": (0.4, 2.0),
    "reward_hacking": (0.4, 0.5),
    "seper": (0.3, 0.6),
    "step_credit": (0.5, 0.6),
    "turn_rewards": (0.4, 0.6),
    "workflows_by_k": (0.0, 2.1),
}
"""Seconds of a suite by the embedded reader on one core: at its start, and for each question of
`--limit`."""
UNKNOWN = (1.0, 1.0)
"""The seconds of a suite without an entry."""


class Clock:
    """The time of suites: estimated at first, then corrected by finished suites."""

    def __init__(self, names: Sequence[str], limit: int) -> None:
        self._names = names
        self._left = {name: seconds(name, limit) for name in names}
        self._guessed = self._taken = 0.0

    def before(self, *, embedded: bool) -> str:
        several = f"{len(self._names)} suites: " if len(self._names) > 1 else "suite "
        long = f"about {_long(sum(self._left.values()))} on an idle core"
        if not embedded:
            long = "the first suite will show the time with this reader and data"
        return f"{several}{', '.join(self._names)}; {long}"

    def after(self, name: str, took: float) -> str:
        """Count a finished suite."""
        self._guessed += self._left.pop(name)
        self._taken += took
        told = f"suite {name}: {took:.0f} s"
        if not self._left:
            return told
        left = sum(self._left.values()) * self._taken / self._guessed
        return f"{told}; {len(self._left)} left, about {_long(left)}"


def seconds(name: str, limit: int) -> float:
    """The estimated time of a suite."""
    once, each = SECONDS.get(name, UNKNOWN)
    return once + each * limit


def _long(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


class SuiteOutcome(NamedTuple):
    """The result of one suite."""

    name: str
    tables: Sequence[Table]
    """Empty if it failed."""
    figures: dict[str, Measurement]
    """By name; a failed suite has only `error`, with the reason."""
    failed: bool


class FileOfQuestions(NamedTuple):
    """Where suites take their questions from, in place of a generated world."""

    data: str
    corpus: str | None = None
    """The corpus, as for `retrieval.parse`; by default the passages of the file, and the embedded
    world for embedded questions."""
    labels: Path | None = None
    """Judgments of passages: qrels."""
    grade: int = 1
    """The least label of a gold passage."""
    candidates: Path | None = None
    """Rankings whose passages are the questions' candidates: a TREC run."""


class Suites:
    """Suites that are ready to run."""

    def __init__(
        self,
        names: Sequence[str],
        reader: str,
        other: str | None,
        *,
        seed: int,
        limit: int,
        presets: Sequence[str] = (),
        options: Sequence[str] = (),
        prompts: str | None = None,
        entailments: Sequence[str] = (),
        file: FileOfQuestions | None = None,
    ) -> None:
        """
        Args:
            names: empty runs all suites.
            reader: named as for `parts.reader`.
            other: a weaker second reader, likewise; by default the small one of the package, if
                installed and if the first has no prompts of its own.
            limit: questions of each kind.
            presets: named sets of options of the suites' meters and workflows.
            options: single ones, as for `suites.settings`, which precede the presets.
            prompts: a folder of prompts, or the name of a set, for workflows and meters; by
                default those of the reader.
            entailments: by default lexical for a generated world, and equivalence for a file.
                Several are for suites that compare them, which say so by `COMPARES_ENTAILMENTS`.
            file: takes the place of a generated world. Of all suites only those run then whose
                needs it meets.

        Raises:
            UsageError: there is no such suite, reader, preset, option or file, an option's value is
                refused, a named suite needs more than the file has, or a suite takes one
                entailment only.
        """
        asked = list(dict.fromkeys(names)) or components.names(validity)
        modules = {name: components.load(validity, name) for name in asked}
        entailment, compared = _one_or_several(entailments, modules)
        owners = Owners(list(modules.values()))
        own = parts.prompts_of(reader)
        chosen = owners.chosen(presets, options, prompts or own)
        self._options = owners.told(chosen)
        # The small reader reads the default prompts.
        other = other or (None if own else _small())
        first, second = parts.reader(reader), None if other is None else parts.reader(other)
        if file is None:
            self._left_out = ""
            self._inputs = worlds.make(
                first,
                other=second,
                seed=seed,
                limit=limit,
                presets=chosen,
                entailment=entailment,
                compared=compared,
            )
        else:
            found = _questions(file, reader)
            asked = _able(asked, found, file, named=bool(names))
            self._left_out = _told(found)
            self._inputs = inputs.of_source(
                found,
                first,
                other=second,
                seed=seed,
                limit=limit,
                presets=chosen,
                entailment=entailment or "equivalence",
                compared=compared,
            )
        self._inputs.check(owners.meters)
        self._suites = {name: modules[name].build for name in asked}
        self._clock = Clock(asked, limit)
        self._embedded = reader == parts.TINY and file is None
        self._file = file

    @property
    def given(self) -> dict[str, str]:
        """What the figures are of: the questions, the corpus, the reader and the entailment."""
        found = self._inputs
        return {
            "data": found.source.name,
            "corpus": found.retriever.name,
            **({"candidates": run.name} if (run := self._file and self._file.candidates) else {}),
            "reader": found.reader.name,
            "entailment": ", ".join(each.name for each in (found.entailment, *found.compared)),
            **({"options": self._options} if self._options else {}),
        }

    def _noted(self, table: Table) -> Table:
        """The table with the options that are set, and of a file's questions with what its
        figures are of."""
        notes = [f"options: {self._options}"] if self._options else []
        if self._file is not None:
            given = self.given
            told = ", ".join(f"{key} {given[key]}" for key in given if key != "options")
            notes.append(f"{told}, seed {self._inputs.seed}{self._left_out}")
        return table.model_copy(update={"notes": (*table.notes, *notes)}) if notes else table

    def run(self) -> Iterator[SuiteOutcome]:
        """Run the suites in turn. A failed suite is an outcome, too, and the others continue."""
        _log.warning(self._clock.before(embedded=self._embedded))
        for number, (name, build) in enumerate(self._suites.items(), start=1):
            _log.info(f"{name} ({number} of {len(self._suites)})")
            begun = perf_counter()
            try:
                made = [self._noted(each) for each in build(self._inputs)]
                found = figures.figures(made)
            except Exception as error:  # whatever it is, the other suites do not depend on it
                _log.info("")
                reason = f"{type(error).__name__}: {error}"
                _log.warning(f"suite {name} failed: {reason}")
                self._clock.after(name, perf_counter() - begun)
                missing = Measurement(value=None, n=0, reason=reason)
                yield SuiteOutcome(name, (), {"error": missing}, failed=True)
                continue
            _log.info("")
            _log.warning(self._clock.after(name, perf_counter() - begun))
            yield SuiteOutcome(name, made, found, failed=False)


def _one_or_several(
    entailments: Sequence[str], suites: Mapping[str, ModuleType]
) -> tuple[str | None, Sequence[str]]:
    """The entailment that all suites use, None for the default, and others to compare with it.

    Raises:
        UsageError: a suite does not compare them.
    """
    alone = [name for name, suite in suites.items() if not _compares(suite)]
    if len(entailments) > 1 and alone:
        able = [n for n in components.names(validity) if _compares(components.load(validity, n))]
        raise UsageError(
            f"{', '.join(alone)}: takes one --entailment; several are compared by "
            f"{', '.join(able)}: hopscope lab {able[0]} --entailment A --entailment B"
        )
    return (entailments[0] if entailments else None), entailments[1:]


def _compares(suite: ModuleType) -> bool:
    return getattr(suite, "COMPARES_ENTAILMENTS", False)


def _questions(file: FileOfQuestions, reader: str) -> QuestionFile:
    corpus, opened = file.corpus, None
    if corpus is None and file.data in EMBEDDED:
        corpus = parts.HOPLAND
    if corpus is not None:
        opened = retrieval.searcher(retrieval.parse(corpus), reader)
    return files.load(
        file.data,
        corpus=opened,
        labels=file.labels,
        grade=file.grade,
        candidates=file.candidates,
    )


def _able(
    names: Sequence[str], found: QuestionFile, file: FileOfQuestions, *, named: bool
) -> list[str]:
    """The suites whose needs the questions meet; the others are told.

    Raises:
        UsageError: a suite that the user named cannot run, or none can.
    """
    missing = {name: _missing(name, found, file) for name in names}
    able = [name for name in names if not missing[name]]
    told = [f"{name}: {why}" for name, why in missing.items() if why]
    if told and (named or not able):
        can = [name for name in components.names(validity) if not _missing(name, found, file)]
        rest = f"with {found.name} can run: {', '.join(can) or 'none'}"
        raise UsageError("\n".join([*told, rest]))
    for line in told:
        _log.warning(f"left out: {line}")
    return able


def _told(found: QuestionFile) -> str:
    """The questions left out."""
    return "".join(
        f"; {counted(n, 'question')} left out: {why}" for why, n in found.left_out.items()
    )


def _missing(name: str, found: QuestionFile, file: FileOfQuestions) -> str:
    """What a suite needs and the questions do not have, with the remedy; one from another package
    that does not say so needs a generated world. A suite says in `TAKES_CANDIDATES` that it uses
    given ones."""
    suite = components.load(validity, name)
    needs: Sequence[Need] = getattr(suite, "NEEDS", (Need.WORLD,))
    told = [found.lacks[need] for need in needs if need in found.lacks]
    if file.candidates is not None and not getattr(suite, "TAKES_CANDIDATES", False):
        told.append("it searches by itself: leave out --candidates")
    return "; ".join(told)


def _small() -> str | None:
    """The second reader of the package, if installed."""
    folder = resources.files("hopscope.lab.hopland").joinpath("small")
    return f"hf:{folder}" if folder.joinpath("config.json").is_file() else None
