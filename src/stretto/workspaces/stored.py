"""The room's own files as JSON. In: entries, changes. Out: JSON; and back.

They lie in folders that only the engine writes. One that cannot be read is a damaged disk, or the
work of a newer Stretto: it is said, never guessed at.
"""

import json
from pathlib import Path
from typing import cast

from stretto.problems.errors import NotFound, StrettoError
from stretto.vocabulary.values import Json
from stretto.workspaces.entries import Change, Entry, EntryKind, Left

VERSION = 1


class Unreadable(StrettoError):
    kind = "unreadable"


def read_object(file: Path, what: str) -> dict[str, Json]:
    try:
        value = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise NotFound(f"there is no {what} at {file.parent}") from None
    except (OSError, ValueError) as error:
        raise Unreadable(f"{file} cannot be read: {error}") from error
    if not isinstance(value, dict) or value.get("version") != VERSION:
        raise Unreadable(f"{file} was not written by this version of Stretto")
    return cast(dict[str, Json], value)


def to_bytes(value: dict[str, Json]) -> bytes:
    # ASCII: names of files need not be UTF-8, and JSON's escapes keep what they are.
    return json.dumps({"version": VERSION, **value}, separators=(",", ":")).encode("ascii")


def entry_to_json(entry: Entry | None) -> Json:
    return None if entry is None else [entry.kind, entry.mode, entry.size, entry.digest]


def entry_from_json(value: Json) -> Entry | None:
    if value is None:
        return None
    kind, mode, size, digest = cast(tuple[EntryKind, int, int, str], value)
    return Entry(kind, mode, size, digest)


def change_to_json(change: Change) -> Json:
    before, after = entry_to_json(change.before), entry_to_json(change.after)
    return [change.path, before, after, change.renamed_from, change.is_ignored]


def change_from_json(value: Json) -> Change:
    path, before, after, old, *ignored = cast(list[Json], value)
    is_ignored = bool(ignored and ignored[0])  # a diff of an earlier Stretto does not say
    entries = entry_from_json(before), entry_from_json(after)
    return Change(cast(str, path), *entries, cast(str | None, old), is_ignored)


def lefts_to_json(lefts: tuple[Left, ...]) -> Json:
    return [[left.path, left.why] for left in lefts]


def lefts_from_json(value: Json) -> tuple[Left, ...]:
    return tuple(Left(path, why) for path, why in cast(list[tuple[str, str]], value))
