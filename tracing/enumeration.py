"""A reader's replies with their exact probabilities, by best-first search of its answer tree.

A node is the beginning of a reply; its probability is the product of its tokens'. The search
expands the likeliest nodes until the replies it has found leave no more than `bound` of the
probability uncovered, or `budget` next-token distributions have been read, as many as sampling
reads for that many tokens. Nothing is drawn: the same reader gives the same answer.

Invariant: what was found and what is uncovered add up to 1, whatever was left out on the way.

Source: ours; the search is uniform-cost search (Dijkstra 1959) over -ln p.
"""

from heapq import heappop, heappush
from math import exp, fsum
from typing import NamedTuple

from hopscope.runtime.ports import Branch, BranchingReader, BranchRequest
from hopscope.runtime.types import GenerationRequest

WIDTH = 32
"""Nodes expanded together at most."""

Node = tuple[float, tuple[int, ...]]
"""-ln p of a beginning and its tokens: the heap yields the likeliest first."""


class Answer(NamedTuple):
    """A distinct reply."""

    text: str
    """Without space around it."""
    probability: float
    """Of all token sequences found that spell it."""


class Enumeration(NamedTuple):
    """What the search found."""

    answers: tuple[Answer, ...]
    """In the order they were first reached, which a longer search only goes on with."""
    uncovered: float
    """Probability of all replies that were not reached."""
    tokens: int
    """Next-token distributions that were read."""


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
    found: dict[str, list[float]] = {}
    uncovered, tokens = 1.0, 0
    while frontier and uncovered > bound and tokens < budget:
        nodes = _best(frontier, uncovered - bound, min(WIDTH, budget - tokens))
        tokens += len(nodes)
        asked = [BranchRequest(request, ids, min(1.0, floor * exp(cost))) for cost, ids in nodes]
        for node, branches in zip(nodes, reader.branch(asked), strict=True):
            _expand(node, branches, frontier, found)
        uncovered = max(0.0, 1 - fsum(p for each in found.values() for p in each))
    answers = (Answer(text, fsum(each)) for text, each in found.items())
    return Enumeration(tuple(answers), uncovered, tokens)


def _best(frontier: list[Node], missing: float, most: int) -> list[Node]:
    """Takes as few of the likeliest nodes as could cover what is missing, `most` at most."""
    nodes: list[Node] = []
    mass = 0.0
    while frontier and len(nodes) < most and mass < missing:
        nodes.append(heappop(frontier))
        mass += exp(-nodes[-1][0])
    return nodes


def _expand(
    node: Node, branches: list[Branch], frontier: list[Node], found: dict[str, list[float]]
) -> None:
    cost, ids = node
    for token, logprob, text in branches:
        if text is None:
            heappush(frontier, (cost - logprob, (*ids, token)))
        else:
            found.setdefault(text.strip(), []).append(exp(logprob - cost))
