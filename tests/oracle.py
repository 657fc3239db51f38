"""A reader for questions of Hopland that says what is right as soon as it is shown why: it knows
the question's gold reasoning, and of each fact in it the passage that tells it."""

import json
import re
from collections.abc import Sequence

from hopscope.lab.hopland.questions import MARKER
from hopscope.runtime.corpora.hopland import HoplandQuestion
from hopscope.runtime.prompting.prompts import chain_of_thought, short_answer
from hopscope.runtime.types import GenerationRequest
from tests.probes import task

ANSWER_TASK = short_answer("").messages[-1].content.split("\n")[-1]
REASON_TASK = chain_of_thought("").messages[-1].content.split("\n")[-1]
UNKNOWN = "Nowhere"
"""What it says in place of what it has not been shown."""


class Oracle:
    """Its replies depend on the request alone. `speak` is for `probes.Speaker`."""

    def __init__(self, asked: HoplandQuestion) -> None:
        facts, _, _ = asked.reasoning.partition(f" {MARKER}")
        self._sentences = re.split(r"(?<=\.) ", facts)
        self._gold = asked.gold_passages
        [answer] = asked.question.answers
        self._objects = [*asked.gold_titles[1:], answer]
        if not len(self._sentences) == len(self._gold) == len(self._objects):
            raise ValueError(f"{asked.id} has no passage of its own for each of its facts")

    def speak(self, request: GenerationRequest) -> str:
        """The reply that the prompt's task asks for."""
        asked, shown, prefix = task(request), request.prompt.shown, request.prompt.prefix
        useful = [i for i, key in enumerate(shown, start=1) if key in self._gold]
        if "My judgment:" in asked:
            return f"My judgment: {'Yes' if useful else 'No'}."
        if "My selection:" in asked:
            first = f"Answer: {self._answer(shown)}\n" if "Answer: ..." in asked else ""
            if "Necessary information:" in asked:
                first = f"{self._information(shown)}\n"
            return f"{first}My selection:[{','.join(f'[{i}]' for i in useful)}]."
        if "[i] > [j]" in asked:
            rest = (i for i in range(1, len(shown) + 1) if i not in useful)
            return " > ".join(f"[{i}]" for i in (*useful, *rest))
        if "Necessary information:" in asked:
            return self._information(shown)
        if any(message.role == "tools" for message in request.prompt.messages):
            return self._by_calls(shown)
        if "<search>" in asked:
            return self._by_tags(shown)
        if "Follow up:" in asked:
            return self._follow_up(shown, prefix)
        if "[Search(" in asked:
            return self._search(shown, prefix)
        if ANSWER_TASK in asked:
            return self._answer(shown)
        if REASON_TASK in asked:
            return self._reason(shown, prefix)
        return self._information(shown)

    def _known(self, shown: Sequence[str], hop: int) -> str:
        return self._objects[hop] if self._gold[hop] in shown else UNKNOWN

    def _hops(self, shown: Sequence[str]) -> int:
        """How many facts, from the first on, are shown."""
        missing = (hop for hop, key in enumerate(self._gold) if key not in shown)
        return next(missing, len(self._gold))

    def _answer(self, shown: Sequence[str]) -> str:
        """As far as it gets."""
        hops = self._hops(shown)
        return self._objects[hops - 1] if hops else UNKNOWN

    def _information(self, shown: Sequence[str]) -> str:
        said = " ".join(self._sentences[: self._hops(shown)])
        return f"Necessary information: [{said or UNKNOWN}]"

    def _open(self, hop: int) -> str:
        """The fact without what it is about to tell."""
        return self._sentences[hop].removesuffix(f"{self._objects[hop]}.").strip()

    def _reason(self, shown: Sequence[str], prefix: str) -> str:
        """All sentences that are left, and the answer."""
        said = prefix.count(".")
        left = [
            f"{self._open(hop)} {self._known(shown, hop)}."
            for hop in range(said, len(self._sentences))
        ]
        return " ".join([*left, f"{MARKER} {self._known(shown, -1)}."])

    def _search(self, shown: Sequence[str], prefix: str) -> str:
        """The next sentences, up to the first fact that it must search for."""
        said = []
        for hop in range(prefix.count("."), len(self._sentences)):
            if self._gold[hop] not in shown:
                return " ".join([*said, f"[Search({self._open(hop)})]"])
            said.append(self._sentences[hop])
        return " ".join([*said, f"{MARKER} {self._objects[-1]}."])

    def _by_calls(self, shown: Sequence[str]) -> str:
        """One turn of ReAct: a call for the next fact, or the answer."""
        hops = self._hops(shown)
        if hops == len(self._sentences):
            return self._objects[-1]
        call = {"name": "search", "arguments": {"query": self._open(hops)}}
        return f"I need this.\n<tool_call>\n{json.dumps(call)}\n</tool_call>"

    def _by_tags(self, shown: Sequence[str]) -> str:
        """One turn of Search-R1: search for the next fact, or answer."""
        hops = self._hops(shown)
        thought = f"<think> {' '.join(self._sentences[:hops]) or UNKNOWN} </think>\n"
        if hops == len(self._sentences):
            return f"{thought}<answer> {self._objects[-1]} </answer>"
        return f"{thought}<search> {self._open(hops)} </search>"

    def _follow_up(self, shown: Sequence[str], prefix: str) -> str:
        """One turn of Self-Ask: answer the last follow-up, ask the next."""
        hop = prefix.count("Follow up:")
        said = f"{self._known(shown, hop - 1)}." if hop else "Yes."
        if hop == len(self._sentences):
            return f"{said}\nSo the final answer is: {self._known(shown, -1)}"
        return f"{said}\nFollow up: {self._open(hop)} what?"
