"""The spans of a trace as a tree."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from hopscope.store.traces.span import Meaning, Span


class Tree:
    """A trace."""

    def __init__(self, spans: Sequence[Span]) -> None:
        """
        Args:
            spans: by their start.
        """
        known = {span.id for span in spans}
        self.roots = [span for span in spans if span.parent not in known]
        """Spans without a parent in the trace."""
        self._children: dict[str, list[Span]] = defaultdict(list)
        for span in spans:
            if span.parent in known:
                self._children[span.parent].append(span)

    def children(self, span: Span) -> Sequence[Span]:
        """Those that began in it, by their start."""
        return self._children.get(span.id, ())

    def below(self, span: Span) -> Iterator[Span]:
        """All that began in it, itself left out, parents first; each once."""
        seen = {span.id}
        waiting = list(reversed(self.children(span)))
        while waiting:
            found = waiting.pop()
            if found.id not in seen:
                seen.add(found.id)
                yield found
                waiting.extend(reversed(self.children(found)))

    def holds(self, span: Span, *meanings: Meaning) -> bool:
        """Whether a span of one of these meanings began in it."""
        return any(each.meaning in meanings for each in self.below(span))
