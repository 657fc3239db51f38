"""Measures some of the recorded runs while the program goes on.

Invariants: a program never waits for it: a run that finds the queue full is dropped, and counted;
the same seed chooses the same places in the sequence of runs.
"""

import atexit
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from queue import Full, Queue
from random import Random
from threading import Lock, Thread

from hopscope.api import parts
from hopscope.api.appraiser import RULES
from hopscope.api.credit_games import CounterfactualName, Mode, Over
from hopscope.api.credit_runs import Crediting, CreditSettings
from hopscope.api.given import EntailmentPart, ReaderPart
from hopscope.api.store import Background as Measuring
from hopscope.api.store import Store
from hopscope.runtime.errors import HopscopeError, UsageError
from hopscope.runtime.types import Run
from hopscope.tracing.meters import DEFAULT_METERS

SAMPLE = "sample:"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Measure:
    """Which recorded runs are measured in the background, and how.

    measure = hopscope.Measure("sample:0.05", reader="openai:https://api.example.com/v1#MODEL")
    """

    choice: str
    """`sample:SHARE`: each run is measured with this probability."""
    reader: ReaderPart = parts.TINY
    """The reader that measures; it need not be the program's own."""
    entailment: EntailmentPart = "lexical"
    meters: Sequence[str] = DEFAULT_METERS
    rules: Sequence[str] = RULES
    samples: int = 10
    options: Mapping[str, str] = field(default_factory=dict)
    """Of meters and rules, as `{"seper.weight": "uniform"}`."""
    queue: int = 100
    """Runs that may wait; further ones are dropped."""
    seed: int = 0
    """Of the choice, and of the meters and rules."""

    @property
    def share(self) -> float:
        """The share of runs that are measured.

        Raises:
            UsageError: the choice names none.
        """
        told = self.choice.removeprefix(SAMPLE)
        try:
            share = float(told) if told != self.choice else -1.0
        except ValueError:
            share = -1.0
        if not 0 < share <= 1:
            raise UsageError(
                f"measure={self.choice!r}: give the share of runs to measure, such as 'sample:0.05'"
            )
        return share

    @property
    def settings(self) -> CreditSettings:
        """The settings of each measurement."""
        return CreditSettings(
            rules=tuple(self.rules),
            meters=tuple(self.meters),
            counterfactual=CounterfactualName.empty,
            mode=Mode.frozen,
            over=Over.steps,
            corpus=parts.HOPLAND,
            reader=self.reader,
            entailment=self.entailment,
            samples=self.samples,
            seed=self.seed,
            options=self.options,
        )


class Background:
    """Measures runs of one store in a thread of its own. Threads may share it."""

    def __init__(self, store: Store, measure: Measure) -> None:
        """
        Raises:
            UsageError: there is no such choice, meter, rule or option.
        """
        self.measured = 0
        """Runs that were measured."""
        self.dropped = 0
        """Runs that were chosen, and found the queue full or the measuring closed."""
        self.failed = 0
        """Runs that could not be measured; the log tells why."""
        self._store = store
        self._settings = measure.settings
        self._settings.measuring(measure.seed).parse()
        self._share = measure.share
        self._draw = Random(measure.seed)
        self._lock = Lock()
        self._queue: Queue[Run | None] = Queue(measure.queue)
        self._thread: Thread | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """Runs in the queue."""
        return self._queue.qsize()

    def offer(self, run: Run) -> bool:
        """Whether a stored run will be measured. Never waits."""
        with self._lock:
            if self._draw.random() >= self._share:
                return False
            if self._closed:
                self.dropped += 1
                return False
            if self._thread is None:
                self._thread = Thread(target=self._work, name="hopscope-measuring", daemon=True)
                self._thread.start()
                atexit.register(self.close)
            try:
                self._queue.put_nowait(run)
            except Full:
                self.dropped += 1
                return False
        return True

    def flush(self) -> None:
        """Wait until all runs in the queue are measured."""
        self._queue.join()

    def close(self) -> None:
        """Measure what is in the queue, and end the thread. Runs offered later are dropped."""
        with self._lock:
            first, self._closed = not self._closed, True
        if self._thread is None:
            return
        if first:
            atexit.unregister(self.close)
            self._queue.put(None)  # no run follows it: `offer` puts under the lock
        self._thread.join()

    def _work(self) -> None:
        crediting: Crediting | None = None
        while (run := self._queue.get()) is not None:
            try:
                crediting = crediting or Crediting(self._settings)
                found = crediting.credit(run)
                self._store.save_credits(found.credits, [found.appraisal], found.games)
                self.measured += 1
            except HopscopeError as error:
                self.failed += 1
                _log.warning(f"run {run.id[:12]} is not measured: {error}")
            except Exception as error:  # a fault must not end the measuring of later runs
                self.failed += 1
                told = f"{type(error).__name__}: {error}"
                _log.warning(f"run {run.id[:12]} is not measured, by a fault of Hopscope: {told}")
            finally:
                self._queue.task_done()
        self._queue.task_done()


def of(store: object, measure: "str | Measure") -> Measuring:
    """The measuring of a store in this way, which all its recordings share.

    Raises:
        UsageError: the store is not open, or there is no such choice, meter, rule or option.
    """
    if not isinstance(store, Store):
        raise UsageError(
            "measure: open the store yourself, hopscope.Store.open(...), and give it to each "
            "recording: it measures in the background until you close it"
        )
    if not isinstance(measure, str | Measure):
        raise UsageError(f"measure: give 'sample:0.05' or a hopscope.Measure, not {measure!r}")
    with store.lock:
        found = store.background.get(measure)
        if found is None:
            wanted = Measure(measure) if isinstance(measure, str) else measure
            found = store.background[measure] = Background(store, wanted)
    return found
