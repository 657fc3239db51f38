"""One search on each line: `{"asked": ..., "found": [...], "said": ...}`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hopscope.runtime.types import Question, Run
from hopscope.store.trajectories.sources import RunFormat, Source, Unread, each_record
from hopscope.store.trajectories.trajectory import Trajectory


def build() -> RunFormat:
    return Diary()


class Diary:
    def fits(self, source: Source) -> bool:
        return any("asked" in value for value in source.head)

    def runs(self, sources: Sequence[Source]) -> Iterator[Run | Unread]:
        return each_record(sources, self.run)

    def run(self, value: Mapping[str, Any]) -> Run:
        trajectory = Trajectory(Question(text=value["asked"]))
        trajectory.found(value["asked"], value["found"])
        trajectory.reply(value["said"], name="answer")
        return trajectory.run("diary", answer=value["said"])
