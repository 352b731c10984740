"""Trees of files, written and read back, for the tests of workspaces."""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

# Bytes are a file, (bytes, mode) a file with a mode, text is a link's target.
Tree: TypeAlias = dict[str, bytes | tuple[bytes, int] | str]


def write_tree(root: Path, tree: Tree) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for path, what in tree.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, str):
            file.symlink_to(what)
            continue
        content, mode = what if isinstance(what, tuple) else (what, 0o644)
        file.write_bytes(content)
        file.chmod(mode)
    return root


def read_tree(root: Path) -> dict[str, bytes | tuple[bytes, int] | str]:
    """Everything but `.git`, folders too (as None would not do, a folder ends with '/')."""
    found: Tree = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        for name in (*names, *folders):
            file = Path(folder) / name
            path = file.relative_to(root).as_posix()
            if file.is_symlink():
                found[path] = os.readlink(file)
            elif file.is_dir():
                found[f"{path}/"] = b""
            elif stat.S_ISREG(file.stat().st_mode):
                found[path] = (file.read_bytes(), stat.S_IMODE(file.stat().st_mode))
    return found


def git(folder: Path, *arguments: str, text: bytes | None = None) -> bytes:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, input=text, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def repository(root: Path, tree: Tree) -> Path:
    write_tree(root, tree)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    return root


@contextmanager
def removing(name: str) -> Iterator[None]:
    """Whatever bears this name is removed by somebody else once its folder has been listed."""
    listed = os.scandir

    class Listing:
        def __init__(self, folder: Any = ".") -> None:
            path = os.readlink(f"/proc/self/fd/{folder}") if isinstance(folder, int) else folder
            with listed(folder) as entries:
                self._entries = iter(list(entries))
            found = Path(path) / name
            if found.is_dir():
                shutil.rmtree(found)
            else:
                found.unlink(missing_ok=True)

        def __iter__(self) -> Iterator[os.DirEntry[str]]:
            return self._entries

        def __next__(self) -> os.DirEntry[str]:
            return next(self._entries)

        def __enter__(self) -> "Listing":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def close(self) -> None:
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "scandir", Listing)
        yield
