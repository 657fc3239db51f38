"""UJ-ImpA: name the information needed and select the useful passages in one reply.

A baseline of ITEM: Zhang, Bi, Guo, Cheng: An Iterative Utility Judgment Framework Inspired by
Philosophical Relevance via LLMs, Findings of ACL 2026 (arXiv 2406.11290).

    START ── retrieve ── judge_utility ── answer ── END
"""

from hopscope.runtime.components import Count
from hopscope.runtime.judgments.utility_judgment import Judgment
from hopscope.workflows.selection.choosing import Graph
from hopscope.workflows.selection.single_shot import single_shot

PROMPT_FOLDERS = ("selection",)
"""Where its prompts are, other than in a folder of its own name."""


def build(
    *, judgment: Judgment = "listwise", candidates: Count = 10, max_tokens: Count = 32
) -> Graph:
    return single_shot(
        judgment=judgment, first="implicit", candidates=candidates, max_tokens=max_tokens
    )
