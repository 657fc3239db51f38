"""Ask the reader whether it knows enough; stop when it says yes.

The verbal counterpart of the uncertainty gates; small models nearly always give the same reply.
"""

from dataclasses import dataclass

from hopscope.runtime.errors import ContextOverflowError
from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.prompting.prompts import system
from hopscope.runtime.types import Decision, GenerationRequest, Message, Prompt

TASK = (
    "Do you know enough to answer this question, from the documents if there are any? "
    'Reply "Yes" or "No" and nothing else.'
)
MAX_TOKENS = 8


@dataclass(frozen=True)
class SelfReport:
    name: str = "self_report"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        enough = self._ask(moment, reader)
        reason = "the reader says it knows enough" if enough else "the reader does not say it knows"
        signals = {"enough": float(enough)}
        return Decision(policy=self.name, retrieve=not enough, reason=reason, signals=signals)

    def _ask(self, moment: Moment, reader: Reader) -> bool:
        for kept in range(len(moment.evidence), -1, -1):
            evidence = moment.evidence[:kept]
            task = f"Question: {moment.question.text}\n{TASK}"
            prompt = Prompt(
                messages=(system(evidence), Message(role="user", content=task)),
                shown=tuple(passage.key for passage in evidence),
            )
            request = GenerationRequest(
                prompt=prompt, max_tokens=MAX_TOKENS, stop=("\n",), seed=moment.seed
            )
            try:
                [[generation]] = reader.generate([request])
            except ContextOverflowError:
                if not kept:
                    raise
                continue
            return generation.text.strip().lower().startswith("yes")
        return False


def build() -> Policy:
    return SelfReport()
