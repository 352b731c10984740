"""Make stdin, stdout and stderr safe to use: a run does not depend on who reads its output.

A stream that was closed (`>&-`) is opened on /dev/null. Otherwise the next file that is opened, such
as the journal, would get its number, and what is printed would end up in that file. When a stream
cannot be written any more (its reader has left, the disk is full, the terminal is gone), what is
printed from then on is dropped; `fault` says why.
"""

import errno
import io
import os
import sys
from contextlib import contextmanager, suppress

TYPE_CHECKING = False  # mypy takes it for True; typing itself would be slow to import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_faults: dict[int, OSError] = {}
_PLAIN = ("C", "POSIX")  # locales
_WAKE_SECONDS = 0.1


class Terminated(KeyboardInterrupt):
    """Somebody sent SIGTERM or SIGHUP."""


def make_safe() -> None:
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # open() gives the lowest free number, which is this one: those below it are open.
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _safe(sys.stdout, 1)
    sys.stderr = _safe(sys.stderr, 2)


def end_on_signals() -> None:
    """Let SIGTERM and SIGHUP unwind the stack as Ctrl-C does, so that a command can still say how to
    continue. A signal that is ignored stays ignored, as SIGHUP under `nohup`."""
    import signal  # not for `--version`

    def end(number: int, frame: object) -> None:
        if number == signal.SIGINT:
            # asyncio's own handler only wakes the loop, which does not run while a question waits.
            raise KeyboardInterrupt
        raise Terminated(signal.Signals(number).name)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)


@contextmanager
def woken_by_signals() -> "Iterator[None]":
    """While a person is waited for: a signal that comes in the moment before the terminal is read, or
    that another thread takes, does not interrupt the reading, so Ctrl-C would count only after the
    next key. A thread hears of each signal, and interrupts the reading until it has ended."""
    import signal
    import threading

    main = threading.main_thread()
    if threading.current_thread() is not main:
        yield
        return
    stops = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ended, told = threading.Event(), os.pipe2(os.O_CLOEXEC)
    os.set_blocking(told[1], False)

    def interrupt() -> None:
        with open(told[0], "rb", buffering=0) as numbers:
            while (number := numbers.read(1)) and number[0] not in stops:
                pass
            while number and not ended.wait(_WAKE_SECONDS):
                signal.pthread_kill(main.ident or 0, signal.SIGURG)

    handler = signal.signal(signal.SIGURG, lambda number, frame: None)
    heard_by = signal.set_wakeup_fd(told[1], warn_on_full_buffer=False)
    threading.Thread(target=interrupt, name="stretto signals", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(heard_by)
        os.close(told[1])
        signal.signal(signal.SIGURG, handler)


def tell_if_loading(after_seconds: float) -> None:
    """Say so at the terminal if modules are still being imported after so many seconds, as on a
    busy machine. By a timer signal: a thread would make every command import `threading`."""
    import signal

    def look(number: int, frame: "FrameType | None") -> None:
        while frame is not None:
            if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
                print("loading ...", file=sys.stderr, flush=True)
                return
            frame = frame.f_back

    if sys.stderr.isatty():
        signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, after_seconds)


def stop_telling() -> None:
    """Stop the timer: while Python ends, it has no signal handlers, and SIGALRM would kill it."""
    import signal

    signal.setitimer(signal.ITIMER_REAL, 0)


def fault() -> OSError | None:
    """Why stdout cannot be written any more; None while it can."""
    return _faults.get(1)


def has_reader() -> bool:
    """Whether anybody still reads stdout. A command that only prints stops when nobody does."""
    return 1 not in _faults


def finish(code: int | None) -> int:
    """Flush what was printed and give the exit code. `code` is None for a command that only prints:
    it has failed if it could not print, unless its reader closed the pipe."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    lost = fault()
    if lost is None or lost.errno == errno.EPIPE:
        return code or 0
    print(f"the output could not be written: {lost.strerror}", file=sys.stderr, flush=True)
    return 1 if code is None else code


def wants_ascii() -> bool:
    """Whether the environment asks for the C locale. Python uses UTF-8 all the same, and sets
    LC_CTYPE for its child processes; what was set before is only in /proc."""
    said = dict(os.environ)
    if said.get("LANG") in _PLAIN and "LC_CTYPE" in said and not said.get("LC_ALL"):
        with suppress(OSError), open("/proc/self/environ", "rb") as file:
            first = [line.partition(b"=") for line in file.read().split(b"\0")]
            said = {name.decode("latin-1"): value.decode("latin-1") for name, _, value in first}
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    return next((said[name] for name in names if said.get(name)), "") in _PLAIN


class _Safe(io.FileIO):
    def write(self, data: object) -> int:
        size = memoryview(data).nbytes  # type: ignore[arg-type]
        if self.fileno() in _faults:
            return size
        try:
            while (written := super().write(data)) is None:  # type: ignore[arg-type]
                # A full pipe that is set not to block: wait for its reader, as with any other pipe.
                import select  # few outputs are set so

                select.select([], [self.fileno()], [])
            return written
        except OSError as error:
            _faults[self.fileno()] = error
            return size


def _safe(stream: "io.TextIOBase | object", number: int) -> io.TextIOWrapper:
    raw = _Safe(number, "w", closefd=False)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if wants_ascii() and raw.isatty():
        encoding = "ascii"
    errors = getattr(stream, "errors", None) or "backslashreplace"
    if stream is not None:
        stream.flush()  # type: ignore[attr-defined]
    is_prompt = number == 2 or raw.isatty()
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, errors, line_buffering=is_prompt, write_through=False
    )
