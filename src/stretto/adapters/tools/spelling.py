"""Is a name the real name of what it opens? In: an open folder, a name. Out: the real one, if not.

Where a file system ignores case, `SRC/a.py` opens `src/a.py`, which a set may not cover.
"""

import os
from collections.abc import Iterable
from unicodedata import normalize


def real_name(folder_fd: int, name: str) -> str | None:
    """None: it is called so itself, or there is no such thing."""
    other = name.swapcase()
    if other == name:
        return None
    try:
        here = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        there = os.stat(other, dir_fd=folder_fd, follow_symlinks=False)
    except (OSError, ValueError):
        return None  # where case counts, nearly always: the other spelling is not there
    return entry_for(name, os.listdir(folder_fd)) if os.path.samestat(here, there) else None


def entry_for(name: str, entries: Iterable[str]) -> str | None:
    """The entry that a name without its case stands for; None when the name is one itself."""
    wanted = normalize("NFC", name)
    names = [normalize("NFC", entry) for entry in entries]
    if wanted in names:
        return None
    folded = wanted.casefold()
    return next((entry for entry in names if entry.casefold() == folded), "another name")
