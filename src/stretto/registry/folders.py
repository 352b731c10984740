"""The files of a folder as they are now, in a stable order."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Folder:
    path: Path
    layer: str  # 'bundled', 'user' or 'project'
    may_shadow: bool = True  # whether what is in it comes before the layers below


def files_in(folder: Folder, suffixes: Sequence[str]) -> list[Path]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder.path) if entry.is_file())
    except OSError:  # a folder that is not there holds nothing
        return []
    wanted = tuple(suffixes)
    return [
        folder.path / name
        for name in names
        if name.endswith(wanted) and not name.startswith((".", "_")) and ".script." not in name
    ]


def signature(file: Path) -> tuple[int, int, int] | None:
    """Changes when the file does; None once it is gone."""
    try:
        status = file.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino)
