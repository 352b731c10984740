"""One merge at a time in one workspace, also between processes. In: a workspace. Out: a lock.

The lock is on a file of ours, and the system drops it when its holder dies.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from stretto.config.private import make_private
from stretto.problems.errors import StrettoError

WAIT_SECONDS = 120.0
_LOOK_SECONDS = 0.02


class WorkspaceBusy(StrettoError):
    kind = "workspace_busy"


def merges_folder(home: Path, workspace: Path) -> Path:
    """Where all that concerns merges into this workspace is kept."""
    name = sha256(os.fsencode(workspace.resolve())).hexdigest()[:24]
    return home / "merges" / name


@contextmanager
def merge_lock(
    home: Path, workspace: Path, wait_seconds: float = WAIT_SECONDS, *, shared: bool = False
) -> Iterator[None]:
    """Alone; or shared with others who only keep merges out while they look."""
    folder = merges_folder(home, workspace)
    make_private(folder)
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        _wait(fd, kind, workspace, time.monotonic() + wait_seconds)
        yield
    finally:
        os.close(fd)


def _wait(fd: int, kind: int, workspace: Path, until: float) -> None:
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise WorkspaceBusy(
                    f"another merge into {workspace} has not ended",
                    hint="wait for it, or end the process that makes it",
                ) from None
            time.sleep(_LOOK_SECONDS)
