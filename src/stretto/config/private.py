"""Make a folder that is the user's alone. In: a path. Out: the folder, and those above it."""

import os
from contextlib import suppress
from pathlib import Path


def make_private(folder: Path) -> None:
    """Every folder that is missing is made for the user alone: `parents=True` of `Path.mkdir` would
    leave those above to the umask, and the first to be made is our home, with prompts and answers
    in it. One that is there stays as it is: the user may share it on purpose."""
    for path in reversed((folder, *folder.parents)):
        if not path.exists():
            with suppress(FileExistsError):  # another process was quicker
                os.mkdir(path, 0o700)
    if not folder.is_dir():
        raise NotADirectoryError(20, "Not a directory", str(folder))
