"""A reader's replies with their exact probabilities, by best-first search of its answer tree.

A node is the beginning of a reply; its probability is the product of its tokens'. The search
expands the likeliest nodes until the replies it has reached leave no more than `bound` of the
probability uncovered, or `budget` next-token distributions have been read, as many as sampling
reads for that many tokens. There is no sampling: the same reader gives the same result.

Invariant: reached and uncovered probability add up to 1, whatever branches were pruned.

Source: ours; the search is uniform-cost search (Dijkstra 1959) over -ln p.
"""

from heapq import heappop, heappush
from math import exp, fsum
from typing import NamedTuple

from hopscope.runtime.ports import Branch, BranchingReader, BranchRequest
from hopscope.runtime.types import GenerationRequest

WIDTH = 32
"""The most nodes expanded together."""

Node = tuple[float, tuple[int, ...]]
"""-ln p of a beginning and its tokens: the heap yields the likeliest first."""


Texts = dict[str, list[float]]
"""The probabilities of the token sequences that spell a text, by text."""


class Answer(NamedTuple):
    """A distinct reply."""

    text: str
    """Without surrounding spaces."""
    probability: float
    """Sum over all reached token sequences that spell it."""


class Enumeration(NamedTuple):
    """The result of a search."""

    answers: tuple[Answer, ...]
    """Complete replies, in the order they were first reached; a longer search only appends."""
    uncovered: float
    """Probability of all replies that were not reached."""
    tokens: int
    """Next-token distributions that were read."""
    cut: tuple[Answer, ...] = ()
    """Replies that the length limit cut off, in the same order. Their meaning is unknown."""


def enumerate_answers(
    reader: BranchingReader, request: GenerationRequest, *, bound: float, budget: int
) -> Enumeration:
    """The likeliest replies to a request.

    Raises:
        ReaderError: the model failed or the prompt does not fit it.
    """
    # If no expansion covers more than this, the whole budget covers no more than the bound.
    floor = bound / budget
    frontier: list[Node] = [(0.0, ())]
    complete: Texts = {}
    cut: Texts = {}
    uncovered, tokens = 1.0, 0
    while frontier and uncovered > bound and tokens < budget:
        nodes = _best(frontier, uncovered - bound, min(WIDTH, budget - tokens))
        tokens += len(nodes)
        requests = [BranchRequest(request, ids, min(1.0, floor * exp(cost))) for cost, ids in nodes]
        for node, branches in zip(nodes, reader.branch(requests), strict=True):
            _expand(node, branches, frontier, complete, cut)
        reached = (p for texts in (complete, cut) for each in texts.values() for p in each)
        uncovered = max(0.0, 1 - fsum(reached))
    return Enumeration(_answers(complete), uncovered, tokens, _answers(cut))


def _answers(texts: Texts) -> tuple[Answer, ...]:
    return tuple(Answer(text, fsum(each)) for text, each in texts.items())


def _best(frontier: list[Node], missing: float, most: int) -> list[Node]:
    """Pop the fewest likeliest nodes that could cover the missing probability, at most `most`."""
    nodes: list[Node] = []
    mass = 0.0
    while frontier and len(nodes) < most and mass < missing:
        nodes.append(heappop(frontier))
        mass += exp(-nodes[-1][0])
    return nodes


def _expand(
    node: Node, branches: list[Branch], frontier: list[Node], complete: Texts, cut: Texts
) -> None:
    cost, ids = node
    for token, logprob, text, by_length in branches:
        if text is None:
            heappush(frontier, (cost - logprob, (*ids, token)))
        else:
            texts = cut if by_length else complete
            texts.setdefault(text.strip(), []).append(exp(logprob - cost))
