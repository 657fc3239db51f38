"""An entailment model for many threads: what they ask while it computes goes to it together next.

Who asks while it is idle waits for nobody and gets what the model alone would say. Fair: a thread
waits for one call at a time, the oldest call comes first, and a batch takes one statement of each
call in turn, so that a large call does not hold up small ones. Bounded: nothing waits but what
threads that are held back ask. Company changes a probability by rounding alone.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest

from hopscope.runtime.ports import Entailment, Probabilities, Statement

BATCH = 256
"""Statements of several calls that are computed together at most."""


@dataclass(eq=False)
class _Call:
    """What one thread waits for."""

    statements: tuple[Statement, ...]
    answers: list[Probabilities] = field(default_factory=list)
    """Of the first statements, in order."""
    error: Exception | None = None

    @property
    def done(self) -> bool:
        return self.error is not None or len(self.answers) == len(self.statements)


Taken = list[tuple[_Call, Statement]]
"""Statements that are computed together, each with the call that it is of."""


class GatheredEntailment:
    """Gathers what threads ask. There is no thread of its own: one of those that wait computes for
    all, until it has its own answers.

    Stands right above a model and below what remembers or decides without it, so that what each
    call has cost is still told exactly.
    """

    def __init__(
        self,
        entailment: Entailment,
        *,
        deterministic: Callable[[], bool] = lambda: False,
        batch: int = BATCH,
    ) -> None:
        """
        Args:
            deterministic: asked before each batch whether to compute each call alone, whole and in
                the order of arrival, to the last digit as the model alone would.
            batch: in place of the constant above.
        """
        self.name = entailment.name
        self._entailment = entailment
        self._deterministic = deterministic
        self._batch = batch
        self._waiting: list[_Call] = []
        """The oldest first."""
        self._computing = False
        self._changed = threading.Condition()

    def classify(self, statements: Sequence[Statement]) -> list[Probabilities]:
        """One distribution for each statement; see the port."""
        if not statements:
            return []
        call = _Call(tuple(statements))
        leads = False
        try:
            with self._changed:
                self._waiting.append(call)
                self._changed.wait_for(lambda: call.done or not self._computing)
                leads = not call.done
                self._computing = self._computing or leads
            while not call.done:
                self._compute(self._round())
                self._release()
        finally:  # also when interrupted: then the call is nobody's any more
            with self._changed:
                self._waiting = [each for each in self._waiting if each is not call]
                if leads:
                    self._computing = False
                    self._changed.notify_all()
        if call.error is not None:
            raise call.error
        return call.answers

    def _round(self) -> Taken:
        """One statement of each call in turn until the batch is full; or all of the oldest."""
        with self._changed:
            calls = self._waiting[:1] if self._deterministic() else list(self._waiting)
        left = ([(call, s) for s in call.statements[len(call.answers) :]] for call in calls)
        turns = (each for row in zip_longest(*left) for each in row if each is not None)
        return list(islice(turns, self._batch if len(calls) > 1 else None))

    def _compute(self, taken: Taken) -> None:
        """Answer a batch. One that fails is tried again call by call, since it is the fault of one
        of them."""
        calls = list(dict.fromkeys(call for call, _ in taken))
        asked = list(dict.fromkeys(statement for _, statement in taken))
        try:
            found = dict(zip(asked, self._entailment.classify(asked), strict=True))
        except Exception as error:
            if len(calls) == 1:
                calls[0].error = error
                return
            for call in calls:
                self._compute([each for each in taken if each[0] is call])
            return
        for call, statement in taken:
            call.answers.append(found[statement])

    def _release(self) -> None:
        """Let go on who has all answers."""
        with self._changed:
            self._waiting = [call for call in self._waiting if not call.done]
            self._changed.notify_all()
