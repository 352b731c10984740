"""Decide whether a change may be merged at all, in a run and by `stretto apply` alike."""

from collections.abc import Sequence
from dataclasses import dataclass

from stretto.globs.glob import parse_globs
from stretto.text.redaction import NOTHING_SECRET, Redactor
from stretto.text.short import listed
from stretto.workspaces.change import ChangeSet, find_paths_outside
from stretto.workspaces.content import Blobs, FileEntry
from stretto.workspaces.protected import NOTHING_PROTECTED, Protected

# A step may remove this many files, or this share of them, without asking a person.
FEW_REMOVED = 10
SHARE_REMOVED = 0.1
# Larger files are not looked through for secrets.
_MOST_SEARCHED = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Inadmissible:
    """Why nothing of a change may be merged, and the paths that are the reason."""

    error: str
    paths: tuple[str, ...]


def why_inadmissible(
    changes: ChangeSet,
    write_set: Sequence[str],
    protected: Protected = NOTHING_PROTECTED,
    redactor: Redactor = NOTHING_SECRET,
) -> Inadmissible | None:
    outside = find_paths_outside(changes, parse_globs(write_set))
    if outside:
        return Inadmissible(f"it changed files outside its write-set: {listed(outside)}", outside)
    touched = dict.fromkeys(path for change in changes.changes for path in change.touched)
    trusted = tuple(path for path in touched if protected.covers(path))
    if trusted:
        said = f"it changed what the user has trusted, and no step may: {listed(trusted)}"
        return Inadmissible(said, trusted)
    if found := _find_new_secrets(changes, redactor):
        names = listed(dict.fromkeys(name for each in found.values() for name in each))
        said = f"it wrote the value of {names} into {listed(found)}"
        return Inadmissible(said, tuple(found))
    return None


def _find_new_secrets(changes: ChangeSet, redactor: Redactor) -> dict[str, tuple[str, ...]]:
    """By file: the variables whose values are in it and were not before."""
    if not redactor.has_secrets or not changes.changes:
        return {}
    blobs = Blobs(changes.objects)

    def find_secrets(entry: FileEntry | None) -> tuple[str, ...]:
        if entry is None or entry.size > _MOST_SEARCHED:
            return ()
        return redactor.named(blobs.read(entry.digest).decode("utf-8", "surrogateescape"))

    found: dict[str, tuple[str, ...]] = {}
    for change in changes.changes:
        names = find_secrets(change.after)
        if new := tuple(name for name in names if name not in find_secrets(change.before)):
            found[change.path] = new
    return found


def doubt_about(changes: ChangeSet) -> str:
    """What a person should know before a change is merged whose removals nothing explains.

    A copy that lost files, however it lost them, would look like a step that removed them.
    """
    removed = changes.removed
    if len(removed) <= FEW_REMOVED or len(removed) <= changes.base_files * SHARE_REMOVED:
        return ""
    of = f" of {changes.base_files:,}" if changes.base_files else ""
    return (
        f"its change removes {len(removed):,}{of} files ({listed(removed)}), "
        "and no tool call and no command of the step can have removed them"
    )
