"""Connections that are kept for the next read."""

import sqlite3
from pathlib import Path

import pytest

from stretto.adapters.stores.sqlite import Readers


@pytest.fixture
def file(tmp_path: Path) -> Path:
    db = sqlite3.connect(tmp_path / "a.db")
    db.execute("CREATE TABLE t (x TEXT)")
    db.execute("INSERT INTO t VALUES ('a')")
    db.commit()
    db.close()
    return tmp_path / "a.db"


def is_open(db: sqlite3.Connection) -> bool:
    try:
        db.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


def test_a_connection_is_used_again_as_it_was_made(file: Path) -> None:
    readers = Readers(file)
    with readers.one() as first:
        first.text_factory = bytes
    with readers.one() as second:
        assert second is first
        assert second.execute("SELECT x FROM t").fetchone() == ("a",)
    readers.close()
    assert not is_open(first)


def test_two_reads_at_once_have_two_connections_and_few_are_kept(file: Path) -> None:
    readers = Readers(file)
    opened = [readers.one() for _ in range(20)]
    found = [each.__enter__() for each in opened]
    assert len(set(map(id, found))) == 20
    for each in opened:
        each.__exit__(None, None, None)
    assert sum(map(is_open, found)) == 8
    readers.close()
    assert not any(map(is_open, found))


def test_a_connection_that_failed_or_comes_back_late_is_closed(file: Path) -> None:
    readers = Readers(file)
    with pytest.raises(sqlite3.OperationalError), readers.one() as failed:
        failed.execute("SELECT * FROM nothing")
    assert not is_open(failed)
    with readers.one() as late:
        readers.close()
        assert is_open(late)
    assert not is_open(late)
