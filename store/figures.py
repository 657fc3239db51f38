"""What tables need to know of an experiment's items: plain rows, as there are tens of thousands.

The credits are those of one appraisal, the same for all runs: see `store.appraised`.
"""

from typing import NamedTuple

Value = float | str
"""A number, or the reason why there is none."""

NOT_APPRAISED = "not appraised"


class Asked(NamedTuple):
    """A question. Equal ones belong together, whichever experiment asked them."""

    id: str
    text: str
    answers: tuple[str, ...] = ()
    """Gold aliases."""
    kind: str = ""
    hops: int | None = None


class Figures(NamedTuple):
    """A question by an arm, when it is done."""

    experiment: str
    """Its name."""
    arm: str
    """Its label."""
    asked: Asked
    run_id: str | None
    """None where it failed before there was a run."""
    error: str | None = None
    """Why it failed."""
    answer: str | None = None
    retrievals: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    """Those of the output tokens that were thoughts."""
    cached_tokens: int = 0
    uncounted: int = 0
    """As in `Usage`."""
    seconds: float = 0.0
    seper: Value = NOT_APPRAISED
    """Belief in the right answer with all evidence."""
    seper_delta: Value = NOT_APPRAISED
    """What the evidence did to it."""
    grogu: Value = NOT_APPRAISED

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Retrieval(NamedTuple):
    """A step of a run that sent a query to the retriever, and what it was worth."""

    run_id: str
    ordinal: int
    """From 1: the run's first, second, … retrieval."""
    step: int
    """Its index in the run."""
    tokens: int
    """Spent from this retrieval to the next: what it made the reader read."""
    trajectory: Value = NOT_APPRAISED
    """ΔSePer: the change it made after what came before it; likewise the other rules."""
    shapley: Value = NOT_APPRAISED
    leave_one_out: Value = NOT_APPRAISED
    uncounted: int = 0
    """Calls of these whose tokens are not known."""
