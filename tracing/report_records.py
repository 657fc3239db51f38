"""What is told about a run and its credits: the records that `--json` prints and tables show.

The shape is a public contract: scripts read it.
"""

from datetime import date, datetime

from pydantic import JsonValue

from hopscope.runtime.types import Pairs, Record, RunStatus, Usage


class PassageSePer(Record):
    """What one passage did, while the other steps' evidence stayed."""

    shapley: float | None
    """The passage's share of the step's `leave_one_out`."""
    low: float | None
    """95 % interval of `shapley`."""
    high: float | None
    leave_one_out: float | None
    """What would be lost without the passage."""
    reason: str | None = None
    """Why a value is missing."""


class PassageCredit(Record):
    seper: PassageSePer | None = None


class PassageReport(Record):
    id: str
    title: str
    score: float
    new: bool
    """Whether this step brought the passage into the evidence for the first time."""
    credit: PassageCredit | None = None
    """None unless credit was measured over the passages of the step."""


class StepSePer(Record):
    """What the step did to the belief in the right answer."""

    value: float | None
    """SePer after the step."""
    delta: float | None
    """ΔSePer: the change the step made, after what came before it."""
    low: float | None
    """95 % interval of `delta`."""
    high: float | None
    shapley: float | None
    """The step's Shapley share of the run's total ΔSePer."""
    leave_one_out: float | None
    """What the whole run would lose without the step."""
    n: int
    """Samples behind each belief."""
    reason: str | None = None
    """Why a value is missing."""
    dropped: tuple[str, ...] = ()
    """Keys of the passages that were kept from the reader, the first perhaps in part only, because
    the context was too long."""
    cut_off: str | None = None
    """Which replies `max_tokens` cut off, as "3 of 10 replies". What they mean is not known, and
    the interval allows for it."""


class StepGroGU(Record):
    """What the step did to the confidence of the reader; needs no gold answer."""

    value: float | None
    """GroGU after the step, in nats."""
    delta: float | None
    reason: str | None = None


class StepCredit(Record):
    seper: StepSePer | None = None
    grogu: StepGroGU | None = None


class StepReport(Record):
    index: int
    name: str
    kind: str
    query: str | None
    output: str | None
    passages: tuple[PassageReport, ...]
    dangling: tuple[str, ...]
    usage: Usage
    seconds: float
    parse_ok: bool | None
    stop_reason: str | None
    refused: tuple[str, ...]
    """Options of its requests that did not hold, because the server of the reader refuses them."""
    credit: StepCredit
    per_1000_tokens: float | None
    """Shapley share (else ΔSePer) per 1,000 tokens spent from this retrieval to the next."""


class TotalSePer(Record):
    before: float | None
    """Belief without any passage."""
    after: float | None
    """Belief with all evidence."""
    delta: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None = None
    dropped: tuple[str, ...] = ()
    """As of a step: of all evidence."""
    cut_off: str | None = None
    """As of a step: of all evidence, or else without any."""


class Total(Record):
    usage: Usage
    cost: float | None
    """Money by the table of prices; None where it does not know the reader or nobody counted the
    tokens."""
    currency: str
    prices_read: date | None
    """When the price was read from the page of a hosted service; None of other prices."""
    seconds: float
    retrievals: int
    seper: TotalSePer | None = None
    grogu: StepGroGU | None = None


class AppraisalReport(Record):
    """How the credits shown were measured, and what that cost."""

    id: str
    """The settings' hash."""
    reader: str
    entailment: str | None
    seed: int
    settings: dict[str, JsonValue]
    measured: datetime | None
    """When last; None for credits of before this was kept."""
    usage: Usage
    """What was asked of the reader, all measurings with these settings together."""
    cost: float | None
    """Its money, as of `Total`."""
    pairs: Pairs | None
    """Likewise of the entailment model; None where nobody counted."""
    seconds: float
    others: tuple[str, ...]
    """Settings' hashes of the run's other appraisals, the latest last."""


class RunReport(Record):
    id: str
    question: str
    golds: tuple[str, ...]
    workflow: str
    answer: str | None
    status: RunStatus
    stop_reason: str | None
    error: str | None
    reader: str
    retriever: str
    seed: int
    steps: tuple[StepReport, ...]
    total: Total
    appraisal: AppraisalReport | None = None
