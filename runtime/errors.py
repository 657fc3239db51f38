"""Errors, one type per boundary.

    HopscopeError
    ├── UsageError            the user's input cannot be used            exit 2
    │   ├── MissingExtraError       an optional dependency is not installed
    │   ├── CorpusError             a corpus or question file is broken (file, line)
    │   ├── MissingDatabaseError    there is no database yet
    │   ├── MissingRunError         no stored run has that id
    │   └── MissingExperimentError  no stored experiment has that name
    ├── ReaderError           a language model failed
    │   ├── ContextOverflowError    a prompt does not fit into its context
    │   ├── CapabilityError         the reader cannot do what the request needs
    │   └── NoAnswerError           the reply ended within its thought
    ├── RetrieverError        an index or search service failed
    │   └── IndexMismatchError      an index differs from its manifest
    ├── BudgetExceededError   the budget is spent; `run` answers from the evidence so far
    ├── EntailmentError       an entailment model failed
    ├── TraceServerError      a server of traces failed
    └── StoreError            the database failed
        ├── UnstorableError         the database refuses these values
        └── WrongDatabaseError      what was named as the database is none; also a UsageError

A message says what is wrong, where, and what to do next. `runtime.execution.run` turns errors
into records; the command line prints them and chooses the exit code.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from hopscope.runtime.types import Step, StopReason


class HopscopeError(Exception):
    """Anything Hopscope raises on purpose."""


class UsageError(HopscopeError):
    """The user's input cannot be used; the message says what to change."""


def unreadable(path: "Path", error: OSError | UnicodeDecodeError, kind: str) -> str:
    """Why a given file cannot be read, and what to do.

    Args:
        kind: what the file should be, as in "qrels".
    """
    match error:
        case FileNotFoundError():
            why = "there is no such file; check the path"
        case IsADirectoryError():
            why = "it is a folder; name a file in it"
        case UnicodeDecodeError():
            why = f"byte {error.start} is not UTF-8; is it compressed, or another file?"
        case _:
            why = error.strerror or str(error)
    return f"{path} cannot be read as {kind}: {why}"


class MissingExtraError(UsageError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str, *, instead: str = "") -> None:
        """
        Args:
            instead: what goes without the extra.
        """
        other = f"; or {instead}" if instead else ""
        super().__init__(f"{feature} needs an extra: pip install 'hopscope[{extra}]'{other}")
        self.extra = extra


class CorpusError(UsageError):
    """A corpus or question file is broken."""


class MissingDatabaseError(UsageError):
    """There is no database at the given place."""


class MissingRunError(UsageError):
    """No stored run has the id, or one that begins so."""


class MissingExperimentError(UsageError):
    """No stored experiment has the name."""


class ReaderError(HopscopeError):
    """A language model failed, or a prompt does not fit it."""


class ContextOverflowError(ReaderError):
    """A prompt does not fit into the reader's context; fewer passages might."""

    def __init__(
        self, reader: str, tokens: int, reserved: int, context: int, *, at_least: bool = False
    ) -> None:
        """
        Args:
            at_least: `tokens` is a lower bound, because the prompt was too long to be counted.
        """
        count = f"at least {tokens}" if at_least else str(tokens)
        super().__init__(
            f"a prompt of {count} tokens and {reserved} more for the output exceed the context "
            f"of {reader}, {context} tokens; show fewer passages or ask for fewer tokens"
        )
        self.tokens = tokens
        """Tokens of the prompt."""
        self.allowed = max(0, context - reserved)
        """Prompt tokens that would have fitted."""


class CapabilityError(ReaderError):
    """The reader cannot do what the request needs, for any prompt."""


class NoAnswerError(ReaderError):
    """A reply ended within its thought, without an answer."""

    step: "Step | None" = None
    """The step that failed, as soon as its record exists."""


class RetrieverError(HopscopeError):
    """An index or search service failed."""


class IndexMismatchError(RetrieverError):
    """An index differs from its manifest: it is damaged, or something else built it."""


class BudgetExceededError(HopscopeError):
    """The run's budget is spent."""

    def __init__(self, stop_reason: "StopReason", message: str) -> None:
        super().__init__(message)
        self.stop_reason = stop_reason
        self.step: Step | None = None
        """The step that reached the limit, as soon as its record exists."""


class EntailmentError(HopscopeError):
    """An entailment model failed."""


class TraceServerError(HopscopeError):
    """A server of traces failed, or its answer is none."""


class StoreError(HopscopeError):
    """The database failed or cannot be used."""


class UnstorableError(StoreError):
    """The database works but refuses these values."""


class WrongDatabaseError(UsageError, StoreError):
    """What was named as the database is none of ours: a folder, another file, or another
    program's. Wrong use, and for who catches failures of the database one of them."""


def first_line(error: BaseException) -> str:
    """The first line of an error, without the advice and dumps that libraries append."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
