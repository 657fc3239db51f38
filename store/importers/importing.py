"""Stores the runs of files in an experiment.

Invariants: a run is stored whole or not at all; memory holds a batch of runs, however many files
there are; the same file again changes nothing, because the id of a run is made of what it did.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hopscope.runtime.errors import CorpusError, UsageError
from hopscope.runtime.types import Question, Run, digest
from hopscope.store.experiments.naming import named
from hopscope.store.importers import recognition, servers
from hopscope.store.importers.golds import Golds, answered
from hopscope.store.importers.recognition import AUTO
from hopscope.store.runs.interning import chunks
from hopscope.store.store import BATCH, Store
from hopscope.store.trajectories.sources import PLACE, Advising, RunFormat, Source, Unread
from hopscope.store.trajectories.splitting import WHOLE
from hopscope.store.trajectories.trajectory import NO_TIME

SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".gz", ".pb", ".binpb"})
"""Files of a folder that are read, in all its folders; hidden ones are not."""
NAMED = 100
"""Problems that a report names; further ones are only counted."""
SHOWN = 5
"""Files that an error names, if none of them can be read."""


@dataclass
class ImportReport:
    """What became of the runs of an import."""

    experiment: str
    runs: int = 0
    """Runs that were read."""
    retrievals: int = 0
    """Their searches."""
    stored: int = 0
    """Runs that were new to the experiment."""
    known: int = 0
    """Runs that the experiment had already."""
    answered: int = 0
    """Runs with right answers."""
    corrected: int = 0
    """Runs that were stored and have other right answers now; their credits are deleted."""
    matched: int | None = None
    """Runs whose right answers come from the file of `gold`; None without one."""
    parted: int = 0
    """Runs with passages that were glued together and had to be parted."""
    unread: int = 0
    """Items that could not be read."""
    problems: list[Unread] = field(default_factory=list)
    """The first 100 of them."""
    formats: dict[str, str] = field(default_factory=dict)
    """The format of each file."""
    notes: list[str] = field(default_factory=list)
    """What makes the result other than one may expect, such as a name that nothing has."""

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        problems = [problem._asdict() for problem in self.problems]
        return {**vars(self), "problems": problems}

    def miss(self, problem: Unread, count: int = 1) -> None:
        """Count items that could not be read."""
        self.unread += count
        if len(self.problems) < NAMED:
            self.problems.append(problem)


def import_runs(
    *locations: str | Path,
    store: str | Path | Store | None = None,
    name: str | None = None,
    format: str = AUTO,
    label: str | None = None,
    gold: str | Path | None = None,
    progress: Callable[[ImportReport], None] | None = None,
) -> ImportReport:
    """Store the runs that files hold in an experiment, so that credit, tables, exports and policies
    work on them.

        report = hopscope.import_runs("rollouts.jsonl", name="agent")
        assert not report.unread, report.problems

    A run is stored whole or not at all. The same file again changes nothing.

    Args:
        locations: files, folders of files, and URLs of projects of Phoenix and experiments of
            MLflow.
        store: the database; by default that of the command line.
        name: of the experiment; by default the first file's, without its ending.
        format: name of the format (`hopscope list formats`), with its options; `auto` finds that of
            each file.
        label: of the experiment's arm; by default the name of the format, or of the workflow that
            made the runs.
        gold: a file of right answers: JSON lines with `question` or `id`, and `answers`.
        progress: is told of each batch.

    Raises:
        UsageError: there is no such file or format, no format fits a file, the name cannot be used,
            or the experiment holds runs that were made here.
        CorpusError: the file of right answers is broken.
        TraceServerError: a server failed; nothing of it is stored.
        StoreError: the database failed; what it took before is stored.
    """
    golds = Golds.read(Path(gold)) if gold is not None else None
    with ExitStack() as stack:
        sources: list[Source] = []
        for location in locations:
            if servers.is_url(str(location)):
                sources.append(stack.enter_context(servers.fetched(str(location))))
            else:
                sources.extend(_sources(Path(location)))
        if not sources:
            raise UsageError("name a file, a folder or a URL to import")
        opened = store if isinstance(store, Store) else stack.enter_context(Store.open(store))
        return _import(
            opened,
            sources,
            format=format,
            name=named(_stem(sources[0].name) if name is None else name),
            label=label,
            golds=golds,
            progress=progress,
        )


def _import(
    store: Store,
    sources: Sequence[Source],
    *,
    format: str,
    name: str,
    label: str | None,
    golds: Golds | None,
    progress: Callable[[ImportReport], None] | None,
) -> ImportReport:
    report = ImportReport(name, matched=None if golds is None else 0)
    asked: Question | None = None
    for reader, members in _grouped(sources, format, report):
        for batch in chunks(_read(reader, members, report), BATCH):
            if asked is None:
                store.experiments.begin_import(name)
                asked = batch[0].question
            runs = [_identified(run, name, _answered(run, golds, report)) for run in batch]
            _count(report, runs)
            kept = store.experiments.keep_imported(name, runs, label=label)
            report.stored += kept.new
            report.known += kept.known
            report.corrected += kept.corrected
            for run_id, where in kept.elsewhere.items():
                report.miss(Unread(f"run {run_id[:12]}", f"the experiment {where} has it already"))
            if progress is not None:
                progress(report)
        if isinstance(reader, Advising):
            report.notes.extend(reader.advice())
    if asked is None:
        report.notes.append(f"no run was found, and the experiment {name} stays as it was")
    elif golds and not report.matched:
        report.notes.extend(golds.advice(asked))
    if report.runs and not report.retrievals and format != AUTO:
        formats = ", ".join(dict.fromkeys(report.formats.values()))
        report.notes.append(
            f"no retrieval was found as {formats}: leave the format out to have it recognised"
        )
    return report


def _grouped(
    sources: Sequence[Source], named: str, report: ImportReport
) -> list[tuple[RunFormat, list[Source]]]:
    """The files by format, each format once. One of several files that no format fits is noted.

    Raises:
        UsageError: there is no such format, or none fits any file.
    """
    if named != AUTO:
        name, format = recognition.named(named)
        report.formats = dict.fromkeys((source.name for source in sources), name)
        return [(format, list(sources))]
    known = recognition.known()
    groups: dict[str, list[Source]] = {}
    for source in sources:
        fitting = recognition.fitting(source, known)
        if fitting is None:
            report.miss(Unread(source.name, recognition.misfit(source)))
        else:
            report.formats[source.name] = fitting
            groups.setdefault(fitting, []).append(source)
    if not groups:
        first = report.problems[:SHOWN]
        told = "; ".join(f"{where}: {problem}" for where, problem in first)
        choices = f"; give --format, one of {', '.join(known)}"
        readable = any(problem == recognition.UNKNOWN for _, problem in first)
        raise UsageError(told + (choices if readable else ""))
    return [(known[name], members) for name, members in groups.items()]


def _read(reader: RunFormat, sources: Sequence[Source], report: ImportReport) -> Iterator[Run]:
    """The runs of files of one format; the rest is noted in the report."""
    try:
        for read in reader.runs(sources):
            if isinstance(read, Run):
                yield read
            else:
                report.miss(read)
    except CorpusError as error:
        report.miss(Unread(str(error), "what comes before it is stored"))
    for source in sources:
        if not source.path.stat().st_size:
            report.miss(Unread(source.name, source.problem))


def _answered(run: Run, golds: Golds | None, report: ImportReport) -> Question:
    """The run's question with its right answers."""
    answers = golds.of(run.question) if golds else ()
    if answers:
        report.matched = (report.matched or 0) + 1
    return answered(run.question, answers)


def _identified(run: Run, experiment: str, question: Question) -> Run:
    """The run with an id, a time and this question."""
    changes: dict[str, Any] = {} if question == run.question else {"question": question}
    if not run.id:
        changes["id"] = digest(experiment, _content(run))[:32]
    if run.started == NO_TIME:
        now = datetime.now(UTC)
        changes["started"] = now
        changes["steps"] = tuple(step.model_copy(update={"started": now}) for step in run.steps)
    return run.model_copy(update=changes) if changes else run


def _content(run: Run) -> str:
    """What the run did, without its place, its time and the right answers."""
    told = {key: value for key, value in run.options.items() if key not in PLACE}
    question = run.question
    rest = run.model_dump_json(exclude={"id", "question", "options"})
    return json.dumps([question.text, question.id, told, rest], sort_keys=True)


def _count(report: ImportReport, runs: Iterable[Run]) -> None:
    for run in runs:
        report.runs += 1
        report.retrievals += len(run.retrievals)
        report.answered += bool(run.question.answers)
        rules = run.options.get("split")
        report.parted += isinstance(rules, dict) and any(rule != WHOLE for rule in rules.values())


def _sources(path: Path) -> Iterator[Source]:
    if not path.is_dir():
        yield Source(path)
        return
    found = [
        each
        for each in sorted(path.rglob("*"))
        if each.suffix.lower() in SUFFIXES
        and each.is_file()
        and not any(part.startswith(".") for part in each.relative_to(path).parts)
    ]
    if not found:
        raise UsageError(f"{path} holds no file that ends in {', '.join(sorted(SUFFIXES))}")
    for each in found:
        yield Source(each, each.relative_to(path).as_posix())


def _stem(name: str) -> str:
    """The name of an experiment, from that of a file."""
    stem = Path(name).name
    while Path(stem).suffix.lower() in SUFFIXES and Path(stem).stem:
        stem = Path(stem).stem
    return stem
