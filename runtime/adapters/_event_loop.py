"""Runs the user's asynchronous functions from synchronous code.

They run on an event loop in a thread of its own, because the caller's thread may have a running
loop (a notebook) and because clients keep their connections in the loop they were first used in.
"""

import asyncio
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class EventLoop:
    """One event loop for all coroutines of its owner. It starts at the first use and ends with the
    object."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result. It sees the caller's context variables; Ctrl-C cancels it."""
        future = self.begin(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start the coroutine without waiting for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._started())

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                # With a factory it does not become the loop of the thread that is here.
                runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
                self._loop = runner.get_loop()
                threading.Thread(target=_run, args=(runner,), daemon=True).start()
                weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)
            return self._loop


def _run(runner: asyncio.Runner) -> None:
    """Run until stopped; then cancel unfinished coroutines, which may clean up."""
    with runner:
        while True:
            # `sys.exit` in a coroutine stops the loop, too; only a running loop tells the caller.
            with suppress(SystemExit):
                return runner.get_loop().run_forever()
