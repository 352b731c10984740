"""Names that no writer and no merge may touch. In: a path or a name. Out: whether it is one."""

from collections.abc import Iterable
from unicodedata import category, normalize

# Where a merge keeps what it is about to put in place, at the top of a workspace.
STAGE_PREFIX = ".stretto-merge-"


def is_protected(path: str) -> bool:
    """Whether any component of a '/'-separated path is git's own or a merge's."""
    return any(is_git(name) or name.startswith(STAGE_PREFIX) for name in path.split("/"))


def is_git(name: str) -> bool:
    """Whether some file system takes this name for `.git`.

    Case is ignored on macOS and Windows, invisible characters on HFS+; NTFS drops dots and blanks
    at the end, knows streams (`.git::…`), and a short name. Refused everywhere: a workspace may be
    copied from one to the other.
    """
    if name.isascii() and "git" not in name.lower():
        return False
    visible = "".join(letter for letter in name if category(letter) != "Cf")
    return visible.casefold().partition(":")[0].rstrip(" .") in (".git", "git~1")


class Protected:
    """Paths of a workspace, with all below them, that nobody may change: what the user trusted."""

    __slots__ = ("_folded", "paths")

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self.paths = tuple(dict.fromkeys(paths))
        self._folded = tuple(map(_folded, self.paths))

    def covers(self, path: str) -> bool:
        """Also a folder above one: who renames it, or makes a link of it, changes what is in it."""
        asked = _folded(path)
        return any(
            asked == each or asked.startswith(f"{each}/") or each.startswith(f"{asked}/")
            for each in self._folded
        )

    def holds(self, path: str) -> bool:
        """One of these, or in one of them."""
        asked = _folded(path)
        return any(asked == each or asked.startswith(f"{each}/") for each in self._folded)


def _folded(path: str) -> str:
    # As a file system that ignores case sees it: the workspace may lie on one.
    return normalize("NFC", path).casefold().strip("/")


NOTHING_PROTECTED = Protected()
