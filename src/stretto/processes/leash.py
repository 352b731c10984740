"""Hold a program and all that it starts, and let none of them outlive who asked for it.

In: a file descriptor, a folder and the program's words, which starts there. The descriptor is the reading end of a pipe; when
the other end is closed, on purpose or because its holder died, everything is ended: TERM, and KILL
two seconds later. Out: the program's own exit code, once nothing that it started is left.

A script of its own that needs nothing but the standard library: it starts in some 15 ms.
"""

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Iterator

GRACE_SECONDS = 2.0
_GIVE_UP_SECONDS = 5.0
_LOOK_SECONDS = 0.02
_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def hold(asker: int, folder: str, words: list[str]) -> int:
    # Whoever leaves the program's group, to become a daemon, becomes a child of ours instead.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    woken = _wakings()
    program = _started(words, folder, asker)
    _let_go_of_output()
    status = None
    while status is None:
        readable, _, _ = select.select([asker, woken], [], [])
        signals = os.read(woken, 4096) if woken in readable else b""
        if asker in readable or any(each in signals for each in _STOPPING):
            break
        status = _reap(program)
    return _end_all(program, status)


def _started(words: list[str], folder: str, asker: int) -> int:
    program = os.fork()
    if program:
        return program
    try:
        os.setpgid(0, 0)
        # Should somebody kill the leash itself.
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (*_STOPPING, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.close(asker)
        os.chdir(folder)
        os.execv(words[0], words)
    except OSError as error:
        os.write(2, f"{words[0]} cannot be started: {error.strerror}\n".encode())
    os._exit(126)


def _end_all(program: int, status: int | None) -> int:
    began = time.monotonic()
    _signal_all(program, signal.SIGTERM, status is not None)
    while True:
        reaped = _reap(program)
        status = reaped if status is None else status
        if status is not None and not any(True for _ in _descendants()):
            break
        waited = time.monotonic() - began
        if waited > _GIVE_UP_SECONDS:
            break
        if waited > GRACE_SECONDS:
            _signal_all(program, signal.SIGKILL, status is not None)
        time.sleep(_LOOK_SECONDS)
    return 128 + signal.SIGKILL if status is None else status


def _signal_all(program: int, number: int, has_ended: bool) -> None:
    # The number of a program that has ended may be somebody else's soon.
    group = [] if has_ended and os.path.exists("/proc/self/stat") else [(os.killpg, program)]
    for send, to in (*group, *((os.kill, pid) for pid in _descendants())):
        try:
            send(to, number)
        except OSError:
            continue  # it has just ended


def _reap(program: int) -> int | None:
    """The program's exit code, once it has ended."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == program:
            code = os.waitstatus_to_exitcode(status)
            found = code if code >= 0 else 128 - code


def _descendants() -> Iterator[int]:
    """Those still at work. None where there is no /proc: the group is signalled all the same."""
    parents: dict[int, int] = {}
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", errors="replace") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state not in "ZX":
            parents[pid] = int(parent)
    ours = {os.getpid()}
    while found := [pid for pid, parent in parents.items() if parent in ours and pid not in ours]:
        ours.update(found)
        yield from found


def _wakings() -> int:
    """A descriptor that can be read once a signal has come; its number is what one reads."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (*_STOPPING, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return reading


def _let_go_of_output() -> None:
    """The asker sees the end of a stream only if nobody else holds it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(hold(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
