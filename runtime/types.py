"""The nouns: immutable records that every layer passes around.

Invariants: a record never changes after it is made; a number that was not measured is
`None` with a reason, never NaN or zero; log-probabilities and entropies are natural
logarithms of the reader's raw distribution (before temperature and truncation).
"""

import hashlib
import json
import unicodedata
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

from hopscope.runtime.text import storable

Role = Literal["system", "user", "assistant"]
StepKind = Literal["retrieve", "generate", "judge", "rank", "vote"]
StopReason = Literal[
    "answer_marker",
    "answered",
    "eos",
    "empty_generation",
    "max_steps",
    "max_tokens",
    "set_stable",
    "answer_stable",
    "parse_failure",
    "policy",
    "budget_tokens",
    "budget_calls",
    "budget_retrievals",
    "budget_seconds",
    "budget_cost",
]
FinishReason = Literal["eos", "stop", "length"]
ThoughtEnd = Literal["closed", "forced", "open"]
RunStatus = Literal["ok", "failed", "interrupted"]


def _storable_texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    # Looking at the tokens of a reply one by one would take ten times as long.
    return texts if "".join(texts).isascii() else tuple(map(storable, texts))


Text = Annotated[str, AfterValidator(storable)]
"""A record's field for text from outside."""
Texts = Annotated[tuple[str, ...], AfterValidator(_storable_texts)]
"""Likewise for many."""


def digest(*parts: str) -> str:
    """Hex SHA-256 of the parts, each length-prefixed so that no two lists of parts collide."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogatepass")  # settings may hold text that is not storable
        sha.update(len(data).to_bytes(8, "big"))
        sha.update(data)
    return sha.hexdigest()


class Record(BaseModel):
    """What all our records have in common: frozen, no unknown fields, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Question(Record):
    """What is to be answered."""

    text: Text
    answers: Texts = ()
    """Gold aliases, any of which is right; empty when unknown."""
    id: Text = ""
    """The dataset's id, or empty."""


class Passage(Record):
    """A retrievable unit of text. Two passages are the same when their `key` is."""

    id: Text = ""
    title: Text = ""
    text: Text
    source: Text = ""
    """The index or service it came from."""

    @property
    def key(self) -> str:
        """The id, else a hash of the text with case, width and spacing folded."""
        if self.id:
            return self.id
        folded = " ".join(unicodedata.normalize("NFKC", self.text).casefold().split())
        return digest(folded)[:16]

    @property
    def content_hash(self) -> str:
        """Hash of title and text as they stand: what the store keeps each passage under."""
        return digest(self.title, self.text)


class Hit(Record):
    """A passage in a ranking."""

    passage: Passage
    score: float
    """The retriever's own score: comparable within one ranking only."""


class Message(Record):
    """One turn of a chat."""

    role: Role
    content: Text


class Prompt(Record):
    """What is sent to a reader."""

    messages: tuple[Message, ...]
    prefix: Text = ""
    """Text of the assistant turn that the reader continues; part of the prompt, not the output."""
    shown: Texts = ()
    """Keys of the passages that stand in the messages, in order."""

    @property
    def text(self) -> str:
        """The prompt as one string, for records and for seeding; not what a model is fed."""
        turns = [f"[{m.role}]\n{m.content}" for m in self.messages]
        return "\n".join([*turns, f"[assistant]\n{self.prefix}"])


class Usage(Record):
    """What model calls cost. Tokens are the reader's own counts."""

    input_tokens: int = 0
    """Prompt tokens; the prompt of a request for n samples is counted once."""
    output_tokens: int = 0
    """Generated tokens of all samples, the end token included."""
    calls: int = 0
    thinking_tokens: int = 0
    """Those of the output tokens that were thoughts and not answers."""
    cached_tokens: int = 0
    """Of the prompt tokens those that the server had at hand and bills at a lower price."""
    uncounted: int = 0
    """Calls whose tokens nobody told in full: the tokens above are too few, by how many is
    unknown."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            calls=self.calls + other.calls,
            thinking_tokens=self.thinking_tokens + other.thinking_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            uncounted=self.uncounted + other.uncounted,
        )

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Forwarded(Record):
    """What went through a model. Beside `Usage` and not in it: how much is reused depends on what
    was asked before, and the record of a run must not."""

    passes: int = 0
    tokens: int = 0
    """Positions of all passes, those included that only fill up a batch."""
    reused: int = 0
    """Tokens of prompts that needed no pass, because their keys and values were at hand."""

    def __add__(self, other: "Forwarded") -> "Forwarded":
        return Forwarded(
            passes=self.passes + other.passes,
            tokens=self.tokens + other.tokens,
            reused=self.reused + other.reused,
        )


class Pairs(Record):
    """What comparing texts cost: ordered pairs, each direction one."""

    asked: int = 0
    """Pairs that an entailment model was asked about."""
    cached: int = 0
    """Of these, found in a database."""
    computed: int = 0
    """Of these, computed by the model. The rest were equal to others, remembered from a moment
    before, or decided by a rule."""

    def __add__(self, other: "Pairs") -> "Pairs":
        return Pairs(
            asked=self.asked + other.asked,
            cached=self.cached + other.cached,
            computed=self.computed + other.computed,
        )


class GenerationRequest(Record):
    """Ask a reader for `n` continuations of one prompt."""

    prompt: Prompt
    n: int = Field(default=1, ge=1)
    temperature: float = Field(default=0.0, ge=0.0)
    """0 is greedy. Recorded log-probabilities do not depend on it."""
    max_tokens: int = Field(default=64, ge=1)
    """Of the answer; a thought has a limit of its own, which is the reader's."""
    stop: Texts = ()
    """The answer ends before the first of these strings."""
    seed: int = 0
    """Sample i draws from its own stream, derived from (seed, prompt, i)."""
    thought: Text | None = None
    """A thought that stands before the answer already: the reader answers after it and does not
    think again. Empty, it answers at once; None leaves it to the reader."""


class Thought(Record):
    """What a reader thought before it answered."""

    text: Text
    """Without marks; empty where a server keeps it to itself."""
    tokens: int = 0
    """Output tokens that it took, its marks included."""
    end: ThoughtEnd = "closed"
    """`closed` by the reader; `forced`, closed for it at the limit of its length or where the reply
    would have ended within it; `open`: the reply ended within it, so that there is no answer."""


class Generation(Record):
    """One continuation. The sequences run over `tokens`, which spell `text`; the end token is
    in none of them, and nor is a thought."""

    text: Text
    tokens: Texts = ()
    """The text of each token. A stop string can cut the last one short in `text`."""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    """ln p of each token under the raw distribution."""
    entropies: tuple[float, ...] = ()
    """Entropy in nats of the raw next-token distribution each token was drawn from."""
    end_logprob: float | None = None
    """ln p of the end token, where one was generated, or of the token that wrote the stop string,
    where nothing stands before it: all the likelihood an empty text has."""
    finish_reason: FinishReason = "eos"
    usage: Usage = Usage()
    """Output tokens of this sample; the prompt's tokens stand on the first sample only."""
    approx: bool = False
    """True when entropies come from a truncated distribution."""
    refused: tuple[str, ...] = ()
    """Options of the request that did not hold, because the server refuses them."""
    thought: Thought | None = None
    """What was thought before the answer; None of a reply without a thought."""

    @property
    def unanswered(self) -> str | None:
        """Why there is no answer, where the reply ended within its thought."""
        if self.thought is None or self.thought.end != "open":
            return None
        return (
            f"the reply ended within its thought, after {self.thought.tokens} tokens: give it more "
            "(--thinking TOKENS), or none (--thinking off)"
        )


class ScoreRequest(Record):
    """Ask a reader how likely `continuation` is after `prompt` (teacher forcing)."""

    prompt: Prompt
    continuation: Text = ""
    token_ids: tuple[int, ...] = ()
    """The continuation's tokens, where known; else `continuation` is tokenised."""
    thought: Text | None = None
    """A thought that stands before the continuation; none unless told."""


class Scored(Record):
    """Per-token likelihoods of a given continuation, without an end token."""

    tokens: Texts
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    entropies: tuple[float, ...]
    usage: Usage = Usage()
    approx: bool = False


class Exchange(Record):
    """One request to the reader within a step and what came back."""

    request: GenerationRequest
    generations: tuple[Generation, ...]
    seconds: float
    span_id: str = ""


class Decision(Record):
    """Whether one more retrieval was worth it, decided before it."""

    policy: str
    """Name and settings of what decided; `limit:` and the reason to stop where a limit did."""
    retrieve: bool
    """The choice."""
    reason: Text
    """In a few words."""
    retrieval: int = 0
    """Retrievals before; at 0 the question is whether to retrieve at all."""
    stage: str | None = None
    """The last of the policy's stages of signals that was looked at, where it has stages."""
    signals: dict[str, float] = {}
    """What was known; what could not be known is not there."""
    gain: float | None = None
    """Predicted utility of the best continuation minus that of stopping here."""
    low: float | None = None
    """95 % interval of `gain`."""
    high: float | None = None
    cost: float | None = None
    """Predicted tokens of that continuation."""
    price: float | None = None
    """Utility that a token must bring."""
    usage: Usage = Usage()
    """What deciding cost; part of the step's usage."""


class Step(Record):
    """One execution of one node of the workflow's graph."""

    index: int
    """Position in the run, from 0."""
    name: str
    """The node's name, as in the paper."""
    kind: StepKind
    query: Text | None = None
    """What was sent to the retriever; None when nothing was retrieved."""
    ranked: tuple[Hit, ...] = ()
    """What the retriever returned, best first."""
    new: Texts = ()
    """Keys of passages that no earlier step had brought into the evidence."""
    shown: Texts = ()
    """Keys of the passages a model was shown in this step, in order of first showing."""
    evidence: tuple[Passage, ...] = ()
    """The evidence after this step."""
    exchanges: tuple[Exchange, ...] = ()
    output: Text | None = None
    """The text the step produced: the thought, the answer, the selection."""
    parse_ok: bool | None = None
    """Whether the model's text had the form asked for; None when no form was asked for."""
    stop_reason: StopReason | None = None
    """Set on the step that ended the loop."""
    dangling: Texts = ()
    """Keys of `new` that no model was ever shown in this run."""
    decision: Decision | None = None
    """Whether to retrieve, where a policy or a limit had a say; refused, the step did nothing."""
    usage: Usage = Usage()
    started: datetime
    seconds: float
    span_id: str = ""


class RunError(Record):
    """Why a run has no regular end."""

    type: Text
    message: Text


class Run(Record):
    """One question through one workflow: what happened, complete even when it failed."""

    id: Text
    question: Question
    workflow: str
    options: dict[str, JsonValue] = {}
    """The workflow's resolved options."""
    reader: Text = ""
    retriever: Text = ""
    seed: int = 0
    steps: tuple[Step, ...] = ()
    answer: Text | None = None
    status: RunStatus = "ok"
    stop_reason: StopReason | None = None
    error: RunError | None = None
    started: datetime
    seconds: float = 0.0
    trace_id: str = ""
    span_id: str = ""

    @property
    def usage(self) -> Usage:
        return sum((step.usage for step in self.steps), Usage())

    @property
    def evidence(self) -> tuple[Passage, ...]:
        return self.steps[-1].evidence if self.steps else ()


class Measurement(Record):
    """One number and how it was come by; or the reason why there is none."""

    value: float | None
    reason: Text | None = None
    """Why `value` is None."""
    n: int = 0
    """Samples behind the value; 0 when it is exact."""
    seed: int | None = None
    estimator: str = ""
    """Names the formula and its options, enough to compute it again."""
    low: float | None = None
    """95 % interval."""
    high: float | None = None
    certain: bool = False
    """The interval holds always, and not in 95 % of cases: of enumerated scores."""
    dropped: tuple[str, ...] | None = None
    """Keys of the passages that the meter kept from the reader, the first perhaps in part only,
    because the context was too long; None where all was shown."""

    @model_validator(mode="after")
    def _value_or_reason(self) -> Self:
        if (self.value is None) == (self.reason is None):
            raise ValueError("a measurement has either a value or the reason why it has none")
        return self


class Provenance(Record):
    """What a credit depends on besides the run."""

    reader: Text
    """Name and revision of the model that was asked."""
    entailment: Text | None = None
    seed: int = 0
    settings: dict[str, JsonValue] = {}

    @property
    def settings_hash(self) -> str:
        ordered = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        return digest(ordered)[:16]


class Credit(Record):
    """A share of the utility, given to one step, to one passage of a step, or to the whole run
    when `step` is None."""

    run_id: str
    step: int | None
    passage: Text | None = Field(default=None, min_length=1)
    """Key of the passage that the share goes to; None when it goes to all that the step brought."""
    rule: str
    """How it was shared: trajectory, leave_one_out, solo, shapley; or level and total, what is
    shared."""
    meter: str
    measurement: Measurement
    provenance: Provenance


class Appraisal(Record):
    """One measuring of a run: when it was and what it cost. Its credits are those of the run with
    the same provenance."""

    run_id: str
    provenance: Provenance
    measured: datetime
    usage: Usage = Usage()
    """What was asked of the reader for it, in `replay` that of the repeated runs too. What could be
    remembered from a moment before costs nothing again."""
    seconds: float = 0.0
    pairs: Pairs | None = None
    """What was asked of the entailment model; None where nobody counted."""
