"""From the replies to many contexts to beliefs, asking the entailment model once about a pair."""

from collections.abc import Mapping

from hopscope.runtime.ports import Entailment, Probabilities
from hopscope.tracing.meters._asking import Content, Unmeasured
from hopscope.tracing.meters._beliefs import Belief, Rules, statements, weigh
from hopscope.tracing.meters._replies import Replies


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
        self._entailment = entailment
        self._question = question
        self._golds = golds
        self._rules = rules
        self._clustered = clustered
        self._relations: dict[tuple[str, str], Probabilities] = {}

    def beliefs(
        self, replies: Mapping[Content, Replies | Unmeasured]
    ) -> dict[Content, Belief | Unmeasured]:
        """The belief on each context; all new pairs go to the entailment model in one call.

        Raises:
            EntailmentError: the model failed.
        """
        measured = [each for each in replies.values() if isinstance(each, Replies)]
        pairs = {
            (pair.premise, pair.hypothesis): pair
            for each in measured
            for pair in statements(
                self._question, each.samples, self._golds, clustered=self._clustered
            )
        }
        new = {key: pair for key, pair in pairs.items() if key not in self._relations}
        if new:
            found = self._entailment.classify(list(new.values()))
            self._relations.update(zip(new, found, strict=True))
        return {
            key: self._belief(each) if isinstance(each, Replies) else each
            for key, each in replies.items()
        }

    def _belief(self, replies: Replies) -> Belief:
        found = weigh(
            replies.samples,
            replies.weights,
            self._golds,
            lambda premise, hypothesis: self._relations[premise, hypothesis],
            self._rules,
            clustered=self._clustered,
        )
        return found.model_copy(update={"uncovered": replies.uncovered})
