"""Learns the weights of EoR's voter from questions with known answers.

The pool answers each question once, and similarities are computed once; the search then repeats
the votes with other weights. Accuracy is piecewise constant in the weights, so the search starts
several times and keeps the best point of all.

Source: Li et al. 2024 (arXiv 2405.20680), section 4.2: Nelder-Mead, all weights in [0, 0.6], with
exact match, BEM or their mean as objective; here any metrics.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from hopscope.lab.dataset.ordering import Sample
from hopscope.runtime.corpora.records.json_records import JsonRecords
from hopscope.runtime.errors import HopscopeError, UsageError
from hopscope.runtime.types import Question, Run
from hopscope.tracing.answer_metrics import exact_match
from hopscope.tracing.scoring.metric import AnswerMetric, Case
from hopscope.workflows.eor import voting
from hopscope.workflows.eor.ballot import Ballot
from hopscope.workflows.eor.voting import Floats, VotingRule
from hopscope.workflows.eor.weights_file import Weights

UPPER = 0.6
"""The upper bound of every weight, so that no retriever decides alone."""

QUESTION_KEYS = ("question", "query")
ANSWER_KEYS = ("golden_answers", "answers", "answer")


class Optimum(NamedTuple):
    """The best point of a search."""

    point: Floats
    value: float
    evaluations: int


class Votes(NamedTuple):
    """The voter's data of all questions, independent of the weights."""

    similarities: Floats  # (question, similarity, answer, answer)
    right: Floats  # (question, answer): the mean of the metrics


def questions(path: Path) -> list[Question]:
    """The questions of a file of `{id, question, golden_answers}`.

    Raises:
        CorpusError: a record lacks its question or its answers.
        UsageError: the file is empty.
    """
    records = JsonRecords(path)
    found: list[Question] = []
    for record in records:
        text = next((record.value[key] for key in QUESTION_KEYS if key in record.value), None)
        answers = next((record.value[key] for key in ANSWER_KEYS if key in record.value), None)
        answers = [answers] if isinstance(answers, str) else answers
        if not isinstance(text, str) or not text.strip():
            raise records.fail(record.line, f"needs a text under {' or '.join(QUESTION_KEYS)}")
        right = isinstance(answers, list) and answers and all(isinstance(a, str) for a in answers)
        if not right:
            raise records.fail(record.line, f"needs answers under {' or '.join(ANSWER_KEYS)}")
        id = str(record.value.get("id", len(found)))
        found.append(Question(text=text, answers=tuple(answers or ()), id=id))
    if not found:
        raise UsageError(f"{path} holds no questions: give one JSON object per line")
    return found


def votes(
    runs: Iterable[Run], metrics: Sequence[AnswerMetric] = ()
) -> tuple[tuple[str, ...], Votes]:
    """The names of the similarities used, and the votes of finished runs.

    Args:
        metrics: an answer's correctness is their mean; empty is exact match. Questions that one
            of them cannot measure are left out.

    Raises:
        HopscopeError: a run did not reach its vote, or a model failed.
        UsageError: no question is left to learn from.
    """
    ballots = [(ballot_of(run), run.question) for run in runs]
    names = tuple(ballots[0][0].similarities) if ballots else ()
    if not names:
        raise UsageError(
            "no weights can be learned: give at least one question, and for the "
            "similarities an entailment (--entailment) or the option encoder=MODEL (-o)"
        )
    cases = [Case(question, answer) for ballot, question in ballots for answer in ballot.answers]
    told = [metric.score(cases) for metric in metrics or [exact_match.build()]]
    values = [[np.nan if m.value is None else m.value for m in found] for found in told]
    right = np.mean(values, axis=0).reshape(len(ballots), -1)
    measured = ~np.isnan(right).any(axis=1)
    if not measured.any():
        reason = next(m.reason for found in told for m in found if m.value is None)
        raise UsageError(f"no weights can be learned: no answer can be judged ({reason})")
    tensors = [[ballot.similarities[name] for name in names] for ballot, _ in ballots]
    return names, Votes(np.array(tensors, float)[measured], right[measured])


def ballot_of(run: Run) -> Ballot:
    """
    Raises:
        HopscopeError: the run did not reach its vote.
    """
    if run.status != "ok" or not run.steps or run.steps[-1].kind != "vote":
        reason = run.error.message if run.error else "its run did not reach the vote"
        raise HopscopeError(f"question {run.question.text!r}: {reason}")
    return Ballot.model_validate_json(run.steps[-1].output or "")


def rule_of(options: Mapping[str, Any]) -> VotingRule:
    """The voting rule of these options of the workflow."""
    return VotingRule(**{name: options[name] for name in VotingRule._fields})


def accuracy(votes: Votes, weights: Floats, rule: VotingRule) -> float:
    """The mean correctness of the chosen answers; `weights` are ω^s, then ω^r."""
    kinds = votes.similarities.shape[1]
    similarity = voting.weighted(votes.similarities, weights[:kinds])
    winner = voting.vote(similarity, weights[kinds:], rule).winner
    return float(np.take_along_axis(votes.right, winner[:, None], axis=1).mean())


def search(
    objective: Callable[[Floats], float],
    starts: Sequence[Floats],
    *,
    evaluations: int,
    upper: float = UPPER,
) -> Optimum:
    """The highest value in [0, upper]^d that Nelder-Mead reaches from any of the starts.

    The first simplex is the start with each coordinate set to the farther bound, because a flat
    objective needs wide steps. It uses at most `evaluations` in all; of equal values the first is
    kept.
    """
    best = Optimum(starts[0], -np.inf, 0)
    share = max(1, evaluations // len(starts))

    def cost(point: Floats) -> float:
        nonlocal best
        value = objective(point)
        met = best.evaluations + 1
        best = (
            Optimum(point.copy(), value, met)
            if value > best.value
            else best._replace(evaluations=met)
        )
        return -value

    for start in starts:
        simplex = np.tile(start, (len(start) + 1, 1))
        for axis, value in enumerate(start):
            simplex[axis + 1, axis] = upper if value < upper / 2 else 0.0
        minimize(
            cost,
            start,
            method="Nelder-Mead",
            bounds=[(0.0, upper)] * len(start),
            options={"initial_simplex": simplex, "maxfev": share, "xatol": 1e-9, "fatol": 1e-12},
        )
    return best


def starting_points(votes: Votes, *, restarts: int, seed: int) -> list[Floats]:
    """Equal weights; weights by each retriever's accuracy; then random weights."""
    kinds, retrievers = votes.similarities.shape[1:3]
    alone = votes.right.mean(axis=0)
    by_accuracy = UPPER * alone / max(alone.max(), 1e-12)
    half = np.full(kinds, UPPER / 2)
    fixed = [np.full(kinds + retrievers, UPPER / 2), np.concatenate([half, by_accuracy])]
    random = np.random.default_rng(seed)
    more = (random.uniform(0, UPPER, kinds + retrievers) for _ in range(restarts))
    return [point for point, _ in zip([*fixed, *more], range(max(1, restarts)), strict=False)]


def fit(
    runs: Iterable[Run],
    rule: VotingRule,
    *,
    metrics: Sequence[AnswerMetric] = (),
    evaluations: int = 2000,
    restarts: int = 5,
    seed: int = 0,
    source: str = "",
    sample: Sample | None = None,
) -> Weights:
    """Weights for a pool, from its runs.

    Args:
        source, sample: the questions' origin and selection, for the record.

    Raises:
        HopscopeError: as `votes`.
    """
    runs, metrics = list(runs), metrics or [exact_match.build()]
    names, cast = votes(runs, metrics)
    pool = ballot_of(runs[0]).pool
    starts = starting_points(cast, restarts=restarts, seed=seed)
    found = search(lambda point: accuracy(cast, point, rule), starts, evaluations=evaluations)
    best = [round(float(weight), 6) for weight in found.point]
    alone = cast.right.mean(axis=0)
    return Weights(
        pool=pool,
        retrievers=tuple(best[len(names) :]),
        similarities=dict(zip(names, best[: len(names)], strict=True)),
        rule=rule._asdict(),
        learned={
            "source": source,
            "sample": None if sample is None else sample.model_dump(mode="json"),
            "questions": len(cast.right),
            "accuracy": accuracy(cast, np.array(best), rule),
            "alone": dict(zip(pool, map(float, alone), strict=True)),
            "best_alone": float(alone.max()),
            "oracle": float(cast.right.max(axis=1).mean()),
            "metric": " + ".join(metric.estimator for metric in metrics),
            "evaluations": found.evaluations,
            "restarts": len(starts),
            "seed": seed,
        },
    )
