"""How many questions a worker processes at the same time, where the user leaves it open."""

from typing import NamedTuple

from hopscope.runtime.ports import ContinuousReader, Reader
from hopscope.runtime.specs import Spec
from hopscope.runtime.wrappers.kept_reader import KeptReader

MOST = 64
"""Questions at the same time for a local model, if memory and the number of questions allow it.
More would hardly shorten a pass's share of a question any further."""
OF_A_SERVER = 8
"""Requests at the same time to a server, which batches them itself and may limit their rate."""
SHARE = 2
"""One part of so many of the free memory is for the rows of questions; the rest is for reading
prompts, kept prefixes and everything else."""
SERVED = frozenset({"openai"})
"""Readers that use a server, which batches requests itself."""
SERVICES = ("searxng:", "opensearch:", "openai:")
"""Names of retrievers and judges that ask a server."""
BATCHING = frozenset({"tiny", "hf", "fid", "vllm"})
"""Local readers whose threads share passes."""


class Concurrency(NamedTuple):
    """The number of questions at the same time, and the reason for it."""

    threads: int
    reason: str


ONE = Concurrency(1, "by default")


class Situation(NamedTuple):
    """What the number depends on besides the loaded reader."""

    reader: Spec | None
    """Its name; None for one in memory."""
    foreign: bool
    """Whether other parts come from the user's files, memory or other distributions."""
    served: bool
    """Whether the corpus or the entailment asks a server."""
    timed: bool
    """Whether runs have a limit of seconds, in which they would wait for each other."""
    questions: int
    """That a worker can expect to answer, each by each workflow."""
    workers: int = 1
    """Processes that share the memory."""
    deterministic: bool = False


def chosen(reader: Reader, now: Situation, *, free_bytes: int | None = None) -> Concurrency:
    """The number for a loaded reader. It is at least 1, whatever the memory.

    Args:
        free_bytes: in place of the memory that is free on the reader's device.
    """
    if now.deterministic:
        return Concurrency(1, "--deterministic computes each alone")
    if now.timed:
        return Concurrency(1, "--max-seconds counts each alone")
    if now.reader is None or now.foreign:
        return Concurrency(1, "parts that are not Hopscope's may not bear threads")
    questions = max(1, now.questions)
    if now.reader.name in SERVED:
        return _least(Concurrency(OF_A_SERVER, "a server"), questions)
    if now.reader.name not in BATCHING:
        return Concurrency(1, f"the reader {now.reader.name} may not bear threads")
    most = (
        Concurrency(OF_A_SERVER, "a server") if now.served else Concurrency(MOST, "a local model")
    )
    inner = reader.inner if isinstance(reader, KeptReader) else reader
    if isinstance(inner, ContinuousReader):
        rows = inner.rows_in(free_bytes, share=SHARE * max(1, now.workers))
        if rows is not None and rows < most.threads:
            most = Concurrency(max(1, rows), "memory")
    return _least(most, questions)


def _least(most: Concurrency, questions: int) -> Concurrency:
    return most if most.threads <= questions else Concurrency(questions, "as many as there are")
