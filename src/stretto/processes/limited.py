"""Run a program to its end: drain its output, hold its limits, kill all that it started."""

import asyncio
import itertools
import os
import signal
import tempfile
from asyncio.subprocess import DEVNULL, Process
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import structs

from stretto.processes.completion import complete
from stretto.processes.programs import ProgramStart
from stretto.processes.watchdog import (
    DiskWatch,
    LimitName,
    ResourceLimits,
    Watchdog,
    kill_group,
    kill_namespace,
)

_MOUNTS = {"pids": "/sys/fs/cgroup/pids", "": "/sys/fs/cgroup"}
_JOIN = ("/bin/sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"')
# The watchdog names the limit that was hit: it must see more tasks than are allowed.
_SPARE_TASKS = 64
_REMOVALS, _REMOVAL_SECONDS = 200, 0.005
_counter = itertools.count()


@asynccontextmanager
async def joined_group(
    words: Sequence[str], limits: ResourceLimits
) -> AsyncIterator[Sequence[str]]:
    """The words that start the program in a cgroup of its own; as they are, where it gets none."""
    group = _make_group(limits.processes + _SPARE_TASKS) if os.geteuid() == 0 else None
    try:
        yield words if group is None else (*_JOIN, str(group), *words)
    finally:
        if group is not None:
            await _remove(group)


def _make_group(most_tasks: int) -> Path | None:
    parent = _parent()
    if parent is None:
        return None
    group = parent / f"stretto-{os.getpid()}-{next(_counter)}"
    try:
        group.mkdir()
        (group / "pids.max").write_text(str(most_tasks))
    except OSError:
        with suppress(OSError):
            group.rmdir()
        return None
    return group


@cache
def _parent() -> Path | None:
    """Our own cgroup, cleared of those that killed processes have left in it."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controller, path = line.split(":", 2)
            own = Path(_MOUNTS.get(controller, "/nowhere") + path)
            if (own / "cgroup.procs").exists():
                for left in own.glob("stretto-*"):
                    if not Path("/proc", left.name.split("-")[1]).exists():
                        with suppress(OSError):
                            left.rmdir()
                return own
    return None


async def _remove(group: Path) -> None:
    """A process leaves its cgroup a moment after it has ended."""
    for _ in range(_REMOVALS):
        with suppress(OSError):
            group.rmdir()
            return
        await asyncio.sleep(_REMOVAL_SECONDS)


_DRAIN_SECONDS = 0.5
_END_SECONDS = 5.0
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    exit_code: int  # as a shell reports it: 128 + the number of the signal that ended the program
    output: str  # stdout and stderr, as they came; where bytes were dropped it says so
    dropped_bytes: int  # from the middle of the output
    duration_seconds: float
    limit_hit: LimitName | None
    errors: str = ""  # stderr, where it was to be kept apart


async def run_limited(
    start: ProgramStart,
    limits: ResourceLimits,
    writable: Sequence[Path],
    *,
    is_namespace: bool,
    keeps_errors: bool = False,
) -> ProgramEnd:
    """Cancelling it kills the program with all that it started.

    `writable`: where it may write, of which the growth is bounded.
    `is_namespace`: the program's only child is the first process of a pid namespace.
    `keeps_errors`: stderr is kept apart from stdout.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    drain = _Drain(limits.output_bytes)
    drains = [drain]
    try:
        if keeps_errors:
            drains.append(_Drain(limits.output_bytes))
        async with joined_group(start.words, limits) as words:
            process = await _start(structs.replace(start, words=tuple(words)), drains)
            disk = DiskWatch(writable, limits.disk_bytes)
            watchdog = Watchdog(process.pid, limits, disk, is_namespace=is_namespace)
            try:
                watchdog.start()
                limit_hit = await _watch(process, watchdog, limits.wall_seconds)
            finally:
                await complete(_close(watchdog, process, is_namespace=is_namespace))
            for each in drains:
                await each.wait()
    finally:
        for each in drains:
            each.close()
    exit_code = _shell_exit_code(process)
    text, dropped = drain.output.end()
    limit_hit = limit_hit or watchdog.hit or _kernel_limit(exit_code)
    errors = drains[-1].output.end()[0] if keeps_errors else ""
    return ProgramEnd(exit_code, text, dropped, loop.time() - began, limit_hit, errors)


async def _start(start: ProgramStart, drains: "Sequence[_Drain]") -> Process:
    with _open_stdin(start.stdin_text or "") as stdin:
        process = await asyncio.create_subprocess_exec(
            *start.words,
            stdin=stdin,
            stdout=drains[0].write_end,
            stderr=drains[-1].write_end,
            env=dict(start.environment),
            cwd=start.folder,
            pass_fds=start.keep_fds,
            start_new_session=True,  # no terminal, and a process group of its own
        )
    for drain in drains:
        drain.start()
    return process


@contextmanager
def _open_stdin(text: str) -> Iterator[int]:
    """A file and not a pipe: a program that never reads it does not make us wait. It cannot be
    written to: what a program put there would count against no limit."""
    if not text:
        yield DEVNULL
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(text.encode(errors="replace"))
        file.flush()
        os.fchmod(file.fileno(), 0o400)
        with open(file.name, "rb") as reader:
            yield reader.fileno()


async def _watch(process: Process, watchdog: Watchdog, wall_seconds: float) -> LimitName | None:
    """Returns when the process has ended, or must be ended."""
    ending = asyncio.ensure_future(process.wait())
    try:
        either: list[asyncio.Future[Any]] = [ending, watchdog.has_hit]
        done, _ = await asyncio.wait(
            either, timeout=wall_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        return None if done else LimitName.WALL
    finally:
        ending.cancel()


async def _close(watchdog: Watchdog, process: Process, *, is_namespace: bool) -> None:
    try:
        await asyncio.to_thread(watchdog.close)
    finally:
        await _end(process, is_namespace=is_namespace)


async def _end(process: Process, *, is_namespace: bool) -> None:
    if is_namespace and process.returncode is None:
        # The launcher ends by itself, once the last process of the namespace is gone.
        kill_namespace(process.pid)
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await process.wait()
    # Also when it has ended: without a namespace, others of its group may still run.
    kill_group(process.pid)
    await process.wait()


def _shell_exit_code(process: Process) -> int:
    code = process.returncode
    assert code is not None, "the process was waited for"
    return 128 - code if code < 0 else code


def _kernel_limit(exit_code: int) -> LimitName | None:
    """The limits that the kernel holds, told by the signal that it sends."""
    return {128 + signal.SIGXCPU: LimitName.CPU, 128 + signal.SIGXFSZ: LimitName.FILE}.get(
        exit_code
    )


class _Drain:
    """Reads all that the program prints, because a full pipe would hold the program up for ever."""

    def __init__(self, most_bytes: int) -> None:
        self.output = HeadAndTail(most_bytes)
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()

    def start(self) -> None:
        os.close(self.write_end)
        self.write_end = -1
        self._loop.add_reader(self._read_end, self._read)

    async def wait(self) -> None:
        # Only without a namespace can a survivor be left that holds the pipe open.
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                await self._ended.wait()

    def close(self) -> None:
        self._loop.remove_reader(self._read_end)
        os.close(self._read_end)
        if self.write_end >= 0:
            os.close(self.write_end)

    def _read(self) -> None:
        try:
            chunk = os.read(self._read_end, _CHUNK_BYTES)
        except BlockingIOError:
            return
        if chunk:
            self.output.add(chunk)
        else:
            self._loop.remove_reader(self._read_end)
            self._ended.set()


class HeadAndTail:
    """The first and the last bytes of a stream that may be endless."""

    def __init__(self, most_bytes: int) -> None:
        self._head = bytearray()
        self._head_room = most_bytes - most_bytes // 2
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._tail_room = most_bytes // 2
        self._seen_bytes = 0

    def add(self, chunk: bytes) -> None:
        self._seen_bytes += len(chunk)
        room = self._head_room - len(self._head)
        self._head += chunk[:room]
        if len(chunk) <= room:
            return
        self._tail.append(chunk[room:])
        self._tail_bytes += len(chunk) - room
        # Whole chunks go; what is left over is cut once, at the end.
        while self._tail and self._tail_bytes - len(self._tail[0]) >= self._tail_room:
            self._tail_bytes -= len(self._tail.popleft())

    def end(self) -> tuple[str, int]:
        """The text, and how many bytes it lacks."""
        whole = b"".join(self._tail)
        tail = whole[max(0, len(whole) - self._tail_room) :]
        dropped = self._seen_bytes - len(self._head) - len(tail)
        if not dropped:
            return (self._head + tail).decode("utf-8", "replace"), 0
        gap = f"\n[… {dropped} bytes of output were dropped here …]\n"
        return self._head.decode("utf-8", "replace") + gap + tail.decode(
            "utf-8", "replace"
        ), dropped
