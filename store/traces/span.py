"""A span, and its meaning by OpenInference's and OpenTelemetry's gen_ai conventions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from hopscope.runtime.spans import keys
from hopscope.store.trajectories.trajectory import Moment

Meaning = Literal["search", "tool", "reply", "rank", "evaluation", "other"]

TEMPLATE = "llm.prompt_template.template"
TOOL_NAME = ("tool.name", "gen_ai.tool.name")
TOOL_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool.parameters", keys.INPUT_VALUE)
TOOL_RESULT = ("gen_ai.tool.call.result", keys.OUTPUT_VALUE)
_KINDS: Mapping[str, Meaning] = {
    keys.RETRIEVER: "search",
    keys.LLM: "reply",
    keys.RERANKER: "rank",
    keys.EVALUATOR: "evaluation",
    "TOOL": "tool",
}
_OPERATIONS: Mapping[str, Meaning] = {
    keys.RETRIEVAL: "search",
    keys.CHAT: "reply",
    "text_completion": "reply",
    "generate_content": "reply",
    keys.RERANK: "rank",
    "execute_tool": "tool",
}
_START = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Event:
    """An event of a span."""

    name: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class Span:
    """A span, whatever file it came from."""

    trace: str
    """32 hex digits."""
    id: str
    """16 hex digits."""
    parent: str
    """The parent's id; empty for a root."""
    name: str
    start: int
    """Nanoseconds since 1970."""
    end: int
    attributes: Mapping[str, Any] = field(default_factory=dict)
    failed: bool = False
    status: str = ""
    """What the status tells of the failure."""
    events: tuple[Event, ...] = ()

    @property
    def meaning(self) -> Meaning:
        """By OpenInference's kind, else by gen_ai's operation."""
        kind = self.attributes.get(keys.SPAN_KIND)
        if isinstance(kind, str) and kind.upper() in _KINDS:
            meaning = _KINDS[kind.upper()]
        else:
            meaning = _OPERATIONS.get(self.text(keys.OPERATION), "other")
        # Haystack's builders of prompts are LLM spans, too, though they call no model.
        builds = TEMPLATE in self.attributes and not self.listed(keys.LLM_OUTPUT_MESSAGES)
        return "other" if meaning == "reply" and builds else meaning

    @property
    def moment(self) -> Moment:
        started = _START + timedelta(microseconds=self.start // 1000)
        return Moment(started, max(0, self.end - self.start) / 1e9, self.id)

    def text(self, *names: str) -> str:
        """The first of these attributes that is a text; empty if none is."""
        found = (self.attributes.get(name) for name in names)
        return next((value for value in found if isinstance(value, str) and value), "")

    def number(self, *names: str) -> int | None:
        """The first of these attributes that is a whole number."""
        found = (self.attributes.get(name) for name in names)
        return next((v for v in found if isinstance(v, int) and not isinstance(v, bool)), None)

    def listed(self, prefix: str) -> list[dict[str, Any]]:
        """The entries of a flattened list, `PREFIX.0.NAME`, in order."""
        entries: dict[int, dict[str, Any]] = {}
        start = prefix + "."
        for key, value in self.attributes.items():
            if key.startswith(start):
                place, _, name = key[len(start) :].partition(".")
                if place.isdecimal() and len(place) < 6 and name:
                    entries.setdefault(int(place), {})[name] = value
        return [entries[place] for place in sorted(entries)]
