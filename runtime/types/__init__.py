"""The nouns: immutable records that every layer passes around.

Invariants: a record never changes after it is made; a number that was not measured is
`None` with a reason, never NaN or zero; log-probabilities and entropies are natural
logarithms of the reader's raw distribution (before temperature and truncation).
"""

from hopscope.runtime.types.credit import Appraisal, Credit, Measurement, Provenance
from hopscope.runtime.types.game import (
    AnswerGroup,
    AnswerToken,
    CoalitionValue,
    GameValues,
    MeasuredAnswers,
)
from hopscope.runtime.types.generation import (
    Exchange,
    FinishReason,
    Generation,
    GenerationRequest,
    Message,
    Prompt,
    Role,
    Scored,
    ScoreRequest,
    Thought,
    ThoughtEnd,
)
from hopscope.runtime.types.passage import Hit, Passage, Question
from hopscope.runtime.types.record import Record, Text, Texts, digest
from hopscope.runtime.types.run import (
    IMPORTED,
    Decision,
    Run,
    RunError,
    RunStatus,
    Step,
    StepKind,
    StopReason,
    is_timed,
)
from hopscope.runtime.types.usage import ForwardCounts, PairCounts, Usage

__all__ = [
    "IMPORTED",
    "AnswerGroup",
    "AnswerToken",
    "Appraisal",
    "CoalitionValue",
    "Credit",
    "Decision",
    "Exchange",
    "FinishReason",
    "ForwardCounts",
    "GameValues",
    "Generation",
    "GenerationRequest",
    "Hit",
    "MeasuredAnswers",
    "Measurement",
    "Message",
    "PairCounts",
    "Passage",
    "Prompt",
    "Provenance",
    "Question",
    "Record",
    "Role",
    "Run",
    "RunError",
    "RunStatus",
    "ScoreRequest",
    "Scored",
    "Step",
    "StepKind",
    "StopReason",
    "Text",
    "Texts",
    "Thought",
    "ThoughtEnd",
    "Usage",
    "digest",
    "is_timed",
]
