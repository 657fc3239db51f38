"""The file of appraised candidates, from which an interrupted export resumes.

Each question is a line, written as soon as it is appraised; a new start with the same settings
continues after the last whole line.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hopscope.lab.export import rewriting
from hopscope.lab.export.preferences import Rewrites, appraise, in_conversation
from hopscope.lab.export.rewriting import GivenRewrites
from hopscope.runtime.errors import HopscopeError, UsageError
from hopscope.runtime.ports import Reader, Retriever, UtilityMeter
from hopscope.runtime.texts.literals import json_value
from hopscope.runtime.types import Question, Run
from hopscope.runtime.validation import first

_log = logging.getLogger(__name__)


class Candidates:
    """`candidates.jsonl` in a folder, beside the settings of its lines."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        """
        Raises:
            UsageError: the folder contains candidates of other settings, or cannot be written.
        """
        self._file = folder / "candidates.jsonl"
        kept = folder / "settings.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if kept.exists() and json_value(kept.read_text("utf-8")) != settings:
                raise UsageError(
                    f"{folder} holds candidates of other settings, see {kept.name}: give the same "
                    "settings to resume, or another folder (--out)"
                )
            kept.write_text(json.dumps(settings, indent=2, ensure_ascii=False), "utf-8")
            self.known = self._read()
            """The candidates of earlier starts, by question."""
        except (OSError, ValueError) as error:
            raise UsageError(f"{folder} cannot be used: {error}") from None

    def add(self, rewrites: Rewrites) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(rewrites.model_dump_json() + "\n")
        self.known[rewrites.question] = rewrites

    def _read(self) -> dict[Question, Rewrites]:
        if not self._file.exists():
            return {}
        content = self._file.read_bytes()
        # A process that was killed while writing leaves an incomplete line.
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            self._file.write_bytes(whole)
        found: dict[Question, Rewrites] = {}
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                rewrites = Rewrites.model_validate_json(line)
            except ValidationError as error:
                problem = first(error, whole="the line")
                raise UsageError(f"{self._file}, line {number}: {problem}") from None
            found[rewrites.question] = rewrites
        return found


def appraise_missing(
    kept: Candidates,
    runs: Mapping[Question, Sequence[Run]],
    given: Mapping[str, GivenRewrites],
    *,
    index: Retriever,
    reader: Reader,
    meter: UtilityMeter,
    sample: int,
    depth: int,
    seed: int,
) -> dict[str, str]:
    """Appraise and store the candidates of the questions that have none yet. Returns the reasons
    of failed questions, by id or text.

    Args:
        runs: the runs of each question.
        given: candidates as from `rewriting.from_file`; if empty, the queries of the runs.
        sample: the number of further candidates that the reader writes.
        depth: passages that a candidate retrieves.
    """
    failed: dict[str, str] = {}
    for number, (question, own) in enumerate(runs.items(), start=1):
        _log.info(f"question {number} of {len(runs)}")
        if question in kept.known:
            continue
        told = rewriting.of_question(question, given)
        queries = list(told.queries) if given else rewriting.from_runs(own)
        try:
            if sample:
                asked = in_conversation(question.text, told.history)
                queries += rewriting.from_reader(reader, [asked], n=sample, seed=seed)[0]
            kept.add(appraise(question, queries, index, meter, depth=depth, history=told.history))
        except HopscopeError as error:
            failed[question.id or question.text] = str(error)
    _log.info("")
    return failed
