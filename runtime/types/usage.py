"""The cost of model calls, of forward passes and of comparing texts, in counts."""

from hopscope.runtime.types.record import Record


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
