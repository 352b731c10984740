"""Every version of a saved recipe that Stretto has written or replaced. In: files. Out: RecipeVersions.

A version also says whose it is: a person's (*written*) or an agent's (*emitted*). A file is emitted as
long as it holds exactly the bytes of an emitted version; whoever edits it makes it their own.
"""

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias

from stretto.config.database import open_database, transaction
from stretto.documents.regular_file import NotRegular, TooLarge, read_regular
from stretto.problems.errors import RefusedToOverwrite

RecipeOrigin: TypeAlias = Literal["written", "emitted"]
_MOST_BYTES = 4 * 2**20  # of a file that is replaced
# One script a version: never change one that was released.
_MIGRATIONS = (
    """
    CREATE TABLE versions (
        file TEXT NOT NULL,
        number INTEGER NOT NULL, -- from 1, per file
        at REAL NOT NULL,
        by TEXT NOT NULL,
        origin TEXT NOT NULL,
        why TEXT NOT NULL,
        digest TEXT NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (file, number)
    ) STRICT
    """,
    # Of an emitted one: whether a person had read it when it was saved.
    "ALTER TABLE versions ADD COLUMN is_read INTEGER NOT NULL DEFAULT 0",
)


@dataclass(frozen=True, slots=True)
class RecipeVersion:
    number: int  # from 1
    at: float  # seconds since the epoch
    by: str
    origin: RecipeOrigin
    why: str  # how it came about: saved, restored, or found as somebody had written it
    digest: str
    content: bytes
    is_current: bool = False  # the file holds it now

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")


class Versions:
    """Of all saved recipes of one user. For one thread at a time."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def change(self) -> AbstractContextManager[None]:
        return transaction(self._db, "the versions of recipes")

    def add(
        self,
        file: Path,
        content: bytes,
        origin: RecipeOrigin,
        at: float,
        by: str,
        why: str,
        is_read: bool = False,
    ) -> int:
        """Gives its number."""
        last = "SELECT coalesce(max(number), 0) FROM versions WHERE file = ?"
        (number,) = self._db.execute(last, (_key(file),)).fetchone()
        digest = sha256(content).hexdigest()
        row = (_key(file), number + 1, at, by, origin, why, digest, content, is_read)
        self._db.execute("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return int(number) + 1

    def of(self, file: Path) -> list[RecipeVersion]:
        """Oldest first; of equal ones the last is current."""
        found = (
            "SELECT number, at, by, origin, why, digest, content FROM versions "
            "WHERE file = ? ORDER BY number"
        )
        versions = [RecipeVersion(*row) for row in self._db.execute(found, (_key(file),))]
        now = content_of(file)
        current = None if now is None else _last_with(versions, now)
        return [replace(each, is_current=each is current) for each in versions]

    def origin_of(self, file: Path) -> RecipeOrigin:
        """Of what the file holds now. What Stretto did not write is a person's."""
        found = next((each for each in self.of(file) if each.is_current), None)
        return found.origin if found else "written"

    def unread(self, digests: Collection[str]) -> set[str]:
        """Those texts that only agents have saved, and that no person had read when they were saved."""
        marks = ", ".join("?" * len(digests))
        found = (
            f"SELECT digest FROM versions WHERE digest IN ({marks}) "
            "GROUP BY digest HAVING max(origin = 'written' OR is_read) = 0"
        )
        return {digest for (digest,) in self._db.execute(found, tuple(digests))}

    def files_named(self, name: str, folders: list[Path]) -> list[Path]:
        """Files of these folders that have versions, also those that are gone."""
        found = (Path(file) for (file,) in self._db.execute("SELECT DISTINCT file FROM versions"))
        return sorted(each for each in found if each.stem == name and each.parent in folders)


def _key(file: Path) -> str:
    """The recipe's path as text: a file's name may hold bytes that are no text."""
    return str(file).encode("utf-8", "backslashreplace").decode()


@contextmanager
def open_versions(file: Path) -> Iterator[Versions]:
    """Raises StrettoError where their file cannot be used."""
    hint = "keep a copy of it, then move it away: recipes stay, their earlier versions are lost"
    db = open_database(file, _MIGRATIONS, hint)
    try:
        yield Versions(db)
    finally:
        db.close()


def content_of(file: Path) -> bytes | None:
    """None where nothing is. Raises RefusedToOverwrite for what could not be kept."""
    try:
        return read_regular(file, _MOST_BYTES)
    except FileNotFoundError:
        return None
    except (NotRegular, TooLarge) as error:
        raise RefusedToOverwrite(f"{file} {error}, so it cannot be kept and replaced") from None
    except OSError as error:
        raise RefusedToOverwrite(f"{file} cannot be read: {error.strerror}") from None


def _last_with(versions: list[RecipeVersion], content: bytes) -> RecipeVersion | None:
    return next((each for each in reversed(versions) if each.content == content), None)
