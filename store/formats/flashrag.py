"""FlashRAG's `intermediate_data.json`: questions with `golden_answers` and an `output` that holds
the prediction `pred` and what was retrieved.

    retrieval_result            one search, for `rewrite_query` or the question
    retrieval_result_iter_N     Iter-RetGen: search N asked for the question and `pred_iter_(N-1)`
    retrieval_results           searches in turn, each with `query` and `docs` (reasoning pipelines)

Pipelines that search several times and keep only the merged passages (Self-Ask, FLARE) look like
one search. IRCoT's (`intermediate_output_iterN`) do not tell what their first search found, and
cannot be read.

Source: Jin et al. 2024, arXiv 2405.13576, and its public code.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from hopscope.runtime.corpora.records.fields import keys, string
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.types import Run
from hopscope.store.trajectories import fields
from hopscope.store.trajectories.sources import RunFormat, Source, Unread, each_record
from hopscope.store.trajectories.trajectory import Trajectory


def build() -> RunFormat:
    return _FlashRAG()


class _FlashRAG:
    def fits(self, source: Source) -> bool:
        return any(
            isinstance(output := value.get("output"), Mapping)
            and ("pred" in output or any(key.startswith("retrieval_result") for key in output))
            for value in source.head
        )

    def runs(self, sources: Sequence[Source]) -> Iterator[Run | Unread]:
        return each_record(sources, _run)


def _run(value: Mapping[str, Any]) -> Run:
    output = value.get("output")
    if not isinstance(output, Mapping):
        raise MalformedRecordError(f"no object 'output' among the keys {keys(value)}")
    if "intermediate_output_iter1" in output:
        raise MalformedRecordError("FlashRAG's IRCoT does not tell what its first search found")
    trajectory = Trajectory(fields.question(value))
    asked = trajectory.question.text
    if "retrieval_results" in output:
        for search in _in_turn(output["retrieval_results"]):
            trajectory.found(string(search, "query"), search.get("docs"))
    elif "retrieval_result_iter_0" in output:
        query = asked
        for turn in count():
            if (found := output.get(f"retrieval_result_iter_{turn}")) is None:
                break
            trajectory.found(query, found)
            reply = string(output, f"pred_iter_{turn}")
            trajectory.reply(reply, name="generate")
            query = f"{asked} {reply}"
    elif "retrieval_result" in output:
        trajectory.found(string(output, "rewrite_query") or asked, output["retrieval_result"])
    answer = string(output, "pred") if output.get("pred") is not None else None
    if answer is not None and "retrieval_result_iter_0" not in output:
        trajectory.reply(answer, name="answer")
    return trajectory.run("flashrag", answer=answer)


def _in_turn(found: Any) -> list[Mapping[str, Any]]:
    """The searches of a reasoning pipeline, which numbers them from 0."""
    if not isinstance(found, Mapping):
        raise MalformedRecordError("'retrieval_results' must be an object of numbered searches")
    searches = [found.get(str(turn)) for turn in range(len(found))]
    if not all(isinstance(search, Mapping) for search in searches):
        raise MalformedRecordError("'retrieval_results' must number its searches from 0")
    return [search for search in searches if isinstance(search, Mapping)]
