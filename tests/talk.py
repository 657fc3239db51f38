"""A reader and a retriever for workflow tests: texts in order, passages by query."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from hopscope.runtime.types import Generation, GenerationRequest, Hit, Passage, Usage
from tests.fakes import ScriptedReader

Reply = str | Exception


class Talker(ScriptedReader):
    """Says the given texts, one for each sample; raises those that are exceptions."""

    def __init__(self, replies: Iterable[Reply]) -> None:
        super().__init__()
        self._texts = iter(replies)
        self.requests: list[GenerationRequest] = []

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        self.requests.extend(requests)
        return [[self._say(first=i == 0) for i in range(r.n)] for r in requests]

    def _say(self, *, first: bool) -> Generation:
        text = next(self._texts, None)
        if text is None:
            raise AssertionError("the script has no reply left")
        if isinstance(text, Exception):
            raise text
        usage = Usage(
            input_tokens=10 if first else 0,
            output_tokens=len(text.split()),
            calls=1 if first else 0,
        )
        return Generation(text=text, usage=usage)


class ScriptedRetriever:
    """Finds the passages given for each query; a query outside the script finds nothing."""

    name = "scripted"

    def __init__(
        self, found: Mapping[str, Sequence[Passage]] | Callable[[str], Sequence[Passage]]
    ) -> None:
        self._found = found if callable(found) else lambda query: found.get(query, ())
        self.queries: list[str] = []

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        self.queries.extend(queries)
        return [
            [Hit(passage=p, score=1 / (i + 1)) for i, p in enumerate(self._found(query)[:k])]
            for query in queries
        ]
