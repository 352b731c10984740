"""What git takes for a repository. In: names in a folder, or paths. Out: whether, and which.

A repository's config can name programs, and git runs them for whoever stands in it and asks
anything. Git needs no `.git` for that: a folder with `HEAD`, `objects` and `refs` is one by itself.
"""

from collections.abc import Iterable

HEAD = "HEAD"
_PARTS = frozenset(("head", "objects", "refs"))
_LINKED = frozenset(("head", "commondir"))  # the rest of it lies where `commondir` says
PARTS = (HEAD, "objects", "refs", "commondir")


def is_repository(names: Iterable[str]) -> bool:
    """Whether git takes a folder that holds these names for a repository."""
    # As a file system that ignores case sees them.
    folded = {name.casefold() for name in names}
    return folded >= _PARTS or folded >= _LINKED


def repositories(paths: Iterable[str]) -> frozenset[str]:
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
