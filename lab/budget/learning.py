"""Learns any of the policies from the runs of an experiment, as `hopscope budget fit` does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from hopscope.lab.budget import classify, fit
from hopscope.lab.budget.calibrate import calibrate
from hopscope.lab.budget.fit import Fitting
from hopscope.lab.budget.stored import Walks
from hopscope.lab.export.sheets import whole
from hopscope.runtime.errors import UsageError
from hopscope.tracing.learned.calibration import Calibration
from hopscope.tracing.learned.classifier_file import ClassifierFile
from hopscope.tracing.learned.value_file import ValueFile

Kind = Literal["value", "classifier", "tasr"]


class LearnedPolicy(NamedTuple):
    """What a policy has learned."""

    kind: Kind
    learned: ValueFile | ClassifierFile | Calibration
    questions: int
    """It has learned from so many."""

    def write(self, path: Path) -> str:
        """Write the policy's file. Returns the policy's name with the file, for `policy=` and
        `--policy`.

        Raises:
            UsageError: it cannot be written.
        """
        with whole(path) as unfinished:
            unfinished.write_text(self.learned.model_dump_json(indent=1) + "\n", encoding="utf-8")
        setting = ",calibration=" if self.kind == "tasr" else ":"
        return f"{self.kind}{setting}{path}"


def learn(
    walks: Walks,
    kind: Kind = "value",
    *,
    others: Sequence[Walks] = (),
    utility: str = "correctness",
    tokens: float | None = None,
    seed: int = 0,
    source: str = "",
) -> LearnedPolicy:
    """Learn a policy from the paths of an experiment (`lab.budget.stored.of_experiment`).

    Args:
        others: for `value`: paths of other workflows, readers or corpora to learn from as well.
            Price and figures are those of `walks`, 50 paths or so.
        utility: what the paths were measured by.
        tokens: for `value`: the mean tokens per question, the cost of deciding included.
        source: the experiments' names, kept in the file.

    Raises:
        UsageError: there are too few paths, the policy cannot adapt, or `tokens` is missing or
            too few.
        MissingExtraError: scikit-learn is not installed.
    """
    paths = [each.path for each in walks.paths]
    foreign = [each.path for other in others for each in other.paths]
    if others and kind != "value":
        raise UsageError(f"a policy of kind {kind} cannot adapt: learn it without --adapt")
    name, reader = walks.workflow, walks.reader.name
    learned: ValueFile | ClassifierFile | Calibration
    if kind == "value":
        if tokens is None:
            raise UsageError("tokens: give the mean tokens per question (--budget tokens=N)")
        learned = fit.fit(
            foreign or paths,
            adapt=paths if foreign else (),
            workflow=name,
            reader=reader,
            utility=utility,
            budget=tokens,
            fitting=Fitting(seed=seed),
            source=source,
            cached=walks.cached,
        ).file
    elif kind == "classifier":
        learned = classify.learn(paths, workflow=name, reader=reader, source=source)
    else:
        learned = calibrate(paths, workflow=name, reader=reader, source=source)
    learned = learned.model_copy(update={"prompts": walks.prompts})
    return LearnedPolicy(kind, learned, len(foreign) + len(paths))
