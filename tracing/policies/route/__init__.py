"""A router: before the first retrieval, the way to answer that is worth its cost.

    arm  =  argmax  predicted utility - price · predicted cost

`hopscope budget fit --outcomes` learns it from what each arm did on each question. The arm `none`
declines all retrievals, `one` allows one, a number so many, and any other arm as many as the
workflow wants. Adaptive-RAG (arXiv 2403.14403) routes by a class; here the price counts. The reader
is asked for one closed-book draft, unless `draft` is off or the router knows questions alone.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.types import Decision, digest
from hopscope.tracing.learned.files import read
from hopscope.tracing.learned.route_file import Asked, Route, RouteFile
from hopscope.tracing.signals.draft import draft as drafted
from hopscope.tracing.signals.gathering import confidence_of

ARM = "arm"
"""The signal with the place of the chosen arm."""


@dataclass(frozen=True)
class RoutePolicy:
    file: RouteFile
    label: str
    draft: bool = True
    set: str = ""
    price: float | None = None

    @property
    def name(self) -> str:
        return f"route:{self.label}"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        earlier = next(
            (s.decision for s in moment.steps if s.decision and s.decision.policy == self.name),
            None,
        )
        if earlier is not None and ARM in earlier.signals:
            arm = int(earlier.signals[ARM])
            return Decision(
                policy=self.name,
                retrieve=self._allowed(arm, moment.retrievals),
                reason=f"{self.file.arms[arm]} was chosen before the first retrieval",
                signals={ARM: arm},
            )
        found = self.file.route(self._asked(moment, reader), price=self.price)
        return Decision(
            policy=self.name,
            retrieve=self._allowed(found.arm, moment.retrievals),
            reason=self._reason(found),
            stage=found.level,
            signals={
                ARM: found.arm,
                **{
                    f"utility_{arm}": round(utility, 6)
                    for arm, utility in zip(self.file.arms, found.utilities, strict=True)
                },
                **{
                    f"{self.file.unit}_{arm}": round(cost, 6)
                    for arm, cost in zip(self.file.arms, found.costs, strict=True)
                },
                f"price_per_{self.file.unit}": found.price,
            },
            gain=found.gain,
            low=found.low,
            high=found.high,
        )

    def _allowed(self, arm: int, retrievals: int) -> bool:
        most = self.file.retrievals(arm)
        return most is None or retrievals < most

    def _asked(self, moment: Moment, reader: Reader) -> Asked:
        """The question with the texts that the file needs."""
        text = moment.question.text
        if not self.draft or self.file.richest == "question":
            return Asked(text, self.set)
        now = drafted(moment, reader, evidence=())
        return Asked(text, self.set, draft=now.text, signals=confidence_of(now))

    def _reason(self, found: Route) -> str:
        worth = ", ".join(
            f"{utility:.2f} by {arm} for {cost:.2g}"
            for arm, utility, cost in zip(self.file.arms, found.utilities, found.costs, strict=True)
        )
        unit = self.file.unit.removesuffix("s")
        if self.file.always:
            return (
                f"no price keeps the promise {self.file.promise}: it always takes "
                f"{self.file.arms[found.arm]}"
            )
        return (
            f"{self.file.arms[found.arm]} is worth most at {found.price:.2g} a {unit}: predicted "
            f"are {worth} {self.file.unit}"
        )


def build(
    *,
    file: Path,
    draft: bool = True,
    set: str = "",
    price: Annotated[float, Field(ge=0)] | None = None,
    workflow: str,
    reader_name: str,
    prompts: str | None = None,
) -> Policy:
    """
    Args:
        draft: whether to ask the reader for a closed-book draft.
        set: the name of the questions' set in the outcomes, if they are of one.
        price: the accuracy that a unit of cost must bring, instead of the file's.
    """
    found = read(RouteFile, file, workflow=workflow, reader=reader_name, prompts=prompts)
    label = digest(found.model_dump_json(exclude={"prompts"}))[:8]
    return RoutePolicy(found, label, draft=draft, set=set, price=price)
