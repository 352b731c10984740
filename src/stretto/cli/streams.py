"""The streams of this process. In: stdin, stdout and stderr, however they were left to us.
Out: streams that can always be written: a run does not depend on who listens.

A stream that was closed (`>&-`) is led nowhere: its number would be given to the next file that is
opened, the journal say, and what is printed would end up in it. One that cannot take more (a reader
that has left, a full disk, a terminal that is gone) loses what is printed from then on; `fault`
says why.
"""

import errno
import io
import os
import sys

_faults: dict[int, OSError] = {}


class Terminated(KeyboardInterrupt):
    """Somebody sent SIGTERM or SIGHUP."""


def make_safe() -> None:
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is given, and those below it are open by now.
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _safe(sys.stdout, 1)
    sys.stderr = _safe(sys.stderr, 2)


def end_on_signals() -> None:
    """SIGTERM and SIGHUP unwind like Ctrl-C, so that whoever waits can say how to go on. What is
    ignored stays so, as SIGHUP under `nohup`."""
    import signal  # not for `--version`

    def end(number: int, frame: object) -> None:
        if number == signal.SIGINT:
            # asyncio's own handler would only wake the loop, which is deaf while a question waits.
            raise KeyboardInterrupt
        raise Terminated(signal.Signals(number).name)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end)


def fault() -> OSError | None:
    """Why what is printed on stdout does not arrive any more."""
    return _faults.get(1)


def has_reader() -> bool:
    """Whether to go on printing: for those who do nothing else."""
    return 1 not in _faults


def finish(code: int | None) -> int:
    """The exit code, after all that was printed is out. `code` is None for a command that only
    prints: that it could not is its failure, unless its reader has seen enough."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    lost = fault()
    if lost is None or lost.errno == errno.EPIPE:
        return code or 0
    print(f"the output could not be written: {lost.strerror}", file=sys.stderr, flush=True)
    return 1 if code is None else code


class _Safe(io.FileIO):
    def write(self, data: object) -> int:
        size = memoryview(data).nbytes  # type: ignore[arg-type]
        if self.fileno() in _faults:
            return size
        try:
            written = super().write(data)  # type: ignore[arg-type]
            return size if written is None else written
        except OSError as error:
            _faults[self.fileno()] = error
            return size


def _safe(stream: "io.TextIOBase | object", number: int) -> io.TextIOWrapper:
    raw = _Safe(number, "w", closefd=False)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    errors = getattr(stream, "errors", None) or "backslashreplace"
    if stream is not None:
        stream.flush()  # type: ignore[attr-defined]
    is_prompt = number == 2 or raw.isatty()
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, errors, line_buffering=is_prompt, write_through=False
    )
