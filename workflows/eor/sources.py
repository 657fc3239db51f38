"""The sources of EoR's retrievers.

Invariants: a run searches each source once and keeps its ranking for all retrievers that use it;
the step's record contains every search.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hopscope.runtime import components, retrievers
from hopscope.runtime.errors import UsageError
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.pipelines import expression_parser
from hopscope.runtime.pipelines.expression import Source
from hopscope.runtime.ports import Reader, Retriever
from hopscope.runtime.prompting.prompt_set import PromptSet
from hopscope.runtime.specs import Spec, listed
from hopscope.runtime.types import GenerationRequest, Hit, Passage
from hopscope.workflows.eor import _pool

INDEX = "Wiki"
"""The run's own index, whatever its contents; the name is the paper's."""
PARAMETRIC = "PK"
HYBRID = "HB"

BACKGROUND_TOKENS = 256
CHUNK_WORDS = 100


@dataclass(frozen=True)
class ParametricKnowledge:
    """A background document by the reader, returned in chunks."""

    reader: Reader
    prompts: PromptSet
    seed: int
    name: str = "parametric knowledge"

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        return [self._write(query)[:k] for query in queries]

    def _write(self, question: str) -> list[Hit]:
        prompt = self.prompts.render("eor/background", question=question)
        request = GenerationRequest(prompt=prompt, max_tokens=BACKGROUND_TOKENS, seed=self.seed)
        [[generation]] = self.reader.generate([request])
        words = generation.text.split()
        chunks = [words[i : i + CHUNK_WORDS] for i in range(0, len(words), CHUNK_WORDS)]
        passages = [
            Passage(title="Background", text=" ".join(chunk), source=PARAMETRIC) for chunk in chunks
        ]
        return [Hit(passage=p, score=1 / place) for place, p in enumerate(passages, start=1)]


def was_retrieved(passage: Passage) -> bool:
    """Whether the passage comes from a retriever, not from the reader itself."""
    return passage.source != PARAMETRIC


def configure(text: str) -> dict[str, Retriever]:
    """`SE=searxng:URL,News=bm25:FOLDER` as retrievers by name.

    Raises:
        UsageError: a piece has another form, a name is taken or cannot stand in a pool, or a
            retriever does not exist.
    """
    found: dict[str, Retriever] = {}
    for name, where in listed(text, "source").items():
        spec = Spec.parse(where, options=False) if where else None
        if spec is None or not spec.argument:
            raise UsageError(f"source {name}={where}: give NAME=KIND:WHERE, as in SE=searxng:URL")
        if expression_parser.parse(name) != Source(name):
            raise UsageError(f"source {name}={spec}: {name!r} is no plain name; use letters only")
        if name in (PARAMETRIC, HYBRID):
            raise UsageError(f"source {name}={spec}: the name {name} is reserved; choose another")
        found[name] = components.named(retrievers, spec)()
    return found


@dataclass(frozen=True)
class Sources:
    """The sources that the names in a pool stand for."""

    others: Mapping[str, Retriever]
    """The sources besides the run's own index and the reader."""
    depth: int
    """Passages that each source returns."""

    @property
    def names(self) -> tuple[str, ...]:
        """The sources of the hybrid, in the order in which it concatenates them."""
        rest = [name for name in (PARAMETRIC, INDEX) if name not in self.others]
        return (*self.others, *rest)

    def parts(self, name: str) -> tuple[str, ...]:
        """The sources behind a name of the pool."""
        return self.names if name == HYBRID else (name,)

    def check(self, pool: Sequence[_pool.PoolRetriever]) -> None:
        """
        Raises:
            UsageError: a name in the pool is no source.
        """
        known = (*self.names, HYBRID)
        units = (unit for retriever in pool for unit in retriever.units)
        for name in (name for unit in units for name in unit.sources):
            if name not in known:
                raise UsageError(
                    f"{name} in the pool is no source: there are {', '.join(known)}; add it "
                    f"with -o sources={name}=KIND:WHERE, as in SE=searxng:URL"
                )

    def find(self, deps: Deps, name: str, question: str) -> tuple[Hit, ...]:
        """Search one source."""
        if name in self.others:
            source = recorded(deps, self.others[name])
        elif name == PARAMETRIC:
            source = recorded(deps, ParametricKnowledge(deps.reader, deps.prompts, deps.seed))
        else:
            source = deps.retriever
        [hits] = source.search([question], k=self.depth)
        return distinct([hits])


def distinct(lists: Iterable[Sequence[Hit]]) -> tuple[Hit, ...]:
    """The lists one after the other, each passage once."""
    found: dict[str, Hit] = {}
    for hit in (hit for each in lists for hit in each):
        found.setdefault(hit.passage.key, hit)
    return tuple(found.values())


def recorded(deps: Deps, retriever: Retriever) -> Retriever:
    """The retriever with the step's recording, as around the run's own retriever."""
    seam: Any = deps.retriever
    behind: Retriever = replace(seam, inner=retriever)
    return behind
