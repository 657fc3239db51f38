"""From the replies to many contexts to beliefs, asking the entailment model once about a pair."""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeVar

from hopscope.runtime.ports import Entailment
from hopscope.runtime.types import Generation
from hopscope.tracing.intervals import Unseen
from hopscope.tracing.meters import _beliefs
from hopscope.tracing.meters._asking import Content, Unmeasured
from hopscope.tracing.meters._beliefs import Belief, Rules
from hopscope.tracing.meters._relations import Asking, Relations
from hopscope.tracing.meters._replies import Replies

Kind = Literal["soft", "hard"]
Found = TypeVar("Found")


class Level(NamedTuple):
    """How much the reader believes in the golds on one evidence set, without what it comes of."""

    value: float
    weights: tuple[float, ...]
    """Of each reply, those cut off included."""
    uncovered: float | None
    """Probability of the replies that an enumeration did not reach; None for samples."""
    unseen: Unseen | None = None
    """What samples leave open about other replies."""
    samples: tuple[Generation, ...] = ()
    """The replies whose meaning is known."""
    cut: float = 0.0
    """The share of the weight that the others have, which were cut off."""


class Judge:
    """Knows one question, its golds and the rules, and remembers all relations it was told."""

    def __init__(
        self, entailment: Entailment, question: str, golds: tuple[str, ...], rules: Rules
    ) -> None:
        self._relations = Relations(entailment, question)
        self._golds = golds
        self._rules = rules

    def levels(
        self, replies: Mapping[Content, Replies | Unmeasured], kind: Kind
    ) -> dict[Content, Level | Unmeasured]:
        """The value on each context; pairs that cannot change it are not asked about.

        Raises:
            EntailmentError: the model failed.
        """
        ask = _beliefs.soft if kind == "soft" else _beliefs.hard

        def level(each: Replies) -> Asking[Level]:
            value = yield from ask(each.samples, each.weights, *self._known)
            weights = each.drawn or tuple(each.weights.tolist())
            return Level(value, weights, each.uncovered, each.unseen, each.samples, each.cut)

        return self._settled(replies, level)

    def beliefs(
        self, replies: Mapping[Content, Replies | Unmeasured]
    ) -> dict[Content, Belief | Unmeasured]:
        """The belief on each context.

        Raises:
            EntailmentError: the model failed.
        """

        def belief(each: Replies) -> Asking[Belief]:
            found = yield from _beliefs.believe(each.samples, each.weights, *self._known)
            open_ends = {"uncovered": each.uncovered, "unseen": each.unseen}
            return found.model_copy(update={**open_ends, "drawn": each.drawn, "cut_off": each.cut})

        return self._settled(replies, belief)

    @property
    def _known(self) -> tuple[tuple[str, ...], Relations, Rules]:
        return self._golds, self._relations, self._rules

    def _settled(
        self,
        replies: Mapping[Content, Replies | Unmeasured],
        ask: Callable[[Replies], Asking[Found]],
    ) -> dict[Content, Found | Unmeasured]:
        found = self._relations.settle(
            {key: ask(each) for key, each in replies.items() if isinstance(each, Replies)}
        )
        return {
            key: each if isinstance(each, Unmeasured) else found[key]
            for key, each in replies.items()
        }
