"""GroGU: the effect of evidence on the reader's confidence in its own answer; needs no gold.

    GroGU(q, D) = confidence(y_g | q, D) - confidence(y_u | q),   confidence = -score

y_g is the greedy answer with the documents, y_u the one without. The default score is
KeyEntropy, the mean entropy over the tokens of y_g that the documents change.

Caveat: the confidence without documents uses another rule for key tokens (appendix C.1), because
there is nothing to compare with. It is the same for all evidence, so differences between evidence
sets do not depend on it; the difference to no evidence mixes the two rules.

Source: GroGU (2026), eq. 1, sections 3.1-3.2, appendix C.1.
"""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

from hopscope.runtime.errors import CapabilityError, UsageError
from hopscope.runtime.ports import Answered, Display, Reader, SampleAllocation
from hopscope.runtime.types import (
    Generation,
    GenerationRequest,
    MeasuredAnswers,
    Measurement,
    Passage,
    Question,
    Record,
    Scored,
    ScoreRequest,
)
from hopscope.tracing.asking import asking
from hopscope.tracing.asking.asking import Content, Unmeasured
from hopscope.tracing.beliefs.answer_groups import told
from hopscope.tracing.meters.grogu import key_tokens
from hopscope.tracing.meters.grogu.key_tokens import Score

DISPLAY = Display("GroGU", unit="nats", baseline=False)


class Confidence(Record):
    """The reader's confidence in one answer, with all its inputs."""

    answer: Generation
    """The greedy answer; its sequences run over the same tokens as those below."""
    ungrounded_entropies: tuple[float, ...] | None
    """Entropies of the same tokens without the documents; None for the closed-book answer."""
    ungrounded_logprobs: tuple[float, ...] | None
    keys: tuple[int, ...]
    """Positions of the key tokens; all tokens for the plain scores."""
    value: float
    """The confidence: the negative score."""
    approx: bool
    """Whether the entropies come from a truncated distribution."""

    @property
    def key_tokens(self) -> tuple[str, ...]:
        """The texts of the key tokens, as in the answer."""
        return tuple(self.answer.tokens[i] for i in self.keys)


@dataclass(frozen=True)
class GroGU:
    """A utility meter. All answers come from one call to the reader, and their scores without the
    documents from another."""

    reader: Reader
    """Gives the answers and their scores."""
    _: KW_ONLY
    score: Score = "key_entropy"
    alpha: float = 0.05
    """A token is a key if its entropy changes by more than this, in nats."""
    top: float = 0.1
    """K: the share of tokens taken if there is no key."""
    perplexity: Literal["exp_mean", "mean_inverse"] = "exp_mean"
    """The average in `ppl` and `key_ppl`: exp of the mean negative log-probability, or mean 1/p."""
    max_tokens: int = 64
    """The length limit of an answer, which also ends at a newline, "Question:" or "Context:"."""
    seed: int = 0
    """Passed on to the reader; decoding is greedy."""
    prompts: str = ""
    """A set of prompts, or its folder, whose `meter/answer` asks for the replies."""

    name = "grogu"

    def __post_init__(self) -> None:
        """Raises UsageError for invalid options."""
        if self.max_tokens < 1 or self.alpha < 0 or not 0 <= self.top <= 1:
            raise UsageError(
                "GroGU needs max_tokens of 1 or more, alpha of 0 or more, top in [0, 1]"
            )

    @property
    def comparable_baseline(self) -> bool:
        """Whether the confidence without evidence follows the same rule as with it."""
        return self.score in ("entropy", "ppl")

    @property
    def estimator(self) -> str:
        """The formula and its options, enough to reproduce a value."""
        options: dict[str, object] = {"score": self.score}
        if not self.comparable_baseline:
            options |= {"alpha": self.alpha, "top": self.top, "ungrounded_keys": "C.1"}
        if self.score in ("ppl", "key_ppl"):
            options["perplexity"] = self.perplexity
        prompt = asking.prompt_name(self.prompts)
        options |= {"max_tokens": self.max_tokens, "prompt": prompt, "decoding": "greedy"}
        return f"grogu({', '.join(f'{k}={v}' for k, v in options.items())})"

    def measure(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Measurement]:
        """GroGU of each evidence set, in nats (perplexities: a plain number).

        No evidence has exactly 0. Values from truncated distributions carry `approx` in their
        estimator and are never subtracted from exact ones.

        Raises:
            ReaderError: the model failed.
        """
        return [each.measurement for each in self.measure_answered(question, evidences)]

    def measure_answered(
        self,
        question: Question,
        evidences: Sequence[tuple[Passage, ...]],
        allocation: SampleAllocation | None = None,
    ) -> list[Answered]:
        """As `measure`, with the tokens of the greedy answers. A credit budget gives this meter no
        allocation."""
        baseline, *confidences = self.confidences(question, [(), *evidences])
        return [
            Answered(self._measurement(confidence, baseline), self._told(confidence))
            for confidence in confidences
        ]

    def requests(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[GenerationRequest]:
        """The greedy answers, also the one without evidence."""
        return list(self._asked(question, [(), *evidences]).values())

    def confidences(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> list[Confidence | Unmeasured]:
        """The confidence on each evidence set with the answer and its key tokens.

        Raises:
            ReaderError: the model failed.
        """
        answers = self._answers(question, evidences)
        closed = answers.get(())
        if self._thinks(answers.values()) and not self.comparable_baseline:
            closed = closed or self._answers(question, [()])[()]
            if isinstance(closed, Unmeasured):
                unmeasured = Unmeasured(f"without documents: {closed.reason}")
                answers |= {
                    key: unmeasured
                    for key, answer in answers.items()
                    if key and self._thinks([answer])
                }
        try:
            compared = self._without_documents(question, answers, closed)
        except CapabilityError as error:
            compared = {}
            answers |= {key: Unmeasured(str(error)) for key in answers if key}
        confidences: dict[Content, Confidence | Unmeasured] = {
            key: answer
            if isinstance(answer, Unmeasured)
            else self._confidence(answer, compared.get(key))
            for key, answer in answers.items()
        }
        return [confidences[asking.content(evidence)] for evidence in evidences]

    def _answers(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> dict[Content, Generation | Unmeasured]:
        """The greedy answer with each evidence set."""
        requests = self._asked(question, evidences)
        replies = asking.generate(self.reader, list(requests.values()))
        return {
            key: reply if isinstance(reply, Unmeasured) else self._checked(reply[0])
            for key, reply in zip(requests, replies, strict=True)
        }

    def _asked(
        self, question: Question, evidences: Sequence[tuple[Passage, ...]]
    ) -> dict[Content, GenerationRequest]:
        return asking.requests(
            question.text,
            evidences,
            n=1,
            temperature=0.0,
            max_tokens=self.max_tokens,
            seed=self.seed,
            prompts=self.prompts,
        )

    @staticmethod
    def _thinks(answers: Iterable[Generation | Unmeasured]) -> bool:
        return any(isinstance(each, Generation) and each.thought is not None for each in answers)

    def _checked(self, answer: Generation) -> Generation | Unmeasured:
        if not answer.text.strip():
            return Unmeasured("the reader's answer is empty")
        wanted = answer.logprobs if "ppl" in self.score else answer.entropies
        if answer.tokens and len(wanted) == len(answer.tokens):
            return answer
        what = "log-probabilities" if "ppl" in self.score else "entropies"
        if what == "entropies" and answer.logprobs:
            return Unmeasured(f"the reader gives no {what}; -o grogu.score=ppl needs none")
        return Unmeasured(f"the reader gives no {what}, which GroGU is made of")

    def _without_documents(
        self,
        question: Question,
        answers: dict[Content, Generation | Unmeasured],
        closed: Generation | Unmeasured | None,
    ) -> dict[Content, Scored]:
        """The scores of the grounded answers, token for token, under the closed-book prompt. For a
        reader that thinks they follow its closed-book thought, because its other thoughts mention
        the documents."""
        prompt, thought = asking.prompt(question.text, (), self.prompts), None
        if isinstance(closed, Generation) and closed.thought is not None:
            thought = closed.thought.text
        requests = {
            key: ScoreRequest(
                prompt=prompt,
                continuation=answer.text,
                token_ids=answer.token_ids,
                thought=thought,
            )
            for key, answer in answers.items()
            if key and not isinstance(answer, Unmeasured)
        }
        if not requests or self.comparable_baseline:
            return {}
        distinct = list(dict.fromkeys(requests.values()))
        scored = dict(zip(distinct, self.reader.score(distinct), strict=True))
        return {key: scored[request] for key, request in requests.items()}

    def _confidence(self, answer: Generation, without: Scored | None) -> Confidence | Unmeasured:
        by_entropy = "entropy" in self.score
        if without and by_entropy and without.approx != answer.approx:
            return Unmeasured("exact and truncated entropies cannot be compared")
        values = self._values(answer)
        if without and len(self._values(without)) != len(values):
            return Unmeasured("the reader scores other tokens than it generated")
        if self.comparable_baseline:
            keys = tuple(range(len(values)))
        elif without is None:
            keys = key_tokens.ungrounded_keys(values, self.alpha, self.top)
        else:
            keys = key_tokens.grounded_keys(values, self._values(without), self.alpha, self.top)
        return Confidence(
            answer=answer,
            ungrounded_entropies=without.entropies if without else None,
            ungrounded_logprobs=without.logprobs if without else None,
            keys=keys,
            value=-self._average([values[i] for i in keys]),
            approx=by_entropy and answer.approx,
        )

    def _told(self, confidence: Confidence | Unmeasured) -> MeasuredAnswers | None:
        if isinstance(confidence, Unmeasured):
            return None
        without = confidence.ungrounded_logprobs
        if "entropy" in self.score:
            without = confidence.ungrounded_entropies
        elif without is not None:
            without = tuple(-value for value in without)
        answer = confidence.answer
        return told(answer.tokens, self._values(answer), without, confidence.keys)

    def _values(self, tokens: Generation | Scored) -> tuple[float, ...]:
        """The values to average, per token: entropy or negative log-probability."""
        if "entropy" in self.score:
            return tokens.entropies
        return tuple(-value for value in tokens.logprobs)

    def _average(self, values: list[float]) -> float:
        if "entropy" in self.score:
            return key_tokens.entropy(values)
        logprobs = [-value for value in values]
        if self.perplexity == "exp_mean":
            return key_tokens.perplexity(logprobs)
        return key_tokens.mean_inverse_probability(logprobs)

    def _measurement(
        self, confidence: Confidence | Unmeasured, baseline: Confidence | Unmeasured
    ) -> Measurement:
        estimator = self.estimator
        value, reason = None, None
        if isinstance(baseline, Unmeasured):
            reason = f"without evidence: {baseline.reason}"
        elif isinstance(confidence, Unmeasured):
            reason = confidence.reason
        elif confidence.approx != baseline.approx:
            reason = "exact and truncated entropies cannot be compared"
        else:
            value = confidence.value - baseline.value
            estimator = asking.as_asked(estimator, [confidence.answer, baseline.answer])
            estimator += " approx" if confidence.approx else ""
        return Measurement(value=value, reason=reason, seed=self.seed, estimator=estimator)


build = GroGU
