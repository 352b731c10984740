"""Name a process so that another one can tell later whether it is surely dead.

A name holds the host, the pid, where that pid means something (this boot of this machine, this
container) and when the process began, because pids are used again. A process that cannot be looked
up from here may be alive: only what is certain is called dead.
"""

import os
import re
import secrets
import socket

from stretto.processes.process_table import boot_id, start_time

_NAME = re.compile(r"\S+ pid (?P<pid>\d+) \((?P<place>\S+) (?P<began>\S+)\) \S+")


def name_of_this_process() -> str:
    """A new name at each call: two drivers in one process keep each other out as well."""
    pid = os.getpid()
    began = start_time(pid) or "?"
    return f"{socket.gethostname()} pid {pid} ({_place()} {began}) {secrets.token_hex(3)}"


def is_dead(name: str) -> bool:
    known = _NAME.fullmatch(name)
    if known is None or known["place"] == "?" or known["place"] != _place():
        return False
    return start_time(int(known["pid"])) != known["began"]


def _place() -> str:
    """Where a pid means one process; "?" where nobody can tell, as on systems without /proc."""
    try:
        return f"{boot_id()}:{os.stat('/proc/self/ns/pid').st_ino}" if boot_id() else "?"
    except OSError:
        return "?"
