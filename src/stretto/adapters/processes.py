"""Processes by name. In: a name that one gave itself. Out: whether it is surely dead.

A name holds the host, the pid, where that pid means something (this boot of this machine, this
container) and when the process began, for pids are used again. Who cannot be looked up from here
may be alive: only what is certain is called dead.
"""

import os
import re
import secrets
import socket
from pathlib import Path

_NAME = re.compile(r"\S+ pid (?P<pid>\d+) \((?P<place>\S+) (?P<began>\S+)\) \S+")
_PROC = Path("/proc")


def name_of_this_process() -> str:
    """Another one at each call: two drives in one process keep each other out as well."""
    pid = os.getpid()
    began = _began(pid) or "?"
    return f"{socket.gethostname()} pid {pid} ({_place()} {began}) {secrets.token_hex(3)}"


def is_dead(name: str) -> bool:
    known = _NAME.fullmatch(name)
    if known is None or known["place"] == "?" or known["place"] != _place():
        return False
    return _began(int(known["pid"])) != known["began"]


def _place() -> str:
    """Where a pid means one process; "?" where nobody can tell, as on systems without /proc."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{os.stat(_PROC / 'self/ns/pid').st_ino}"
    except OSError:
        return "?"


def _began(pid: int) -> str | None:
    """In ticks since the boot; None when no such process is at work."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name, in brackets, may hold anything: what counts stands behind it.
    fields = stat.rpartition(")")[2].split()
    is_gone = fields[0] in "ZX"  # killed, and only its parent has not noticed yet
    return None if is_gone else fields[19]
