"""Runs that other programs traced, by OpenInference's or OpenTelemetry's gen_ai conventions.

    search   a span of a retriever; of several within each other, the outermost. A call of a tool,
             if no search and no model is called within it
    reply    a span of a model; of several within each other, the outermost
    rank     a span of a reranker, unless it is within a search, which then has its order

A reply saw the passages whose beginnings stand in its prompt. Where prompts are not told, or no
prompt of the run holds any, each reply saw all that had been found.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.spans import keys
from hopscope.runtime.types import Decision, Passage, Question, Run, RunError, Usage
from hopscope.store.traces import values
from hopscope.store.traces.span import TOOL_ARGUMENTS, TOOL_NAME, TOOL_RESULT, Span
from hopscope.store.traces.tree import Tree
from hopscope.store.trajectories.calls import queried
from hopscope.store.trajectories.tools import SearchTools
from hopscope.store.trajectories.trajectory import UNCOUNTED, Trajectory

BEGINNING = 80
"""Characters of a passage that are looked for in prompts, without differences of spaces."""


@dataclass(frozen=True)
class Reading:
    """How such traces are read."""

    format: str
    tools: SearchTools = field(default_factory=SearchTools)

    def is_run(self, root: Span, tree: Tree) -> bool:
        """Whether a model or a search is called in it."""
        return root.meaning in ("search", "reply", "tool") or tree.holds(
            root, "search", "reply", "tool"
        )

    def run(self, root: Span, tree: Tree) -> Run:
        """The run of a root.

        Raises:
            MalformedRecordError: it does not tell its question, or what a search found.
        """
        trajectory = self.steps(root, tree)
        replies = [
            step.output for step in trajectory.steps if step.kind == "generate" and step.usage.calls
        ]
        answer = values.answer(root)
        done = self._events(root, tree)
        models = {m for s in done if (m := s.text(keys.LLM_MODEL_NAME, keys.REQUEST_MODEL))}
        last = replies[-1] if replies else None
        return trajectory.run(
            self.format,
            answer=last if answer is None else answer,
            error=_error(root),
            moment=root.moment,
            reader=next(iter(models)) if len(models) == 1 else "",
            trace_id=root.trace,
        )

    def steps(self, root: Span, tree: Tree) -> Trajectory:
        """The steps of a root, which need not have ended.

        Raises:
            MalformedRecordError: as `run`.
        """
        trajectory = Trajectory(Question(text=_question(root, tree)))
        done = sorted(self._events(root, tree), key=lambda span: (span.start, span.end))
        prompts = {
            span.id: " ".join(values.prompt(span).split()) for span in done if _replies(span)
        }
        seen = _Seen(prompts)
        decided = _decided(root, tree, done)
        for span in done:
            try:
                match span.meaning:
                    case "search":
                        self._search(trajectory, span, tree, decided.get(span.id))
                    case "tool":
                        self._call(trajectory, span, decided.get(span.id))
                    case "rank":
                        self._rank(trajectory, span)
                    case "reply":
                        seen.reply(trajectory, span, values.reply(span), _usage(span, tree))
                    case "other":
                        trajectory.declined(_decision(span), name=span.name, moment=span.moment)
            except MalformedRecordError as error:
                raise MalformedRecordError(f"span {span.name!r}: {error}") from None
        seen.settle(trajectory)
        return trajectory

    def _events(self, span: Span, tree: Tree) -> Iterator[Span]:
        """The searches, replies and rankings in a span, itself included."""
        waiting = [span]
        while waiting:
            found = waiting.pop()
            inner = {
                "search": False,
                "rank": False,
                "tool": tree.holds(found, "search", "reply", "tool"),
                "reply": tree.holds(found, "search", "tool"),
                "evaluation": False,
                "other": True,
            }[found.meaning]
            if found.meaning == "other" and _declined(found):
                yield found
            elif inner:
                waiting.extend(tree.children(found))
            elif found.meaning != "evaluation":
                yield found

    def _search(
        self, trajectory: Trajectory, span: Span, tree: Tree, decision: Decision | None
    ) -> None:
        query = span.text(keys.RETRIEVAL_QUERY) or values.question(span)
        found = values.documents(span, keys.RETRIEVAL_DOCUMENTS)
        if found is None:  # told by one within it only
            inner = (each for each in tree.below(span) if each.meaning == "search")
            told = (values.documents(each, keys.RETRIEVAL_DOCUMENTS) for each in inner)
            found = next((each for each in told if each is not None), None)
        if not query and keys.RETRIEVAL_QUERY not in span.attributes:
            raise MalformedRecordError("the search does not tell its query")
        if found is None and not span.failed:
            raise MalformedRecordError("the search does not tell what it found")
        trajectory.found(query, found or [], name=span.name, moment=span.moment, decision=decision)

    def _call(self, trajectory: Trajectory, span: Span, decision: Decision | None) -> None:
        name = span.text(*TOOL_NAME) or span.name
        result = values.said(span.text(*TOOL_RESULT))
        if not self.tools.search(name):
            trajectory.reply(result, name=name, shown=(), usage=Usage(), moment=span.moment)
            return
        query = queried(span.text(*TOOL_ARGUMENTS))
        if keys.GEN_AI_DOCUMENTS in span.attributes:  # beside its text
            found = values.documents(span, keys.RETRIEVAL_DOCUMENTS)
            trajectory.found(query, found or [], name=name, moment=span.moment, decision=decision)
            return
        trajectory.glued(query, result, name=name, moment=span.moment, decision=decision)

    def _rank(self, trajectory: Trajectory, span: Span) -> None:
        given = span.listed(keys.RERANKER_INPUTS)
        before: Any = values.documents(span, keys.RERANKER_INPUTS) if given else None
        if before is None:
            searches = [step for step in trajectory.steps if step.retrieved]
            before = list(searches[-1].ranked) if searches else []
        after = values.documents(span, keys.RERANKER_OUTPUTS)
        if after is None:
            raise MalformedRecordError("the reranker does not tell its order")
        trajectory.ranked(before, after, name=span.name, moment=span.moment)


class _Seen:
    """Finds out which passages stood in which prompt."""

    def __init__(self, prompts: dict[str, str]) -> None:
        self._prompts = prompts
        self._any = False

    def reply(self, trajectory: Trajectory, span: Span, text: str | None, usage: Usage) -> None:
        prompt = self._prompts.get(span.id, "")
        shown = (
            [passage.key for passage in trajectory.evidence if _beginning(passage) in prompt]
            if prompt
            else None
        )
        self._any = self._any or bool(shown)
        trajectory.reply(text, name=span.name, shown=shown, usage=usage, moment=span.moment)

    def settle(self, trajectory: Trajectory) -> None:
        """Where no prompt holds any passage, as after a template that changes them, each reply
        saw all evidence."""
        if self._any:
            return
        trajectory.steps = [
            step.model_copy(update={"shown": tuple(p.key for p in step.evidence)})
            if step.kind == "generate" and step.usage.calls
            else step
            for step in trajectory.steps
        ]


def _beginning(passage: Passage) -> str:
    return " ".join(passage.text.split())[:BEGINNING].strip()


def _decision(span: Span) -> Decision:
    """The decision on a search, which a recording of Hopscope tells of the span around it."""
    return Decision.model_validate_json(span.text(keys.DECISION))


def _declined(span: Span) -> bool:
    return bool(span.text(keys.DECISION)) and not _decision(span).retrieve


def _decided(root: Span, tree: Tree, done: Sequence[Span]) -> dict[str, Decision]:
    """The decisions by the ids of the first searches that belong to them."""
    found: dict[str, Decision] = {}
    for span in tree.below(root):
        if span.text(keys.DECISION):
            within = {each.id for each in tree.below(span)}
            first = next((each for each in done if each.id in within), None)
            if first is not None:
                found[first.id] = _decision(span)
    return found


def _replies(span: Span) -> bool:
    return span.meaning == "reply"


def _question(root: Span, tree: Tree) -> str:
    """What the root was asked, or the only span within it, and so on.

    Raises:
        MalformedRecordError: none tells it.
    """
    span = root
    while True:
        if span.meaning != "search" and (text := values.question(span)):
            return text
        inner = tree.children(span)
        if len(inner) != 1:
            raise MalformedRecordError(
                f"the span {root.name!r} does not tell the question: it stands under none of "
                f"{', '.join(values.QUESTIONS)} in its input"
            )
        [span] = inner


def _error(root: Span) -> RunError | None:
    if not root.failed:
        return None
    told: Sequence[Any] = [e.attributes for e in root.events if e.name == keys.EXCEPTION_EVENT]
    kinds = [attributes.get(keys.EXCEPTION_TYPE) for attributes in told]
    kind = next((each for each in kinds if isinstance(each, str)), root.text(keys.ERROR_TYPE))
    return RunError(type=kind or "Error", message=root.status or "the program failed")


def _usage(span: Span, tree: Tree) -> Usage:
    """The tokens of a reply, told by its span or by those within it."""
    counted = _tokens(span)
    if counted is not None:
        return counted
    inner = [each for each in tree.below(span) if each.meaning == "reply"]
    told = [counts for each in inner if (counts := _tokens(each)) is not None]
    return told[0] if len(told) == 1 else UNCOUNTED


def _tokens(span: Span) -> Usage | None:
    given = span.number(keys.LLM_TOKENS_PROMPT, keys.USAGE_INPUT)
    made = span.number(keys.LLM_TOKENS_COMPLETION, keys.USAGE_OUTPUT)
    if given is None or made is None or min(given, made) < 0:
        return None
    return Usage(input_tokens=given, output_tokens=made, calls=1)
