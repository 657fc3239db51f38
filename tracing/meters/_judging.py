"""From the replies to many contexts to beliefs, asking the entailment model once about a pair."""

from collections.abc import Iterable, Mapping

from hopscope.runtime.ports import Entailment, Probabilities, Statement
from hopscope.tracing.meters._asking import Content, Unmeasured
from hopscope.tracing.meters._beliefs import Belief, Rules, statements, weigh
from hopscope.tracing.meters._replies import Replies


class Relations:
    """What texts say about each other, as far as it was asked."""

    def __init__(self, entailment: Entailment) -> None:
        self._entailment = entailment
        self._known: dict[tuple[str, str], Probabilities] = {}

    def learn(self, asked: Iterable[Statement]) -> None:
        """Ask about all pairs that are new, in one call; they are about one question.

        Raises:
            EntailmentError: the model failed.
        """
        pairs = {(pair.premise, pair.hypothesis): pair for pair in asked}
        new = {key: pair for key, pair in pairs.items() if key not in self._known}
        if new:
            found = self._entailment.classify(list(new.values()))
            self._known.update(zip(new, found, strict=True))

    def __call__(self, premise: str, hypothesis: str) -> Probabilities:
        """What was learned of a pair."""
        return self._known[premise, hypothesis]


class Judge:
    """Knows one question, its golds and the rules, and remembers all relations it was told."""

    def __init__(
        self,
        entailment: Entailment,
        question: str,
        golds: tuple[str, ...],
        rules: Rules,
        *,
        clustered: bool,
    ) -> None:
        self._relations = Relations(entailment)
        self._question = question
        self._golds = golds
        self._rules = rules
        self._clustered = clustered

    def beliefs(
        self, replies: Mapping[Content, Replies | Unmeasured]
    ) -> dict[Content, Belief | Unmeasured]:
        """The belief on each context; all new pairs go to the entailment model in one call.

        Raises:
            EntailmentError: the model failed.
        """
        self._relations.learn(
            pair
            for each in replies.values()
            if isinstance(each, Replies)
            for pair in statements(
                self._question, each.samples, self._golds, clustered=self._clustered
            )
        )
        return {
            key: self._belief(each) if isinstance(each, Replies) else each
            for key, each in replies.items()
        }

    def _belief(self, replies: Replies) -> Belief:
        found = weigh(
            replies.samples,
            replies.weights,
            self._golds,
            self._relations,
            self._rules,
            clustered=self._clustered,
        )
        return found.model_copy(update={"uncovered": replies.uncovered})
