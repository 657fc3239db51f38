"""Trains the embedded answer-equivalence model.

    python -m hopscope.lab.equivalence.train FILE [--out FILE] [--validate]

FILE holds human judgements in EVOUNA's format; only its `train` half is used (see data.py). It
needs `pip install 'hopscope[train]'` and takes seconds. `--validate` prints the results of
cross-validation over the questions of that half and writes nothing. Cross-validation chose all
settings; the held-out half was used once, after the last choice.

The trees' probabilities are calibrated on questions that they have not seen (calibrate.py).

Each judged answer becomes an example with all its golds, one with its most similar gold alias, and
one with these two exchanged. Pairs of answers to the same question, at least one of them right, are
equivalent if both are right. So the model learns gold and answer in both roles, as beliefs and
clusters need. Cases that are rare in trivia are generated from right answers: a changed number or a
denial makes them wrong, initials of a name do not.

The file contains the trees: feature indices, thresholds and values, no text of the data.
"""

import argparse
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from sys import stderr
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as to_bytes

from hopscope.lab.equivalence.calibrate import fit_curve
from hopscope.lab.equivalence.data import Judged, judgements
from hopscope.lab.equivalence.evaluate import THRESHOLD, Flags
from hopscope.lab.equivalence.reliability import reliability
from hopscope.runtime.errors import MissingExtraError
from hopscope.tracing.entailments import equivalence
from hopscope.tracing.entailments.equivalence.calibration import Calibration
from hopscope.tracing.entailments.equivalence.features import NAMES, RISING, features
from hopscope.tracing.entailments.equivalence.golds import Golds
from hopscope.tracing.entailments.equivalence.reading import read
from hopscope.tracing.entailments.equivalence.rules import decide
from hopscope.tracing.entailments.equivalence.trees import Floats, TreeEnsemble, Trees
from hopscope.tracing.entailments.equivalence.words import Text

SEED = 0
ROUNDS = 400
DEPTH = 5
FOLDS = 5
PARTNERS = 2
"""The number of answers that each answer is compared with."""
PARAMETERS = {
    "objective": "binary",
    "learning_rate": 0.05,
    "num_leaves": 20,
    "extra_trees": True,
    "max_depth": DEPTH,
    "min_data_in_leaf": 30,
    "lambda_l2": 10.0,
    "feature_fraction": 0.7,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "monotone_constraints": [int(name in RISING) for name in NAMES],
    "seed": SEED,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbose": -1,
}
WEIGHTS = {"golds": 1.0, "alias": 0.5, "turned": 0.5, "answers": 0.3, "made_up": 0.15}
"""Of the kinds of example."""
CALIBRATING = ("golds", "alias", "turned")
"""Kinds of example that calibrate: the others have their own share of right ones."""
DIGITS = 4
"""Decimals of the calibration's points."""


class Example(NamedTuple):
    """A training row."""

    row: list[float]
    right: bool
    question: int
    """The question's index; a fold never splits the rows of one question."""
    system: str
    kind: str
    decided: float | None
    """The probability by a rule, if one decides before the trees."""


def examples(judged: Sequence[Judged], seed: int = SEED) -> Iterator[Example]:
    """The rows of all questions, in file order."""
    partners = random.Random(seed)
    for index, row in enumerate(judged):
        question = Text(row.question)
        golds = Golds(question, [Text(gold) for gold in sorted(set(row.golds))])
        answers = {system: Text(answer) for system, answer in row.answers.items()}
        for system, answer in answers.items():
            right = row.right[system]

            def example(
                kind: str,
                golds: Golds,
                answer: Text,
                right: bool = right,
                *,
                index: int = index,
                system: str = system,
            ) -> Example:
                said = read(golds, answer)
                decided = decide(golds, said)
                chance = decided and decided.probability
                return Example(features(golds, said), right, index, system, kind, chance)

            yield example("golds", golds, answer)
            if not golds.full or not answer.words:
                continue
            alias = _most_alike(golds, answer)
            as_gold = Golds(question, [answer])
            yield example("alias", Golds(question, [alias]), answer)
            yield example("turned", as_gold, alias)
            if right:
                for kept, changed, label in made_up(golds, answer):
                    yield example("made_up", kept, changed, label)
            others = [other for other in answers if other != system]
            for other in partners.sample(others, min(PARTNERS, len(others))):
                if right or row.right[other]:
                    both = right and row.right[other]
                    yield example("answers", as_gold, answers[other], both)


def made_up(golds: Golds, answer: Text) -> Iterator[tuple[Golds, Text, bool]]:
    """Golds and answers with their label, generated from a right answer."""
    alias = _most_alike(golds, answer)
    alone = Golds(golds.question, [alias])
    numbers = alias.numbers & answer.numbers - golds.question.numbers
    if numbers:
        told = max(numbers, key=lambda number: (len(number), number))
        other = re.sub(rf"(?<!\d){re.escape(told)}(?!\d)", _another(told), answer.raw)
        if other != answer.raw:
            yield golds, Text(other), False
            yield alone, Text(other), False
    if len(answer.words) <= 5 and alias.stemset & answer.stemset:
        yield golds, Text(f"not {answer.raw}"), False
        yield alone, Text(f"It was not {answer.raw}."), False
    names = [word for word in re.findall(r"\w+", alias.raw) if word[0].isupper()]
    if len(names) >= 3 and len(names) == len(alias.words):
        short = Text("".join(name[0] for name in names))
        yield alone, short, True
        yield Golds(golds.question, [short]), alias, True


def _another(number: str) -> str:
    """A nearby number with as many digits."""
    last = str((int(number[-1]) + 1 + len(number)) % 10)
    return number[:-1] + last


def _most_alike(golds: Golds, answer: Text) -> Text:
    def likeness(text: Text) -> float:
        return len(text.trigrams & answer.trigrams) / len(text.trigrams)

    said = answer.stemset
    return max(golds.full, key=lambda gold: (gold.recall(said), likeness(gold.text))).text


def fit(rows: Sequence[Example]) -> Trees:
    """Boosted trees over the examples.

    Raises:
        MissingExtraError: lightgbm is not installed.
    """
    try:
        import lightgbm
    except ImportError:
        raise MissingExtraError("training the equivalence model", "train") from None
    data = lightgbm.Dataset(
        np.array([example.row for example in rows]),
        np.array([example.right for example in rows], dtype=float),
        weight=np.array([WEIGHTS[example.kind] for example in rows]),
    )
    booster = lightgbm.train(PARAMETERS, data, ROUNDS)
    return laid_out([tree["tree_structure"] for tree in booster.dump_model()["tree_info"]])


def laid_out(roots: Sequence[dict[str, Any]]) -> Trees:
    """LightGBM's nested trees as complete binary trees."""
    shape = len(roots), 2 ** (DEPTH + 1) - 1
    trees = Trees(
        NAMES,
        np.zeros(shape, dtype=np.int16),
        np.full(shape, np.inf),
        np.zeros(shape),
    )
    for number, root in enumerate(roots):
        _lay_out(trees, number, 0, root)
    return trees


def _lay_out(trees: Trees, tree: int, at: int, node: dict[str, Any]) -> None:
    trees.value[tree, at] = _expected(node)[0]
    inner = 2 * at + 2 < trees.value.shape[1]
    if "leaf_value" in node:
        # Below a leaf, prediction continues to the last level, always to the left.
        if inner:
            _lay_out(trees, tree, 2 * at + 1, node)
        return
    trees.split[tree, at] = node["split_feature"]
    trees.threshold[tree, at] = node["threshold"]
    _lay_out(trees, tree, 2 * at + 1, node["left_child"])
    _lay_out(trees, tree, 2 * at + 2, node["right_child"])


def _expected(node: dict[str, Any]) -> tuple[float, int]:
    """The mean of the leaves below a node, weighted by their examples; and their number."""
    if "leaf_value" in node:
        return node["leaf_value"], max(1, node["leaf_count"])
    (left, some), (right, more) = _expected(node["left_child"]), _expected(node["right_child"])
    return (left * some + right * more) / (some + more), some + more


def cross_fitted(rows: Sequence[Example], seed: int = SEED) -> Floats:
    """Log-odds of each example by trees that have not seen its question, (row,)."""
    folds = _folds(rows, seed)
    found = np.zeros(len(rows))
    for fold in range(FOLDS):
        model = TreeEnsemble(fit([rows[i] for i in np.flatnonzero(folds != fold).tolist()]))
        inside = np.flatnonzero(folds == fold).tolist()
        found[inside] = model.logits(np.array([rows[i].row for i in inside]))
    return found


def calibrated(rows: Sequence[Example], logits: Floats) -> Calibration:
    """The curve from log-odds to calibrated ones, by the examples that compare an answer with
    golds, in either role, and that no rule decides."""
    used = np.array([row.kind in CALIBRATING and row.decided is None for row in rows])
    return fit_curve(logits[used], np.array([row.right for row in rows])[used])


def validate(rows: Sequence[Example], seed: int = SEED) -> dict[str, float]:
    """Cross-validated results: accuracy in percent for each kind; for `golds` also the mean F1 over
    systems and the expected calibration error before and after calibration, all in percent. Rules
    are included. The curve for a fold is fitted to the others."""
    logits, folds = cross_fitted(rows, seed), _folds(rows, seed)
    decided = np.array([np.nan if row.decided is None else row.decided for row in rows])
    curved = np.zeros(len(rows))
    for fold in range(FOLDS):
        others = np.flatnonzero(folds != fold).tolist()
        curve = calibrated([rows[i] for i in others], logits[others])
        curved[folds == fold] = curve(logits[folds == fold])
    plain, chances = (
        np.where(np.isnan(decided), 1 / (1 + np.exp(-found)), decided) for found in (logits, curved)
    )
    found = chances > THRESHOLD
    right = np.array([row.right for row in rows])
    kinds = np.array([row.kind for row in rows])
    systems = np.array([row.system for row in rows])
    scores = {kind: 100 * float((found == right)[kinds == kind].mean()) for kind in WEIGHTS}
    each = [_f1(found[chosen], right[chosen]) for system in sorted(set(systems))
            if (chosen := (kinds == "golds") & (systems == system)).any()]  # fmt: skip
    golds = kinds == "golds"
    return {
        **scores,
        "mean_f1": sum(each) / len(each),
        "error_uncalibrated": 100 * _calibration_error(plain[golds], right[golds]),
        "error": 100 * _calibration_error(chances[golds], right[golds]),
    }


def _folds(rows: Sequence[Example], seed: int) -> NDArray[np.int64]:
    """The fold of each example, (row,)."""
    questions = 1 + max(row.question for row in rows)
    drawn = np.random.default_rng(seed).integers(FOLDS, size=questions)
    return np.asarray(drawn[[row.question for row in rows]])


def _calibration_error(chances: Floats, right: Flags) -> float:
    all_once = np.arange(len(chances))[None]
    return reliability(chances[:, None], right[:, None], all_once).error


def _f1(found: Flags, right: Flags) -> float:
    return float(200 * (found & right).sum() / (found.sum() + right.sum()))


def save(trees: Trees, curve: Calibration, path: Path) -> None:
    """Write trees and calibration as safetensors."""
    tensors: dict[str, NDArray[Any]]
    tensors = {"split": trees.split, "threshold": trees.threshold, "value": trees.value}
    tensors["calibration"] = np.round(np.stack(curve), DIGITS)
    about = {"features": " ".join(trees.names), "seed": str(SEED)}
    path.write_bytes(to_bytes(tensors, metadata=about))


def main() -> None:
    home = Path(equivalence.__file__).parent
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="human judgements in EVOUNA's format")
    parser.add_argument("--out", type=Path, default=home / equivalence.MODEL)
    parser.add_argument("--validate", action="store_true", help="cross-validate, write nothing")
    given = parser.parse_args()
    rows = list(examples(judgements(given.file, "train", tell=lambda out: print(out, file=stderr))))
    if given.validate:
        for name, value in validate(rows).items():
            print(f"{name:18s} {value:.2f}")
        return
    save(fit(rows), calibrated(rows, cross_fitted(rows)), given.out)
    print(f"{given.out}: {given.out.stat().st_size / 1e6:.2f} MB from {len(rows)} examples")


if __name__ == "__main__":
    main()
