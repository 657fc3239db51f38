"""AUROC of credit rules, and of simple baselines, for steps that retrieved gold passages.

IRCoT runs on two- and three-hop questions; a case is a step that retrieved shown passages, and it
is positive if one of them is gold. Credit is the product's, by SePer and by gold_logprob. The
baselines need no reader: the search's score and 1/rank of the step's best passage, 1/place of the
step in the run, the share of the gold answer's words in the text, and the gain in TF-IDF similarity
of the evidence to question and gold answer. The rows of the perfect reader are ceilings: the rule's
credit for a reader that answers if and only if it sees all gold.

Trivedi et al. 2023 (arXiv 2212.10509) for IRCoT; Shapley 1953.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hopscope.lab.suites.answering import answer
from hopscope.lab.suites.figures import table
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import KnownQuestion, Need
from hopscope.lab.suites.perfect import Perfect
from hopscope.lab.suites.resampling import Pairs
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.errors import MissingExtraError
from hopscope.runtime.execution.run import Workflow
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import UtilityMeter
from hopscope.runtime.texts.answers import normalise
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Measurement, Passage, Provenance, Run, Step
from hopscope.tracing.appraisal import appraise
from hopscope.tracing.credit import leave_one_out, shapley, trajectory
from hopscope.tracing.games.frozen import contributions
from hopscope.workflows import ircot

K = 2
MAX_STEPS = 6
NEEDS = (Need.ANSWERS, Need.GOLD, Need.CHAINS, Need.PASSAGES)
SHARE = 4
"""One question in this many of each number of hops: a run with its appraisal is expensive."""
RULES = {"trajectory": trajectory, "leave-one-out": leave_one_out, "Shapley": shapley}
BY_LOGPROB, BY_PROBABILITY = " by gold log-probability", " by gold probability"
PERFECT = " of a perfect reader"

Similarity = Callable[[str, str], float]


class Case(NamedTuple):
    """A step that retrieved passages shown to a model."""

    question: int
    hops: int
    gold: bool
    """Whether one of them is gold."""
    scores: dict[str, float | None]
    """By rule or baseline; None if unmeasured."""


def build(inputs: SuiteInputs) -> list[Table]:
    """One table: AUROC by rule, for all questions and by hops."""
    n = -(-inputs.limit // SHARE)
    items = [item for hops in inputs.several for item in inputs.questions(hops, n)]
    similarity = _tf_idf(inputs.passages)
    cases: list[Case] = []
    runs: list[Run] = []
    for number, item in enumerate(items):
        runs.append(_run(inputs, item))
        cases += _cases(inputs, runs[-1], item, number, similarity)
    return [_table(inputs, cases, runs, items, similarity)]


def _run(inputs: SuiteInputs, item: KnownQuestion) -> Run:
    graph = ircot.build(k=K, max_steps=MAX_STEPS)
    workflow = Workflow("ircot", graph, {"k": K, "max_steps": MAX_STEPS})
    deps = Deps(inputs.reader, inputs.retriever, seed=inputs.seed, prompts=inputs.prompts("ircot"))
    return answer(workflow, item.question, deps)


def _cases(
    inputs: SuiteInputs, found: Run, item: KnownQuestion, number: int, similarity: Similarity | str
) -> list[Case]:
    """The cases of all runs that did not fail."""
    if found.status != "ok":
        return []
    brought = contributions(found)
    scores = {
        **_credits(inputs, found, inputs.seper(), ""),
        **_credits(inputs, found, inputs.gold_logprob(), BY_LOGPROB),
        **_credits(inputs, found, inputs.gold_logprob("probability"), BY_PROBABILITY),
        **_credits(inputs, found, Perfect(item), PERFECT),
        **_baselines(found, brought, item, similarity),
    }
    return [
        Case(
            number,
            item.hops,
            any(map(item.is_gold, passages)),
            {name: of.get(step) for name, of in scores.items()},
        )
        for step, passages in brought.items()
    ]


def _credits(
    inputs: SuiteInputs, found: Run, meter: UtilityMeter, suffix: str
) -> dict[str, dict[int, float | None]]:
    """The product's credit of each step, by rule."""
    rules = {module.build().name: name for name, module in RULES.items()}
    credits = appraise(
        found,
        [meter],
        [module.build() for module in RULES.values()],
        Provenance(reader=inputs.reader.name, entailment=inputs.entailment.name, seed=inputs.seed),
    )
    told: dict[str, dict[int, float | None]] = {name + suffix: {} for name in RULES}
    for credit in credits:
        if credit.rule in rules and credit.step is not None:
            told[rules[credit.rule] + suffix][credit.step] = credit.measurement.value
    return told


def _baselines(
    found: Run,
    brought: Mapping[int, Sequence[Passage]],
    item: KnownQuestion,
    similarity: Similarity | str,
) -> dict[str, dict[int, float | None]]:
    """The baselines of each step, which need no reader."""
    steps = {step.index: step for step in found.steps}
    told: dict[str, dict[int, float | None]] = {name: {} for name in BASELINES}
    before = ""
    sought = f"{item.question.text} {item.answer}"
    for place, (index, passages) in enumerate(brought.items(), start=1):
        text = " ".join(f"{passage.title} {passage.text}" for passage in passages)
        score, rank = _best(steps[index], passages)
        told["retriever score"][index] = score
        told["1/rank"][index] = 1 / rank
        told["1/place of the step"][index] = 1 / place
        told["answer's words"][index] = overlap(item.answer, text)
        if not isinstance(similarity, str):
            after = f"{before} {text}"
            told["TF-IDF gain"][index] = similarity(after, sought) - similarity(before, sought)
            before = after
    return told


BASELINES = ("retriever score", "1/rank", "1/place of the step", "answer's words", "TF-IDF gain")


def _best(step: Step, passages: Sequence[Passage]) -> tuple[float, int]:
    """Score and rank, from 1, of the first of these passages in the step's ranking."""
    keys = {passage.key for passage in passages}
    return next(
        (hit.score, rank)
        for rank, hit in enumerate(step.ranked, start=1)
        if hit.passage.key in keys
    )


def overlap(answer: str, text: str) -> float:
    """The share of the answer's words in the text, after normalisation."""
    words, there = normalise(answer).split(), set(normalise(text).split())
    return sum(word in there for word in words) / len(words) if words else 0.0


def _tf_idf(passages: Sequence[Passage]) -> Similarity | str:
    """Cosine similarity of texts by the world's TF-IDF weights, or the reason it is missing."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ModuleNotFoundError:
        return str(MissingExtraError("TF-IDF", "train"))
    vectors = TfidfVectorizer().fit([f"{p.title} {p.text}" for p in passages])

    def similarity(one: str, other: str) -> float:
        rows = vectors.transform([one, other])
        return float((rows[0] @ rows[1].T).sum())

    return similarity


def _table(
    inputs: SuiteInputs,
    cases: Sequence[Case],
    runs: Sequence[Run],
    items: Sequence[KnownQuestion],
    similarity: Similarity | str,
) -> Table:
    whole = {
        number
        for number, (found, item) in enumerate(zip(runs, items, strict=True))
        if found.status == "ok" and item.holds(found.evidence) == 1
    }
    several = sorted({item.hops for item in items})
    subsets = {"all": cases, "whole": [case for case in cases if case.question in whole]} | {
        f"hops{hops}": [case for case in cases if case.hops == hops] for hops in several
    }
    rows: list[dict[str, Cell]] = [
        {
            "rule": name,
            **{column: _auroc(inputs, of, name, similarity) for column, of in subsets.items()},
        }
        for name in (
            *RULES,
            *(name + by for by in (BY_LOGPROB, BY_PROBABILITY) for name in RULES),
            *BASELINES,
            *(name + PERFECT for name in RULES),
        )
    ]
    gold = sum(case.gold for case in cases)
    failed = sum(found.status != "ok" for found in runs)
    return table(
        "auroc",
        "AUROC for steps that retrieved a gold passage",
        {
            "rule": "",
            "all": "all runs",
            "whole": "runs that found all gold",
            **{f"hops{hops}": f"{hops} hops" for hops in several},
        },
        rows,
        f"{counted(len(cases), 'step')} of {counted(len(runs), 'IRCoT run')} (k={K}), {gold} "
        f"brought gold; {counted(len(whole), 'run')} found all gold; {counted(failed, 'run')} "
        "failed",
        f"95 % intervals: {Pairs((), (), inputs.seed).method}",
    )


def _auroc(
    inputs: SuiteInputs, cases: Sequence[Case], name: str, similarity: Similarity | str
) -> Measurement:
    if name == "TF-IDF gain" and isinstance(similarity, str):
        return Measurement(value=None, reason=similarity, estimator="auroc")
    numbers = {number: i for i, number in enumerate(dict.fromkeys(c.question for c in cases))}
    pairs = Pairs(
        [float(case.gold) for case in cases],
        [numbers[case.question] for case in cases],
        inputs.seed,
    )
    return pairs.auroc([case.scores[name] for case in cases])
