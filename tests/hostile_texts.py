"""Texts that make a careless parser take forever, and a watch that ends one that does."""

import signal
from collections.abc import Callable, Iterator
from types import FrameType

SIZE = 100_000
"""Characters of each text."""
LONGEST = 10.0
"""Seconds of this process's own time. Only a guard: a linear parser takes hundredths, a quadratic
one minutes or hours."""

RUNS = [
    "a", "A", "I", "1", " ", "\n", "\t", ".", "?", "!", ",", ":", "/", "-", '"', "'", "`", "*", "~",
    "(", ")", "[", "]", "{", "}", "<", "&", "%", "$", "\u00e9", "e\u0301", "\u4e2d", "\u0130",
    "\ufdfa", "\U0001f600", "\u200b", "\u202e", "\x00", "\x1b", "\u0661", "\u2028",
    "a ", "A. ", "a.", "1 ", "1. ", "1,", "1.1", "1 + ", "1+1=", "$1 ", "1/10 ", "[ ", "[1", "[1] ",
    "[]", "( a ", "(a) ", "() ", "[ 1 > ", "a; ", "a, ", "a\n", "a?", "what? ", "U.S. ",
    "I. ", "Mr. ", "selection ", "selection [", "judgment ", "judgment: no ", "yes ", "no ", "no, ",
    "[Search(", "[ search (", "search(a) ]", "follow up: ", "follow up: a ",
    "follow up question: a\n",
    "intermediate answer: ", "so the final answer is", "so the final answer is: ", " answer is: ",
    "thus, ", "that is, ", "necessary information ", "necessary information: ", "out of 10 ", "or ",
    "and ", "accept ", "by A ", ", who ", "which ", "which a a a ", "hundred ", "five million ",
    "do not ", "not specif", "isn't ", "{\"a\":", "[[\"a\"],", "\\u0041", "<think>", "</think>",
]  # fmt: skip
"""What a hostile text repeats."""
OPENINGS = ["", "[", "(", "follow up: ", "intermediate answer:", "necessary information", "no", "1"]
"""What a run of spaces may follow."""


def texts() -> Iterator[str]:
    """All of them, each about `SIZE` characters."""
    for run in RUNS:
        repeated = (run * (SIZE // len(run) + 1))[:SIZE]
        yield repeated if run.isspace() else f"{repeated}\x01x"
    for opening in OPENINGS:
        yield opening + " " * SIZE + "x"
        yield opening + "\n" * SIZE + "x"
        yield "".join(f"{opening}{' ' * 300}x" for _ in range(SIZE // 310))


class TooLong(Exception):
    """A parser ran into the guard."""


def reads_in_time(parser: Callable[[str], object], text: str) -> bool:
    """Whether a parser is done with a text within `LONGEST` seconds of this process's own time,
    however busy the machine is. Regular expressions look for signals while they search."""
    late = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal late
        late = True  # also where the parser handles the error
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
    try:
        parser(text)
    except TooLong:
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return not late
