"""llama.cpp in a process of its own, and those who wait for its answers.

It is a process of its own because a native crash must not end a run, because loading holds Python's
lock, and because a process that has ended gives its memory back. It talks through pipes: there is no
port to guard, and it ends when we do, however we end.

All attempts that ask for the same weights share one process and wait in one line. Threads carry what
it says, so that any event loop may ask.
"""

import asyncio
import atexit
import json
import os
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from stretto.adapters.models.local.catalog import Loadable
from stretto.problems.errors import StrettoError
from stretto.processes import python
from stretto.processes.worker import LineWorker
from stretto.vocabulary.json_value import Json

_PROGRAM = Path(__file__).with_name("llama_server.py")
# What native code needs to start, without keys and tokens.
_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT",
                "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # fmt: skip
_BEAT_SECONDS = 15.0
_SILENCE_SECONDS = 180.0
_IDLE_SECONDS = 900.0


class LlamaChild:
    """Made by `load`."""

    def __init__(self, worker: LineWorker) -> None:
        self._worker = worker
        self._heard_at = time.monotonic()
        self._is_working = False

    @classmethod
    def load(cls, loadable: Loadable) -> "LlamaChild":
        """Blocks until the weights are loaded. Raises StrettoError."""
        child = cls(LineWorker(_PROGRAM, _environment()))
        child.send(_setup(loadable))
        first = next(child.messages(), {})
        if "ready" not in first:
            raise _not_loaded(loadable, str(first.get("broken", "")), child.end())
        return child

    @property
    def pid(self) -> int:
        return self._worker.pid

    @property
    def is_alive(self) -> bool:
        return self._worker.is_running

    @property
    def silent_seconds(self) -> float:
        """For how long it has said nothing although it is answering a request."""
        return time.monotonic() - self._heard_at if self._is_working else 0.0

    def send(self, message: dict[str, Any]) -> None:
        self._worker.write_line(json.dumps(message))

    def messages(self) -> Iterator[dict[str, Any]]:
        """Until it ends."""
        while True:
            try:
                message = json.loads(self._worker.read_line())
            except ValueError:  # the end, or half a line before it
                return
            if isinstance(message, dict):
                self._heard_at = time.monotonic()
                self._is_working = "busy" in message or "said" in message
                yield message

    def ask_to_end(self) -> None:
        self._worker.ask_to_end()

    def end(self) -> str:
        """End the process and return its last words. Only for the thread that reads its messages."""
        code, errors = self._worker.end()
        said = " ".join(line.strip() for line in errors.strip().splitlines()[-2:])[:300]
        return f"exit code {code}: {said}" if said else f"exit code {code}"

    def kill(self) -> None:
        self._worker.kill()


def _setup(loadable: Loadable) -> dict[str, Any]:
    cores = _cores()
    return {
        "weights": str(loadable.path),
        "context": loadable.traits.context_tokens,
        "threads": cores,
        "token_threads": min(cores, loadable.traits.token_threads or max(1, cores - 1)),
    }


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # what a container grants, not what the machine has
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    # Threads that wait by spinning starve each other where cores are shared.
    return {**python.environment(kept), "GOMP_SPINCOUNT": "20000"}


def _not_loaded(loadable: Loadable, broken: str, last_words: str) -> StrettoError:
    if "ModuleNotFoundError" in broken:
        hint = "pip install 'stretto[local]'"
        return StrettoError("xllamacpp, which runs local models, is not installed", hint=hint)
    if "ImportError" in broken:
        hint = "on Debian and Ubuntu: apt install libgomp1" if "libgomp" in broken else ""
        return StrettoError(f"xllamacpp cannot be loaded: {broken}", hint=hint)
    return StrettoError(f"{loadable.path} cannot be loaded: {broken} ({last_words})")


@dataclass(frozen=True, slots=True)
class LlamaBusy:
    """The request waits for its turn, or the model reads the prompt."""


@dataclass(frozen=True, slots=True)
class LlamaText:
    text: str


@dataclass(frozen=True, slots=True)
class LlamaEnded:
    reason: str  # "stop", "length"
    input_tokens: int
    output_tokens: int


LlamaEvent: TypeAlias = LlamaBusy | LlamaText | LlamaEnded


class LlamaRefused(Exception):
    """The request cannot be answered: its schema, or its length."""

    def __init__(self, message: str, is_too_long: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_too_long = is_too_long


class LlamaDied(Exception):
    """The process is gone. The next request starts another one."""


@dataclass(slots=True)
class _Waiter:
    id: int
    loop: asyncio.AbstractEventLoop
    messages: "asyncio.Queue[dict[str, Any]]" = field(default_factory=asyncio.Queue)
    child: LlamaChild | None = None  # whom it was sent to
    has_left: bool = False

    def tell(self, message: dict[str, Any]) -> None:
        with suppress(RuntimeError):  # its loop is closed: the answer is dropped
            self.loop.call_soon_threadsafe(self.messages.put_nowait, message)


class LlamaProcess:
    """`process_for` finds it."""

    def __init__(self, loadable: Loadable) -> None:
        self._loadable = loadable
        self._loading = threading.Lock()  # held for seconds, and never in an event loop's thread
        self._lock = threading.Lock()  # over all that follows
        self._child: LlamaChild | None = None
        self._waiters: dict[int, _Waiter] = {}
        self._idle: threading.Timer | None = None
        self._ids = count(1)

    async def ask(self, body: dict[str, Json]) -> AsyncGenerator[LlamaEvent]:
        """Ends with LlamaEnded, or raises LlamaRefused, LlamaDied or StrettoError. Closing it stops the work."""
        waiter = _Waiter(next(self._ids), asyncio.get_running_loop())
        try:
            # In a thread: loading takes seconds, and a pipe may be full.
            await asyncio.to_thread(self._enter, waiter, body)
            while True:
                match await self._message(waiter):
                    case {"said": str(text)}:
                        yield LlamaText(text)
                    case {"ended": {"reason": str(reason), "input": int(i), "output": int(o)}}:
                        yield LlamaEnded(reason, i, o)
                        return
                    case {"refused": {"message": str(said), **more}}:
                        raise LlamaRefused(said, more.get("type") == "exceed_context_size_error")
                    case {"died": str(said)}:
                        raise LlamaDied(said)
                    case _:
                        yield LlamaBusy()
        finally:
            waiter.has_left = True
            # In a thread as well: another request may be on its way into a full pipe.
            threading.Thread(target=self._leave, args=(waiter,), daemon=True).start()

    @property
    def pid(self) -> int | None:
        child = self._child
        return child.pid if child is not None and child.is_alive else None

    def close(self) -> None:
        """Closing its stdin makes the process end, whatever it is doing."""
        with self._lock:
            child, self._child = self._child, None
            if self._idle is not None:
                self._idle.cancel()
        if child is not None:
            child.ask_to_end()

    async def _message(self, waiter: _Waiter) -> dict[str, Any]:
        """Empty when nothing came for a while, which is passed on as a sign of life."""
        try:
            async with asyncio.timeout(_BEAT_SECONDS):
                return await waiter.messages.get()
        except TimeoutError:
            # A request that waits for its turn may wait long; a process that is silent hangs.
            if waiter.child is not None and waiter.child.silent_seconds > _SILENCE_SECONDS:
                waiter.child.kill()
            return {}

    def _enter(self, waiter: _Waiter, body: dict[str, Json]) -> None:
        with self._loading:
            child = self._child
            if child is None or not child.is_alive:
                child = LlamaChild.load(self._loadable)
                threading.Thread(target=self._listen, args=(child,), daemon=True).start()
            with self._lock:
                self._child = child
                if self._idle is not None:
                    self._idle.cancel()
                if not waiter.has_left:
                    waiter.child = child
                    self._waiters[waiter.id] = waiter
                    child.send({"id": waiter.id, "ask": body})

    def _leave(self, waiter: _Waiter) -> None:
        with self._lock:
            if self._waiters.pop(waiter.id, None) is None or waiter.child is None:
                return
            waiter.child.send({"id": waiter.id, "stop": True})
            if not self._waiters:
                self._idle = threading.Timer(_IDLE_SECONDS, self.close_if_idle)
                self._idle.daemon = True
                self._idle.start()

    def close_if_idle(self) -> None:
        if not self._waiters:
            self.close()

    def _listen(self, child: LlamaChild) -> None:
        for message in child.messages():
            if waiter := self._waiters.get(message.get("id", 0)):
                waiter.tell(message)
        why = f"llama.cpp ended unexpectedly ({child.end()})"
        with self._lock:
            if self._child is child:
                self._child = None
            waiters = [waiter for waiter in self._waiters.values() if waiter.child is child]
        for waiter in waiters:
            waiter.tell({"died": why})


_processes: dict[Loadable, LlamaProcess] = {}
_processes_lock = threading.Lock()


def process_for(loadable: Loadable) -> LlamaProcess:
    with _processes_lock:
        if loadable not in _processes:
            _processes[loadable] = LlamaProcess(loadable)
        return _processes[loadable]


@atexit.register
def close_all() -> None:
    """Give the memory back. A process that somebody waits for goes on, and ends when we do."""
    with _processes_lock:
        for process in _processes.values():
            process.close_if_idle()
