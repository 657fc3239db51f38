"""Where EoR's retrievers take their passages from.

Invariants: each source is asked once in a run, and its ranking kept for all retrievers that use
it; everything asked of a source is in the step's record.
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
from hopscope.runtime.prompting.prompts import ask
from hopscope.runtime.specs import Spec, listed
from hopscope.runtime.types import GenerationRequest, Hit, Passage
from hopscope.workflows.eor import _pool

INDEX = "Wiki"
"""The index that the run was given, whatever it holds; the paper's name for it."""
PARAMETRIC = "PK"
HYBRID = "HB"

BACKGROUND_TASK = (
    "Do not answer the question yet. Write a short background document with the facts that are "
    "needed to answer it."
)
BACKGROUND_TOKENS = 256
CHUNK_WORDS = 100


@dataclass(frozen=True)
class ParametricKnowledge:
    """The reader writes a background document, which comes back in chunks."""

    reader: Reader
    seed: int
    name: str = "parametric knowledge"

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        return [self._write(query)[:k] for query in queries]

    def _write(self, question: str) -> list[Hit]:
        prompt = ask(question, (), BACKGROUND_TASK)
        request = GenerationRequest(prompt=prompt, max_tokens=BACKGROUND_TOKENS, seed=self.seed)
        [[generation]] = self.reader.generate([request])
        words = generation.text.split()
        chunks = [words[i : i + CHUNK_WORDS] for i in range(0, len(words), CHUNK_WORDS)]
        passages = [
            Passage(title="Background", text=" ".join(chunk), source=PARAMETRIC) for chunk in chunks
        ]
        return [Hit(passage=p, score=1 / place) for place, p in enumerate(passages, start=1)]


def was_retrieved(passage: Passage) -> bool:
    """Not written by the reader itself."""
    return passage.source != PARAMETRIC


def configure(text: str) -> dict[str, Retriever]:
    """`SE=searxng:URL,News=bm25:FOLDER` as retrievers by name.

    Raises:
        UsageError: a piece of another form, a name that cannot stand in a pool or is taken, or a
            retriever that is not there.
    """
    found: dict[str, Retriever] = {}
    for name, where in listed(text, "source").items():
        spec = Spec.parse(where, options=False) if where else None
        if spec is None or not spec.argument:
            raise UsageError(f"source {name}={where}: give NAME=KIND:WHERE, as in SE=searxng:URL")
        if expression_parser.parse(name) != Source(name):
            raise UsageError(f"source {name}={spec}: {name!r} is no plain name; take letters")
        if name in (PARAMETRIC, HYBRID):
            raise UsageError(f"source {name}={spec}: the name {name} is taken; take another")
        found[name] = components.named(retrievers, spec)()
    return found


@dataclass(frozen=True)
class Sources:
    """What the names in a pool stand for."""

    others: Mapping[str, Retriever]
    """Besides the run's own index and the reader."""
    depth: int
    """Passages asked of each."""

    @property
    def names(self) -> tuple[str, ...]:
        """All that the hybrid is made of, in the order in which it concatenates them."""
        rest = [name for name in (PARAMETRIC, INDEX) if name not in self.others]
        return (*self.others, *rest)

    def parts(self, name: str) -> tuple[str, ...]:
        """The sources behind a name of the pool."""
        return self.names if name == HYBRID else (name,)

    def check(self, pool: Sequence[_pool.Retriever]) -> None:
        """
        Raises:
            UsageError: a name of the pool stands for nothing.
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
        """Ask one source."""
        if name in self.others:
            source = recorded(deps, self.others[name])
        elif name == PARAMETRIC:
            source = recorded(deps, ParametricKnowledge(deps.reader, deps.seed))
        else:
            source = deps.retriever
        [hits] = source.search([question], k=self.depth)
        return distinct([hits])


def distinct(lists: Iterable[Sequence[Hit]]) -> tuple[Hit, ...]:
    """One after the other, each passage once."""
    found: dict[str, Hit] = {}
    for hit in (hit for each in lists for hit in each):
        found.setdefault(hit.passage.key, hit)
    return tuple(found.values())


def recorded(deps: Deps, retriever: Retriever) -> Retriever:
    """The retriever behind the recording that the step seam put before the run's own one."""
    seam: Any = deps.retriever
    behind: Retriever = replace(seam, inner=retriever)
    return behind
