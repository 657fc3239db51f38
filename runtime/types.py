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

from hopscope.runtime.storable import storable

Role = Literal["system", "user", "assistant", "tools", "calls", "tool"]
"""The last three are those of conversations with tools, see `runtime.prompting.tool_calls`."""
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
    # Checking the tokens of a reply one by one would take ten times as long.
    return texts if "".join(texts).isascii() else tuple(map(storable, texts))


Text = Annotated[str, AfterValidator(storable)]
"""The type of a field that holds text from outside."""
Texts = Annotated[tuple[str, ...], AfterValidator(_storable_texts)]
"""The type of a field that holds several such texts."""


def digest(*parts: str) -> str:
    """Hex SHA-256 of the parts, each length-prefixed so that no two lists of parts collide."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogatepass")  # settings may hold text that is not storable
        sha.update(len(data).to_bytes(8, "big"))
        sha.update(data)
    return sha.hexdigest()


class Record(BaseModel):
    """The base of all records: frozen, no unknown fields, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Question(Record):
    """A question to answer."""

    text: Text
    answers: Texts = ()
    """Gold aliases; each is a right answer. Empty when unknown."""
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
        """Hash of the unchanged title and text. The store uses it as the passage's key."""
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
    """The input of a reader."""

    messages: tuple[Message, ...]
    prefix: Text = ""
    """Text of the assistant turn that the reader continues; part of the prompt, not the output."""
    shown: Texts = ()
    """Keys of the passages in the messages, in order."""

    @property
    def text(self) -> str:
        """The prompt as one string, for records and for seeding. Models read the messages."""
        turns = [f"[{m.role}]\n{m.content}" for m in self.messages]
        return "\n".join([*turns, f"[assistant]\n{self.prefix}"])


class Usage(Record):
    """The cost of model calls. Tokens are the reader's own counts."""

    input_tokens: int = 0
    """Prompt tokens; the prompt of a request for n samples is counted once."""
    output_tokens: int = 0
    """Generated tokens of all samples, the end token included."""
    calls: int = 0
    thinking_tokens: int = 0
    """Output tokens of thoughts, which are no part of an answer."""
    cached_tokens: int = 0
    """Prompt tokens that need not be read again: those that a server bills as cached; of a model in
    this process those with which an earlier request of the run begins, if it keeps them."""
    uncounted: int = 0
    """Calls without a full count of tokens: the counts above are too low by an unknown number."""

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

    def weighed(self, cached: float) -> float:
        """Tokens, of which each cached one counts `cached`, from 0 to 1."""
        return self.tokens - (1 - cached) * self.cached_tokens


class ForwardCounts(Record):
    """Forward passes of a model. They are no part of `Usage`: reuse depends on the requests of
    other runs, and the record of a run must not."""

    passes: int = 0
    tokens: int = 0
    """Positions of all passes, padding included."""
    reused: int = 0
    """Prompt tokens that needed no pass, because their keys and values were cached."""

    def __add__(self, other: "ForwardCounts") -> "ForwardCounts":
        return ForwardCounts(
            passes=self.passes + other.passes,
            tokens=self.tokens + other.tokens,
            reused=self.reused + other.reused,
        )


class PairCounts(Record):
    """The cost of comparing texts, in ordered pairs: each direction counts as one."""

    asked: int = 0
    """Pairs sent to an entailment model."""
    cached: int = 0
    """Of these, pairs read from a database."""
    computed: int = 0
    """Of these, pairs that the model computed. The rest were equal to others, held in memory, or
    decided by a rule."""

    def __add__(self, other: "PairCounts") -> "PairCounts":
        return PairCounts(
            asked=self.asked + other.asked,
            cached=self.cached + other.cached,
            computed=self.computed + other.computed,
        )


class GenerationRequest(Record):
    """A request for `n` continuations of one prompt."""

    prompt: Prompt
    n: int = Field(default=1, ge=1)
    temperature: float = Field(default=0.0, ge=0.0)
    """0 is greedy. Recorded log-probabilities do not depend on it."""
    max_tokens: int = Field(default=64, ge=1)
    """The limit of the answer. The reader sets a separate limit for a thought."""
    stop: Texts = ()
    """The answer ends before the first of these strings."""
    seed: int = 0
    """Sample i draws from its own stream, derived from (seed, prompt, i)."""
    thought: Text | None = None
    """A given thought: the reader answers after it and does not think again. With an empty one it
    answers at once; None leaves thinking to the reader."""
    keeps: Literal["first_sentence"] | None = None
    """All that the caller keeps of the reply. A reader may end the reply once later text cannot
    change that; None needs the whole reply."""


class Thought(Record):
    """The reader's reasoning before its answer."""

    text: Text
    """The text without marks; empty where a server does not return it."""
    tokens: int = 0
    """Output tokens of the thought, its marks included."""
    end: ThoughtEnd = "closed"
    """`closed`: the reader closed it. `forced`: the runtime closed it, at the limit of its length
    or where the reply would have ended within it. `open`: the reply ended within it, so there is
    no answer."""


class Generation(Record):
    """One continuation. Each sequence has one entry per token of `tokens`, which spell `text`. The
    end token and the thought are in none of them."""

    text: Text
    tokens: Texts = ()
    """The text of each token. A stop string can cut the last one short in `text`."""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    """ln p of each token under the raw distribution."""
    entropies: tuple[float, ...] = ()
    """Entropy in nats of the raw next-token distribution each token was drawn from."""
    end_logprob: float | None = None
    """ln p of the end token, if the reader generated one. If the text begins with the stop string,
    ln p of the token that wrote it. An empty text has no other likelihood."""
    finish_reason: FinishReason = "eos"
    usage: Usage = Usage()
    """Output tokens of this sample; the prompt's tokens stand on the first sample only."""
    approx: bool = False
    """True when entropies come from a truncated distribution."""
    refused: tuple[str, ...] = ()
    """Options of the request that had no effect, because the server refuses them."""
    thought: Thought | None = None
    """The thought before the answer; None in a reply without one."""

    @property
    def unanswered(self) -> str | None:
        """Why there is no answer, if the reply ended within its thought; else None."""
        if self.thought is None or self.thought.end != "open":
            return None
        return (
            f"the reply ended within its thought, after {self.thought.tokens} tokens: give it "
            "more, thinking=TOKENS (--thinking TOKENS), or none, thinking='off' (--thinking off)"
        )


class ScoreRequest(Record):
    """A request for the likelihood of `continuation` after `prompt` (teacher forcing)."""

    prompt: Prompt
    continuation: Text = ""
    token_ids: tuple[int, ...] = ()
    """The continuation's tokens, where known; else the reader tokenises `continuation`."""
    thought: Text | None = None
    """A thought before the continuation; None is no thought."""


class Scored(Record):
    """Per-token likelihoods of a given continuation, without an end token."""

    tokens: Texts
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    entropies: tuple[float, ...]
    usage: Usage = Usage()
    approx: bool = False


class Exchange(Record):
    """One request to the reader within a step, and its reply."""

    request: GenerationRequest
    generations: tuple[Generation, ...]
    seconds: float
    span_id: str = ""


class Decision(Record):
    """The decision, before a retrieval, whether the retrieval is worth its cost."""

    policy: str
    """Name and settings of the policy; `limit:` and the stop reason where a limit decided."""
    retrieve: bool
    """The choice."""
    reason: Text
    """The reason in a few words."""
    retrieval: int = 0
    """Earlier retrievals; at 0 the choice is whether to retrieve at all."""
    stage: str | None = None
    """The last stage of signals that the policy computed, if it has stages."""
    signals: dict[str, float] = {}
    """The signals by name, without those that could not be computed."""
    gain: float | None = None
    """Predicted utility of the best continuation minus that of stopping here."""
    low: float | None = None
    """95 % interval of `gain`."""
    high: float | None = None
    cost: float | None = None
    """Predicted tokens of that continuation."""
    price: float | None = None
    """The least utility that a token must bring."""
    usage: Usage = Usage()
    """The cost of the decision; part of the step's usage."""


class Step(Record):
    """One execution of one node of the workflow's graph."""

    index: int
    """Position in the run, from 0."""
    name: str
    """The node's name, as in the paper."""
    kind: StepKind
    query: Text | None = None
    """The query sent to the retriever; None without a retrieval."""
    ranked: tuple[Hit, ...] = ()
    """The retriever's hits, best first."""
    new: Texts = ()
    """Keys of passages that no earlier step had brought into the evidence."""
    shown: Texts = ()
    """Keys of the passages in this step's prompts, in order of first appearance."""
    evidence: tuple[Passage, ...] = ()
    """The evidence after this step."""
    exchanges: tuple[Exchange, ...] = ()
    output: Text | None = None
    """The text of the step: the thought, the answer, the selection."""
    parse_ok: bool | None = None
    """Whether the model's text had the required form; None when no form was required."""
    stop_reason: StopReason | None = None
    """Set on the step that ended the loop."""
    dangling: Texts = ()
    """Keys of `new` that stand in no prompt of this run."""
    decision: Decision | None = None
    """The decision of a policy or a limit, if there was one. If it was not to retrieve, the step
    did nothing."""
    usage: Usage = Usage()
    started: datetime
    seconds: float
    span_id: str = ""

    @property
    def retrieved(self) -> bool:
        """Whether the step is a retrieval: it sent a query to the retriever, whatever its kind. One
        that was declined, or that a limit ended before its query, is none."""
        return self.query is not None

    @property
    def declined(self) -> bool:
        """Whether a policy or a limit declined the step's retrieval, so that it did nothing."""
        return self.decision is not None and not self.decision.retrieve


class RunError(Record):
    """The error that ended a run."""

    type: Text
    message: Text


IMPORTED = "imported:"
"""Prefix of the workflow of a run that another program made: no command can run it again."""


def is_timed(workflow: str, seconds: float) -> bool:
    """Whether the seconds of a run were measured. The record of an imported run may tell none."""
    return seconds > 0 or not workflow.startswith(IMPORTED)


class Run(Record):
    """The complete record of one question through one workflow, even of a failed one."""

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

    @property
    def retrievals(self) -> tuple[Step, ...]:
        """The steps that retrieved, in order."""
        return tuple(step for step in self.steps if step.retrieved)

    @property
    def prompts(self) -> str | None:
        """The set of prompts that its options name, or its folder, with the hash of its files; None
        for the default prompts."""
        named = self.options.get("prompts")
        return str(named) if named else None

    @property
    def timed(self) -> bool:
        """Whether its seconds and those of its steps were measured."""
        return is_timed(self.workflow, self.seconds)


class Measurement(Record):
    """A number with its provenance, or the reason it is missing."""

    value: float | None
    reason: Text | None = None
    """Why `value` is None."""
    n: int = 0
    """Samples behind the value; 0 when it is exact."""
    seed: int | None = None
    estimator: str = ""
    """The formula and its options, enough to compute the value again."""
    low: float | None = None
    """95 % interval."""
    high: float | None = None
    certain: bool = False
    """The interval always holds, not only in 95 % of cases (enumerated scores)."""
    dropped: tuple[str, ...] | None = None
    """Keys of the passages that the meter left out because the context was too long; the first may
    be left out in part. None where the reader saw all."""

    @model_validator(mode="after")
    def _value_or_reason(self) -> Self:
        if (self.value is None) == (self.reason is None):
            raise ValueError("a measurement has either a value or the reason it is missing")
        return self


class Provenance(Record):
    """The settings that a credit depends on, besides the run."""

    reader: Text
    """Name and revision of the reader."""
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
    """Key of the passage that gets the share; None when the whole step gets it."""
    rule: str
    """The rule of sharing: trajectory, leave_one_out, solo, shapley; or level and total, the
    amounts that are shared."""
    meter: str
    measurement: Measurement
    provenance: Provenance


class Appraisal(Record):
    """One measurement of a run: its time and its cost. Its credits are those of the run with the
    same provenance."""

    run_id: str
    provenance: Provenance
    measured: datetime
    usage: Usage = Usage()
    """The reader's usage, in `replay` with that of the repeated runs. Results held in memory cost
    nothing again."""
    seconds: float = 0.0
    pairs: PairCounts | None = None
    """The pairs sent to the entailment model; None where they were not counted."""


class AnswerToken(Record):
    """A token of the reader's answer, with the reader's uncertainty about it."""

    text: Text
    value: float
    """With the evidence, in nats: the entropy before the token, or its negative
    log-probability."""
    without: float | None = None
    """The same without the documents; None where the meter does not compare the two."""
    key: bool
    """Whether the confidence in the answer is made of this token."""


class AnswerGroup(Record):
    """Sampled answers that mean the same."""

    answer: Text
    """The heaviest of them."""
    mass: float
    """The sum of their weights; all masses of one evidence set sum to at most 1."""
    right: bool
    """Whether they agree with a gold answer."""


class MeasuredAnswers(Record):
    """The reader's answers to one evidence set, which a meter's value is made of."""

    tokens: tuple[AnswerToken, ...] = ()
    """Of the greedy answer, by a meter of confidence; empty by others."""
    groups: tuple[AnswerGroup, ...] = ()
    """Of the sampled answers, the heaviest first, by a meter that samples; empty by others."""


class CoalitionValue(Record):
    """The value of one coalition of a game."""

    members: tuple[int, ...]
    """The players that take part, ascending: indices of steps, or places in `GameValues.keys`."""
    evidence: str | None
    """Hash of the evidence. Coalitions with equal evidence have one value. None if there was no
    evidence, because a repeated run failed."""
    measurement: Measurement
    unseen: tuple[Text, ...] = ()
    """Keys of the passages of which the meter showed the reader nothing."""
    answers: MeasuredAnswers | None = None
    """The answers behind the value. Evidence that several coalitions or meters measured has them
    once; None also for values older than m016."""

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if list(self.members) != sorted({*self.members}):
            raise ValueError("the members of a coalition are ascending")
        return self


class GameValues(Record):
    """One meter's values of the coalitions of a run, from which credits follow without a model."""

    run_id: str
    provenance: Provenance
    meter: str
    step: int | None
    """The step whose passages are the members; None if steps are, or all passages of the run."""
    keys: tuple[Text, ...] = ()
    """Keys of the passages that are the members; empty if steps are."""
    members: tuple[int, ...]
    """All that receive a credit, in the order of the trajectory."""
    players: tuple[int, ...]
    """The members that can change the evidence."""
    remark: str = ""
    """The counterfactual and mode, as estimators name them."""
    comparable: bool = True
    """Whether the value without evidence follows the same rule as with it."""
    measured: int
    """Number of coalitions that were measured; more than `values` where those are bounded."""
    values: tuple[CoalitionValue, ...]

    @property
    def size(self) -> int:
        """Bytes of the values: 8 for each number, 1 for each character. Members and estimators are
        not counted, because runs share them, nor are answers, which are stored compressed."""
        return sum(
            8 * sum(isinstance(each, int | float) for each in (m.value, m.low, m.high, m.n, m.seed))
            + sum(len(text) for text in (m.reason or "", value.evidence or ""))
            + sum(len(key) for key in (*(m.dropped or ()), *value.unseen))
            for value in self.values
            for m in [value.measurement]
        )
