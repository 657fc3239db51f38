"""The curriculum of training: stages that end at mastery (docs/reader.md)."""

from dataclasses import dataclass

from hopscope.lab.hopland.contexts import Mix

EASY = (("1", 8.0), ("fixed", 0.5))
FULL = (
    ("1", 2.6),
    ("2", 4.0),
    ("3", 2.2),
    ("4", 0.5),
    ("comparison", 1.0),
    ("yesno", 0.7),
    ("fixed", 0.4),
)
SHORT = (
    ("1", 1.6),
    ("2", 5.0),
    ("3", 3.0),
    ("comparison", 0.9),
    ("yesno", 0.8),
    ("fixed", 0.3),
)
"""For the end: chains of thought are mastered by then, two hops in one answer are not."""


@dataclass(frozen=True)
class Stage:
    """A part of the curriculum."""

    mix: Mix
    passage_weight: float
    """Loss weight of passage tokens."""
    mastered: float | None
    """Go on once this share of the answer tokens is predicted right (running average), if any..."""
    latest: float
    """... or at this share of the training time."""
    searched: float = 0.0
    """The share of contexts that a search found in a world as large as a corpus."""
    dialogues: float = 0.0
    """The share of sequences in which passages are judged one by one."""
    asides: float = 0.0
    """The share of sequences of prompts that open in their own way, without documents."""
    closed: float = 0.0
    """The share of sequences without any passage."""


FEW = (1, 2, 3, 4, 5, 6)
SHORT_LISTS = (2, 2, 3, 3, 4, 4, 5, 6, 8, 10)
LISTS = (2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 10, 10, 10, 20)
SOME = (1, 2, 3, 4, 5, 5, 6, 7, 8)
MANY = (1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
STAGES = (
    Stage(Mix((1, 1, 2), EASY, 0.3, 0.0, phrasing="plain", alike=0.3), 0.02, 0.95, 0.10),
    Stage(Mix((2, 2, 3, 4, 5), EASY, 0.4, 0.0, alike=0.7), 0.02, 0.97, 0.25),
    Stage(
        Mix(FEW, FULL, 0.5, 0.0, others=0.3, judged=SHORT_LISTS, alike=0.5),
        *(0.01, 0.985, 0.40, 0.3),
        dialogues=0.1,
        asides=0.05,
    ),
    Stage(
        Mix(SOME, FULL, 0.3, 0.2, 0.4, others=0.5, judged=SHORT_LISTS, alike=0.5, coalitions=0.3),
        *(0.0, None, 0.50, 0.5),
        dialogues=0.40,
        asides=0.12,
        closed=0.10,
    ),
    Stage(
        Mix(MANY, SHORT, 0.15, 0.2, 0.3, 14, others=0.35, judged=LISTS, alike=0.5, coalitions=0.4),
        *(0.0, None, 1.0, 0.75),
        dialogues=0.35,
        asides=0.12,
        closed=0.10,
    ),
)
TRAINED = 3
"""The stage at which an already trained reader continues."""
CLOSED = Mix(
    (0,),
    (("fixed", 6.0), ("1", 2.0), ("2", 2.0), ("3", 0.5)),
    *(0.3, 0.0),
    questions=10,
    others=0.6,
)
"""Questions without any passage."""
