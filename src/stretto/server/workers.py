"""Several processes that serve as one: each accepts requests at the same address, and drives runs.

    parent ─fork→ worker 1 ─┐
           ─fork→ worker 2 ─┼ one address (SO_REUSEPORT), one store with fenced leases, one ledger
           ─fork→ worker 3 ─┘

The parent serves nothing. It starts a worker again that has died, whose runs another worker takes up, and
ends all of them when it is told to. A worker whose parent is gone ends by itself.
"""

import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from stretto.problems.errors import StrettoError

_SOON_SECONDS = 5.0  # who dies that soon after it was started has not worked at all
_MOST_FAILED_STARTS = 5  # in succession
_PATIENCE_SECONDS = 15.0  # for workers to end; each takes about one second
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)
_log = logging.getLogger("stretto.server")


@dataclass(frozen=True, slots=True)
class WorkerPipes:
    """What a worker knows of the pool."""

    alive: int  # a descriptor that is at its end once the parent is gone
    ready: int  # where a byte says that this worker serves

    def report_ready(self) -> None:
        os.write(self.ready, b".")


@dataclass(slots=True)
class WorkerPool:
    """`work`: what a worker does until it is told to end; it is called in a process of its own."""

    count: int
    work: Callable[[WorkerPipes], None]
    _started: dict[int, float] = field(default_factory=dict)  # when, by pid
    _failed_starts: int = 0

    def serve(self, when_ready: Callable[[], None]) -> None:
        """Until SIGINT or SIGTERM. Raises StrettoError where no worker can be started."""
        alive, keep = os.pipe()
        served, ready = os.pipe()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        pipes = WorkerPipes(alive, ready)
        try:
            for _ in range(self.count):
                self._start(pipes, before, (keep, served))
            self._wait_until_ready(served)
            when_ready()
            self._watch(pipes, before, (keep, served))
        finally:
            self._end()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            for each in (alive, keep, served, ready):
                os.close(each)

    def _start(
        self, pipes: WorkerPipes, mask: set[int | signal.Signals], own: tuple[int, ...]
    ) -> None:
        pid = os.fork()
        if pid:
            self._started[pid] = time.monotonic()
            return
        code = 1
        try:
            for each in own:  # the parent's ends: kept open here, they would never be at their end
                os.close(each)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self.work(pipes)
            code = 0
        except Exception as error:
            said = error.with_hint if isinstance(error, StrettoError) else None
            _log.error("stretto: a worker ends: %s", said or error, exc_info=said is None)
        finally:
            os._exit(code)  # nothing of the parent's is to be unwound here

    def _wait_until_ready(self, served: int) -> None:
        os.set_blocking(served, False)
        left = self.count
        while left:
            with suppress(BlockingIOError):
                left -= len(os.read(served, left))
            if left and signal.sigtimedwait((signal.SIGCHLD,), 0.05) and self._reap():
                raise StrettoError("a worker could not start; its log says why")
            if left and set(_SIGNALS[:2]) & signal.sigpending():
                return

    def _watch(
        self, pipes: WorkerPipes, mask: set[int | signal.Signals], own: tuple[int, ...]
    ) -> None:
        while signal.sigwait(_SIGNALS) == signal.SIGCHLD:
            for pid, began_at in self._reap():
                is_soon = time.monotonic() - began_at < _SOON_SECONDS
                self._failed_starts = self._failed_starts + 1 if is_soon else 0
                if self._failed_starts >= _MOST_FAILED_STARTS:
                    raise StrettoError("workers die as soon as they are started; the log says why")
                _log.warning("stretto: worker %d died, and another one takes its place", pid)
                self._start(pipes, mask, own)

    def _reap(self) -> list[tuple[int, float]]:
        """Workers that have died, and when each had been started."""
        found = []
        for pid in tuple(self._started):
            if os.waitpid(pid, os.WNOHANG)[0]:
                found.append((pid, self._started.pop(pid)))
        return found

    def _end(self) -> None:
        self._tell(signal.SIGTERM)
        give_up_at = time.monotonic() + _PATIENCE_SECONDS
        while self._started and time.monotonic() < give_up_at:
            told = signal.sigtimedwait(_SIGNALS, 0.2)
            if told is not None and told.si_signo != signal.SIGCHLD:
                self._tell(signal.SIGTERM)  # a worker that is told twice waits for nothing
            self._reap()
        self._tell(signal.SIGKILL)
        while self._started:
            self._reap()
            time.sleep(0.01)

    def _tell(self, number: signal.Signals) -> None:
        for pid in self._started:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
