"""The shell that runs a command, and the limits that the kernel keeps. Out: an argv.

It becomes the first process of its namespace, so that all others end with it, and sets limits
before the command starts: only here, inside, are processes counted for this sandbox alone.
"""

import os
import re
from pathlib import Path

from stretto.processes.watchdog import ResourceLimits

MOST_COMMAND_BYTES = 128 * 1024 - 1  # the kernel's own limit for one argument
_OPEN_FILES = 4096
# The first process cannot be ended by its own signals, so the command is a child of it. Limits
# that are lower already stay.
_FIRST = '{limits} "$0" -c "$1"\nexit $?'


def argv(command: str, limits: ResourceLimits, *, counts_processes: bool) -> tuple[str, ...]:
    seconds = max(1, round(limits.cpu_seconds))
    settings = [
        # The first is told by a signal that says why, the second only kills.
        f"-H -t {seconds + 2}",
        f"-S -t {seconds}",
        f"-d {max(1, limits.memory_bytes // 1024)}",
        f"-f {max(1, limits.file_bytes // 512)}",
        f"-n {_OPEN_FILES}",
        "-c 0",
    ]
    words = [f"ulimit {setting} 2>/dev/null;" for setting in settings]
    if counts_processes and _counts_by_namespace():
        # Bash says -u, others -p.
        words.append(
            f"ulimit -u {limits.processes} 2>/dev/null || ulimit -p {limits.processes} 2>/dev/null;"
        )
    return ("/bin/sh", "-c", _FIRST.format(limits=" ".join(words)), shell(), command)


def shell() -> str:
    return next((path for path in ("/bin/bash", "/usr/bin/bash") if Path(path).exists()), "/bin/sh")


def _counts_by_namespace() -> bool:
    # Before Linux 5.14 the limit counted all processes of the user, on the whole machine.
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return version is not None and (int(version[1]), int(version[2])) >= (5, 14)
