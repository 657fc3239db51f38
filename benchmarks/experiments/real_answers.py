"""EoR's arithmetic on answers that a model gave to real questions, by three routes.

    export PYTHONPATH=benchmarks
    python benchmarks/experiments/real_answers.py [--data FOLDER]

Accuracy, relative losses, the oracle by the size of the pool, and votes. The embedded equivalence
is the only model. Tables are Markdown.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from experiments.llama_answers import ANSWERS, ROUTES, Answered, read, scored
from research_data import add_option, missing

from hopscope.lab.eor import fitting
from hopscope.lab.eor.fitting import Votes
from hopscope.lab.suites.columns import mean
from hopscope.lab.suites.figures import table
from hopscope.lab.table_forms import terminal
from hopscope.lab.table_forms.table import Cell, Table
from hopscope.lab.tables import upper_bound
from hopscope.tracing.answer_metrics import exact_match, f1, lexical_match
from hopscope.tracing.entailments import equivalence
from hopscope.tracing.error_decomposition.inconsistency import inconsistency
from hopscope.tracing.statistics.over_questions import Bootstrap, Column, differences, estimates
from hopscope.workflows.eor import voting
from hopscope.workflows.eor.ballot import Voter
from hopscope.workflows.eor.voting import Floats, VotingRule
from hopscope.workflows.eor.weights_file import Weights

SIMILARITIES = ("em", "nli")
FOLDS = 2
EVALUATIONS = 2000
"""Of the search for weights."""
BOOTSTRAP = Bootstrap()


def accuracy(sets: Mapping[str, Answered]) -> Table:
    """Each route on each set, by three metrics."""
    metrics = {"em": exact_match.build(), "lm": lexical_match.build(), "f1": f1.build()}
    rows: list[dict[str, Cell]] = []
    same = total = 0
    for name, answered in sets.items():
        for route in ROUTES:
            cases = answered.cases(route)
            columns = [mean(scored(m, cases), binary=key != "f1") for key, m in metrics.items()]
            found = estimates(columns, BOOTSTRAP)
            rows.append({"set": name, "route": route, **dict(zip(metrics, found, strict=True))})
            told = [bool(row["accurate"][route]) for row in answered.rows]
            same += sum(a == b for a, b in zip(told, answered.right(route), strict=True))
            total += len(told)
    return table(
        "answers",
        "Answers of Llama-3.1-8B-Instruct",
        {"set": "set", "route": "route", "em": "EM", "lm": "lexical match", "f1": "F1"},
        rows,
        f"lexical match agrees with the verdict of the file on {same:,} of {total:,} answers",
        f"95 % intervals: clopper-pearson; of F1 {BOOTSTRAP.method}",
    )


def consistency(sets: Mapping[str, Answered]) -> Table:
    """EoR's relative losses, and how far the best route is from the oracle."""
    rows: list[dict[str, Cell]] = []
    for name, answered in sets.items():
        right = {route: answered.right(route) for route in ROUTES}
        found = inconsistency(right)
        best = max(ROUTES, key=lambda route: sum(right[route]))
        any_of = [any(of) for of in zip(*right.values(), strict=True)]
        [gap] = differences([(column(any_of), column(right[best]))], BOOTSTRAP)
        rows.append(
            {
                "set": name,
                **{f"mrlr_{r}": each for r, each in zip(ROUTES, found.mrlr, strict=True)},
                "oracle": found.oracle,
                "gap": gap,
            }
        )
    return table(
        "consistency",
        "Share of a route's wrong answers that another gets right (MRLR), and the oracle",
        {
            "set": "set",
            **{f"mrlr_{route}": f"MRLR, {route}" for route in ROUTES},
            "oracle": "any of the three right",
            "gap": "above the best route",
        },
        rows,
        "95 % intervals: percentile bootstrap over questions; of shares clopper-pearson, of their "
        "differences bonett-price",
    )


def bounds(sets: Mapping[str, Answered]) -> Table:
    """Figure 5 of EoR over the three routes."""
    rows: list[dict[str, Cell]] = []
    for name, answered in sets.items():
        right = {route: answered.right(route) for route in ROUTES}
        made = upper_bound.tabulate(name, right, BOOTSTRAP)
        rows += [{"set": name, **row} for row in made.rows]
    return table(
        "upper_bound",
        "Questions that any route of a pool gets right, by the size of the pool",
        {
            "set": "set",
            "size": "routes",
            "pools": "pools",
            "lowest": "lowest",
            "highest": "highest",
            "mean": "mean",
        },
        rows,
        f"95 % intervals: {BOOTSTRAP.method}",
    )


def votes(answered: Answered) -> Votes:
    """The similarities of each question's answers, and which are right."""
    voter = Voter(
        Weights(
            pool=ROUTES,
            retrievers=(1.0,) * len(ROUTES),
            similarities=dict.fromkeys(SIMILARITIES, 1.0),
            rule=VotingRule()._asdict(),
        ),
        VotingRule(),
    )
    judge = equivalence.build()
    cast = [
        voter.vote(row["question"], [row["predictions"][route] for route in ROUTES], judge)
        for row in answered.rows
    ]
    tensors = [[ballot.similarities[name] for name in SIMILARITIES] for ballot in cast]
    right = np.array([answered.right(route) for route in ROUTES], float).T
    return Votes(np.array(tensors, float), right)


def chosen(cast: Votes, weights: Floats, rule: VotingRule) -> list[float]:
    """Whether the chosen answer of each question is right."""
    kinds = len(SIMILARITIES)
    similarity = voting.weighted(cast.similarities, weights[:kinds])
    winner = voting.vote(similarity, weights[kinds:], rule).winner
    taken: list[float] = np.take_along_axis(cast.right, winner[:, None], axis=1)[:, 0].tolist()
    return taken


def learned(cast: Votes) -> list[float]:
    """The same with weights that the other half of the questions taught."""
    taken = np.zeros(len(cast.right))
    halves = np.arange(len(taken)) % FOLDS
    for fold in range(FOLDS):
        seen, held = halves != fold, halves == fold
        known = Votes(cast.similarities[seen], cast.right[seen])
        starts = fitting.starting_points(known, restarts=5, seed=0)
        found = fitting.search(objective(known), starts, evaluations=EVALUATIONS)
        left = Votes(cast.similarities[held], cast.right[held])
        taken[held] = chosen(left, found.point, VotingRule())
    return [float(value) for value in taken]


def objective(cast: Votes) -> Callable[[Floats], float]:
    return lambda point: fitting.accuracy(cast, point, VotingRule())


def ensembles(sets: Mapping[str, Answered]) -> Table:
    """The votes of EoR over three answers beside the best route and the oracle."""
    rows: list[dict[str, Cell]] = []
    ones = np.ones(len(SIMILARITIES) + len(ROUTES))
    for name, answered in sets.items():
        cast = votes(answered)
        best = int(cast.right.mean(axis=0).argmax())
        systems = {
            "best": cast.right[:, best].tolist(),
            "mean": chosen(cast, ones, VotingRule()),
            "majority": chosen(cast, ones, VotingRule(pooling="majority_voting")),
            "learned": learned(cast),
        }
        columns = {key: column(values) for key, values in systems.items()}
        found = dict(zip(columns, estimates(list(columns.values()), BOOTSTRAP), strict=True))
        [gain] = differences([(columns["learned"], columns["best"])], BOOTSTRAP)
        rows.append({"set": f"{name}, best: {ROUTES[best]}", **found, "gain": gain})
    return table(
        "ensembles",
        "Right answers by EoR's votes over three answers",
        {
            "set": "set",
            "best": "best route",
            "mean": "equal weights",
            "majority": "majority_voting",
            "learned": "learned weights",
            "gain": "learned less best",
        },
        rows,
        "similarities em and nli, by the embedded equivalence; weights of the routes and "
        f"similarities learned on the other half of the questions ({FOLDS} folds); the best route "
        "is that of the compared questions, a choice in its favour",
        "95 % intervals: clopper-pearson; of differences bonett-price",
    )


def column(values: Sequence[float]) -> Column:
    return mean([float(value) for value in values], binary=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_option(parser)
    folder = parser.parse_args().data
    if reason := missing(folder, [ANSWERS]):
        raise SystemExit(reason)
    sets = read(folder)
    made = [accuracy(sets), consistency(sets), bounds(sets), ensembles(sets)]
    terminal.show(made, "markdown")


if __name__ == "__main__":
    main()
