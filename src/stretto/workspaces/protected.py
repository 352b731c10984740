"""Names and paths that no writer and no merge may touch, git repositories, and files that hold keys.

A repository's config can name programs, and git runs them for whoever stands in it and asks
anything. Git needs no `.git` for that: a folder with `HEAD`, `objects` and `refs` is one by itself.

A file that holds keys is known by its name. It is never read by a tool, and is empty for a command,
unless the read-set names it: not by `**/*`, which everybody has, but by a glob that says what it
is, such as `.env`, `certs/*.pem` or `.ssh/config`. What a package manager has put in place is
published and holds no secrets.

A second name of such a file, a hard link, is kept from tools and commands as well, as long as a name
that says what it is lies in the same workspace.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import translate
from functools import cached_property
from pathlib import Path
from unicodedata import category, normalize

from stretto.globs.glob import Glob

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
        self._folded = tuple(map(_fold_case, self.paths))

    def covers(self, path: str) -> bool:
        """Whether a change of this path changes one of these. A folder above one counts too: renaming
        it, or putting a link in its place, changes what is in it."""
        asked = _fold_case(path)
        return any(
            asked == each or asked.startswith(f"{each}/") or each.startswith(f"{asked}/")
            for each in self._folded
        )

    def holds(self, path: str) -> bool:
        """Whether the path is one of these, or lies in one of them."""
        asked = _fold_case(path)
        return any(asked == each or asked.startswith(f"{each}/") for each in self._folded)


def _fold_case(path: str) -> str:
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


FOLDERS = frozenset((".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".password-store"))
FILES = (
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p12", "*.pfx", "*.ppk",
    "*.kdbx", "*.jks", "*.keystore", ".netrc", "_netrc", ".pgpass", ".pypirc", ".npmrc",
    ".git-credentials", ".htpasswd", ".env", ".env.*", "*.env", ".envrc", "credentials",
    "*credentials.json", "credentials.toml", "client_secret*.json", "service-account*.json",
    "service_account*.json", "serviceaccount*.json", "*adminsdk*.json", ".vault-token", "*.p8",
    "ssh_host_*_key", "kubeconfig", "*.kubeconfig", ".dockercfg", ".s3cfg", ".boto", ".my.cnf",
    ".databrickscfg", "rclone.conf", "*.tfrc.json", "*.tfstate", ".*_history",
)  # fmt: skip
_HARMLESS = (
    "*.pub", "*.example", "*.sample", "*.template", "*.dist", "example.*", "sample.*", "template.*"
)  # fmt: skip
_BACKUPS = ("~", ".bak", ".backup", ".old", ".orig", ".save", ".swp")
# Two names: alone, each is nothing special.
_PAIRS = frozenset((
    (".docker", "config.json"), ("containers", "auth.json"), (".composer", "auth.json"),
    ("gcloud", "credentials.db"), ("gcloud", "access_tokens.db"), ("gh", "hosts.yml"),
    (".config", "hub"), (".m2", "settings.xml"), ("age", "keys.txt"), (".streamlit", "secrets.toml"),
))  # fmt: skip
INSTALLED = frozenset(("node_modules", "site-packages", "dist-packages"))
_MOST_SEARCHED = 200_000  # names that are looked at to find files of keys
_IS_KEY_FILE = re.compile("|".join(map(translate, FILES)))
_IS_HARMLESS = re.compile("|".join(map(translate, _HARMLESS)))


def is_secret(names: Sequence[str]) -> bool:
    """Whether a path, name by name, is a file that holds keys, or lies in a folder of keys."""
    folded = [_original(name.casefold()) for name in names]
    if not folded or INSTALLED.intersection(folded):
        return False
    if FOLDERS.intersection(folded) or tuple(folded[-2:]) in _PAIRS:
        return True
    return bool(_IS_KEY_FILE.match(folded[-1])) and not _IS_HARMLESS.match(folded[-1])


def is_secret_by_folder(names: Sequence[str]) -> bool:
    """Whether it would be none if the folder that it lies in were renamed."""
    return is_secret(names) and not is_secret(names[-1:])


def select_secret_globs(globs: Iterable[Glob]) -> tuple[Glob, ...]:
    """The globs that ask for secrets: read as a path, the glob itself is one."""
    return tuple(glob for glob in globs if is_secret(glob.text.rstrip("/").split("/")))


class LinkedSecrets:
    """Files of keys by their inodes, which are the same under every name.

    The workspace is searched when the first file with several names is asked about, and only then.
    The search ends after `_MOST_SEARCHED` names: second names of files beyond it are not known.
    """

    def __init__(self, workspace: Path, named: Sequence[Glob] = ()) -> None:
        """`named`: globs of secrets that may be read."""
        self._workspace = workspace
        self._named = named

    def cover(self, path: str, status: os.stat_result) -> bool:
        """Whether it is a second name of a file of keys; the path itself does not say so."""
        if status.st_nlink < 2 or is_secret(path.split("/")):
            return False
        return (status.st_dev, status.st_ino) in self._inodes

    @cached_property
    def _inodes(self) -> frozenset[tuple[int, int]]:
        found = set[tuple[int, int]]()
        for path in _find_secrets(self._workspace):
            if not any(glob.matches(path) for glob in self._named):
                with suppress(OSError):
                    status = os.lstat(self._workspace / path)
                    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                        found.add((status.st_dev, status.st_ino))
        return frozenset(found)


def _find_secrets(workspace: Path) -> Iterator[str]:
    waiting, seen = [""], 0
    while waiting and seen < _MOST_SEARCHED:
        prefix = waiting.pop()
        with suppress(OSError), os.scandir(workspace / prefix) as entries:
            for entry in entries:
                seen += 1
                path = f"{prefix}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in INSTALLED and not is_protected(entry.name):
                        waiting.append(f"{path}/")
                elif is_secret(path.split("/")):
                    yield path


def _original(name: str) -> str:
    """Of which file it is a backup."""
    for ending in _BACKUPS:
        name = name.removesuffix(ending)
    return name
