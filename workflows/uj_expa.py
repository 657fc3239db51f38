"""UJ-ExpA: answer and select the useful passages in one reply, answer anew from those.

Zhang, Zhang, Guo, de Rijke, Fan, Cheng: Are Large Language Models Good at Utility Judgments?,
SIGIR 2024 (arXiv 2403.19216); in the prompts of ITEM (arXiv 2406.11290), whose baseline it is.

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
        judgment=judgment, first="explicit", candidates=candidates, max_tokens=max_tokens
    )
