"""Beliefs from the replies to many contexts; the entailment model classifies each pair once."""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeVar

from hopscope.runtime.ports import Entailment
from hopscope.runtime.types import Generation
from hopscope.tracing.asking.asking import Content, Unmeasured
from hopscope.tracing.beliefs import beliefs
from hopscope.tracing.beliefs.beliefs import Belief, BeliefOptions
from hopscope.tracing.beliefs.sampled_replies import Replies
from hopscope.tracing.pairs.relations import PairQuery, Relations
from hopscope.tracing.statistics.intervals import UnseenReplies

BeliefKind = Literal["soft", "hard"]
Result = TypeVar("Result")


class BeliefLevel(NamedTuple):
    """The reader's belief in the golds on one evidence set, without the intermediate results."""

    value: float
    weights: tuple[float, ...]
    """One for each reply, including those cut off."""
    uncovered: float | None
    """Probability of the replies that an enumeration did not reach; None for samples."""
    unseen: UnseenReplies | None = None
    """The bounds on replies that no sample showed."""
    samples: tuple[Generation, ...] = ()
    """The replies whose meaning is known."""
    cut: float = 0.0
    """The share of the weight on replies that were cut off."""
    known: Replies | None = None
    """The replies whose meaning is known, with their own weights."""
    agrees: tuple[bool, ...] = ()
    """Whether each of these agrees with a gold."""
    gap: float = 0.0
    """The most that pairs left out by a tolerance could add to the value."""


class BeliefScorer:
    """Scores replies to one question against its golds; relations are remembered between calls."""

    def __init__(
        self, entailment: Entailment, question: str, golds: tuple[str, ...], options: BeliefOptions
    ) -> None:
        self._relations = Relations(entailment, question)
        self._golds = golds
        self._options = options

    def levels(
        self, replies: Mapping[Content, Replies | Unmeasured], kind: BeliefKind
    ) -> dict[Content, BeliefLevel | Unmeasured]:
        """The value on each context; pairs that cannot change it are not classified.

        Raises:
            EntailmentError: the model failed.
        """
        ask = beliefs.soft if kind == "soft" else beliefs.hard

        def level(each: Replies) -> PairQuery[BeliefLevel]:
            value, agrees, gap = yield from ask(each.samples, each.weights, *self._known)
            weights = each.drawn or tuple(each.weights.tolist())
            told = each.uncovered, each.unseen, each.samples, each.cut, each, agrees, gap
            return BeliefLevel(value, weights, *told)

        return self._settled(replies, level)

    def beliefs(
        self, replies: Mapping[Content, Replies | Unmeasured]
    ) -> dict[Content, Belief | Unmeasured]:
        """The belief on each context.

        Raises:
            EntailmentError: the model failed.
        """

        def belief(each: Replies) -> PairQuery[Belief]:
            full = yield from beliefs.believe(each.samples, each.weights, *self._known)
            open_ends = {"uncovered": each.uncovered, "unseen": each.unseen}
            return full.model_copy(update={**open_ends, "drawn": each.drawn, "cut_off": each.cut})

        return self._settled(replies, belief)

    @property
    def _known(self) -> tuple[tuple[str, ...], Relations, BeliefOptions]:
        return self._golds, self._relations, self._options

    def _settled(
        self,
        replies: Mapping[Content, Replies | Unmeasured],
        ask: Callable[[Replies], PairQuery[Result]],
    ) -> dict[Content, Result | Unmeasured]:
        results = self._relations.settle(
            {key: ask(each) for key, each in replies.items() if isinstance(each, Replies)}
        )
        return {
            key: each if isinstance(each, Unmeasured) else results[key]
            for key, each in replies.items()
        }
