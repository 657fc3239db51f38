"""Errors, one type per boundary.

    HopscopeError
    ├── UsageError            the user's input cannot be used            exit 2
    │   ├── MissingExtra      an optional dependency is not installed
    │   ├── CorpusError       a corpus or question file is broken (file, line)
    │   └── NothingKept       there is no database yet
    ├── ReaderError           a language model failed
    │   ├── ContextOverflow   a prompt does not fit into its context
    │   ├── NotOffered        it does not tell what was asked for
    │   └── NoAnswer          its reply ended within its thought
    ├── RetrieverError        an index or search service failed
    │   └── IndexMismatch     an index is not what its manifest says
    ├── BudgetExceeded        the budget is spent; `run` makes an answer of what there is
    ├── EntailmentError       an entailment model failed
    └── StoreError            the database failed
        └── Unstorable        it does not take what was to be written

Messages say what, where and what to do. `runtime.run` turns them into records; the command
line prints them and chooses the exit code.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hopscope.runtime.types import Step, StopReason


class HopscopeError(Exception):
    """Anything Hopscope raises on purpose."""


class UsageError(HopscopeError):
    """The user's input cannot be used; the message says what to change."""


class MissingExtra(UsageError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra: pip install 'hopscope[{extra}]'")
        self.extra = extra


class CorpusError(UsageError):
    """A corpus or question file is broken."""


class NothingKept(UsageError):
    """There is no database yet where one was named."""


class ReaderError(HopscopeError):
    """A language model failed, or a prompt does not fit it."""


class ContextOverflow(ReaderError):
    """A prompt does not fit into the reader's context; fewer passages might."""

    def __init__(
        self, reader: str, tokens: int, reserved: int, context: int, *, at_least: bool = False
    ) -> None:
        """With `at_least` the prompt was too long to be counted."""
        told = f"at least {tokens}" if at_least else str(tokens)
        super().__init__(
            f"a prompt of {told} tokens and {reserved} more for the output exceed the context "
            f"of {reader}, {context} tokens; show fewer passages or ask for fewer tokens"
        )
        self.tokens = tokens
        """Of the prompt."""
        self.allowed = max(0, context - reserved)
        """Prompt tokens that would have fitted."""


class NotOffered(ReaderError):
    """A reader does not tell what was asked for, whatever it is asked about."""


class NoAnswer(ReaderError):
    """A reply ended within its thought: there is nothing to go on with."""

    step: "Step | None" = None
    """The record of the step within which that was, once it is made."""


class RetrieverError(HopscopeError):
    """An index or search service failed."""


class IndexMismatch(RetrieverError):
    """An index is not what its manifest says: damaged, or built by something else."""


class BudgetExceeded(HopscopeError):
    """Nothing more is to be spent on the run."""

    def __init__(self, stop_reason: "StopReason", message: str) -> None:
        super().__init__(message)
        self.stop_reason = stop_reason
        self.step: Step | None = None
        """The record of the step within which that was, once it is made."""


class EntailmentError(HopscopeError):
    """An entailment model failed."""


class StoreError(HopscopeError):
    """The database failed or cannot be used."""


class Unstorable(StoreError):
    """The database works, but does not take the values that were to be written."""
