"""`stretto` in a process of its own, without the second that its imports take. In: words. Out: Done.

One interpreter has imported what the commands import; for every command it forks. The command is a
real process with its own folder, environment and streams, as `python -m stretto` would be.
"""

import atexit
import json
import os
import pkgutil
import pty
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

# What an interpreter reads once, when it starts: a command that sets one needs its own.
_READ_AT_START = ("LANG", "LC_", "PYTHON", "LD_")
_LANG = "C.UTF-8"
# Programs of their own, and what commands import as a last resort.
_LEFT_OUT = ("__main__", "worker", "serving", "launcher", "guard", "detached", "bundled")


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: bytes
    err: bytes


def can_fork(env: Mapping[str, str] | None) -> bool:
    return not any(name.startswith(_READ_AT_START) for name in env or ())


def run_forked(
    words: list[str], folder: Path, env: Mapping[str, str], given: bytes, seconds: float
) -> Done:
    with (
        socket.socket(socket.AF_UNIX) as line,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        line.connect(_start_server())
        line.settimeout(seconds)
        read_end, write_end = os.pipe()
        asked = json.dumps({"words": words, "cwd": str(folder), "env": dict(env)}).encode()
        fds = [read_end, out.fileno(), err.fileno()]
        socket.send_fds(line, [len(asked).to_bytes(4, "big")], fds)
        line.sendall(asked)
        os.close(read_end)
        pid = int.from_bytes(_receive(line, 4), "big")
        try:
            _feed(write_end, given)
            code = int.from_bytes(_receive(line, 4), "big", signed=True)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        out.seek(0)
        err.seek(0)
        return Done(code, out.read(), err.read())


def show_forked(
    words: list[str],
    folder: Path,
    env: Mapping[str, str],
    size: tuple[int, int],
    seconds: float,
) -> Done:
    """At a terminal of so many lines and columns, where every question is answered by Ctrl-D: all
    that came on it."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, size)
    os.write(ours, b"\x04" * 9)
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(_start_server(env.get("LANG", _LANG)))
        line.settimeout(seconds)
        asked = json.dumps({"words": words, "cwd": str(folder), "env": dict(env)}).encode()
        socket.send_fds(line, [len(asked).to_bytes(4, "big")], [theirs] * 3)
        line.sendall(asked)
        os.close(theirs)
        pid = int.from_bytes(_receive(line, 4), "big")
        seen = bytearray()
        reader = threading.Thread(target=_drain, args=(ours, seen), daemon=True)
        reader.start()
        try:
            code = int.from_bytes(_receive(line, 4), "big", signed=True)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        reader.join(seconds)
    os.close(ours)
    return Done(code, bytes(seen), b"")


def _drain(terminal: int, seen: bytearray) -> None:
    with suppress(OSError):  # Linux: the other end has been closed
        while piece := os.read(terminal, 65536):
            seen += piece


def _feed(fd: int, given: bytes) -> None:
    """A pipe, as a shell gives: a command that reads nothing must not stop us."""

    def write() -> None:
        with suppress(BrokenPipeError), os.fdopen(fd, "wb", buffering=0) as pipe:
            left = memoryview(given)
            while left:
                left = left[pipe.write(left) :]

    threading.Thread(target=write, daemon=True).start()


def _receive(line: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        piece = line.recv(count - len(received))
        if not piece:
            raise RuntimeError("the process that forks commands has ended")
        received += piece
    return received


@cache
def _start_server(lang: str = _LANG) -> str:
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "socket")
    env = {"PATH": os.defpath, "LANG": lang}
    process = subprocess.Popen(
        [sys.executable, "-P", __file__, path],
        env=env,
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    atexit.register(process.kill)
    return path


# The process that forks


def serve(path: str) -> None:
    import stretto

    for module in pkgutil.walk_packages(stretto.__path__, "stretto."):
        if not module.name.endswith(_LEFT_OUT):
            import_module(module.name)
    lines: dict[int, socket.socket] = {}  # of the commands under way, by their process ids
    ended, rings = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(rings)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(16)
        print("ready", flush=True)
        # Standard input ends with the tests.
        while 0 not in (ready := select.select([server, ended, 0], [], [])[0]):
            if server in ready:
                line, _ = server.accept()
                lines[_begin(line, [server, *lines.values()], (ended, rings))] = line
            if ended in ready:
                os.read(ended, 4096)
                _tell_ends(lines)


def _begin(line: socket.socket, others: Sequence[socket.socket], bells: Sequence[int]) -> int:
    """One command; its process id is sent back."""
    head, fds, _, _ = socket.recv_fds(line, 4, 3)
    asked = json.loads(_receive(line, int.from_bytes(head, "big")))
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (line, *others):
            each.close()
        for fd in bells:
            os.close(fd)
        _live(asked, fds)
    for fd in fds:
        os.close(fd)
    line.sendall(child.to_bytes(4, "big"))
    return child


def _tell_ends(lines: dict[int, socket.socket]) -> None:
    """The exit code of each command that has ended is sent back."""
    for pid in list(lines):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with lines.pop(pid) as line, suppress(OSError):  # who asked may be gone
                code = os.waitstatus_to_exitcode(status)
                line.sendall(code.to_bytes(4, "big", signed=True))


def _live(asked: dict[str, Any], fds: list[int]) -> NoReturn:
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    sys.argv = ["stretto", *asked["words"]]
    code = 1
    try:
        from stretto.cli.main import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
