"""Who waits for a llama.cpp process. In: a chat completion's body. Out: Heard, as it comes.

All who ask for the same weights share one process and wait in one line. Threads carry what is
said, so any event loop may ask and none is ever blocked.
"""

import asyncio
import atexit
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

from stretto.adapters.models.local.catalog import Loadable
from stretto.adapters.models.local.child import Child
from stretto.vocabulary.values import Json

_BEAT_SECONDS = 15.0
_SILENCE_SECONDS = 180.0
_IDLE_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Busy:
    """It waits for its turn, or reads the prompt."""


@dataclass(frozen=True, slots=True)
class Said:
    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    reason: str  # "stop", "length"
    input_tokens: int
    output_tokens: int


Heard: TypeAlias = Busy | Said | Ended


class Refused(Exception):
    """The request cannot be answered: its schema, or its length."""

    def __init__(self, message: str, is_too_long: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_too_long = is_too_long


class Died(Exception):
    """The process is gone. The next request starts another."""


@dataclass(slots=True)
class _Asker:
    id: int
    loop: asyncio.AbstractEventLoop
    letters: "asyncio.Queue[dict[str, Any]]" = field(default_factory=asyncio.Queue)
    child: Child | None = None  # whom it was sent to
    has_left: bool = False

    def tell(self, message: dict[str, Any]) -> None:
        with suppress(RuntimeError):  # its loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(self.letters.put_nowait, message)


class LlamaProcess:
    """`process_for` finds it."""

    def __init__(self, loadable: Loadable) -> None:
        self._loadable = loadable
        self._loading = threading.Lock()  # held for seconds, and never in an event loop's thread
        self._lock = threading.Lock()  # over all that follows
        self._child: Child | None = None
        self._askers: dict[int, _Asker] = {}
        self._idle: threading.Timer | None = None
        self._ids = count(1)

    async def ask(self, body: dict[str, Json]) -> AsyncGenerator[Heard]:
        """Ends with Ended, or raises Refused, Died or StrettoError. Closing it stops the work."""
        asker = _Asker(next(self._ids), asyncio.get_running_loop())
        try:
            # In a thread: loading takes seconds, and a pipe may be full.
            await asyncio.to_thread(self._enter, asker, body)
            while True:
                match await self._letter(asker):
                    case {"said": str(text)}:
                        yield Said(text)
                    case {"ended": {"reason": str(reason), "input": int(i), "output": int(o)}}:
                        yield Ended(reason, i, o)
                        return
                    case {"refused": {"message": str(said), **more}}:
                        raise Refused(said, more.get("type") == "exceed_context_size_error")
                    case {"died": str(said)}:
                        raise Died(said)
                    case _:
                        yield Busy()
        finally:
            self._leave(asker)

    @property
    def pid(self) -> int | None:
        child = self._child
        return child.pid if child is not None and child.is_alive else None

    def close(self) -> None:
        """It ends by itself then, whatever it is doing."""
        with self._lock:
            child, self._child = self._child, None
            if self._idle is not None:
                self._idle.cancel()
        if child is not None:
            child.ask_to_end()

    async def _letter(self, asker: _Asker) -> dict[str, Any]:
        """Empty when nothing came for a while: whoever watches learns that we are at it."""
        try:
            return await asyncio.wait_for(asker.letters.get(), _BEAT_SECONDS)
        except TimeoutError:
            # Who waits for a turn may wait long, but someone must hear something soon.
            if asker.child is not None and asker.child.silent_seconds > _SILENCE_SECONDS:
                asker.child.kill()
            return {}

    def _enter(self, asker: _Asker, body: dict[str, Json]) -> None:
        with self._loading:
            child = self._child
            if child is None or not child.is_alive:
                child = Child.load(self._loadable)
                threading.Thread(target=self._listen, args=(child,), daemon=True).start()
            with self._lock:
                self._child = child
                if self._idle is not None:
                    self._idle.cancel()
                if not asker.has_left:
                    asker.child = child
                    self._askers[asker.id] = asker
                    child.send({"id": asker.id, "ask": body})

    def _leave(self, asker: _Asker) -> None:
        with self._lock:
            asker.has_left = True
            if self._askers.pop(asker.id, None) is None or asker.child is None:
                return
            asker.child.send({"id": asker.id, "stop": True})
            if not self._askers:
                self._idle = threading.Timer(_IDLE_SECONDS, self.close_if_idle)
                self._idle.daemon = True
                self._idle.start()

    def close_if_idle(self) -> None:
        if not self._askers:
            self.close()

    def _listen(self, child: Child) -> None:
        for message in child.messages():
            if asker := self._askers.get(message.get("id", 0)):
                asker.tell(message)
        why = f"llama.cpp ended unexpectedly ({child.end()})"
        with self._lock:
            if self._child is child:
                self._child = None
            askers = [asker for asker in self._askers.values() if asker.child is child]
        for asker in askers:
            asker.tell({"died": why})


_processes: dict[Loadable, LlamaProcess] = {}
_processes_lock = threading.Lock()


def process_for(loadable: Loadable) -> LlamaProcess:
    with _processes_lock:
        if loadable not in _processes:
            _processes[loadable] = LlamaProcess(loadable)
        return _processes[loadable]


@atexit.register
def close_all() -> None:
    """Give the memory back. One that somebody waits for goes on; it ends when we do."""
    with _processes_lock:
        for process in _processes.values():
            process.close_if_idle()
