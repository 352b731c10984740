"""What a shared writer left in the workspace. In: paths. Out: a note; later, whether it still holds.

Its answer speaks of files that are kept nowhere else. So it can be given again only while they are as
it left them. Whatever changed while it worked counts as its own: that only makes reuse rarer.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import cast

from stretto.config.private import make_private
from stretto.problems.errors import NotFound
from stretto.vocabulary.values import Json
from stretto.workspaces.durable import write_durably
from stretto.workspaces.entries import Entry
from stretto.workspaces.paths import PathRefused
from stretto.workspaces.reading import entry_at, holds
from stretto.workspaces.rooted_dir import RootedDir
from stretto.workspaces.stored import (
    Unreadable,
    entry_from_json,
    entry_to_json,
    read_object,
    to_bytes,
)


def note_written(note: Path, workspace: Path, paths: Iterable[str]) -> None:
    with RootedDir(workspace) as rooted:
        files: dict[str, Json] = {
            path: entry_to_json(_entry(rooted, path)) for path in sorted(paths)
        }
    make_private(note.parent)
    write_durably(note, to_bytes({"files": files}))


def is_still_written(note: Path, workspace: Path) -> bool:
    """False where nobody noted it, too."""
    try:
        files = cast(dict[str, Json], read_object(note, "note of what was written")["files"])
    except (NotFound, Unreadable):
        return False
    with RootedDir(workspace) as rooted:
        return all(_holds(rooted, path, entry_from_json(entry)) for path, entry in files.items())


def _entry(rooted: RootedDir, path: str) -> Entry | None:
    try:
        with rooted.place(path, follow=False) as place:
            return entry_at(place)
    except (FileNotFoundError, PathRefused):
        return None


def _holds(rooted: RootedDir, path: str, entry: Entry | None) -> bool:
    try:
        with rooted.place(path, follow=False) as place:
            return holds(place, entry)
    except PathRefused:
        return entry is None
