"""Run a program of ours that ends when the process that started it does.

    python -I -S starter.py FD PROGRAM [WORDS…]

The descriptor is the reading end of a pipe. When the other end is closed, on purpose or because its
holder was killed, the kernel sends SIGIO, whose default is to end the process: also in the middle
of a regular expression, where no line of Python would run for years.
"""

import fcntl
import os
import select
import signal
import sys


def end_with(life: int) -> None:
    if sys.platform != "linux":  # where the default of SIGIO is to do nothing
        signal.signal(signal.SIGIO, lambda *_: os._exit(128 + signal.SIGIO))
    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([life], [], [], 0)[0]:  # it was closed before we asked for the signal
        os._exit(128 + signal.SIGIO)


if __name__ == "__main__":
    end_with(int(sys.argv[1]))
    program = sys.argv[2]
    sys.argv = sys.argv[2:]
    with open(program, "rb") as file:
        code = compile(file.read(), program, "exec")
    exec(code, {"__name__": "__main__", "__file__": program})
