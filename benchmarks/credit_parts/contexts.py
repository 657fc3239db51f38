"""The contexts that a run's measurement needs."""

from collections.abc import Sequence

from credit_parts.bench import SEED, N
from hopscope.runtime.types import GenerationRequest, Passage, Run
from hopscope.tracing.asking import asking
from hopscope.tracing.asking.context import cut
from hopscope.tracing.games.frozen import over_steps

MAX_TOKENS = 64
CONTEXT_WORDS = 512


def contexts(found: Run, *, every: bool) -> dict[frozenset[int], GenerationRequest]:
    """The reader's requests for each coalition: `every` one, or those along the trajectory."""
    game = over_steps(found)
    along = [frozenset(game.players[:t]) for t in range(len(game.players) + 1)]
    chosen = [
        frozenset(player for i, player in enumerate(game.players) if bits >> i & 1)
        for bits in range(1 << len(game.players))
    ]
    requests = {}
    for coalition in chosen if every else along:
        evidence = game.evidence(coalition)
        assert isinstance(evidence, tuple)
        requests[coalition] = request_of(found.question.text, evidence)
    return requests


def request_of(question: str, evidence: Sequence[Passage]) -> GenerationRequest:
    """The reader's request for N answers from the evidence."""
    [request] = asking.requests(
        question,
        [cut(evidence, CONTEXT_WORDS).passages],
        n=N,
        temperature=1.0,
        max_tokens=MAX_TOKENS,
        seed=SEED,
    ).values()
    return request
