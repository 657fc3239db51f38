"""EoR: answer with several retrievers and choose the answer most similar to the others.

Li, Li, Chen, Xuan, Zhang: Unraveling and Mitigating Retriever Inconsistencies in
Retrieval-Augmented Large Language Models, Findings of ACL 2024 (arXiv 2405.20680).

    START ── retrieve ── rerank ── compress ── generate ──┬── vote ── END
                ↑                                         │
                └─────────────────────────────────────────┘  for each retriever of the pool

    retrieve: one source after the other; rerank (@RR): one window after the other by the reader,
    or the whole list by a model of its own, as in the paper with Contriever; compress (@CP): a
    summary by the reader. Nodes that are not needed, or have run already, are skipped.
"""

from functools import partial

from langgraph.graph import END, START

from hopscope.runtime.components import Count, Share
from hopscope.runtime.compressors import summary
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.execution.step import step
from hopscope.runtime.prompting.fitting import generate as generation
from hopscope.workflows.eor import _prompts, _similarities, weights_file
from hopscope.workflows.eor._ensemble import (
    EnsembleGraph,
    EnsemblePlan,
    EnsembleState,
    EnsembleUpdate,
    make_plan,
)
from hopscope.workflows.eor.ballot import Voter
from hopscope.workflows.eor.voting import Pooling, VotingRule

PROMPT_FOLDERS = ("eor", "selection", "compressor", "meter")  # also of the stages in its pool
NODES = ["retrieve", "rerank", "compress", "generate"]


@step("retrieve")
def retrieve(state: EnsembleState, deps: Deps, *, plan: EnsemblePlan) -> EnsembleUpdate:
    source = plan.to_retrieve(state) or ""
    found = plan.sources.find(deps, source, state["question"].text)
    lists = {**state.get("lists", {}), source: found}
    return {"lists": lists, "evidence": plan.evidence(state, lists), "output": source}


@step("rank")
def rerank(state: EnsembleState, deps: Deps, *, plan: EnsemblePlan) -> EnsembleUpdate:
    """Rank one window; after the last, the list is ranked."""
    name, ranking, ok, last = plan.rank_window(state, deps)
    lists = {**state["lists"], name: ranking} if last else state["lists"]
    update: EnsembleUpdate = {"lists": lists, "ranking": ranking, "output": name}
    update |= {"windows": 0 if last else state.get("windows", 0) + 1}
    update |= {"evidence": plan.evidence(state, lists)}
    return update if ok is None else {**update, "parse_ok": ok}


@step("generate")
def compress(state: EnsembleState, deps: Deps, *, plan: EnsemblePlan) -> EnsembleUpdate:
    ask = partial(summary.prompt, state["question"].text, prompts=deps.prompts)
    reply = generation(deps, plan.document(state), ask, max_tokens=summary.tokens())
    text = summary.cut(reply.text)
    return {"summary": text, "evidence": plan.evidence(state), "output": text}


@step("generate")
def generate(
    state: EnsembleState, deps: Deps, *, plan: EnsemblePlan, max_tokens: int
) -> EnsembleUpdate:
    """Answer from the document or its summary; closed-book without either."""
    ask = partial(_prompts.answer, deps.prompts, state["question"].text)
    reply = generation(deps, plan.read(state), ask, max_tokens=max_tokens, stop=("\n",))
    answers = (*state.get("answers", ()), reply.text.strip())
    return {"answers": answers, "summary": None, "evidence": plan.evidence(state)}


@step("vote")
def vote(state: EnsembleState, deps: Deps, *, plan: EnsemblePlan, voter: Voter) -> EnsembleUpdate:
    """Choose y_{m*}; its retriever's passages become the evidence."""
    ballot = voter.vote(state["question"].text, state["answers"], deps.entailment)
    found, answer = plan.found_by(ballot.winner, state), ballot.answers[ballot.winner]
    said: EnsembleUpdate = {"answer": answer, "output": ballot.model_dump_json()}
    return {**said, "evidence": found, "stop_reason": "answered"}


def build(
    *,
    pool: str = "Wiki@5,Wiki@10@CP,PK,ReFree",
    sources: str = "",
    depth: Count = 20,
    similarities: str = "em=1,bertscore=1,nli=1",
    pooling: Pooling = "mean",
    same: Share = 0.8,
    threshold: Share = 0.1,
    zero_weight_votes: bool = False,
    weights: str | None = None,
    encoder: str | None = None,
    layer: int = -1,
    idf: bool = False,
    max_tokens: Count = 32,
) -> EnsembleGraph:
    """`weights` is a file by `hopscope eor fit`; without one all retrievers have equal weights."""
    plan = make_plan(pool, sources, depth)
    rule = VotingRule(pooling, same, threshold, zero_weight_votes)
    bert = _similarities.encoder(encoder, layer, idf) if encoder else None
    voter = Voter(weights_file.choose(weights, plan.names, similarities, rule), rule, bert)
    graph = EnsembleGraph(EnsembleState, context_schema=Deps)
    graph.add_node("retrieve", retrieve(plan=plan))
    graph.add_node("rerank", rerank(plan=plan))
    graph.add_node("compress", compress(plan=plan))
    graph.add_node("generate", generate(plan=plan, max_tokens=max_tokens))
    graph.add_node("vote", vote(plan=plan, voter=voter))
    graph.add_conditional_edges(START, plan.next_step, NODES)
    graph.add_conditional_edges("retrieve", plan.next_step, NODES)
    graph.add_conditional_edges("rerank", plan.next_step, NODES[1:])
    graph.add_edge("compress", "generate")
    graph.add_conditional_edges("generate", plan.next_step, [*NODES, "vote"])
    graph.add_edge("vote", END)
    return graph
