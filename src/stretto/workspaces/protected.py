"""Names and paths that no writer and no merge may touch, and folders that are git repositories.

A repository's config can name programs, and git runs them for whoever stands in it and asks
anything. Git needs no `.git` for that: a folder with `HEAD`, `objects` and `refs` is one by itself.
"""

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
    """Paths of a workspace, with all below them, that no step may change: what the user trusted."""

    __slots__ = ("_folded", "paths")

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self.paths = tuple(dict.fromkeys(paths))
        self._folded = tuple(map(_folded, self.paths))

    def covers(self, path: str) -> bool:
        """Whether a change of this path changes one of these. A folder above one counts too: renaming
        it, or putting a link in its place, changes what is in it."""
        asked = _folded(path)
        return any(
            asked == each or asked.startswith(f"{each}/") or each.startswith(f"{asked}/")
            for each in self._folded
        )

    def holds(self, path: str) -> bool:
        """Whether the path is one of these, or lies in one of them."""
        asked = _folded(path)
        return any(asked == each or asked.startswith(f"{each}/") for each in self._folded)


def _folded(path: str) -> str:
    # As a file system that ignores case sees it: the workspace may lie on one.
    return normalize("NFC", path).casefold().strip("/")


NOTHING_PROTECTED = Protected()


HEAD = "HEAD"
_PARTS = frozenset(("head", "objects", "refs"))
_LINKED = frozenset(("head", "commondir"))  # the rest of the repository lies where `commondir` says
PARTS = (HEAD, "objects", "refs", "commondir")


def is_repository(names: Iterable[str]) -> bool:
    """Whether git takes a folder that holds these names for a repository."""
    # As a file system that ignores case sees them.
    folded = {name.casefold() for name in names}
    return folded >= _PARTS or folded >= _LINKED


def find_repository_folders(paths: Iterable[str]) -> frozenset[str]:
    """The folders that are repositories, of all that these files are in; '' is the top."""
    every = list(paths)
    heads = {path.rpartition("/")[0] for path in every if path.casefold().endswith("head")}
    held: dict[str, set[str]] = {folder: set() for folder in heads}
    for path in every if held else ():
        names = path.split("/")
        for depth, name in enumerate(names):
            folder = "/".join(names[:depth])
            if folder in held:
                held[folder].add(name)
    return frozenset(folder for folder, names in held.items() if is_repository(names))


def is_within(path: str, folders: frozenset[str]) -> bool:
    names = path.split("/")
    return any("/".join(names[:depth]) in folders for depth in range(len(names)))
