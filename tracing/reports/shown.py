"""The passages that a run showed to a model, in the order of the run's ranking.

The answer can only have come from these passages. TREC files, eRAG and labels use this ranking:

- the last order that a step decided, by ranking (RankGPT, ITEM-Ar), choosing (ITEM-As, a vote) or
  both (ITEM-ARs: the chosen first, then the others as last ranked);
- the other passages follow, in order of first showing. RankGPT shows the tail of its list first, so
  the order of showing alone would reverse its ranking. Passages that only a stage of the retriever
  saw, such as a reranker, come last: the stage put the best in front.
"""

from collections.abc import Iterable

from hopscope.runtime import key_lists
from hopscope.runtime.types import Passage, Run, Step


def passages_by_key(run: Run) -> dict[str, Passage]:
    """All passages of a run."""
    passages: dict[str, Passage] = {}
    for step in run.steps:
        for passage in (*step.evidence, *(hit.passage for hit in step.ranked)):
            passages.setdefault(passage.key, passage)
    return passages


def shown_passages(run: Run) -> dict[str, Passage]:
    """The run's ranking: the passages that some step showed a model, by key, best first."""
    known = passages_by_key(run)
    shown = _shown(run.steps)
    ranked: dict[str, None] = {}
    for step in run.steps:
        ranked = dict.fromkeys([*_decided(step), *ranked])
    order = dict.fromkeys([*(key for key in ranked if key in shown), *shown])
    return {key: known[key] for key in order if key in known}


def asked_a_model(step: Step) -> bool:
    return bool(step.exchanges or step.shown)


def _shown(steps: Iterable[Step]) -> dict[str, None]:
    """All keys shown: first those shown by nodes of the workflow, then those shown only by stages
    of a retriever."""
    by_stages_last = sorted(steps, key=lambda step: step.kind == "retrieve")
    return dict.fromkeys(key for step in by_stages_last for key in step.shown)


def _decided(step: Step) -> tuple[str, ...]:
    """The keys that a step put in front, best first; empty if it decided no order."""
    if step.kind not in ("rank", "judge", "vote"):
        return ()
    listed = key_lists.read(step.output)
    if listed and step.kind == "rank":
        return listed  # more than the first k, which are its evidence
    if listed == () or (listed is None and step.kind == "judge"):
        return ()  # nothing was chosen; Self-Ask judges answers, not passages
    # A ballot of k-sampling keeps all candidates as evidence: only its vote chooses.
    return tuple(passage.key for passage in step.evidence)
