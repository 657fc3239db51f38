"""SePer by several entailment models on the same replies, and the correlation between them.

The reader's replies to a context are drawn once, and every model judges them.

Source: Dai et al. 2025 (arXiv 2503.01478), appendix A.2.4, Table 8 and Figure 7. The paper
correlates SePer; this is ΔSePer-S, the utility of a context.
"""

from collections.abc import Mapping, Sequence

from hopscope.lab.suites.figures import table
from hopscope.lab.suites.inputs import SuiteInputs
from hopscope.lab.suites.resampling import Pairs
from hopscope.lab.suites.rivals import HARD, SOFT, Contexts, ContextScores, RivalScores, of_beliefs
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.runtime.ports import Entailment
from hopscope.runtime.texts.counting import counted
from hopscope.runtime.types import Measurement, Question


def tell(
    inputs: SuiteInputs, scores: RivalScores, question: Question, contexts: Contexts
) -> dict[str, ContextScores]:
    """SePer of the contexts by each model but the first, by the rows' names in tables."""
    found: dict[str, ContextScores] = {}
    for entailment in inputs.compared:
        beliefs = inputs.seper(entailment=entailment).beliefs(question, contexts)
        for metric in (SOFT, HARD):
            found[_by(metric, entailment)] = of_beliefs(beliefs, scores.of_belief[metric])
    return found


def notes(inputs: SuiteInputs) -> tuple[str, ...]:
    """The model of the rows that name none, where there are several."""
    return (f"rows without a model: by {inputs.entailment.name}",) if inputs.compared else ()


def matrix(
    inputs: SuiteInputs,
    name: str,
    contexts: str,
    question: Sequence[int],
    scores: Mapping[str, Sequence[float | None]],
) -> list[Table]:
    """Pearson's r of each pair of models; no table where there is one model.

    Args:
        contexts: the kind of contexts, for the title.
        question: the question of each value.
        scores: ΔSePer by the rows' names in tables.
    """
    if not inputs.compared or not scores:
        return []
    series = {inputs.entailment.name: scores[SOFT]} | {
        each.name: scores[_by(SOFT, each)] for each in inputs.compared
    }
    models = list(series)
    rows: list[dict[str, Cell]] = [
        {
            "entailment": one,
            **{
                other: _pearson(series[other], series[one], question, inputs.seed)
                for other in models[:place]
            },
        }
        for place, one in enumerate(models)
        if place
    ]
    method = Pairs([], [], inputs.seed).method
    return [
        table(
            name,
            f"{contexts}: correlation between the {SOFT} of entailment models (SePer, Figure 7)",
            {"entailment": "", **{model: model for model in models[:-1]}},
            rows,
            f"{counted(len(question), 'context')} of {counted(len(set(question)), 'question')}; "
            "every model judges the same replies",
            f"95 % intervals: {method}",
        )
    ]


def _by(metric: str, entailment: Entailment) -> str:
    return f"{metric} by {entailment.name}"


def _pearson(
    one: Sequence[float | None],
    other: Sequence[float | None],
    question: Sequence[int],
    seed: int,
) -> Measurement:
    """r of the contexts that both models have a value of."""
    known = [value is not None for value in one]
    pairs = Pairs([value or 0.0 for value in one], question, seed)
    return pairs.pearson(
        [value if there else None for value, there in zip(other, known, strict=True)]
    )
