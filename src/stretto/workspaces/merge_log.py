"""The log of merges into one workspace. In: Intent. Out: files whose folder is the merge's state.

    pending/ID.json      begun: after a crash, everything in it is undone
    committed/ID.json    all is in place: only the staged files are still to be removed
    done/ID.json         the receipt
    kept/ID/PATH         old files of a merge that was undone, where somebody else had changed theirs

A merge passes from one to the next by one rename, synced. The log lies with the engine, never in
the workspace: what recovery does must not be for a writer to say.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast

from stretto.config.private import make_private
from stretto.vocabulary.values import Json
from stretto.workspaces.durable import sync, write_durably
from stretto.workspaces.merge import Put
from stretto.workspaces.stored import entry_from_json, entry_to_json, read_object, to_bytes

State: TypeAlias = Literal["pending", "committed", "done"]


@dataclass(frozen=True, slots=True)
class Intent:
    id: str
    workspace: Path
    stage: str  # the folder in the workspace where new files wait and old ones are kept
    puts: tuple[Put, ...]
    removed: tuple[tuple[str, int], ...]  # folders that may become empty, with their modes
    made: tuple[str, ...]  # folders that are needed, those above first


class MergeLog:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, intent: Intent) -> None:
        for state in ("pending", "committed", "done"):
            make_private(self._folder / state)
        sync(self._folder)
        write_durably(self._file("pending", intent.id), to_bytes(_to_json(intent)))

    def move(self, merge_id: str, before: State, after: State) -> None:
        self._file(before, merge_id).rename(self._file(after, merge_id))
        sync(self._folder / after)
        sync(self._folder / before)

    def forget(self, merge_id: str) -> None:
        self._file("pending", merge_id).unlink()
        sync(self._folder / "pending")

    def is_done(self, merge_id: str) -> bool:
        return self._file("committed", merge_id).exists() or self._file("done", merge_id).exists()

    def kept(self, merge_id: str) -> Path:
        return self._folder / "kept" / merge_id

    def unfinished(self, state: State) -> Iterator[Intent]:
        for file in sorted((self._folder / state).glob("*.json")):
            yield _from_json(read_object(file, "merge"))

    def _file(self, state: State, merge_id: str) -> Path:
        return self._folder / state / f"{merge_id}.json"


def _to_json(intent: Intent) -> dict[str, Json]:
    return {
        "id": intent.id,
        "workspace": str(intent.workspace),
        "stage": intent.stage,
        "puts": [
            [put.path, entry_to_json(put.before), entry_to_json(put.after)] for put in intent.puts
        ],
        "removed": [[path, mode] for path, mode in intent.removed],
        "made": list(intent.made),
    }


def _from_json(stored: dict[str, Json]) -> Intent:
    puts = cast(list[tuple[str, Json, Json]], stored["puts"])
    return Intent(
        cast(str, stored["id"]),
        Path(cast(str, stored["workspace"])),
        cast(str, stored["stage"]),
        tuple(Put(path, entry_from_json(a), entry_from_json(b)) for path, a, b in puts),
        tuple((path, mode) for path, mode in cast(list[tuple[str, int]], stored["removed"])),
        tuple(cast(list[str], stored["made"])),
    )
