"""What `hopscope lab equivalence` prints: agreements, bins of probability and mistakes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hopscope.api.views import render

if TYPE_CHECKING:
    from hopscope.lab.dataset.ordering import Sample
    from hopscope.lab.equivalence.data import LeftOut
    from hopscope.lab.equivalence.evaluate import Evaluation, HumanAgreement, Judge, Mistake
    from hopscope.lab.equivalence.reliability import Reliability

LEFT_OUT_NAMED = 10
"""Records left out that the note on stderr names; `--json` has all."""


def left_out_note(records: Sequence["LeftOut"]) -> str:
    named = [
        f"record {each.record} ({', '.join(map(render.plain, each.fields))})"
        for each in records[:LEFT_OUT_NAMED]
    ]
    more = [f"{len(records) - len(named)} more"] if len(records) > len(named) else []
    count = f"{len(records)} record{'s' if len(records) > 1 else ''}"
    return f"{count} left out because of null fields: {', '.join([*named, *more])}"


def agreement_line(name: str, found: "HumanAgreement") -> str:
    f1, right = found.f1_interval, found.accuracy_interval
    return (
        f"{render.plain(name):12s} F1 {found.f1:6.2f} [{f1.low:6.2f}, {f1.high:6.2f}]   "
        f"accuracy {found.accuracy:6.2f} [{right.low:6.2f}, {right.high:6.2f}]   n {found.n}"
    )


def bin_lines(found: "Reliability") -> list[str]:
    lines = ["P(right)       answers   mean   right  [95 % interval]"]
    for each in found.bins:
        low, high = each.interval
        lines.append(
            f"{each.low:.2f} to {each.high:.2f}   {each.n:7d}   {each.mean:.3f}  {each.right:.3f}  "
            f"[{low:.3f}, {high:.3f}]"
        )
    return [*lines, f"expected calibration error {found.error:.4f}"]


def mistake_lines(mistake: "Mistake", judge: "Judge") -> list[str]:
    asked = mistake.answered
    verdict = "right" if mistake.right else "wrong"
    lines = [
        f"{render.plain(mistake.system)}: people say {verdict}, P(right) {mistake.probability:.3f}",
        f"  question  {render.plain(asked.question)}",
        f"  golds     {render.plain(' / '.join(asked.golds))[:200]}",
        f"  answer    {render.plain(asked.answer)[:200]}",
    ]
    if reasons := _reasons(mistake, judge):
        told = ", ".join(f"{r['feature']} {r['contribution']:+.2f}" for r in reasons)
        lines.append(f"  because   {told}")
    return lines


def _reasons(mistake: "Mistake", judge: "Judge") -> list[dict[str, object]]:
    """The five features with the largest contributions, if the model reports them."""
    from hopscope.tracing.entailments.equivalence import Equivalence

    if not isinstance(judge, Equivalence):
        return []
    return [reason._asdict() for reason in judge.explain(mistake.answered).reasons[:5]]


def as_json(
    found: "Evaluation",
    judge: "Judge",
    shown: "list[Mistake]",
    left_out: Sequence["LeftOut"],
    taken: "Sample | None",
    *,
    rule: str,
    threshold: float,
    resamples: int,
    seed: int,
) -> dict[str, object]:
    """The results by system, and their mean. Common settings are repeated in each, so that every
    value has the same form."""
    from hopscope.lab.equivalence.data import MEAN

    calibration = {
        "expected_error": found.reliability.error,
        "bins": [each._asdict() for each in found.reliability.bins],
    }
    wrong: dict[str, list[object]] = {system: [] for system in found.systems}
    for mistake in shown:
        told = {
            **mistake.answered._asdict(),
            "right": mistake.right,
            "probability": mistake.probability,
            "reasons": _reasons(mistake, judge),
        }
        wrong[mistake.system].append(told)
    return {
        name: {
            **agreement._asdict(),
            "interval": f"95 % percentile bootstrap over questions, {resamples} resamples",
            "seed": seed,
            "rule": rule,
            "threshold": threshold,
            "sample": taken and taken.model_dump(mode="json"),
            "left_out": [each.model_dump(mode="json") for each in left_out],
            **({"mistakes": wrong[name]} if name in wrong and shown else {}),
            **({"calibration": calibration} if name == MEAN else {}),
        }
        for name, agreement in [*found.systems.items(), (MEAN, found.mean)]
    }
