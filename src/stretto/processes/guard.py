"""Guard a program and its whole process tree, so that none of it outlives the process that asked.

    python -I -S guard.py FD FOLDER PROGRAM [WORDS…]

The program starts in the folder. The descriptor is the reading end of a pipe; when the other end is
closed, on purpose or because its holder died, the whole tree is ended: TERM, and KILL two seconds
later. The exit code is the program's own, once nothing that it started is left.

It is a script that needs nothing but the standard library, so it starts in some 15 ms.
"""

import ctypes
import importlib
import os
import select
import signal
import sys
import time

# Isolated Python does not look beside the script; last on the path, it hides no other module.
sys.path.append(os.path.dirname(os.path.abspath(__file__)))
_process_table = importlib.import_module("process_table")

_GRACE_SECONDS = 2.0
_GIVE_UP_SECONDS = 5.0
_LOOK_SECONDS = 0.02
_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def guard_process_tree(life: int, folder: str, words: list[str]) -> int:
    # A process that leaves the program's group, to become a daemon, becomes a child of ours instead.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    wakeup = _wake_on_signals()
    program = _start(words, folder, life)
    _release_streams()
    status = None
    while status is None:
        readable, _, _ = select.select([life, wakeup], [], [])
        signals = os.read(wakeup, 4096) if wakeup in readable else b""
        if life in readable or any(each in signals for each in _STOPPING):
            break
        status = _reap(program)
    return _end_all(program, status)


def _start(words: list[str], folder: str, life: int) -> int:
    program = os.fork()
    if program:
        return program
    try:
        os.setpgid(0, 0)
        # In case the guard itself is killed.
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (*_STOPPING, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.close(life)
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
        if status is not None and not _process_table.running_descendants(os.getpid()):
            break
        waited = time.monotonic() - began
        if waited > _GIVE_UP_SECONDS:
            break
        if waited > _GRACE_SECONDS:
            _signal_all(program, signal.SIGKILL, status is not None)
        time.sleep(_LOOK_SECONDS)
    return 128 + signal.SIGKILL if status is None else status


def _signal_all(program: int, number: int, has_ended: bool) -> None:
    # The pid of a program that has ended may soon be another's. Where there is no /proc, the group
    # is all that can be signalled.
    group = [] if has_ended and os.path.exists("/proc/self/stat") else [(os.killpg, program)]
    below = ((os.kill, pid) for pid in _process_table.running_descendants(os.getpid()))
    for send, to in (*group, *below):
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


def _wake_on_signals() -> int:
    """A descriptor that can be read once a signal has come; the bytes are the signals' numbers."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (*_STOPPING, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return reading


def _release_streams() -> None:
    """Whoever reads the program's output sees its end only if no other process holds it open."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(guard_process_tree(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
