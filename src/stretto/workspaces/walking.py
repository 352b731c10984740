"""Open a folder beneath a root, one component at a time, where there is no `openat2`.

In: the root's fd, a relative path. Out: the folder's fd. Every step opens a name in a folder that
is already held open and never follows a link by itself, so nothing that is renamed meanwhile can
lead it outside. Links are read and walked by hand.
"""

import errno
import os
from collections.abc import Iterator

MOST_LINKS = 40  # as the kernel

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_folder(root_fd: int, path: str, *, follow: bool) -> int:
    """Raises OSError: EXDEV when it leads outside, ELOOP for a forbidden link or too many."""
    held = [os.dup(root_fd)]  # the way down; `..` goes back up along it, never above the root
    try:
        names = [name for name in reversed(path.split("/")) if name not in ("", ".")]
        links = 0
        while names:
            name = names.pop()
            if name == "..":
                if len(held) == 1:
                    raise OSError(errno.EXDEV, "leads outside", path)
                os.close(held.pop())
                continue
            target = _enter(held, name)
            if target is None:
                continue
            links += 1
            if not follow or links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if target.startswith("/"):
                raise OSError(errno.EXDEV, "leads outside", path)
            names.extend(_reversed_names(target))
        return os.dup(held[-1])
    finally:
        for fd in held:
            os.close(fd)


def _enter(held: list[int], name: str) -> str | None:
    """Open the folder and hold it; or say where the link of that name leads."""
    try:
        held.append(os.open(name, _FOLDER, dir_fd=held[-1]))
        return None
    except OSError as error:
        # Linux says "not a directory" of a link, BSD says "too many links".
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        try:
            return os.readlink(name, dir_fd=held[-1])
        except OSError:
            raise error from None


def _reversed_names(target: str) -> Iterator[str]:
    return (name for name in reversed(target.split("/")) if name not in ("", "."))
