"""Ask the reader whether it knows enough; stop when it says yes.

The verbal counterpart of the uncertainty gates; small models nearly always give the same reply.
"""

from dataclasses import dataclass

from hopscope.runtime.errors import ContextOverflowError
from hopscope.runtime.ports import Moment, Policy, Reader
from hopscope.runtime.prompting.prompt_set import DEFAULT_PROMPTS
from hopscope.runtime.types import Decision, GenerationRequest

PROMPT = "policy/self_report"
MAX_TOKENS = 8

ASKS = True
"""It cannot decide without a reader."""


@dataclass(frozen=True)
class SelfReport:
    name: str = "self_report"

    def decide(self, moment: Moment, reader: Reader) -> Decision:
        enough = self._ask(moment, reader)
        reason = "the reader says it knows enough" if enough else "the reader does not say it knows"
        signals = {"enough": float(enough)}
        return Decision(policy=self.name, retrieve=not enough, reason=reason, signals=signals)

    def _ask(self, moment: Moment, reader: Reader) -> bool:
        prompts = moment.prompts or DEFAULT_PROMPTS
        for kept in range(len(moment.evidence), -1, -1):
            evidence = moment.evidence[:kept]
            prompt = prompts.render(PROMPT, evidence, question=moment.question.text)
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
