"""Large values of a SQLite store, read when they are used."""

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from stretto.adapters.stores.sqlite_file import connect
from stretto.events.codec import decode_value
from stretto.problems.errors import StrettoError
from stretto.vocabulary.json_value import Json

_HINT = "its run can be retried: what is missing is made again"


class LargeValues:
    """Works as long as the file is there, also when the journal was closed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: tuple[str, Json] = ("", None)  # a prompt often shows one value twice

    def __call__(self, digest: str) -> Json:
        known, value = self._last
        if known != digest:
            value = self._read(digest)
            self._last = (digest, value)
        return value

    def _read(self, digest: str) -> Json:
        sql = "SELECT value FROM large_values WHERE digest = ?"
        try:
            with closing(connect(self._path)) as db:
                row = db.execute(sql, (digest,)).fetchone()
        except sqlite3.Error as error:
            raise StrettoError(f"the journal {self._path} cannot be read: {error}") from error
        if row is None:
            raise StrettoError(
                f"the journal {self._path} lacks the large output {digest[:12]}", hint=_HINT
            )
        if sha256(row[0].encode()).hexdigest() != digest:
            raise StrettoError(
                f"the large output {digest[:12]} in {self._path} is damaged", hint=_HINT
            )
        return decode_value(row[0])
