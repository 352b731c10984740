"""Remove a folder of ours, whatever was done to it. In: a folder. Out: nothing of it."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

_MOST_ROUNDS = 100  # only keeps two processes that remove one folder from going on for ever


def remove_tree(folder: Path) -> None:
    """Whatever a writer did to the modes of what is in it, and however deep it dug: its paths may be
    longer than the system takes, and more than Python could descend. So folders are moved up to the
    top, each by one rename, before they are emptied. Another process may do the same beside us."""
    if folder.is_symlink():  # what it leads to is not ours
        folder.unlink(missing_ok=True)
        return
    for _ in range(_MOST_ROUNDS):
        below = [os.fspath(folder)]
        while below:
            below += _empty(below.pop(), folder)
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if not _has_entries(folder):
                raise
    raise OSError(f"{folder} cannot be emptied")


def _empty(path: str, top: Path) -> list[str]:
    """The folders that were in it; at the top they stay where they are."""
    is_top = path == os.fspath(top)
    moved = []
    with suppress(FileNotFoundError):
        os.chmod(path, 0o700)
        with os.scandir(path) as entries:
            found = list(entries)
        for entry in found:
            with suppress(FileNotFoundError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                going = entry.path if is_top else os.path.join(top, secrets.token_hex(8))
                if not is_top:
                    os.chmod(entry.path, 0o700)  # or it could not be moved
                    os.rename(entry.path, going)
                moved.append(going)
        if not is_top:
            os.rmdir(path)
    return moved


def _has_entries(folder: Path) -> bool:
    with os.scandir(folder) as entries:
        return any(entries)
