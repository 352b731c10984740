"""Notices to people: a step awaits them. What is owed, what was sent, and when it is tried again.

In: a question of a run. Out: rows, once for each question, occasion and channel, until they are sent.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.config.database import transaction
from stretto.triggers.store import open_triggers
from stretto.vocabulary.json_value import Json

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_TRIES = 12
_FIRST_DELAY_SECONDS = 5.0
_LONGEST_DELAY_SECONDS = 3600.0
_MOST_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class Notice:
    run_id: str
    step: str
    key: str  # of what is asked: another prompt is another question
    about: str  # asked | reminder | lapsed
    channel: str  # webhook | command
    text: str  # JSON
    tries: int = 0

    @property
    def content(self) -> Mapping[str, Json]:
        found: dict[str, Json] = json.loads(self.text)
        return found


class NoticeStore:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def record(self, notices: Iterable[Notice], now: float) -> int:
        """How many of them are new; each is owed from now on."""
        sql = """
            INSERT INTO notices (run_id, step, key, about, channel, text, at, next_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
        """
        new = 0
        with transaction(self._db, "the notices"):
            for each in notices:
                row = (each.run_id, each.step, each.key, each.about, each.channel, each.text)
                new += self._db.execute(sql, (*row, now, now)).rowcount
        return new

    def owed(self, now: float) -> list[Notice]:
        """The notices to be sent now, oldest first."""
        sql = """
            SELECT run_id, step, key, about, channel, text, tries FROM notices
            WHERE sent_at IS NULL AND next_at <= ? AND tries < ? ORDER BY at LIMIT ?
        """
        rows = self._db.execute(sql, (now, MOST_TRIES, _MOST_AT_ONCE))
        return [Notice(*row) for row in rows]

    def find_asked(self, run_id: str, step: str, key: str) -> list[Notice]:
        """What people were told when the question came, by channel."""
        sql = """
            SELECT run_id, step, key, about, channel, text, tries FROM notices
            WHERE run_id = ? AND step = ? AND key = ? AND about = 'asked'
        """
        return [Notice(*row) for row in self._db.execute(sql, (run_id, step, key))]

    def find_runs_asked(self, since: float) -> set[str]:
        """Those of which people were asked something since then."""
        sql = "SELECT DISTINCT run_id FROM notices WHERE about = 'asked' AND at > ?"
        return {run_id for (run_id,) in self._db.execute(sql, (since,))}

    def note_sent(self, notice: Notice, now: float) -> None:
        self._note(notice, "sent_at = ?, fault = ''", (now,))

    def note_failed(self, notice: Notice, fault: str, now: float) -> None:
        delay = min(_FIRST_DELAY_SECONDS * 2**notice.tries, _LONGEST_DELAY_SECONDS)
        self._note(notice, "next_at = ?, fault = ?", (now + delay, fault[:500]))

    def _note(self, notice: Notice, change: str, values: tuple[object, ...]) -> None:
        sql = f"""
            UPDATE notices SET {change}, tries = tries + 1
            WHERE run_id = ? AND step = ? AND key = ? AND about = ? AND channel = ?
        """
        key = (notice.run_id, notice.step, notice.key, notice.about, notice.channel)
        with transaction(self._db, "the notices"):
            self._db.execute(sql, (*values, *key))


@contextmanager
def open_notices(home: Path, project: Path) -> "Iterator[NoticeStore]":
    with open_triggers(home, project) as store:
        yield NoticeStore(store.db)
