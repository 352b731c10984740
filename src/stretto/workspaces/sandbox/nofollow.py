"""Open what is below a directory without following any link. In: names. Out: descriptors."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def directory(root_fd: int, names: Sequence[str], *, create: bool = False) -> Iterator[int]:
    """Raises OSError where a name is missing, a link, or no directory."""
    current = os.dup(root_fd)
    try:
        for name in names:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=current)
            below = os.open(name, _DIRECTORY, dir_fd=current)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def place(root_fd: int, names: Sequence[str]) -> int:
    """A descriptor that names the place and can do nothing else (O_PATH)."""
    if not names:
        return os.open(".", os.O_PATH | os.O_CLOEXEC, dir_fd=root_fd)
    with directory(root_fd, names[:-1]) as parent:
        return os.open(names[-1], os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)


def existing_part(root_fd: int, names: Sequence[str]) -> tuple[str, ...]:
    """The longest beginning of the path that is a directory, links not counted."""
    for length in range(len(names), 0, -1):
        with suppress(OSError), directory(root_fd, names[:length]):
            return tuple(names[:length])
    return ()


def is_there(root_fd: int, names: Sequence[str]) -> bool:
    """Whether the path is a file or a directory, links not counted."""
    try:
        with directory(root_fd, names[:-1]) as parent:
            status = os.stat(names[-1], dir_fd=parent, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
