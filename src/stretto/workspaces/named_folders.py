"""Folders that end like files: `release-1.0`, `Notes.app`. In: globs of a set. Out: what they also cover."""

from collections.abc import Iterable
from pathlib import Path

from stretto.globs.glob import parse_globs, plain_files, text_of
from stretto.globs.pattern import ANY


def globs_below(workspace: Path, globs: Iterable[str]) -> tuple[str, ...]:
    """A plain path that ends like a file stands for that file alone, unless it is a folder here."""
    paths = (names for glob in parse_globs(globs) for names in plain_files(glob))
    folders = (names for names in paths if workspace.joinpath(*names).is_dir())
    return tuple(dict.fromkeys(text_of((*names, ANY)) for names in folders))
