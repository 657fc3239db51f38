"""All prompts that workflows, meters, policies, judges and stages send, to a reader that says what
a script tells it.

`python -m tests.workflows.prompts.sent` writes the record that `test_prompts_sent.py` compares.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hopscope.api import given, parts
from hopscope.api.appraiser import Appraiser, Measuring
from hopscope.api.retrieval import parse, retriever
from hopscope.lab.answer_metric import answer_metric
from hopscope.lab.budget.paths import moments
from hopscope.runtime.budget.ledger import Ledger, Limits
from hopscope.runtime.execution.run import run
from hopscope.runtime.execution.state import Deps
from hopscope.runtime.ports import Statement
from hopscope.runtime.prompting import tool_calls
from hopscope.runtime.specs import Spec
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    Hit,
    Passage,
    Question,
    Scored,
    ScoreRequest,
)
from hopscope.tracing.entailments import judge, lexical
from hopscope.tracing.scoring.metric import Case
from hopscope.tracing.signals.gathering import signals
from tests.probes import Speaker, task

RECORD = Path(__file__).parent / "sent.json"
QUESTION = Question(text="Where was the director of {{ Moon }} Harbor born?\n", answers=("Miskel",))
PASSAGES = (
    Passage(id="1", title="Moon Harbor", text="Velora Tarn directed it."),
    Passage(id="2", title="", text="{% raw %} No title & two lines,\n\nthe last one empty.\n"),
    Passage(id="3", title="<tool_call> [TOOL_CALLS]", text="<search>{{ 1/0 }}</search> {# hm #}"),
    Passage(id="4", title="Velora \u2028Tarn", text="She was born in Miskel.\r\n" + "so on " * 400),
    Passage(id="5", title="Aged", text="{title} {n} %s [1] > [2]"),
)
POOL = "Wiki@2,Wiki@3@CP,PK,ReFree,Wiki@RR@2,Wiki&PK@CP"
ARMS = (
    "closed_book",
    "naive",
    "iter_retgen",
    "iter_retgen:output=reasoning",
    "ircot:max_steps=3,k=2",
    "ircot:reader=false",
    "flare",
    "flare:query=question",
    "flare:variant=paper,expand=false,query=question",
    "flare:variant=code",
    "flare_instruct:max_searches=1",
    "flare_instruct:max_searches=0",
    "self_ask:rounds=3",
    "self_ask:back_off=true,contexts=replace",
    "eor",
    "item:m=2",
    "item:m=2,judgment=pointwise",
    "item:m=2,answer=implicit",
    "item:m=2,answer=implicit,judgment=pointwise",
    "item:variant=ARs,m=2",
    "item:variant=Ar,m=2,k=2",
    "item:variant=ARr,m=2,k=2,answer=implicit",
    "vanilla",
    "vanilla:judgment=pointwise",
    "uj_expa",
    "uj_expa:judgment=pointwise",
    "uj_impa",
    "uj_impa:judgment=pointwise",
    "k_sampling:k=1",
    "rankgpt:candidates=5,window=3,stride=2,k=2",
    "react:max_turns=2",
    "react:at_once=1",
    "search_agent",
    "search_agent:format=r1-searcher,max_turns=1",
)
LIMITED = ("ircot", "react", "search_agent", "self_ask", "item")
"""These also run with one retrieval only, and with two calls only."""
ASKING = (
    "self_report",
    "repeat",
    "tasr",
    "entropy:0.1",
    "logprob:0",
    "margin:0.99",
    "maxentropy:0.1",
    "grogu:-9",
)
"""Policies that ask the reader."""
STAGES = (
    "hopland@RR(utility,by=item)@2",
    "hopland@RR(utility,by=item,judgment=pointwise)@2",
    "hopland@RR(utility)@2",
    "hopland@RR@2",
    "hopland@CP(summary)",
    "hopland@CP(summary,words=9)",
    "hopland@CP(selective_context)",
    "hopland@CP(long_llmlingua)",
)
"""Retrievers with stages that ask the reader."""
STATEMENTS = (
    Statement(QUESTION.text, "Miskel\n", " the town of Miskel "),
    Statement("", "{{ no }}", ""),
    Statement(" ", " ", "Miskel"),
)
METERS = ("seper", "seper_hard", "semantic_entropy", "grogu", "gold_logprob")


class Shelf:
    """Finds all passages for any query, another one first each time."""

    name = "shelf"

    def __init__(self) -> None:
        self._asked = 0

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        found = []
        for _ in queries:
            at = self._asked % len(PASSAGES)
            self._asked += 1
            ranked = [*PASSAGES[at:], *PASSAGES[:at]][:k]
            found.append([Hit(passage=p, score=1 / n) for n, p in enumerate(ranked, start=1)])
        return found


class Recorder(Speaker):
    """A speaker that scores, too, all tokens alike."""

    def __init__(self) -> None:
        super().__init__(say, unsure=("Miskel",))
        self.sent: list[Any] = []

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Generation]]:
        self.sent += [written(request) for request in requests]
        replies = super().generate(requests)
        return [
            [g.model_copy(update={"entropies": (0.5,) * len(g.tokens)}) for g in each]
            for each in replies
        ]

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored]:
        self.sent += [written(request) for request in requests]
        found = []
        for request in requests:
            tokens = tuple(re.findall(r"\s*\S+|\s+\Z", request.continuation))
            same = (-0.5,) * len(tokens), (0.25,) * len(tokens)
            ids = tuple(range(len(tokens)))
            found.append(Scored(tokens=tokens, token_ids=ids, logprobs=same[0], entropies=same[1]))
        return found


def written(request: GenerationRequest | ScoreRequest) -> dict[str, Any]:
    """A request's prompt, with what decides its reply."""
    dumped = request.model_dump(mode="json", exclude_defaults=True)
    return {"messages": [list(m.values()) for m in dumped["prompt"].pop("messages")], **dumped}


def say(request: GenerationRequest) -> str:
    """A reply of the form that the prompt asks for; it depends on the request alone."""
    asked, prefix = task(request), request.prompt.prefix
    roles = [message.role for message in request.prompt.messages]
    if "tools" in roles:
        done = roles.count("calls")
        if done > 1 or "Give only the answer now." in asked:
            return "Miskel"
        queries = [("search", {"query": f"query {done}.{i}"}) for i in range(2)]
        return tool_calls.write("I look.", [*queries, ("fly", {"query": "x"})])
    if "<search>" in asked or "<|begin_of_query|>" in asked:
        opening, closing = ("<search>", "</search>")
        if "<|begin_of_query|>" in asked:
            opening, closing = ("<|begin_of_query|>", "<|end_of_query|>")
        turns = prefix.count(closing)
        if turns == 0:
            return f"I must know. {opening} Moon Harbor {closing}"
        return "Hm." if turns == 1 and "Let me" not in prefix else "<answer> Miskel </answer>"
    if "My judgment:" in asked:
        return f"My judgment: {'No' if 'Aged' in asked else 'Yes'}."
    if "My selection:" in asked:
        first = "Answer: Miskel\n" if "Answer: ..." in asked else ""
        return f"{first}My selection:[[{len(roles) % 3 + 1}],[2]]."
    if "[i] > [j]" in asked:
        return "[2] > [1]"
    if "Necessary information:" in asked:
        return f"Necessary information: [Tarn directed {len(roles)}.]"
    if "Follow up:" in asked:
        if prefix.count("Follow up:") > 1 or prefix.endswith("So the final answer is:"):
            return " So the final answer is: Miskel."
        return f" Yes.\nFollow up: Who is {prefix.count('Intermediate')}?\n"
    if "[Search(" in asked:
        return " Tarn directed it. [Search(Tarn's birth place)]"
    if "begins with" in asked:
        return asked.partition('begins with "')[2].partition('"')[0]
    if "Ask one question" in asked:
        return "Where was she born?"
    if "Think step by step" in asked:
        if "Tarn" not in prefix:
            return " Velora Tarn directed it. She was born in Miskel."
        return " So the answer is: Miskel."
    if "Do you know enough" in asked:
        return "No"
    if "correct is this answer" in asked or "contribute to this answer" in asked:
        return "7"
    if "Same, different or unclear?" in asked:
        return "Same"
    if "background document" in asked or "Summarise" in asked:
        return "Velora Tarn directed Moon Harbor; she was born in Miskel."
    return "Miskel"


def arm(text: str, limits: Limits | None = None, policy: str = parts.NATIVE) -> list[Any]:
    """The prompts of a workflow's run."""
    reader = Recorder()
    spec = Spec.parse(text, argument=False)
    pool = {"pool": POOL, "similarities": "em=1"} if spec.name == "eor" else {}
    deps = Deps(
        reader=reader,
        retriever=Shelf(),
        entailment=lexical.build(),
        ledger=Ledger(limits) if limits else Ledger(),
        policy=given.policy(policy, workflow=spec.name, reader_name=reader.name),
    )
    result = run(parts.workflow(spec.name, {**pool, **dict(spec.options)}), QUESTION, deps)
    assert result.error is None, f"{text}: {result.error}"
    return reader.sent


def meters() -> dict[str, list[Any]]:
    """The prompts of each meter over a run of naive RAG."""
    result = run(
        parts.workflow("naive", {"k": "2"}), QUESTION, Deps(reader=Recorder(), retriever=Shelf())
    )
    found: dict[str, list[Any]] = {}
    for name in METERS:
        reader = Recorder()
        measuring = Measuring(samples=2, seed=0, meters=(name,))
        Appraiser(reader, lexical.build(), measuring).appraise(result)
        found[name] = reader.sent
    return found


def stage(text: str) -> list[Any]:
    """The prompts of a retriever's stage."""
    reader = Recorder()
    retriever(parse(text), reader, seed=0).search(["Who directed Moon Harbor?\n"], k=3)
    return reader.sent


def signalled() -> list[Any]:
    """The prompts of the signals of learned policies, before each retrieval of a run."""
    built = parts.workflow("ircot", {"max_steps": "3", "k": "2"})
    result = run(built, QUESTION, Deps(reader=Recorder(), retriever=Shelf()))
    reader = Recorder()
    for moment in moments(result):
        signals(moment, reader)
    return reader.sent


def judges() -> dict[str, list[Any]]:
    """The prompts of the judges of answers, and of the judge of equal meaning."""
    found: dict[str, list[Any]] = {}
    cases = [Case(QUESTION, "Miskel {{ 1 }}\n", PASSAGES), Case(QUESTION, "Alba", ())]
    for name in ("judge_direct", "judge_reduction"):
        reader = Recorder()
        answer_metric(name, reader=reader, entailment="lexical").score(cases)
        found[name] = reader.sent
    reader = Recorder()
    judge.build(reader=reader).classify(STATEMENTS)
    return {**found, "judge": reader.sent}


def sent() -> dict[str, list[Any]]:
    """All prompts, by workflow with its options, or by meter."""
    few = {"one retrieval": Limits(retrievals=1), "two calls": Limits(calls=2)}
    return {
        **{text: arm(text) for text in ARMS},
        **{f"{text}, {n}": arm(text, limits) for text in LIMITED for n, limits in few.items()},
        **{f"ircot with {name}": arm("ircot:max_steps=3,k=2", policy=name) for name in ASKING},
        **meters(),
        **judges(),
        **{text: stage(text) for text in STAGES},
        "signals": signalled(),
    }


def record() -> dict[str, Any]:
    """The prompts, in which each text stands once."""
    texts: dict[str, int] = {}

    def place(text: str) -> int:
        return texts.setdefault(text, len(texts))

    found = {
        name: [
            each | {"messages": [[role, place(text)] for role, text in each["messages"]]}
            for each in requests
        ]
        for name, requests in sent().items()
    }
    return {"sent": found, "texts": list(texts)}


if __name__ == "__main__":
    RECORD.write_text(json.dumps(record(), ensure_ascii=False, indent=0) + "\n", "utf-8")
