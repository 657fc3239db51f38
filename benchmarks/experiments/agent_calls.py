"""Searches of a LangChain agent under `hopscope.middleware` beside `ToolCallLimitMiddleware`.

    python benchmarks/experiments/agent_calls.py [--limit 150] [--policy NAME ...] [--json]

The agent is LangChain's `create_agent` over the embedded reader that searches by itself
(`tiny:search`), with one tool that searches Hopland. Questions are Hopland's, by hops in
proportion. A search that is declined, by either middleware, makes the model answer. Each
arm answers the same questions with the same seed; its policy asks the same reader. The greedy
reply to a prompt is computed once for all arms. Right is an exact match with a gold answer.
Differences from each limit are paired by question, with 95 % percentile bootstrap intervals
(seed 0).
"""

import argparse
import json
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ToolCallLimitMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import Field

import hopscope
from hopscope.api import parts
from hopscope.runtime.corpora import hopland
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.texts.answers import exact_match
from hopscope.runtime.types import Generation, GenerationRequest, Hit
from hopscope.workflows.search_agent.tags import SEARCH_R1

LIMITS = (1, 2, 3, 4)
POLICIES = ("native", "repeat")
INDEX = parts.corpus("hopland")
MOST = 5
"""Searches in every arm."""
RESAMPLES, ENDS = 10_000, (2.5, 97.5)


class SearchingModel(BaseChatModel):
    """`tiny:search` as a chat model that calls a tool."""

    reader: Any
    written: dict[str, Generation] = Field(default_factory=dict)
    """What the reader wrote to a prompt: greedy, hence the same in every arm."""

    @property
    def _llm_type(self) -> str:
        return "tiny-search"

    def bind_tools(self, tools: Any, **options: Any) -> "SearchingModel":
        return self

    def _generate(self, messages: list[BaseMessage], *rest: Any, **options: Any) -> ChatResult:
        turns = [str(each.content) for each in messages if isinstance(each, AIMessage)]
        told = [each for each in messages if isinstance(each, ToolMessage)]
        rankings: list[list[Hit]] = [each.artifact for each in told if each.artifact is not None]
        closing = len(rankings) < len(told)
        keys = {hit.passage.key for hits in rankings for hit in hits}
        question = str(messages[0].content)
        prompt = SEARCH_R1.prompt(DEFAULT_PROMPTS, question, turns, rankings, keys, closing=closing)
        if prompt.text not in self.written:
            request = GenerationRequest(
                prompt=prompt, n=1, temperature=0.0, max_tokens=200, stop=SEARCH_R1.stop, seed=0
            )
            [[self.written[prompt.text]]] = self.reader.generate([request])
        generation = self.written[prompt.text]
        text = SEARCH_R1.written(generation)
        turn = SEARCH_R1.concluded(generation.text) if closing else SEARCH_R1.read(text)
        calls = []
        if turn.query is not None:
            calls = [{"name": "search", "args": {"query": turn.query}, "id": f"call{len(turns)}"}]
        content = turn.text if turn.query is not None else turn.answer or ""
        usage = generation.usage
        message = AIMessage(
            content,
            tool_calls=calls,
            usage_metadata={
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "total_tokens": usage.input_tokens + usage.output_tokens,
            },
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


class Outcome(NamedTuple):
    right: bool
    searches: int
    """Searches carried out."""
    model_calls: int
    policy_calls: int


def answered(
    question: Any,
    model: SearchingModel,
    guard: AgentMiddleware[Any, Any, Any],
    store: hopscope.Store,
) -> Outcome:
    carried_out = 0

    @tool(response_format="content_and_artifact")
    def search(query: str) -> tuple[str, list[Hit]]:
        """Search Hopland."""
        nonlocal carried_out
        carried_out += 1
        [hits] = INDEX.search([query], k=3)
        return SEARCH_R1.found([hit.passage for hit in hits]), hits

    agent = create_agent(model, [search], middleware=[guard])
    asked: Any = {"messages": [{"role": "user", "content": question.question.text}]}
    handler = hopscope.HopscopeHandler(store)
    messages = agent.invoke(asked, config={"callbacks": [handler]})["messages"]
    run = store.load(handler.stored[0])
    turns = sum(isinstance(each, AIMessage) for each in messages)
    right = bool(exact_match(str(messages[-1].content), question.question.answers))
    return Outcome(right, carried_out, turns, run.usage.calls - turns)


def paired(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """The mean difference and its interval."""
    gains = np.array(ours, dtype=float) - np.array(theirs, dtype=float)
    draw = np.random.default_rng(0)
    means = gains[draw.integers(len(gains), size=(RESAMPLES, len(gains)))].mean(axis=1)
    return [float(gains.mean()), *map(float, np.percentile(means, ENDS))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--limit", type=int, default=150)
    parser.add_argument("--policy", action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    questions = random.Random(given.seed).sample(hopland.questions("test"), given.limit)
    reader = parts.reader("tiny:search")
    model = SearchingModel(reader=reader)
    limits = {f"limit {n}": ToolCallLimitMiddleware(run_limit=n) for n in LIMITS}
    most = hopscope.Limits(retrievals=MOST)
    guards = {
        name: hopscope.middleware(name, most, reader=reader) for name in given.policy or POLICIES
    }
    with hopscope.Store.open("sqlite://") as store:
        found = {
            name: [answered(question, model, guard, store) for question in questions]
            for name, guard in (limits | guards).items()
        }
    for name, outcomes in found.items():
        right, searches, model_calls, asked = np.array(outcomes, dtype=float).mean(axis=0)
        row: dict[str, Any] = {"arm": name, "n": len(outcomes), "right": right}
        row |= {"searches": searches, "model_calls": model_calls, "policy_calls": asked}
        if name in guards:
            for other in limits:
                row[f"less {other}"] = {
                    "right": paired([o.right for o in outcomes], [o.right for o in found[other]]),
                    "searches": paired(
                        [o.searches for o in outcomes], [o.searches for o in found[other]]
                    ),
                }
        if given.json:
            print(json.dumps(row), flush=True)
            continue
        print(
            f"{name:24} right {right:.3f}  searches {searches:.2f}  "
            f"model calls {model_calls:.2f}  policy calls {asked:.2f}",
            flush=True,
        )
        for other in limits if name in guards else ():
            told = row[f"less {other}"]
            spans = (f"{what} {m:+.3f} [{a:+.3f}, {b:+.3f}]" for what, (m, a, b) in told.items())
            print(f"{'':8}less {other}: {', '.join(spans)}")


if __name__ == "__main__":
    main()
