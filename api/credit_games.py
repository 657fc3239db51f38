"""The games of `hopscope credit`: their players, and the counterfactual of an absent player."""

import logging
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from hopscope.api import parts
from hopscope.api.appraiser import Appraiser
from hopscope.api.views.credit_costs import CreditCost

if TYPE_CHECKING:
    from hopscope.runtime.budget.prices import Price
    from hopscope.runtime.execution.run import Workflow
    from hopscope.runtime.ports import Entailment, Retriever
    from hopscope.runtime.types import Run
    from hopscope.tracing.games.coalitions import Game
    from hopscope.tracing.games.frozen import Counterfactual, FrozenGame

_log = logging.getLogger(__name__)

CHARACTERS = 4
"""Of a prompt, for each token: English text and the usual tokenizers."""


class CounterfactualName(StrEnum):
    empty = "empty"
    random = "random"
    leave_out = "leave-out"


class Mode(StrEnum):
    frozen = "frozen"
    replay = "replay"


class Over(StrEnum):
    steps = "steps"
    passages = "passages"


def check_corpus(retriever: "Retriever", part: object, run: "Run") -> None:
    """
    Raises:
        UsageError: the run searched another corpus.
    """
    from hopscope.runtime.errors import UsageError

    if not run.retriever:
        raise UsageError(
            f"the record of this run names no corpus, since {run.workflow} searched by itself: "
            "choose mode frozen and counterfactual empty or leave-out"
        )
    if retriever.name != run.retriever:
        given = f"the corpus {part} (--corpus)" if isinstance(part, str) else "the retriever given"
        raise UsageError(
            f"the run searched {run.retriever}, but {given} is "
            f"{retriever.name}: give the corpus of the run"
        )


def against(
    kind: CounterfactualName, run: "Run", retriever: "Retriever | None", seed: int
) -> "Counterfactual":
    from hopscope.runtime.errors import UsageError
    from hopscope.tracing.games.frozen import Counterfactual, random_passages

    if kind is not CounterfactualName.random:
        return Counterfactual("leave-out" if kind is CounterfactualName.leave_out else "empty")
    passages = getattr(retriever, "passages", None)
    if passages is None:
        raise UsageError(
            "counterfactual random needs a single index, and this run's retriever is not one: "
            "choose empty or leave-out"
        )
    return random_passages(run, passages, seed=seed)


def games(over: Over, run: "Run", against: "Counterfactual") -> "list[FrozenGame]":
    from hopscope.tracing.games.frozen import over_passages, over_steps

    if over is Over.steps:
        return [over_steps(run, against)]
    inside = [over_passages(run, step.index, against) for step in run.steps]
    return [game for game in inside if game is not None]


def replayed(
    run: "Run",
    games: "Iterable[Any]",
    against: "Counterfactual",
    appraiser: Appraiser,
    judge: "Entailment",
    retriever: "Retriever",
) -> "list[Game]":
    from hopscope.runtime.execution.state import Deps
    from hopscope.tracing.games.replay import ReplayGame, check

    workflow = _rebuilt(run)
    deps = Deps(
        reader=appraiser.reader,
        retriever=retriever,
        entailment=judge,
        seed=run.seed,
        capture_content=False,
    )
    _log.info("repeating the run")
    check(run, workflow, deps)
    played: list[Game] = [ReplayGame(game, run, workflow, deps, against) for game in games]
    runs = sum(
        len({c for r in appraiser.rules for c in r.needs(game.players)} - {frozenset(game.players)})
        for game in played
    )
    _log.warning(f"mode replay runs {run.workflow} again, about {runs} times")
    return played


def _rebuilt(run: "Run") -> "Workflow":
    from hopscope import workflows
    from hopscope.runtime import components
    from hopscope.runtime.adapters.workflow import KIND
    from hopscope.runtime.errors import UsageError

    if run.workflow.startswith(KIND):
        raise UsageError(
            f"{run.workflow} was a graph in memory, which cannot be rebuilt by name: choose mode "
            "frozen"
        )
    build = components.load(workflows, run.workflow).build
    unknown = ", ".join(run.options.keys() - components.options(build).keys() - {parts.PROMPTS})
    if unknown:
        raise UsageError(f"workflow {run.workflow} no longer has the run's options {unknown}")
    return parts.rebuilt(run.workflow, run.options)


def credit_costs(
    run: "Run",
    appraiser: "Appraiser",
    games: "Iterable[Game]",
    calls: int | None,
    price: "Price",
) -> list[CreditCost]:
    """The cost of each meter. Nothing is measured.

    Args:
        calls: the credit budget; None for no limit.
    """
    from hopscope.runtime.prompting.prompts import short_answer
    from hopscope.runtime.types import Usage
    from hopscope.tracing import credit_budget
    from hopscope.tracing.appraisal import applicable
    from hopscope.tracing.games.coalitions import Coalitions, EvidenceValues

    costs, played_games = [], list(games)
    for meter in appraiser.meters:
        values = EvidenceValues(run.question, meter)
        played = [Coalitions(game, values) for game in played_games]
        rules = [tuple(applicable(coalitions, appraiser.rules)) for coalitions in played]
        replies = credit_budget.replies(meter)
        limit = len(credit_budget.unlimited(played, rules)) * replies.most
        plan = credit_budget.plan(played, rules, limit if calls is None else calls, replies)
        prompts = [short_answer(run.question.text, evidence) for evidence in plan.passages]
        lengths = [sum(len(message.content) for message in p.messages) for p in prompts]
        further = plan.calls - len(lengths) if calls is not None else 0
        characters = sum(lengths) + further * max(lengths, default=0)
        usage = Usage(
            calls=plan.calls,
            input_tokens=-(-characters // CHARACTERS),
            output_tokens=plan.calls * getattr(meter, "max_tokens", 1),
        )
        costs.append(
            CreditCost(
                run=run.id,
                meter=meter.name,
                players=sum(len(coalitions.players) for coalitions in played),
                contexts=len(plan.evidences),
                calls=plan.calls,
                unlimited=limit,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cost=None if price.model is None else price.of(usage),
                currency=price.currency,
                unaffordable={
                    name: reason for reasons in plan.reasons for name, reason in reasons.items()
                },
            )
        )
    return costs
