"""An entailment model for many threads: calls that arrive while it computes form the next batch.

A call to an idle model starts at once and gets the model's own result. Fair: a thread waits for one
call at a time, the oldest call comes first, and a batch takes one statement of each call in turn,
so that a large call does not hold up small ones. Bounded: only blocked threads have calls waiting.
Batching changes a probability by rounding alone.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest

from hopscope.runtime.ports import Entailment, Probabilities, Statement

BATCH = 256
"""The most statements of several calls in one batch."""


@dataclass(eq=False)
class _Call:
    """A call that a thread waits for."""

    statements: tuple[Statement, ...]
    answers: list[Probabilities] = field(default_factory=list)
    """Results of the first statements, in order."""
    error: Exception | None = None

    @property
    def done(self) -> bool:
        return self.error is not None or len(self.answers) == len(self.statements)


Taken = list[tuple[_Call, Statement]]
"""The statements of a batch, each with its call."""


class GatheredEntailment:
    """Gathers the calls of threads into batches. It has no thread of its own: one of the waiting
    threads computes for all until its own call is done.

    It stands directly above a model and below caches and shortcuts, so that each call's count stays
    exact.
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
            deterministic: called before each batch; True computes each call alone, whole and in
                the order of arrival, equal to the model's own result to the last digit.
            batch: the size, in place of the constant above.
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
        finally:  # also when interrupted: then nobody waits for the call
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
        """Compute a batch. If it fails, each call is tried alone, because one of them is the
        cause."""
        calls = list(dict.fromkeys(call for call, _ in taken))
        distinct = list(dict.fromkeys(statement for _, statement in taken))
        try:
            results = dict(zip(distinct, self._entailment.classify(distinct), strict=True))
        except Exception as error:
            if len(calls) == 1:
                calls[0].error = error
                return
            for call in calls:
                self._compute([each for each in taken if each[0] is call])
            return
        for call, statement in taken:
            call.answers.append(results[statement])

    def _release(self) -> None:
        """Wake the threads whose calls are done."""
        with self._changed:
            self._waiting = [call for call in self._waiting if not call.done]
            self._changed.notify_all()
