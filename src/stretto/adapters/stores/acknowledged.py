"""Note beside the journal which events were acknowledged, so that a loss is found when the journal is
opened again.

SQLite reads a WAL that is gone, cut off or damaged as one that ended earlier, and says nothing. So
each process that writes notes how far each run has come. The note is never synced: it outlives the
process, and after a power cut it may be behind the journal, never ahead of it.

    runs.db.acknowledged-4711-9f3c   one process: 64 bytes a run, of 10,000 runs at the most
    runs.db.damaged-20261118-…/      the files as they were found, and lost.json
"""

import fcntl
import json
import os
import secrets
import shutil
import sqlite3
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from stretto.adapters.stores.sqlite_ledger import REMOVED
from stretto.ports.journal import Loss
from stretto.problems.errors import StrettoError
from stretto.text.short import listed
from stretto.vocabulary.names import RunId

_SLOT = struct.Struct("<q56s")  # the last seq, and the run's id
_MOST_SLOTS = 10_000  # then what is in the database itself is forgotten: only a WAL can lose it
_FEW = 8  # slots that are written one by one; more are written in one piece
_ALL = 2**62  # as if a run that was removed on purpose had all events that it could have
_NOTED, _DAMAGED, _LOST = ".acknowledged-", ".damaged-", "lost.json"
_FILES = ("", "-wal", "-shm")


class Acknowledged:
    """The note of this process. It never raises: without it, the journal is as good as before."""

    def __init__(self, journal: Path, earlier: Sequence[Path] = ()) -> None:
        """`earlier`: notes that the journal was compared with when it was opened."""
        self._journal = journal
        self._earlier = earlier
        self._file = journal.with_name(
            f"{journal.name}{_NOTED}{os.getpid()}-{secrets.token_hex(4)}"
        )
        self._descriptor: int | None = None  # made with the first event: who only reads has none
        self._slots: dict[RunId, int] = {}
        self._table = bytearray()
        self._full_at = _MOST_SLOTS

    def note(self, last: Mapping[RunId, int]) -> None:
        changed = [self._put(run_id, seq) for run_id, seq in last.items()]
        places = [place for place in changed if place is not None]
        with suppress(OSError):  # a full disk, say: what is behind raises no false alarm
            if self._descriptor is None:
                flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
                self._descriptor = os.open(self._file, flags, 0o600)
            if len(places) > _FEW:
                self._write(min(places), max(places) + _SLOT.size)
            else:
                for place in places:
                    self._write(place, place + _SLOT.size)

    @property
    def is_full(self) -> bool:
        """Whether it is time to take the WAL into the database, so that `forget` may be called."""
        return len(self._slots) >= self._full_at

    def forget(self, is_whole: bool) -> None:
        """`is_whole`: all that was ever written is in the database itself, and synced. Otherwise it is
        asked for again later."""
        if not is_whole:
            self._full_at = len(self._slots) + _MOST_SLOTS // 10
            return
        self._slots.clear()
        self._table.clear()
        self._full_at = _MOST_SLOTS
        with suppress(OSError):
            if self._descriptor is not None:
                os.ftruncate(self._descriptor, 0)

    def close(self) -> None:
        """After the journal was closed. Once the WAL is gone, all is in the database itself, and
        there is nothing left that a note could miss."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if not os.path.exists(f"{self._journal}-wal"):
            for file in (self._file, *self._earlier):
                with suppress(OSError):
                    file.unlink()

    def _put(self, run_id: RunId, seq: int) -> int | None:
        place = self._slots.get(run_id)
        if place is None:
            name = run_id.encode()
            if len(name) > _SLOT.size - 8:
                return None
            place = self._slots[run_id] = len(self._table)
            self._table += _SLOT.pack(seq, name)
        else:
            struct.pack_into("<q", self._table, place, seq)
        return place

    def _write(self, start: int, end: int) -> None:
        assert self._descriptor is not None
        os.pwrite(self._descriptor, memoryview(self._table)[start:end].tobytes(), start)


def check(journal: Path) -> list[Path]:
    """Before SQLite may write: it goes on over whatever a damaged WAL still holds.

    Out: the notes that hold. Raises StrettoError where events are missing and no copy can be kept.
    """
    if not _notes(journal):
        return []
    with _alone(journal.parent):
        there = [end for end in _FILES if os.path.exists(f"{journal}{end}")]
        notes = _notes(journal)
        known = _read(notes)
        held = _read_last_events(journal, known) if notes else None
        if held is None:
            return notes
        lost = {
            run: (seq, held.get(run, 0)) for run, seq in known.items() if seq > held.get(run, 0)
        }
        if not lost:
            return notes
        _keep(journal, there, notes, lost)
        return []


def losses(journal: Path) -> tuple[Loss, ...]:
    """All that were ever found, as long as their folders are kept."""
    folders = (each for each in _beside(journal, _DAMAGED) if (each / _LOST).is_file())
    return tuple(loss for folder in folders for loss in _losses_of(folder))


def _losses_of(folder: Path) -> Iterator[Loss]:
    with suppress(OSError, ValueError, TypeError, AttributeError, KeyError):
        for run, row in json.loads((folder / _LOST).read_text())["runs"].items():
            yield Loss(RunId(run), int(row["acknowledged"]), int(row["held"]), str(folder))


def _beside(journal: Path, middle: str) -> list[Path]:
    with suppress(OSError), os.scandir(journal.parent) as entries:
        start = journal.name + middle
        return sorted(Path(each.path) for each in entries if each.name.startswith(start))
    return []


def _notes(journal: Path) -> list[Path]:
    return _beside(journal, _NOTED)


def _read(notes: Iterable[Path]) -> dict[RunId, int]:
    """By run, the last event that any process had acknowledged."""
    known: dict[RunId, int] = {}
    for note in notes:
        with suppress(OSError):
            content = note.read_bytes()
            whole = len(content) - len(content) % _SLOT.size
            for seq, name in _SLOT.iter_unpack(content[:whole]):
                run_id = RunId(name.rstrip(b"\0").decode(errors="replace"))
                if run_id.isprintable():
                    known[run_id] = max(seq, known.get(run_id, 0))
    return known


def _read_last_events(journal: Path, known: Iterable[RunId]) -> dict[RunId, int] | None:
    """The last events that the journal has; None: it cannot be read, and whoever opens it says so.

    Read-only: a connection that may write would take the WAL into the database when it is closed.
    """
    if not journal.exists():
        return {}
    last = f"""
        SELECT CASE WHEN status = '{REMOVED}' THEN {_ALL} ELSE
            (SELECT max(seq) FROM events WHERE run = runs.id) END
        FROM runs WHERE run_id = ?
        """
    try:
        uri = f"file:{quote(str(journal.absolute()))}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=10)) as db:
            tables = "SELECT count(*) FROM sqlite_master WHERE name IN ('runs', 'events')"
            if db.execute(tables).fetchone()[0] != 2:
                return {}
            found = {run: db.execute(last, (run,)).fetchone() for run in known}
            return {run: (row[0] if row else 0) or 0 for run, row in found.items()}
    except sqlite3.Error:
        return None


def _keep(
    journal: Path,
    there: Sequence[str],
    notes: Sequence[Path],
    lost: Mapping[RunId, tuple[int, int]],
) -> None:
    moment = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    folder = journal.with_name(f"{journal.name}{_DAMAGED}{moment}-{secrets.token_hex(2)}")
    runs = {run: {"acknowledged": seq, "held": held} for run, (seq, held) in lost.items()}
    try:
        folder.mkdir(mode=0o700)
        for end in there:
            shutil.copy2(f"{journal}{end}", folder / f"{journal.name}{end}")
        (folder / _LOST).write_text(json.dumps({"runs": runs}, indent=2) + "\n")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise StrettoError(
            f"the journal {journal} has lost events of {listed(runs)}, and no copy of it can be "
            f"kept: {error.strerror or error}",
            hint="make room: the copy is made before anything is written",
        ) from error
    for note in notes:
        with suppress(OSError):
            note.rename(folder / note.name)
    _tell(_losses_of(folder))


def _tell(found: Iterable[Loss]) -> None:
    import logging  # seldom

    for loss in found:
        logging.getLogger("stretto.journal").warning("stretto: %s", loss.told)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """No other process opens a journal in this folder until its copy is made."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
