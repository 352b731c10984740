"""The playbooks of one user in one SQLite file: what they say, how they were used, and an audit log.

`SKILL.md` folders stay the truth about what they say; here lies a copy, for search. Emitted playbooks
lie here alone. Every change is one transaction, so a process that is killed leaves the state before
it or the state after it, and of two processes one waits for the other.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from stretto.config.database import open_database, transaction
from stretto.playbooks.playbook import BrokenPlaybook, Playbook, PlaybookText
from stretto.text.terms import terms
from stretto.vocabulary.json_value import Json

_NOWHERE = "{}"  # the origin of what a person wrote
EMITTED = ""  # the root of playbooks that lie in no folder
# A word of a name or a description is another word than the same one in a body: it says more, and it
# stands in fewer playbooks, so that the few that matter are found without reading the many.
HEAD, BODY = "h", "b"
_MOST_USES = 200  # that are kept of one playbook, the newest ones
_CACHE_KIB = 16 * 1024  # at most; SQLite's own choice is 2 MiB
# One script a version: never change one that was released. No statement may hold a semicolon.
_MIGRATIONS = (
    """
    CREATE TABLE playbooks (
        id INTEGER PRIMARY KEY,
        root TEXT NOT NULL, -- the folder that its folder lies in, empty for an emitted one
        folder TEXT NOT NULL, -- the name of its folder, for an emitted one its own name
        stamp TEXT NOT NULL,
        name TEXT NOT NULL,
        description TEXT NOT NULL,
        body TEXT NOT NULL,
        digest TEXT NOT NULL,
        fault TEXT NOT NULL,
        is_pinned INTEGER NOT NULL,
        confidence REAL NOT NULL,
        uses INTEGER NOT NULL,
        last_used_at REAL,
        made_at REAL NOT NULL,
        origin TEXT NOT NULL, -- JSON
        deleted_at REAL, -- null: it is in use
        UNIQUE (root, folder)
    ) STRICT;
    CREATE INDEX playbooks_by_name ON playbooks (name);
    CREATE TABLE playbook_files (
        playbook INTEGER NOT NULL REFERENCES playbooks (id) ON DELETE CASCADE,
        path TEXT NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (playbook, path)
    ) STRICT, WITHOUT ROWID;
    CREATE VIRTUAL TABLE words USING fts5(name, description, body, tokenize = 'unicode61');
    CREATE TABLE word_counts (
        word TEXT PRIMARY KEY,
        playbooks INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE audit (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        at REAL NOT NULL,
        action TEXT NOT NULL,
        name TEXT NOT NULL,
        why TEXT NOT NULL,
        by TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE uses (
        playbook INTEGER NOT NULL REFERENCES playbooks (id) ON DELETE CASCADE,
        run_id TEXT NOT NULL,
        step TEXT NOT NULL,
        at REAL NOT NULL, -- the last time, of a step that was given it several times
        PRIMARY KEY (playbook, run_id, step)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX uses_by_time ON uses (playbook, at)
    """,
    # Its folder is not there: unmounted, renamed, or removed for good. Nobody can tell which.
    "ALTER TABLE playbooks ADD COLUMN is_away INTEGER NOT NULL DEFAULT 0",
)
_COLUMNS = (
    "id, root, folder, name, description, body, digest, fault, is_pinned, confidence, uses, "
    "last_used_at, made_at, origin, deleted_at"
)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    at: float
    action: str  # add | capture | pin | unpin | delete | restore | prune | merge | curate
    name: str
    why: str
    by: str  # the user's name; empty: curation


@dataclass(frozen=True, slots=True)
class PlaybookUse:
    """A step that was given a playbook."""

    run_id: str
    step: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class StoredSkill:
    """What is known of a folder without reading it."""

    id: int
    stamp: str
    is_away: bool


class PlaybookStore:
    """For one thread at a time."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    @classmethod
    def open(cls, file: Path) -> Self:
        """Raises StrettoError."""
        hint = "keep a copy of it, then move it away: folders are read again, emitted ones are lost"
        db = open_database(file, _MIGRATIONS, hint)
        db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        return cls(db)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def change(self) -> Iterator[None]:
        """One transaction. Raises StrettoError where the file cannot be written."""
        with transaction(self._db, "the playbooks"):
            yield

    def skills_of(self, root: str) -> dict[str, StoredSkill]:
        """By the name of the folder."""
        found = "SELECT folder, id, stamp, is_away FROM playbooks WHERE root = ?"
        rows = self._db.execute(found, (root,))
        return {folder: StoredSkill(id, stamp, bool(away)) for folder, id, stamp, away in rows}

    def put(
        self,
        root: str,
        folder: str,
        stamp: str,
        read: PlaybookText | BrokenPlaybook,
        now: float,
        confidence: float = 1.0,
        origin: Mapping[str, Json] | None = None,
    ) -> None:
        """What is known of its use stays. A folder that somebody wrote is pinned from the start."""
        said = read if isinstance(read, PlaybookText) else PlaybookText(read.name, "", "")
        fault = "" if isinstance(read, PlaybookText) else read.fault
        (id,) = self._db.execute(
            """INSERT INTO playbooks (root, folder, stamp, name, description, body, digest, fault,
                   is_pinned, confidence, uses, made_at, origin)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)
               ON CONFLICT (root, folder) DO UPDATE SET stamp = excluded.stamp,
                   name = excluded.name, description = excluded.description,
                   body = excluded.body, digest = excluded.digest, fault = excluded.fault,
                   is_away = 0
               RETURNING id""",
            (root, folder, stamp, said.name, said.description, said.body, said.digest, fault,
             root != EMITTED, confidence, now, json.dumps(dict(origin or {}))),
        ).fetchone()  # fmt: skip
        self._forget_words(id)
        if not fault:
            self._put_words(id, index_words(said))
            self._db.executemany(
                "INSERT INTO playbook_files VALUES (?, ?, ?)",
                ((id, path, text) for path, text in said.files.items()),
            )

    def _put_words(self, id: int, columns: Sequence[Sequence[str]]) -> None:
        insert = "INSERT INTO words (rowid, name, description, body) VALUES (?, ?, ?, ?)"
        self._db.execute(insert, (id, *map(" ".join, columns)))
        # SQLite can count this itself, but only by reading every place where a word stands.
        count = (
            "INSERT INTO word_counts VALUES (?, 1) "
            "ON CONFLICT (word) DO UPDATE SET playbooks = playbooks + 1"
        )
        self._db.executemany(count, ((word,) for word in sorted(set().union(*columns))))

    def _forget_words(self, id: int) -> None:
        found = "SELECT name || ' ' || description || ' ' || body FROM words WHERE rowid = ?"
        row = self._db.execute(found, (id,)).fetchone()
        if row is not None:
            words = [(word,) for word in set(row[0].split())]
            count = "UPDATE word_counts SET playbooks = playbooks - 1 WHERE word = ?"
            self._db.executemany(count, words)
            self._db.execute("DELETE FROM words WHERE rowid = ?", (id,))
        self._db.execute("DELETE FROM playbook_files WHERE playbook = ?", (id,))

    def set_away(self, ids: Iterable[int]) -> None:
        """Forget what folders said that are gone. What a person decided about them stays, as does
        how they were used: the folders may come back."""
        away = (
            "UPDATE playbooks SET is_away = 1, stamp = '', description = '', body = '' WHERE id = ?"
        )
        for id in ids:
            self._forget_words(id)
            self._db.execute(away, (id,))

    def set(self, id: int, **values: object) -> None:
        names = ", ".join(f"{name} = ?" for name in values)
        self._db.execute(f"UPDATE playbooks SET {names} WHERE id = ?", (*values.values(), id))

    def count_use(self, ids: Sequence[int], now: float, by: PlaybookUse | None = None) -> None:
        statement = "UPDATE playbooks SET uses = uses + 1, last_used_at = max(?, coalesce(last_used_at, 0)) WHERE id = ?"
        self._db.executemany(statement, ((now, id) for id in ids))
        if by is None:
            return
        statement = """INSERT INTO uses VALUES (?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET at = max(at, excluded.at)"""
        self._db.executemany(statement, ((id, by.run_id, by.step, now) for id in ids))
        forget = """DELETE FROM uses WHERE playbook = :id AND at < (SELECT at FROM uses
            WHERE playbook = :id ORDER BY at DESC LIMIT 1 OFFSET :most)"""
        self._db.executemany(forget, ({"id": id, "most": _MOST_USES - 1} for id in ids))

    def uses_of(self, id: int, most: int) -> list[PlaybookUse]:
        """Newest first."""
        found = "SELECT run_id, step, at FROM uses WHERE playbook = ? ORDER BY at DESC, run_id DESC LIMIT ?"
        return [PlaybookUse(*row) for row in self._db.execute(found, (id, most))]

    def add_uses(self, id: int, other: int) -> None:
        """Add the uses of another playbook, whose place this one takes."""
        self._db.execute(
            """UPDATE playbooks SET uses = playbooks.uses + o.uses,
                   last_used_at = nullif(max(coalesce(playbooks.last_used_at, 0),
                                             coalesce(o.last_used_at, 0)), 0)
               FROM playbooks AS o WHERE playbooks.id = ? AND o.id = ?""",
            (id, other),
        )
        moved = "INSERT OR IGNORE INTO uses SELECT ?, run_id, step, at FROM uses WHERE playbook = ?"
        self._db.execute(moved, (id, other))

    def last_time(self, action: str) -> float | None:
        # By the order of the rows: the times of a clock that was set back are the latest for long.
        found = "SELECT at FROM audit WHERE action = ? ORDER BY rowid DESC LIMIT 1"
        row = self._db.execute(found, (action,)).fetchone()
        return None if row is None else float(row[0])

    def note(self, at: float, action: str, name: str, why: str = "", by: str = "") -> None:
        insert = "INSERT INTO audit (at, action, name, why, by) VALUES (?, ?, ?, ?, ?)"
        self._db.execute(insert, (at, action, name, why, by))

    def audit(self, most: int, name: str = "") -> list[AuditEntry]:
        """Newest first. `name`: what was done with that playbook alone."""
        only = "WHERE name = :name" if name else ""
        found = (
            f"SELECT at, action, name, why, by FROM audit {only} ORDER BY number DESC LIMIT :most"
        )
        rows = self._db.execute(found, {"most": most, "name": name})
        return [AuditEntry(*row) for row in rows]

    def others_named(
        self, candidates: Sequence[Playbook], roots: Mapping[str, str]
    ) -> list[Playbook]:
        """Playbooks with the name of a candidate that are no candidates themselves."""
        names = {each.name for each in candidates}
        marks, known = ", ".join("?" * len(names)), {each.id for each in candidates}
        found = f"SELECT id FROM playbooks WHERE name IN ({marks}) AND NOT is_away"
        ids = [id for (id,) in self._db.execute(found, tuple(names)) if id not in known]
        return self.some(ids, roots) if ids else []

    def every(self, roots: Mapping[str, str], *names: str) -> list[Playbook]:
        """All of them, or those of these names. `roots`: those that count, with their layers."""
        marks = ", ".join("?" * len(roots))
        named = f" AND name IN ({', '.join('?' * len(names))})" if names else ""
        # With the `+` SQLite does not use the index by root, which would read a whole root.
        root = "+root" if names else "root"
        found = f"SELECT {_COLUMNS} FROM playbooks WHERE {root} IN ({marks}){named} AND NOT is_away"
        rows = self._db.execute(found, (*roots, *names)).fetchall()
        return [self._playbook(row, roots) for row in rows]

    def some(self, ids: Sequence[int], roots: Mapping[str, str]) -> list[Playbook]:
        """The rows among these that lie in a root that counts."""
        found = f"SELECT {_COLUMNS} FROM playbooks WHERE id IN ({', '.join('?' * len(ids))})"
        rows = self._db.execute(found, tuple(ids)).fetchall()
        return [self._playbook(row, roots) for row in rows if row[1] in roots]

    def _playbook(self, row: tuple[Any, ...], roots: Mapping[str, str]) -> Playbook:
        # Nothing is converted, as each search makes twenty of these: STRICT gives the types.
        (id, root, folder, name, description, body, digest, fault, is_pinned, confidence, uses,
         last_used_at, made_at, origin, deleted_at) = row  # fmt: skip
        is_emitted = root == EMITTED
        return Playbook(
            name=name, description=description, body=body, digest=digest,
            source="emitted" if is_emitted else "skill",
            layer=roots[root],
            folder="" if is_emitted else os.path.join(root, folder),
            is_pinned=bool(is_pinned),
            confidence=confidence, uses=uses, last_used_at=last_used_at, made_at=made_at,
            origin=json.loads(origin) if origin != _NOWHERE else {},
            fault=fault, deleted_at=deleted_at, id=id,
        )  # fmt: skip

    def files_of(self, id: int) -> list[str]:
        found = "SELECT path FROM playbook_files WHERE playbook = ? ORDER BY path"
        return [path for (path,) in self._db.execute(found, (id,))]

    def file_text(self, id: int, path: str) -> str | None:
        found = "SELECT content FROM playbook_files WHERE playbook = ? AND path = ?"
        row = self._db.execute(found, (id, path)).fetchone()
        return None if row is None else str(row[0])

    def counts_of(self, words: Iterable[str]) -> dict[str, int]:
        """In how many playbooks each word stands; words that stand in none are left out."""
        found = "SELECT playbooks FROM word_counts WHERE word = ? AND playbooks > 0"
        counted = ((word, self._db.execute(found, (word,)).fetchone()) for word in words)
        return {word: row[0] for word, row in counted if row}

    def count(self) -> int:
        (found,) = self._db.execute("SELECT count(*) FROM playbooks WHERE NOT is_away").fetchone()
        return int(found)

    def ranked(self, words: Sequence[str], most: int) -> list[tuple[int, float]]:
        """Rows that hold any of the words, the best first, with their scores by BM25."""
        asked = " OR ".join(f'"{word}"' for word in words)
        found = (
            "SELECT rowid, rank FROM words WHERE words MATCH ? "
            "AND rank MATCH 'bm25(8.0, 4.0, 1.0)' ORDER BY rank LIMIT ?"
        )
        return [(id, -rank) for id, rank in self._db.execute(found, (asked, most))]


def index_words(said: PlaybookText) -> tuple[list[str], list[str], list[str]]:
    """The words of name, description and body as the index holds them."""
    head = [[f"{HEAD}{word}" for word in terms(text)] for text in (said.name, said.description)]
    return head[0], head[1], [f"{BODY}{word}" for word in terms(said.body)]
