"""Names that no writer and no merge may touch. In: a path or a name. Out: whether it is one."""

from unicodedata import category

# Where a merge keeps what it is about to put in place, at the top of a workspace.
STAGE_PREFIX = ".weft-merge-"


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
