"""Rollouts of Search-R1: one JSON object each, searches as `<search>…</search>` and
`<information>Doc 1(Title: "…") text …</information>`.

The rollout stands in `output`, `response` or a field like these, as verl writes them, too; the
question in `question`, or behind `Question:` in `prompt` or `input`. Search-R1 cuts long results
off, with their closing tag: such a rollout cannot be read.

Source: Jin et al. 2025, arXiv 2503.09516, and its public code.
"""

from hopscope.store.trajectories.sources import RunFormat
from hopscope.store.trajectories.tags import TaggedRollouts


def build() -> RunFormat:
    return TaggedRollouts(
        "search_r1",
        query=("<search>", "</search>"),
        documents=("<information>", "</information>"),
        rules=("doc_title", "parentheses", "whole"),
    )
