"""Rollouts of R1-Searcher: one JSON object each, searches as `<|begin_of_query|>…<|end_of_query|>`
and `<|begin_of_documents|>(1)title   text …<|end_of_documents|>`.

`question` holds the question, `answer` the right answer, `gen_text_store` (or `output`, `response`)
the rollout.

Source: Song et al. 2025, arXiv 2503.05592, and its public code.
"""

from hopscope.store.trajectories import fields
from hopscope.store.trajectories.sources import RunFormat
from hopscope.store.trajectories.tags import TaggedRollouts


def build() -> RunFormat:
    return TaggedRollouts(
        "r1_searcher",
        query=("<|begin_of_query|>", "<|end_of_query|>"),
        documents=("<|begin_of_documents|>", "<|end_of_documents|>"),
        rules=("parentheses", "whole"),
        golds=(*fields.GOLDS, "answer"),
    )
