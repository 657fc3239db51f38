"""Do systems fail on the same questions? EoR's relative win ratios, of answers and of errors.

RWR(i, j) is the share of j's wrong answers that i gets right; RWR_E(i, j) that of j's errors E
which i avoids, among the questions where the error is defined for both. MRWR averages a system's
wins over the others, MRLR its losses; the oracle is right if any system is.

Invariant: a ratio with the denominator 0 is missing with a reason, and means skip it (the paper
prints -1).

Source: Li et al. 2024 (arXiv 2405.20680), equations 1-3, 5 and appendix B.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hopscope.runtime.types import Measurement, Record
from hopscope.tracing.error_decomposition.errors import AnswerErrors
from hopscope.tracing.statistics.averages import share
from hopscope.tracing.statistics.intervals import of_resamples

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Matrix = tuple[tuple[Measurement | None, ...], ...]
"""Rows win over columns; None on the diagonal."""
ErrorKind = Literal["retriever", "hallucination", "extraction", "lucky_guess"]
KINDS: tuple[ErrorKind, ...] = ("retriever", "hallucination", "extraction", "lucky_guess")
RESAMPLES = 2000


class Inconsistency(Record):
    """Systems compared on the same questions."""

    systems: tuple[str, ...]
    questions: int
    accuracy: tuple[Measurement, ...]
    rwr: Matrix
    mrwr: tuple[Measurement, ...]
    mrlr: tuple[Measurement, ...]
    oracle: Measurement


def inconsistency(right: Mapping[str, Sequence[bool]], *, seed: int = 0) -> Inconsistency:
    """Whether each system is right on each question, questions in the same order for all.

    Args:
        seed: seed of the bootstrap over questions behind the means' intervals.

    Raises:
        ValueError: the systems have different numbers of questions.
    """
    table = _table(right)  # (system, question)
    systems, questions = table.shape
    count = "share of questions, interval=clopper-pearson"
    nothing = "no question that all answered"
    return Inconsistency(
        systems=tuple(right),
        questions=questions,
        accuracy=tuple(
            share(int(row.sum()), questions, estimator=count, missing=nothing) for row in table
        ),
        rwr=_ratios(~table, np.ones((systems, systems, questions), bool), "rwr"),
        mrwr=_means(table, 1, "mrwr", seed),
        mrlr=_means(table, 0, "mrlr", seed),
        oracle=share(int(table.any(axis=0).sum()), questions, estimator=count, missing=nothing),
    )


def error_ratios(systems: Mapping[str, Sequence[AnswerErrors]]) -> dict[ErrorKind, Matrix]:
    """RWR_E of each error, systems in the given order.

    Raises:
        ValueError: the systems have different numbers of questions.
    """
    tables = {
        kind: _table({name: [getattr(e, kind) for e in errors] for name, errors in systems.items()})
        for kind in KINDS
    }
    retriever, neither = tables["retriever"], tables["retriever"] & tables["hallucination"]
    defined: dict[ErrorKind, Bools] = {
        "retriever": np.ones_like(retriever),
        "hallucination": np.ones_like(retriever),
        "extraction": ~retriever,
        "lucky_guess": neither,
    }
    return {
        kind: _ratios(tables[kind], defined[kind][:, None] & defined[kind][None], f"rwr_{kind}")
        for kind in KINDS
    }


def _table(rows: Mapping[str, Sequence[bool]]) -> Bools:
    lengths = {len(row) for row in rows.values()}
    if len(lengths) > 1:
        raise ValueError(f"systems with {sorted(lengths)} questions cannot be compared")
    width = lengths.pop() if lengths else 0
    return np.array(list(rows.values()), bool).reshape(len(rows), width)


def _ratios(made: Bools, counted: Bools, name: str) -> Matrix:
    """The share of j's errors that i avoids.

    Args:
        made: (system, question).
        counted: (system, system, question), whether a question counts for the pair.
    """
    systems = range(len(made))
    return tuple(
        tuple(
            None
            if i == j
            else share(
                int((~made[i] & made[j] & counted[i, j]).sum()),
                int((made[j] & counted[i, j]).sum()),
                estimator=f"{name}(interval=clopper-pearson)",
                missing="nothing that the other did wrong",
            )
            for j in systems
        )
        for i in systems
    )


def _means(right: Bools, axis: Literal[0, 1], name: str, seed: int) -> tuple[Measurement, ...]:
    """Each system's mean RWR over the others: along rows its wins, along columns its losses."""
    systems, questions = right.shape
    estimator = f"{name}(interval=percentile bootstrap over questions, resamples={RESAMPLES})"
    won = (right[:, None] & ~right[None]).reshape(systems * systems, questions)
    off_diagonal = ~np.eye(systems, dtype=bool)

    def means(times: Floats) -> Floats:  # (resample, question) to (resample, system)
        wins = (times @ won.T).reshape(-1, systems, systems)
        lost = (times @ (~right).T)[:, None]
        counted = (lost > 0) & off_diagonal
        ratios = np.divide(wins, lost, out=np.zeros_like(wins), where=counted)
        others = counted.sum(axis=1 + axis)
        values: Floats = np.full(others.shape, np.nan)
        np.divide(ratios.sum(axis=1 + axis), others, out=values, where=others > 0)
        return values

    [point] = means(np.ones((1, questions)))
    # The number of times each question is drawn, in place of the questions themselves.
    drawn = np.empty((0, questions))
    if questions:
        evenly = np.full(questions, 1 / questions)
        drawn = np.random.default_rng(seed).multinomial(questions, evenly, RESAMPLES).astype(float)
    resampled = means(drawn)
    return tuple(
        _mean(value, resampled[:, i].tolist(), questions, seed, estimator)
        for i, value in enumerate(point.tolist())
    )


def _mean(
    value: float, drawn: Sequence[float], questions: int, seed: int, estimator: str
) -> Measurement:
    if not np.isfinite(value):
        reason = "no other system did anything wrong, or there is no other"
        return Measurement(value=None, reason=reason, n=questions, estimator=estimator)
    low, high = of_resamples(drawn) or (None, None)
    return Measurement(value=value, n=questions, seed=seed, estimator=estimator, low=low, high=high)
