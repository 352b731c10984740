"""A program of others, held so that it ends when we do. In: its words. Out: a Command to start."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from stretto.processes import leash, python


def leashed(words: Sequence[str], folder: Path, life: int) -> python.Command:
    """`life`: the reading end of a pipe; once the other end is closed, the program and all that it
    has started are ended. Raises OSError when the folder that it should start in is gone."""
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    return python.isolated(Path(leash.__file__), str(life), str(folder.absolute()), *words)
