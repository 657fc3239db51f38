"""EoR's Table 1 in small: a learned ensemble of retrievers against the best of them alone.

Two sources each hold two thirds of the world's passages, one third in common: `Wiki`, and `SE` in
place of the paper's search engine. One question in five asks for a fact of every world, which a
reader may know. The voter's weights are learned from as many other questions of the same world. The
product's own workflow retrieves, answers and votes; its run contains each retriever's answer, too,
so all systems are compared on the same questions.

MRLR is the share of a system's wrong answers that another gets right, averaged over the others: for
a retriever the rest of the pool, for the ensemble all of it. The training questions determine the
best retriever; as in the paper, the table also has the best on the compared questions, a choice in
its favour.

The third table is Figure 5, what a perfect choice among the answers of a pool would get right, by
the size of the pool; the fourth Table 2: the best retriever by the training questions and by the
compared ones, on both.

Similarities are containment and entailment; the paper's third, BERTScore, would need an encoder.

Source: Li, Li, Chen, Xuan, Zhang 2024 (arXiv 2405.20680), sections 3.2 and 4.4, Tables 1 and 2.
"""

import random
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from hopscope.lab.eor import fitting, members
from hopscope.lab.hopland.questions import chain
from hopscope.lab.hopland.world import FIXED_FACTS
from hopscope.lab.suites import answering
from hopscope.lab.suites.columns import apart, mean
from hopscope.lab.suites.figures import table
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.known import Need
from hopscope.lab.suites.worlds import GeneratedWorld
from hopscope.lab.table_forms.table import Cell, Table, methods
from hopscope.lab.tables import upper_bound
from hopscope.runtime.execution.run import Workflow
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Entailment, Reader
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS, PromptSet
from hopscope.runtime.retrievers import bm25
from hopscope.runtime.types import Passage, Question, Run
from hopscope.tracing.answer_metrics import equivalence, exact_match
from hopscope.tracing.error_decomposition.inconsistency import inconsistency
from hopscope.tracing.scoring.metric import AnswerMetric, Case, case_of
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, differences, estimates
from hopscope.workflows import eor as workflow
from hopscope.workflows.eor import weights_file
from hopscope.workflows.eor.voting import VotingRule

NEEDS = (Need.ANSWERS, Need.PASSAGES)
METERS = ()
WORKFLOWS = ("eor",)
VARIED = ("eor.sources", "eor.weights")
SHARE = 0.5
"""The share of the limit for training, and as much for comparison: each question takes nine
answers."""
KNOWN = 5
"""One question in this many asks for a fact of every world."""
POOL = "Wiki@1,Wiki@5,SE@1,SE@5,SE@2&Wiki@2,Wiki@5@CP,PK,ReFree"
SIMILARITIES = "em=1,nli=1"
DEFAULT: Mapping[str, Any] = {
    "pool": POOL,
    "similarities": SIMILARITIES,
    **VotingRule()._asdict(),
}
ENSEMBLE = "EoR"
RIGHT = 0.8
"""From this equivalence on an answer is right, as in the paper."""


class EnsembleComparison(NamedTuple):
    """The ensemble and its members on the same questions."""

    systems: Mapping[str, Sequence[Case]]
    """The ensemble first, then the pool, on the questions that reached a vote."""
    best: str
    """The best retriever of the pool on the training questions."""
    trained: Mapping[str, Sequence[Case]]
    """The pool on the training questions that reached a vote."""
    asked: int
    """The number of compared questions, including failed ones."""


def build(inputs: SuiteInputs) -> list[Table]:
    """Train on every second question, compare on the others."""
    n = ceil(inputs.limit * SHARE)
    asked = questions(inputs, 2 * n)
    compared = compare(
        inputs.reader,
        inputs.entailment,
        inputs.passages,
        learned=asked[::2],
        asked=asked[1::2],
        options=inputs.workflow("eor", pool=POOL, similarities=SIMILARITIES),
        seed=inputs.seed,
        prompts=inputs.prompts("eor"),
    )
    return tabulate(compared, equivalence.build(inputs.entailment), seed=inputs.seed)


def questions(inputs: SuiteInputs, n: int) -> list[Question]:
    """Those of a file; or of a world questions of one hop, as in the paper, where of every `KNOWN`
    pairs the last asks for facts of every world, while there are any left."""
    if not isinstance(inputs.source, GeneratedWorld):
        return [item.question for item in inputs.mixed(n)]
    rng = random.Random(f"eor known {inputs.seed}")
    facts = iter(rng.sample(list(FIXED_FACTS.values()), len(FIXED_FACTS)))
    told = iter(inputs.questions(1, n))
    found: list[Question] = []
    for place in range(n):
        fact = next(facts, None) if place // 2 % KNOWN == KNOWN - 1 else None
        if fact is None:
            found.append(next(told).question)
        else:
            fixed = chain(rng, [fact])
            found.append(Question(text=fixed.text, answers=(fixed.answer,), id=f"known-{place}"))
    return found


def halves(passages: Sequence[Passage], *, seed: int) -> tuple[list[Passage], list[Passage]]:
    """The passages of `Wiki` and of `SE`: each is in the one, in the other or in both."""
    rng = random.Random(f"eor {seed}")
    draws = [rng.randrange(3) for _ in passages]
    wiki = [p for p, draw in zip(passages, draws, strict=True) if draw != 0]
    engine = [p for p, draw in zip(passages, draws, strict=True) if draw != 1]
    return wiki, engine


def compare(
    reader: Reader,
    entailment: Entailment,
    passages: Sequence[Passage],
    *,
    learned: Sequence[Question],
    asked: Sequence[Question],
    options: Mapping[str, Any] = DEFAULT,
    seed: int,
    prompts: PromptSet = DEFAULT_PROMPTS,
) -> EnsembleComparison:
    """Learn the weights from some questions and answer the others with them. Failed questions are
    left out.

    Args:
        options: all of the workflow; sources and weights are the suite's.

    Raises:
        UsageError: all questions failed.
    """
    wiki, engine = halves(passages, seed=seed)
    deps = Deps(
        reader=reader,
        retriever=bm25.from_passages(wiki, name="Wiki"),
        seed=seed,
        capture_content=False,
        entailment=entailment,
        prompts=prompts,
    )
    with TemporaryDirectory(prefix="hopscope-lab-") as folder:
        index, file = Path(folder) / "index", Path(folder) / "weights.json"
        bm25.create(engine, index, name="SE")

        def answer(questions: Sequence[Question], weights: str | None = None) -> list[Run]:
            own = {"sources": f"SE=bm25:{index}", "weights": weights}
            graph = workflow.build(**{**options, **own})
            voting = Workflow(members.WORKFLOW, graph, {})
            runs = [answering.answer(voting, each, deps) for each in questions]
            return [each for each in runs if each.status == "ok"]

        practised = answer(learned)
        weights = fitting.fit(practised, fitting.rule_of(options), seed=seed)
        weights_file.save(file, weights)
        runs = answer(asked, str(file))
    systems = {ENSEMBLE: [case_of(each) for each in runs], **_by_member(runs)}
    alone = fitting.votes(practised)[1].right.mean(axis=0)
    return EnsembleComparison(
        systems, weights.pool[int(alone.argmax())], _by_member(practised), len(asked)
    )


def _by_member(runs: Sequence[Run]) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for member in members.members(runs):
        found.setdefault(member.workflow, []).append(case_of(member))
    return found


def tabulate(compared: EnsembleComparison, judge: AnswerMetric, *, seed: int) -> list[Table]:
    """Each system's accuracy, and the ensemble's difference to the best of its pool."""
    bootstrap = Bootstrap(seed=seed)
    names = list(compared.systems)
    exact = {name: scores(exact_match.build(), compared.systems[name]) for name in names}
    right = {name: scores(judge, compared.systems[name], RIGHT) for name in names}
    pool = {name: right[name] for name in names if name != ENSEMBLE}
    among, above = inconsistency(pool, seed=seed), inconsistency(right, seed=seed)
    lost = {ENSEMBLE: above.mrlr[0], **dict(zip(pool, among.mrlr, strict=True))}
    columns = {
        "exact_match": {name: mean(list(map(float, exact[name])), binary=True) for name in names},
        "equivalence": {name: mean(list(map(float, right[name])), binary=True) for name in names},
        "mrlr": {name: losses(name, right if name == ENSEMBLE else pool) for name in names},
    }
    headings = {"exact_match": "EM", "equivalence": "equivalence", "mrlr": "MRLR"}
    shares = [columns[key][name] for key in ("exact_match", "equivalence") for name in names]
    found = estimates(shares, bootstrap)
    rows: list[dict[str, Cell]] = [
        {
            "system": name,
            "exact_match": found[place],
            "equivalence": found[len(names) + place],
            "mrlr": lost[name],
        }
        for place, name in enumerate(names)
    ]
    flattered = max(pool, key=lambda name: sum(pool[name]))
    rivals = {"learned": compared.best, "compared": flattered}
    gains: list[dict[str, Cell]] = []
    for by, rival in rivals.items():
        pairs = {key: (of[ENSEMBLE], of[rival]) for key, of in columns.items()}
        paired = differences([pairs["exact_match"], pairs["equivalence"]], bootstrap)
        gains.append(
            {
                "best": by,
                "exact_match": paired[0],
                "equivalence": paired[1],
                "mrlr": apart(*pairs["mrlr"], bootstrap),
            }
        )
    voted = len(compared.systems[ENSEMBLE])
    return [
        table(
            "eor",
            "EoR and its pool: accuracy and MRLR (EoR, Table 1)",
            {"system": "system", **headings},
            rows,
            f"weights learned from {_learned(compared)} questions; {voted} of {compared.asked} "
            f"others reached a vote; right: {judge.estimator} of {RIGHT} or more",
            *methods(*(each.interval for each in found)),
        ),
        table(
            "eor_gain",
            "EoR minus the best retriever of its pool",
            {"best": "best by questions", **headings},
            gains,
            f"best on the training questions: {compared.best}; on the compared: {flattered}",
        ),
        upper_bound.tabulate("eor_upper_bound", pool, bootstrap),
        _splits(compared, judge, bootstrap),
    ]


def _learned(compared: EnsembleComparison) -> int:
    return max(map(len, compared.trained.values()), default=0)


def _splits(compared: EnsembleComparison, judge: AnswerMetric, bootstrap: Bootstrap) -> Table:
    """Each retriever's accuracy on the questions of training and on the compared ones."""
    metrics = {"exact_match": (exact_match.build(), 1.0), "equivalence": (judge, RIGHT)}
    splits = {"training": compared.trained, "compared": compared.systems}
    headings = {
        f"{key}_{split}": f"{'EM' if key == 'exact_match' else key}, {split}"
        for key in metrics
        for split in splits
    }
    rows: list[dict[str, Cell]] = [{"retriever": name} for name in compared.trained]
    for key, (metric, least) in metrics.items():
        for split, of in splits.items():
            columns = [
                mean(list(map(float, scores(metric, of[name], least))), binary=True)
                for name in compared.trained
            ]
            for row, found in zip(rows, estimates(columns, bootstrap), strict=True):
                row[f"{key}_{split}"] = found
    return table(
        "eor_splits",
        "Retrievers on the questions of training and on the compared (EoR, Table 2)",
        {"retriever": "retriever", **headings},
        rows,
        "95 % intervals: clopper-pearson",
    )


def scores(metric: AnswerMetric, cases: Sequence[Case], least: float = 1.0) -> list[bool]:
    """Whether each answer is right: its score is `least` or more."""
    return [(found.value or 0.0) >= least for found in metric.score(cases)]


def losses(name: str, right: Mapping[str, Sequence[bool]]) -> Column:
    """MRLR as a ratio over questions: the share of the other systems that get a system's wrong
    answers right. It equals `tracing.error_decomposition.inconsistency`'s, whose ratios for one
    loser have one denominator.
    """
    wrong = ~np.array(right[name], bool)
    others = np.array([row for other, row in right.items() if other != name], float)
    each = np.ones(len(wrong))
    above, below = wrong * others.mean(axis=0), wrong.astype(float)
    return Column(above, below, each, each, reason="nothing that it did wrong")
