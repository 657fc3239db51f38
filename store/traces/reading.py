"""A format of traces: spans in files, in whatever order, become runs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.errors import CorpusError
from hopscope.runtime.types import Run
from hopscope.store.traces import ours
from hopscope.store.traces.foreign import Reading
from hopscope.store.traces.span import Span
from hopscope.store.traces.spool import Spool, Spooled
from hopscope.store.traces.tree import Tree
from hopscope.store.trajectories.sources import Source, Unread, attempt, placed

Spans = Callable[[Source], Iterator[tuple[int, list[Span]] | Unread]]
"""The spans of a file, by record, with the record's line; and what could not be read."""


@dataclass(frozen=True)
class Traces:
    """Reads traces."""

    spans: Spans
    looks_so: Callable[[Source], bool]
    reading: Reading

    def fits(self, source: Source) -> bool:
        """As `RunFormat`."""
        return self.looks_so(source)

    def runs(self, sources: Sequence[Source]) -> Iterator[Run | Unread]:
        """As `RunFormat`. A trace without a model, a search or a tool is no run and left out."""
        with Spool() as spool:
            for number, source in enumerate(sources):
                try:
                    for found in self.spans(source):
                        if isinstance(found, Unread):
                            yield found
                            continue
                        line, spans = found
                        for span in spans:
                            spool.add(span, number, line)
                except CorpusError as error:
                    yield Unread(source.name, f"{error}; the spans before that are read")
            for trace in spool.traces():
                yield from self._runs(trace, sources)

    def advice(self) -> Iterator[str]:
        """As `Advising`."""
        return self.reading.tools.advice()

    def _runs(self, trace: list[Spooled], sources: Sequence[Source]) -> Iterator[Run | Unread]:
        places = {each.span.id: (sources[each.source], each.line) for each in trace}
        tree = Tree([each.span for each in trace])
        own = [each.span for each in trace if ours.is_run(each.span)]
        if own:
            for root in own:
                source, line = places[root.id]
                yield attempt(lambda: ours.run(root, tree), source.where(line))  # noqa: B023
            return
        roots = [root for root in tree.roots if self.reading.is_run(root, tree)]
        cut_off = [root for root in roots if root.parent]
        if len(roots) > 1 and cut_off:
            source, line = places[cut_off[0].id]
            yield Unread(
                source.where(line),
                f"the trace {cut_off[0].trace} has no root: {len(cut_off)} of its spans have "
                "parents that are not there",
            )
            return
        for root in roots:
            source, line = places[root.id]
            read = attempt(lambda: self.reading.run(root, tree), source.where(line))  # noqa: B023
            yield placed(read, source, line) if isinstance(read, Run) else read


def by_object(
    source: Source, read: Callable[[dict[str, object]], Iterator[Span]]
) -> Iterator[tuple[int, list[Span]] | Unread]:
    """The spans of a file of JSON objects."""
    for found in source.records():
        if isinstance(found, Unread):
            yield found
            continue
        try:
            yield found.line, list(read(found.value))
        except MalformedRecordError as error:
            yield Unread(source.where(found.line), str(error))
