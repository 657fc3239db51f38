"""Which passages a run showed to a model, and in which order it ranked them.

The set is the text that the answer can have come from. The order is the run's ranking, the one
that rankings in TREC's form, eRAG and labels go by:

- the last order that a step decided, by ranking (RankGPT, ITEM-Ar), choosing (ITEM-As, a vote) or
  both (ITEM-ARs: the chosen first, then the others as last ranked);
- what no step decided about stands behind, in order of first showing. RankGPT shows the tail of
  its list first, so the order of showing alone would turn its ranking around. What only a stage of
  the retriever was shown, such as a reranker, comes last: the stage put the best in front.
"""

from collections.abc import Iterable

from hopscope.runtime import key_lists
from hopscope.runtime.types import Passage, Run, Step


def passages_by_key(run: Run) -> dict[str, Passage]:
    """All passages of a run."""
    found: dict[str, Passage] = {}
    for step in run.steps:
        for passage in (*step.evidence, *(hit.passage for hit in step.ranked)):
            found.setdefault(passage.key, passage)
    return found


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
    """All keys shown: first those that nodes of the workflow showed, then those that only the
    stages of a retriever did."""
    by_stages_last = sorted(steps, key=lambda step: step.kind == "retrieve")
    return dict.fromkeys(key for step in by_stages_last for key in step.shown)


def _decided(step: Step) -> tuple[str, ...]:
    """The keys that a step put in front, best first; none where it decided no order."""
    if step.kind not in ("rank", "judge", "vote"):
        return ()
    listed = key_lists.read(step.output)
    if listed and step.kind == "rank":
        return listed  # more than the first k, which are its evidence
    if listed == () or (listed is None and step.kind == "judge"):
        return ()  # nothing was chosen; Self-Ask judges answers, not passages
    # Of a ballot of k-sampling the evidence is still all candidates: only its vote chooses.
    return tuple(passage.key for passage in step.evidence)
