"""Chat transcripts with tool calls in OpenAI's format, one on each line: `{"messages": [...]}`.

Each message of a tool is a search; its query is the argument `query` of the call, else its only
text, else all arguments. Its content is a JSON list of passages, or passages glued into one text,
which the first fitting rule of `split` parts. The answer is the last message of the assistant that
calls no tool.

The question is the field `question`, else the only message of the user. The line may also hold `id`
and right answers (`golden_answers`, `answers`, `ground_truth`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from hopscope.runtime.corpora.records.fields import identity, objects, string
from hopscope.runtime.corpora.records.reading import MalformedRecordError
from hopscope.runtime.errors import UsageError
from hopscope.runtime.types import Question, Run, Usage
from hopscope.store.trajectories import fields
from hopscope.store.trajectories.calls import Call, queried
from hopscope.store.trajectories.sources import RunFormat, Source, Unread, each_record
from hopscope.store.trajectories.splitting import RULES, Rule
from hopscope.store.trajectories.tools import SearchTools
from hopscope.store.trajectories.trajectory import UNCOUNTED, Trajectory


def build(*, tools: str = "", split: str = "") -> RunFormat:
    """
    Args:
        tools: names of the tools that search, with spaces between; by default all do. What other
            tools say is part of the record, but earns no credit.
        split: the rule that parts glued passages, such as `whole`; by default the first that fits.

    Raises:
        UsageError: there is no such rule.
    """
    if split and split not in RULES:
        raise UsageError(f"no rule {split!r} of splitting: choose from {', '.join(RULES)}")
    rules = tuple(rule for rule in get_args(Rule) if not split or rule == split)
    return _Messages(SearchTools(tools.split()), rules)


@dataclass(frozen=True)
class _Messages:
    tools: SearchTools
    rules: tuple[Rule, ...]

    def fits(self, source: Source) -> bool:
        return any(isinstance(value.get("messages"), list) for value in source.head)

    def runs(self, sources: Sequence[Source]) -> Iterator[Run | Unread]:
        return each_record(sources, self.run)

    def advice(self) -> Iterator[str]:
        return self.tools.advice()

    def run(self, value: Mapping[str, Any]) -> Run:
        turns = objects(value, "messages")
        trajectory = Trajectory(_question(value, turns))
        calls: dict[str, Call] = {}
        answer: str | None = None
        for place, turn in enumerate(turns, start=1):
            try:
                match turn.get("role"):
                    case "assistant":
                        said, made = _text(turn), _calls(turn)
                        calls.update((call.id, call) for call in made)
                        answer = None if made else said
                        shown = "\n".join(filter(None, [said, *map(str, made)]))
                        name = "think" if made else "answer"
                        trajectory.reply(shown, name=name, usage=_usage(turn))
                    case "tool" | "function":
                        self._told(trajectory, turn, calls)
            except MalformedRecordError as error:
                raise MalformedRecordError(f"message {place}: {error}") from None
        return trajectory.run("messages", answer=answer, reader=string(value, "model"))

    def _told(
        self, trajectory: Trajectory, turn: Mapping[str, Any], calls: Mapping[str, Call]
    ) -> None:
        """A message of a tool."""
        id = string(turn, "tool_call_id") or string(turn, "name")
        call = calls.get(id)
        if call is None:
            raise MalformedRecordError(f"the tool answers the call {id!r}, which nobody made")
        if not self.tools.search(call.name):
            trajectory.reply(_text(turn), name=call.name, shown=(), usage=Usage())
            return
        trajectory.glued(call.query, _text(turn), rules=self.rules, name=call.name)


def _question(value: Mapping[str, Any], turns: Sequence[Mapping[str, Any]]) -> Question:
    text = string(value, "question")
    if not text:
        asked = [_text(turn) for turn in turns if turn.get("role") == "user"]
        if len(asked) != 1:
            raise MalformedRecordError(
                f"{len(asked)} messages of the user: put the question into the field 'question'"
            )
        [text] = asked
    if not text.strip():
        raise MalformedRecordError("the question is empty")
    return Question(text=text.strip(), answers=fields.right(value), id=identity(value, *fields.IDS))


def _text(turn: Mapping[str, Any]) -> str:
    """The text of a message, whose content may come in parts."""
    content = turn.get("content")
    if not isinstance(content, list):
        return string(turn, "content")
    parts = [each for each in content if isinstance(each, Mapping) and each.get("type") == "text"]
    return "\n".join(string(part, "text") for part in parts)


def _calls(turn: Mapping[str, Any]) -> list[Call]:
    """The calls of tools in a message of the assistant."""
    if isinstance(turn.get("function_call"), Mapping):  # the form before parallel calls
        function = turn["function_call"]
        return [_call(string(function, "name"), function)]
    if not turn.get("tool_calls"):
        return []
    made = []
    for each in objects(turn, "tool_calls"):
        function = each.get("function")
        if not isinstance(function, Mapping):
            raise MalformedRecordError("a tool call has no object 'function'")
        made.append(_call(string(each, "id") or string(function, "name"), function))
    return made


def _call(id: str, function: Mapping[str, Any]) -> Call:
    arguments = function.get("arguments")
    told = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return Call(id, string(function, "name") or "tool", queried(told), told)


def _usage(turn: Mapping[str, Any]) -> Usage:
    """The tokens that a message tells, as OpenAI's replies do."""
    told = turn.get("usage")
    if not isinstance(told, Mapping):
        return UNCOUNTED
    counts = [told.get("prompt_tokens"), told.get("completion_tokens")]
    known = [n for n in counts if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
    if len(known) < len(counts):
        return UNCOUNTED
    return Usage(input_tokens=known[0], output_tokens=known[1], calls=1)
